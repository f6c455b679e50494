"""The board's database: one engine, transactions, the clock, and notices that are sent with a commit.

A use case is a plain function of a transaction. It runs whole in a worker thread, so that no statement hops between
threads, and is run again from its beginning when the database asks for that (a deadlock, a serialization failure):
it must draw what it needs from its arguments and change nothing outside the transaction.
SQLite has one writer, this process, and cases that wait for it share a commit (`together.py`); PostgreSQL has as many
as there are threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from tenure.board.engines import LONG_SECONDS, engine_of
from tenure.board.refused import Refused
from tenure.board.together import Together
from tenure.errors import StoreCorrupt
from tenure.rules.refusal import Refusal

TRIES: Final = 4
AGAIN_SECONDS: Final = 0.05
THREADS: Final = 12
CHANNEL: Final = "tenure_board"

# SQLSTATE of what is worth the same transaction again: serialization failure, deadlock.
_AGAIN: Final = ("40001", "40P01")

P = ParamSpec("P")
T = TypeVar("T")
Notice = tuple[str, str]  # kind and key, such as ("endpoint", its id)
# How a row is locked, from strong to weak: nobody else may lock it; only `keep` may; only `end` may not.
Lock = Literal["end", "edit", "keep"]


class Tx:
    """One transaction of one use case. Not to be kept beyond it, nor used by two threads."""

    def __init__(self, connection: sa.Connection, offset_ms: Callable[[], int], *, writes: bool) -> None:
        self.connection, self.offset_ms, self.writes = connection, offset_ms, writes
        self.postgres = connection.dialect.name == "postgresql"
        self.notices: list[Notice] = []
        self.aside: list[Callable[[Tx], object]] = []  # what a read leaves to be written after it, best effort
        self.started = False

    def now(self) -> int:
        """Whole milliseconds since the epoch by the database's clock, as of this call, not of the beginning (B15)."""
        if self.postgres:
            return int(self.execute(_CLOCK).scalar_one()) + self.offset_ms()
        return time.time_ns() // 1_000_000 + self.offset_ms()  # SQLite has no other clock than its machine's

    def at(self, clock: int) -> int:
        """`now` as of a statement that read `CLOCK`, which is of PostgreSQL alone: one round trip less."""
        return clock + self.offset_ms() if self.postgres else self.now()

    def execute(self, statement: sa.Executable, parameters: Any = None) -> sa.CursorResult[Any]:
        """Run one statement; a list of parameters runs it once for each."""
        try:
            result = self.connection.execute(statement, parameters)
        except sa.exc.DBAPIError as error:
            if not self.started:
                error.add_detail(_UNTOUCHED)
            raise
        self.started = True
        return result

    def one(self, statement: sa.Executable, parameters: Any = None) -> sa.Row[Any] | None:
        """The first row, or None."""
        return self.execute(statement, parameters).first()

    def all(self, statement: sa.Executable, parameters: Any = None) -> list[sa.Row[Any]]:
        """All rows."""
        return list(self.execute(statement, parameters))

    def insert_new(self, table: sa.Table, **values: Any) -> bool:
        """Insert a row unless a unique key of it is taken; whether it was."""
        insert = postgresql.insert if self.postgres else sqlite.insert
        statement = insert(table).values(**values).on_conflict_do_nothing().returning(sa.literal(1))
        return self.one(statement) is not None

    def notify(self, kind: str, key: str) -> None:
        """Tell every server, with the commit, that something about `key` is worth looking at. A hint, never a fact."""
        if (kind, key) not in self.notices:
            self.notices.append((kind, key))

    def unhurried(self) -> None:
        """Let the statements of this transaction take as long as they need, from here on."""
        if self.postgres:
            raw: Any = self.connection.connection.driver_connection
            raw.patience = LONG_SECONDS
            self.execute(sa.text("SET LOCAL statement_timeout = 0"))

    def savepoint(self, statement: str) -> None:
        """Begin, release or go back to a savepoint; SQLite's, and straight to the driver, which is what it is for."""
        raw = self.connection.connection.driver_connection
        assert raw is not None  # noqa: S101 - it is connected
        raw.execute(statement)

    @staticmethod
    def broken(error: Exception) -> bool:
        """Whether the transaction itself is to blame, so that nothing in it may stand."""
        return isinstance(error, sa.exc.DBAPIError) and not isinstance(error, sa.exc.IntegrityError)

    def locked(
        self, statement: sa.Select[Any], of: sa.Table | None = None, *, skip: bool = False, how: Lock = "end"
    ) -> sa.Select[Any]:
        """The select with its rows, or those `of` one table, locked; `skip` leaves out rows that others hold.

        SQLite's writer is alone, and locks nothing.
        """
        if not self.postgres:
            return statement
        return statement.with_for_update(read=how == "keep", key_share=how != "end", skip_locked=skip, of=of)


CLOCK: Final = sa.literal_column("CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)", sa.BigInteger)
_CLOCK: Final = sa.select(CLOCK)
_NOTIFY: Final = sa.text("SELECT pg_notify(:channel, one) FROM unnest(CAST(:payloads AS text[])) AS one")
# How a board looks is told by almost every call, and PostgreSQL lets only one transaction with a notice commit at a
# time: a server that listens gathers these and sends each once in a while.
GATHERED: Final = "board"


