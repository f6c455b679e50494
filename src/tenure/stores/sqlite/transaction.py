"""R39: the user's own writes and one change of ours in one transaction of the file.

Such a transaction holds the file's one write lock, so it is bounded: at its limit it is rolled back and its
connection closed. A thread of its own waits for the lock, watches the limit and does all that may wait
for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenure.errors import StoreError, TransactionTooLong
from tenure.stores.contract import Ask, Change, Outcome, Reading
from tenure.stores.sqlite.connecting import Database, Plain, connect, patiently
from tenure.stores.sqlite.documents import apply, hint, read
from tenure.stores.sqlite.guard import GuardedConnection
from tenure.stores.sqlite.refusals import forked, refusal, unanswered, uncertain
from tenure.stores.sqlite.schema import BEGIN_WRITE, COMMIT, ROLLBACK

T = TypeVar("T")


class SqliteTransaction:
    """One transaction; see the contract. `told` hears, on the loop, of a document changed with a hint."""

    connection: Any

    def __init__(self, database: Database, limit_seconds: float, told: Callable[[frozenset[str]], None]) -> None:
        self._database, self._limit, self._told = database, limit_seconds, told
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._guarded: GuardedConnection | None = None
        self._unwanted = False
        # Why nothing may be asked any more; set and looked at under the gate, so that no job is left behind.
        self._over: StoreError | None = None
        self._gate = threading.Lock()

    # --- on the loop --------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Get the file's write lock. Raises StoreBusy where others keep it."""
        begun: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._run, args=(begun,), name="tenure-sqlite-transaction", daemon=True).start()
        seconds = self._database.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                await begun
        except BaseException as error:
            self._unwanted = True
            self._jobs.put(lambda: self._end(ROLLBACK))
            if isinstance(error, TimeoutError):
                raise unanswered(self._database.path, seconds, "while a transaction was begun") from None
            raise
        self.connection = self._guarded

    async def read(self, ask: Ask) -> Reading:
        return await self._ask(lambda connection: read(Plain(connection), self._database.sql, [ask]))

    async def commit(self, change: Change | None) -> bool:
        return await self._ask(lambda connection: self._commit(connection, change))

    async def rollback(self) -> None:
        try:
            await self._ask(lambda _: self._end(ROLLBACK))
        except TransactionTooLong:
            raise
        except StoreError:
            pass  # it has ended

    async def _ask(self, work: Callable[[GuardedConnection], T]) -> T:
        """Have the thread do it, while none of the user's statements runs."""
        if os.getpid() != self._pid:
            raise forked(self._database.path)
        answer: asyncio.Future[T] = self._loop.create_future()
        with self._gate:
            if self._over is not None:
                raise self._over
            self._jobs.put(lambda: self._do(work, answer))
        try:
            async with asyncio.timeout(self._database.settings.timeout):
                return await answer
        except TimeoutError:
            raise unanswered(self._database.path, self._database.settings.timeout) from None

    # --- in the thread ------------------------------------------------------------------------------------

    def _run(self, begun: asyncio.Future[None]) -> None:
        try:
            patiently(self._lock, self._database.path, self._database.patience, lambda: self._unwanted)
        except Exception as error:  # noqa: BLE001 - whatever it was, the one who begins hears of it
            self._end(ROLLBACK)
            self._reply(begun, error)
            return
        end = time.monotonic() + self._limit
        self._reply(begun, None)
        while self._over is None:
            try:
                self._jobs.get(timeout=max(0.0, end - time.monotonic()))()
            except queue.Empty:
                self._expire()
        # What was asked in the last moment is refused, one by one.
        with contextlib.suppress(queue.Empty):
            while True:
                self._jobs.get_nowait()()

    def _lock(self) -> None:
        self._database.file.check()
        if self._guarded is None:
            self._guarded = connect(self._database, GuardedConnection)
        Plain(self._guarded).execute(BEGIN_WRITE)
        self._guarded.hand_over()

    def _do(self, work: Callable[[GuardedConnection], T], answer: asyncio.Future[T]) -> None:
        if self._over is not None or self._guarded is None:
            self._reply(answer, self._over)
            return
        try:
            with self._guarded.lock:
                result = work(self._guarded)
        except sqlite3.Error as error:
            self._reply(answer, refusal(error, self._database.path))
        except Exception as error:  # noqa: BLE001 - whoever asked hears of it
            self._reply(answer, error)
        else:
            self._reply(answer, result)

    def _commit(self, connection: GuardedConnection, change: Change | None) -> bool:
        try:
            connection.check()
            current = change is None or self._write(connection, change)
            self._database.file.check()
        except BaseException:
            self._end(ROLLBACK)
            raise
        if not current:
            self._end(ROLLBACK)
            return False
        try:
            self._end(COMMIT)
        except sqlite3.IntegrityError as error:
            raise StoreError(f"The writes break a constraint ({error}), and all was rolled back.") from error
        except sqlite3.Error as error:
            raise uncertain(error, self._database.path) from error
        self._database.file.check()
        if change is not None and change.hint:
            self._on_loop(self._told, frozenset((change.name,)))
        return True

    def _write(self, connection: GuardedConnection, change: Change) -> bool:
        """Whether the change was current, and is written."""
        plain = Plain(connection)
        applied = apply(plain, self._database.sql, [change])
        if applied.outcomes[0] is not Outcome.DONE:
            return False
        if change.hint:
            hint(plain, self._database.sql, [change.name], self._database.origin, applied.now)
        return True

    def _end(self, how: str) -> None:
        """Commit or roll back; nothing can be asked afterwards."""
        with self._gate:
            self._over = self._over or StoreError("This transaction has ended. Open another with run.transaction().")
        if self._guarded is not None:
            with self._guarded.lock:
                self._guarded.end(how)

    def _expire(self) -> None:
        """The limit has passed: no statement runs from here on, and what was written is undone."""
        too_long = TransactionTooLong(
            f"run.transaction() was open for longer than its limit of {self._limit:g} s and was rolled back: none of "
            f"its writes stand. It holds the file's only write lock, so do slow work before it, or use a longer lease."
        )
        with self._gate:
            self._over = too_long
        if self._guarded is not None:
            self._guarded.refused = too_long
            with contextlib.suppress(sqlite3.Error):
                self._end(ROLLBACK)

    def _reply(self, future: asyncio.Future[Any], answer: object) -> None:
        self._on_loop(_settle, future, answer)

    def _on_loop(self, step: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(step, *arguments)


def _settle(future: asyncio.Future[Any], answer: object) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
