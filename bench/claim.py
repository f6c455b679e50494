"""A claim (read, decide, commit) beside one bare primary-key read and one bare update, equally durable."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import psycopg
import redis.asyncio
from claiming import JOBS, Claimer
from rows import Row, p50, percentile
from servers import postgres, store, valkey

OLD, NEW = b"x" * 250, b"y" * 250


class Bare(Protocol):
    """A client of the store without us."""

    async def step(self, name: str) -> None:
        """Read by key, update by key."""

    async def close(self) -> None: ...


class BareSQLite:
    """One connection."""

    def __init__(self, plain: sqlite3.Connection) -> None:
        self._plain = plain

    @classmethod
    async def open(cls, url: str) -> BareSQLite:
        plain = sqlite3.connect(url.removeprefix("sqlite:///") + "-bare", isolation_level=None)
        for pragma in ("journal_mode=wal", "synchronous=full"):
            plain.execute(f"PRAGMA {pragma}")
        plain.execute("CREATE TABLE IF NOT EXISTS t (name TEXT PRIMARY KEY, version INTEGER, body BLOB) WITHOUT ROWID")
        plain.executemany("INSERT OR REPLACE INTO t VALUES (?, 0, ?)", [(f"job-{n}", OLD) for n in range(JOBS)])
        return cls(plain)

    async def step(self, name: str) -> None:
        self.now(name)

    def now(self, name: str) -> None:
        """The same in a loop that is not asyncio's."""
        self._plain.execute("SELECT version, body FROM t WHERE name = ?", (name,)).fetchone()
        self._plain.execute("BEGIN IMMEDIATE")
        self._plain.execute("UPDATE t SET version = version + 1, body = ? WHERE name = ?", (NEW, name))
        self._plain.execute("COMMIT")

    async def close(self) -> None:
        self._plain.close()


class BarePostgres:
    """One connection of psycopg's, of the kind that the store makes."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    @classmethod
    async def open(cls, url: str, prepare: int | None = None) -> BarePostgres:
        plain = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=prepare)
        await plain.execute("CREATE TABLE bare (name text PRIMARY KEY, version bigint, body bytea)")
        async with plain.cursor() as cursor:
            await cursor.executemany("INSERT INTO bare VALUES (%s, 0, %s)", [(f"job-{n}", OLD) for n in range(JOBS)])
        return cls(plain)

    async def step(self, name: str) -> None:
        await (await self._plain.execute("SELECT version, body FROM bare WHERE name = %s", (name,))).fetchone()
        await self._plain.execute("UPDATE bare SET version = version + 1, body = %b WHERE name = %s", (NEW, name))

    async def close(self) -> None:
        await self._plain.close()


class BareValkey:
    """redis-py's own client."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    @classmethod
    async def open(cls, url: str) -> BareValkey:
        plain = redis.asyncio.Redis.from_url(url)
        for n in range(JOBS):
            await plain.set(f"job-{n}", OLD)
        return cls(plain)

    async def step(self, name: str) -> None:
        await self._plain.get(name)
        await self._plain.set(name, NEW)

    async def close(self) -> None:
        await self._plain.aclose()


@dataclass(frozen=True)
class Case:
    """One store as it is set. `decides`: whether the goal is asked of it."""

    title: str
    served: Callable[[], AbstractContextManager[str]]
    bare: Callable[[str], Any]
    options: dict[str, Any] = field(default_factory=dict)
    decides: bool = True


@contextmanager
def _lazy_postgres() -> Any:
    with postgres() as server:
        yield server.url + "?options=-csynchronous_commit%3Doff"


@contextmanager
def _strict_valkey() -> Any:
    with valkey(appendfsync="always") as server:
        yield server.url


CASES = (
    Case("SQLite", partial(store, "SQLite"), BareSQLite.open),
    Case("PostgreSQL", partial(store, "PostgreSQL"), BarePostgres.open),
    Case("Valkey", partial(store, "Valkey"), BareValkey.open),
    Case("Valkey, appendfsync always", _strict_valkey, BareValkey.open),
    # Without the disk only the statements and Python are left: no goal, but to be seen.
    Case("PostgreSQL, synchronous_commit=off", _lazy_postgres, BarePostgres.open, decides=False),
    Case("the same, prepared", _lazy_postgres, partial(BarePostgres.open, prepare=1), {"prepare": 1}, decides=False),
)


def measure(*, quick: bool) -> list[Row]:
    """The two are taken in turns, so that both see the same machine."""
    return [_row(case, 100 if quick else 1_500) for case in CASES]


def _row(case: Case, count: int) -> Row:
    with case.served() as url:
        bare, ours = asyncio.run(turns(case, url, count))
    ratio = p50(ours) / p50(bare)
    # A disk that others use has two speeds, and a median may lie on either side of the step between them.
    quick = percentile(ours, 0.25) / percentile(bare, 0.25)
    detail = {
        "p25_ratio": quick,
        "bare_p50_ms": p50(bare) * 1e3,
        "ours_p50_ms": p50(ours) * 1e3,
        "bare_p99_ms": percentile(bare, 0.99) * 1e3,
        "ours_p99_ms": percentile(ours, 0.99) * 1e3,
    }
    told = f"{p50(ours) * 1e3:.2f} ms against {p50(bare) * 1e3:.2f} ms; at p25 {quick:.2f} x"
    title = f"a claim / a bare read and update, p50: {case.title}"
    if not case.decides:
        return Row(title, ratio, "x", detail=detail, remark=told)
    return Row(title, ratio, "x", "<= 1.8", ratio <= 1.8, detail, told)


async def turns(case: Case, url: str, count: int) -> tuple[list[float], list[float]]:
    """Seconds of each bare step and of each claim, one after the other, who is first alternating."""
    ours = await Claimer.open(url, **case.options)
    plain: Bare = await case.bare(url)
    bare: list[float] = []
    for n in range(count + JOBS):
        if n % 2:
            await ours.claim(n)
        begin = time.perf_counter()
        await plain.step(f"job-{n % JOBS}")
        bare.append(time.perf_counter() - begin)
        if not n % 2:
            await ours.claim(n)
    await plain.close()
    await ours.close()
    return bare[JOBS:], ours.known
