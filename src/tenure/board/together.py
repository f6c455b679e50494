"""SQLite's writes of one server: whatever is waiting when the writer is free shares one commit.

A commit waits for the disk, and SQLite has one writer. So use cases that come meanwhile are run in one transaction,
each in a savepoint of its own: one that raises leaves the others as they are, and nobody is answered before the commit.
Must not know what a transaction is: `database.py` gives it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
# More would have the first of a batch wait too long for the last.
MOST: Final = 32

Case = Callable[[Any], Any]  # of a Tx


class _Raised(Exception):
    def __init__(self, error: Exception) -> None:
        self.error = error


class Together:
    """The queue before the one writer."""

    def __init__(self, writing: Callable[[Case], Any], writer: Executor) -> None:
        self._writing, self._writer = writing, writer
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Case, Future[Any]]] = deque()
        self._runs = False

    def submit(self, case: Callable[[Any], T]) -> Future[T]:
        """Run the case soon; its future is done after the commit. One that is cancelled in time is not begun.

        Raises RuntimeError when the writer takes nothing any more.
        """
        future: Future[T] = Future()
        with self._lock:
            if not self._runs:
                self._writer.submit(self._run)
                self._runs = True
            self._waiting.append((case, future))
        return future

    def _run(self) -> None:
        while True:
            with self._lock:
                batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                self._runs = bool(batch)
            if not batch:
                return
            self._do([(case, future) for case, future in batch if future.set_running_or_notify_cancel()])

    def _do(self, batch: list[tuple[Case, Future[Any]]]) -> None:
        cases = [case for case, _ in batch]
        try:
            told = [self._writing(cases[0])] if len(cases) == 1 else self._writing(lambda tx: _each(tx, cases))
        except BaseException as error:  # noqa: BLE001 - whatever it was, those who wait must hear of it
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), one in zip(batch, told, strict=True):
            if isinstance(one, _Raised):
                future.set_exception(one.error)
            else:
                future.set_result(one)


def _each(tx: Any, cases: list[Case]) -> list[Any]:
    """Run each in its savepoint; what the database itself refuses ends them all."""
    told: list[Any] = []
    for case in cases:
        notices = len(tx.notices)
        tx.savepoint("SAVEPOINT one")
        try:
            told.append(case(tx))
        except Exception as error:
            if tx.broken(error):
                raise
            tx.savepoint("ROLLBACK TO one")
            del tx.notices[notices:]
            told.append(_Raised(error))
        tx.savepoint("RELEASE one")
    return told