class Database:
    """An engine for a URL, and threads to run use cases on. `offset_ms`: added to the clock; tests turn it."""

    def __init__(self, url: str, offset_ms: Callable[[], int] = lambda: 0) -> None:
        self.url, self.offset_ms = url, offset_ms
        self.postgres = not url.startswith("sqlite")
        self.engine = engine_of(url, THREADS)
        self.heard: Callable[[list[Notice]], None] = lambda _: None
        self.gather: Callable[[Notice], None] | None = None
        writers = THREADS if self.postgres else 1
        self._writers = ThreadPoolExecutor(writers, "tenure-board")
        self._readers = self._writers if self.postgres else ThreadPoolExecutor(4, "tenure-board-read")
        self._alone = threading.Lock()
        self._together = Together(self.writing, self._writers)

    async def write(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `case(tx, ...)` in a transaction that is committed when it returns and rolled back when it raises.

        Raises Refused: what the use case refused, or `unavailable` when the database failed.
        """
        if not self.postgres:
            return await asyncio.wrap_future(self._together.submit(lambda tx: case(tx, *args, **kwargs)))
        call = functools.partial(self.writing, case, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._writers, call)

    async def read(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, for a use case that only reads: on SQLite it waits for no writer."""
        call = functools.partial(self.reading, case, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    def writing(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`write` on the calling thread, for programs without a loop."""
        return self._tried(functools.partial(self._once, case, *args, **kwargs))

    def _tried(self, once: Callable[[], T]) -> T:
        """Run a transaction; and again where the database asks for it, or has had nothing of it."""
        with self._failures():
            for _ in range(TRIES - 1):
                try:
                    return once()
                except sa.exc.DBAPIError as error:
                    if not _nothing_done(error):
                        raise
                    time.sleep(random.uniform(0, AGAIN_SECONDS))  # noqa: S311 - so that whoever won a deadlock can go on
            return once()

    def _once(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._turn(), self.engine.connect() as connection, connection.begin():
            if not self.postgres:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            tx = Tx(connection, self.offset_ms, writes=True)
            value = case(tx, *args, **kwargs)
            gather = self.gather
            later = [notice for notice in tx.notices if notice[0] == GATHERED] if gather else []
            self.send(tx, [notice for notice in tx.notices if notice not in later])
        if gather:
            for notice in later:
                gather(notice)
        if not self.postgres and tx.notices:
            self.heard(tx.notices)
        return value

    def send(self, tx: Tx, notices: Sequence[Notice]) -> None:
        """Put notices into the transaction, as its last step; SQLite's are handed over after the commit."""
        if self.postgres and notices:
            tx.execute(_NOTIFY, {"channel": CHANNEL, "payloads": [f"{kind}:{key}" for kind, key in notices]})

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite's writers of this process queue here, in order, instead of finding the file locked."""
        if self.postgres:
            yield
            return
        with self._alone:
            yield

    def reading(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`read` on the calling thread."""
        return self._tried(functools.partial(self._read_once, case, *args, **kwargs))

    def _read_once(self, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self.engine.connect() as connection, connection.begin():
            if not self.postgres:
                connection.exec_driver_sql("BEGIN")
            tx = Tx(connection, self.offset_ms, writes=False)
            value = case(tx, *args, **kwargs)
        for small in tx.aside:
            self._write_aside(small)
        return value

    def _write_aside(self, case: Callable[[Tx], object]) -> None:
        """Write something that nobody waits for, and that is no loss if it fails."""
        with contextlib.suppress(RuntimeError):  # this server stops: its threads take no more
            if self.postgres:
                self._writers.submit(self.writing, case)
            else:
                self._together.submit(case)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """What the database says becomes one refusal, without its words: they may hold what was sent (B16)."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise  # a rule that the schema holds was broken: a fault of ours, not of the database
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError, sa.exc.TimeoutError) as error:
            raise Refused(UNAVAILABLE) from error
        except sa.exc.DatabaseError as error:
            if getattr(error.orig, "sqlite_errorname", "").startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise StoreCorrupt(
                    f"{self.engine.url.database} is damaged or no SQLite database ({error.orig}). Nothing was repaired "
                    "or deleted: stop all that use it, copy it aside, and restore a backup or name another file."
                ) from error
            raise

    async def close(self) -> None:
        """Wait for what runs, then close every connection."""
        await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """`close` on the calling thread."""
        self._writers.shutdown()
        self._readers.shutdown()
        self.engine.dispose()


_UNTOUCHED: Final = "the first statement failed"


def _nothing_done(error: sa.exc.DBAPIError) -> bool:
    """Whether the same transaction may be run again: it was asked for, or an idle connection was found dead."""
    return getattr(error.orig, "sqlstate", None) in _AGAIN or (
        error.connection_invalidated and _UNTOUCHED in error.detail
    )


UNAVAILABLE: Final = Refusal(
    "unavailable",
    "The board's database did not answer. Nothing is known to have changed; try the same call again in a moment.",
    {"retry_after_seconds": 2},
)
