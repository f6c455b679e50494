"""The one thread of a store that writes, and its group commit.

All that is asked while a transaction runs goes into the next one together: one lock, one fsync for all.
Answers travel back to the loop in one step.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tenure.errors import StoreError
from tenure.stores.contract import Change, Outcome, Verdict
from tenure.stores.sqlite.connecting import Database, abandon, patiently, pauses, reopen, set_up
from tenure.stores.sqlite.documents import Applied, apply, hint
from tenure.stores.sqlite.refusals import broken, busy, refusal, unanswered, uncertain
from tenure.stores.sqlite.schema import BEGIN_WRITE, COMMIT, ROLLBACK

# More changes than this wait for the next transaction: other processes want their turn.
GROUP: Final = 2_000
# Hints older than this are deleted, now and then, by who writes hints anyway.
HINT_MS: Final = 60_000
SWEEP_SECONDS: Final = 10.0


@dataclass(slots=True, eq=False)
class Call:
    """One commit that somebody waits for, until `give_up` on the monotonic clock."""

    changes: tuple[Change, ...]
    answer: asyncio.Future[Verdict]
    began: float
    give_up: float


Answers = list[tuple[Call, Verdict | Exception]]


class Writer:
    """The thread, its connection and its queue. `told` hears, on the loop, which documents were hinted."""

    def __init__(self, database: Database, told: Callable[[frozenset[str]], None]) -> None:
        self._database, self._told = database, told
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._stopping = False
        self._swept = 0.0
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="tenure-sqlite-writer", daemon=True)

    async def start(self) -> None:
        """Set the file up, in the thread. Raises StoreError; the thread has ended then."""
        self._thread.start()
        seconds = self._database.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                await self._opened
        except BaseException as error:
            self._queue.put(None)
            if isinstance(error, TimeoutError):
                raise unanswered(self._database.path, seconds, "while it was opened") from None
            raise

    def put(self, call: Call) -> None:
        """Have it committed; never waits."""
        self._queue.put(call)

    async def stop(self) -> None:
        """Finish what was asked, close the connection, end the thread; one that the disk holds is left behind."""
        self._queue.put(None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._database.settings.timeout):
                await self._ended
            self._thread.join()

    # --- in the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            set_it_up = functools.partial(set_up, self._database)
            self._connection = patiently(set_it_up, self._database.path, self._database.patience)
        except Exception as error:  # noqa: BLE001 - whatever it was, the one who opens hears of it
            self._on_loop(_settle, self._opened, error)
        else:
            self._on_loop(_settle, self._opened, None)
            while calls := self._next():
                try:
                    self._serve(calls)
                except Exception as error:  # noqa: BLE001 - whatever it was, the thread has more calls to serve
                    self._answer([(call, error) for call in calls])
        if self._connection is not None:
            abandon(self._connection)
        self._on_loop(_settle, self._ended, None)

    def _next(self) -> list[Call]:
        """The calls of the next transaction; none when it is time to stop."""
        first = None if self._stopping else self._queue.get()
        return [] if first is None else self._more([first])

    def _more(self, calls: list[Call]) -> list[Call]:
        """These calls and what was asked meanwhile, up to the size of a group."""
        size = sum(len(call.changes) for call in calls)
        while size < GROUP and not self._stopping and not self._queue.empty():
            call = self._queue.get()
            if call is None:
                self._stopping = True
            else:
                calls.append(call)
                size += len(call.changes)
        return calls

    def _serve(self, calls: list[Call], alone: bool = False) -> None:
        """Commit these calls in one transaction, and answer them. `alone`: with no others."""
        connection, calls = self._lock(calls, alone)
        if connection is None:
            return
        try:
            applied, hinted = self._apply(connection, calls)
        except Exception as error:  # noqa: BLE001 - a value that SQLite can't hold fails its own call only
            self._undo(connection, error)
            if len(calls) == 1:
                self._answer([(calls[0], self._refusal(error, calls[0].began))])
                return
            # Nothing was applied: whose fault it is comes out when each is taken alone.
            for call in calls:
                self._serve([call], alone=True)
            return
        failure = self._end(connection, applied.wrote)
        if failure is not None:
            self._answer([(call, failure) for call in calls])
        else:
            self._answer(_verdicts(calls, applied), hinted)

    def _lock(self, calls: list[Call], alone: bool) -> tuple[sqlite3.Connection | None, list[Call]]:
        """Get the write lock. Calls whose time runs out meanwhile are answered; none of the rest is left behind."""
        waits: Iterator[float] | None = None
        while calls:
            try:
                connection = self._connection or self._connected()
                connection.execute(BEGIN_WRITE)
            except sqlite3.Error as error:
                late = [call for call in calls if not busy(error) or time.monotonic() > call.give_up]
                self._answer(
                    [(call, refusal(error, self._database.path, time.monotonic() - call.began)) for call in late]
                )
                calls = [call for call in calls if call not in late]
                if broken(error):
                    self._drop()
            except StoreError as error:
                self._answer([(call, error) for call in calls])
                calls = []
            else:
                return connection, calls if alone else self._more(calls)
            if calls:
                waits = waits or pauses()
                time.sleep(next(waits))
                calls = calls if alone else self._more(calls)
        return None, []

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = reopen(self._database)
        return self._connection

    def _apply(self, connection: sqlite3.Connection, calls: list[Call]) -> tuple[Applied, frozenset[str]]:
        changes = [change for call in calls for change in call.changes]
        applied = apply(connection, self._database.sql, changes)
        hinted = _hinted(changes, applied)
        if hinted:
            hint(connection, self._database.sql, hinted, self._database.origin, applied.now)
            applied.wrote = True
            if time.monotonic() - self._swept > SWEEP_SECONDS:
                self._swept = time.monotonic()
                connection.execute(self._database.sql.sweep, (applied.now - HINT_MS,))
        return applied, hinted

    def _end(self, connection: sqlite3.Connection, wrote: bool) -> StoreError | None:
        """Commit, or give the lock back where nothing was written. The failure, where there was one."""
        try:
            connection.execute(COMMIT if wrote else ROLLBACK)
        except sqlite3.Error as error:
            self._undo(connection, error)
            return uncertain(error, self._database.path) if wrote else refusal(error, self._database.path)
        try:
            self._database.file.check()  # what was written into a deleted file is not to be called done
        except StoreError as error:
            return error
        return None

    def _undo(self, connection: sqlite3.Connection, error: Exception) -> None:
        """Roll back; a connection that may not be trusted any more is given up."""
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute(ROLLBACK)
        if connection.in_transaction or (isinstance(error, sqlite3.Error) and broken(error)):
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            abandon(self._connection)
        self._connection = None

    def _refusal(self, error: Exception, began: float) -> Exception:
        """The error to answer with, to a call that began then."""
        if not isinstance(error, sqlite3.Error):
            return error
        return refusal(error, self._database.path, time.monotonic() - began)

    def _answer(self, answers: Answers, hinted: frozenset[str] = frozenset()) -> None:
        if answers:
            self._on_loop(self._deliver, answers, hinted)

    def _on_loop(self, step: Callable[..., None], *arguments: object) -> None:
        try:  # noqa: SIM105 - suppress() costs a microsecond, on the way of every answer
            self._loop.call_soon_threadsafe(step, *arguments)
        except RuntimeError:
            pass  # the loop was closed: nobody waits any more

    # --- on the loop --------------------------------------------------------------------------------------

    def _deliver(self, answers: Answers, hinted: frozenset[str]) -> None:
        for call, answer in answers:
            if call.answer.done():
                continue
            if isinstance(answer, Exception):
                call.answer.set_exception(answer)
            else:
                call.answer.set_result(answer)
        if hinted:
            self._told(hinted)


_NOBODY: Final[frozenset[str]] = frozenset()


def _hinted(changes: list[Change], applied: Applied) -> frozenset[str]:
    """The documents of which others are to hear."""
    if not any([change.hint for change in changes]):  # noqa: C419 - a list is faster than a generator
        return _NOBODY
    done = zip(changes, applied.outcomes, strict=True)
    return frozenset(change.name for change, outcome in done if change.hint and outcome is Outcome.DONE)


def _verdicts(calls: list[Call], applied: Applied) -> Answers:
    """Each call's share of the outcomes."""
    answers: Answers = []
    begin = 0
    for call in calls:
        end = begin + len(call.changes)
        answers.append((call, Verdict(applied.now, tuple(applied.outcomes[begin:end]))))
        begin = end
    return answers


def _settle(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(None)
