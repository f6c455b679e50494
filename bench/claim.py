"""A claim (read, decide, commit) beside one bare primary-key read and one bare update, equally durable."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from rows import Row, p50, percentile

from tenure.rules import commands as c
from tenure.rules.job import EMPTY, encode
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Record
from tenure.stores.opening import store_from_url

SLOT = 60_000


def measure(*, quick: bool) -> list[Row]:
    """The two are taken in turns, so that both see the same machine; and again beside a million old records."""
    count = 60 if quick else 600
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        bare, ours = asyncio.run(_turns(Path(folder), count))
    ratio = p50(ours) / p50(bare)
    detail = {
        "bare_p50_ms": p50(bare) * 1e3,
        "ours_p50_ms": p50(ours) * 1e3,
        "bare_p99_ms": percentile(bare, 0.99) * 1e3,
        "ours_p99_ms": percentile(ours, 0.99) * 1e3,
    }
    rows = [Row("a claim / a bare read and update, SQLite, p50", ratio, "x", "<= 1.8", ratio <= 1.8, detail)]
    return rows + _at_depth(20_000 if quick else 1_000_000, count)


async def _turns(folder: Path, count: int) -> tuple[list[float], list[float]]:
    ours = await Claimer.open(folder / "ours.db")
    plain = _plain(folder / "bare.db")
    bare: list[float] = []
    for n in range(count):
        begin = time.perf_counter()
        _bare(plain, n)
        bare.append(time.perf_counter() - begin)
        await ours.claim(n)
    plain.close()
    await ours.close()
    return bare, ours.taken


class Claimer:
    """Claims of new runs through the ledger, timed; each is finished before the job's next, untimed."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.ledger = Ledger(store, StoreClock(SystemClock()))
        self.taken: list[float] = []

    @classmethod
    async def open(cls, path: Path) -> Claimer:
        store = store_from_url(f"sqlite:///{path}")
        await store.open()
        return cls(store)

    async def claim(self, n: int) -> None:
        slot, token, job = SLOT * (n + 1), f"token-{n:032}", f"job-{n % 50}"
        bound = 10**13  # these slots are of 1970
        command = c.Claim(slot, token, "bench", 30_000, 3, bound, "skip", "schedule", True)
        begin = time.perf_counter()
        answered = await self.ledger.ask_one(job, command)
        self.taken.append(time.perf_counter() - begin)
        assert isinstance(answered.answer, c.Won), answered.answer
        await self.ledger.ask_one(job, c.Finish(slot, token, "success"))

    async def close(self) -> None:
        await self.store.close()


def _plain(path: Path) -> sqlite3.Connection:
    plain = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=wal", "synchronous=full"):
        plain.execute(f"PRAGMA {pragma}")
    plain.execute("CREATE TABLE t (name TEXT PRIMARY KEY, version INTEGER, body BLOB) WITHOUT ROWID")
    plain.executemany("INSERT INTO t VALUES (?, 0, ?)", [(f"job-{n}", b"x" * 250) for n in range(50)])
    return plain


def _bare(plain: sqlite3.Connection, n: int) -> None:
    name = f"job-{n % 50}"
    plain.execute("SELECT version, body FROM t WHERE name = ?", (name,)).fetchone()
    plain.execute("BEGIN IMMEDIATE")
    plain.execute("UPDATE t SET version = version + 1, body = ? WHERE name = ?", (b"y" * 250, name))
    plain.execute("COMMIT")


def _at_depth(depth: int, count: int) -> list[Row]:
    """p99 of a claim beside `depth` records of history, against that beside a thousand; taken in turns."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        shallow, deep = asyncio.run(_deep(Path(folder), depth, count))
    ratio = percentile(deep, 0.99) / percentile(shallow, 0.99)
    detail = {"p50_ratio": p50(deep) / p50(shallow), "p99_ms": percentile(deep, 0.99) * 1e3}
    what = f"a claim beside {depth:,} records / beside 1,000, p99"
    return [Row(what, ratio, "x", "<= 1.5", ratio <= 1.5, detail)]


async def _deep(folder: Path, depth: int, count: int) -> tuple[list[float], list[float]]:
    claimers = []
    for records in (1_000, depth):
        claimer = await Claimer.open(folder / f"{records}.db")
        await _fill(claimer.store, records)
        claimers.append(claimer)
    for n in range(count):
        for claimer in claimers if n % 2 else claimers[::-1]:
            await claimer.claim(n)
    for claimer in claimers:
        await claimer.close()
    return claimers[0].taken, claimers[1].taken


async def _fill(store: Any, records: int) -> None:
    batch = 5_000
    for first in range(0, records, batch):
        name = f"job:job-{first // batch % 50}"
        version = (await store.read([Ask(name)])).found[0].version
        many = tuple(
            Record(f"-{n}", -n, "success", 0, 0, b"x" * 200) for n in range(first + 1, min(first + batch, records) + 1)
        )
        await store.commit([Change(name, version, encode(EMPTY), records=many)])
