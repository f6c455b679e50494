"""A claim (read, decide, commit) beside one bare primary-key read and one bare update, equally durable."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from rows import Row, p50, percentile

from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
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
    return rows + _at_depth(1_000 if quick else 1_000_000, count)


async def _turns(folder: Path, count: int) -> tuple[list[float], list[float]]:
    store = store_from_url(f"sqlite:///{folder}/ours.db")
    await store.open()
    ledger = Ledger(store, StoreClock(SystemClock()))
    plain = _plain(folder / "bare.db")
    bare: list[float] = []
    ours: list[float] = []
    for n in range(count):
        begin = time.perf_counter()
        _bare(plain, n)
        bare.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        answered = await ledger.ask_one(f"job-{n % 50}", _claim(n))
        ours.append(time.perf_counter() - begin)
        assert isinstance(answered.answer, c.Won), answered.answer
    plain.close()
    await store.close()
    return bare, ours


def _claim(n: int) -> c.Claim:
    bound = 10**13  # these slots are of 1970
    return c.Claim(SLOT * (n + 1), f"token-{n:032}", "bench", 1, 1, bound, "skip", "schedule", True)


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
    """p99 of a claim beside `depth` records of history, against that beside a thousand."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        for records in (1_000, depth):
            found[records] = asyncio.run(_deep(Path(folder) / f"{records}.db", records, count))
    ratio = percentile(found[depth], 0.99) / percentile(found[1_000], 0.99)
    detail = {"records": depth, "p99_ms": percentile(found[depth], 0.99) * 1e3}
    return [Row(f"a claim beside {depth:,} records / beside 1,000, p99", ratio, "x", "<= 1.5", ratio <= 1.5, detail)]


async def _deep(path: Path, records: int, count: int) -> list[float]:
    from tenure.stores.contract import Change, Record

    store = store_from_url(f"sqlite:///{path}")
    await store.open()
    batch = 5_000
    for first in range(0, records, batch):
        name = f"job:old-{first // batch % 20}"
        version = (await store.read([_ask(name)])).found[0].version
        many = tuple(
            Record(str(SLOT * n), SLOT * n, "success", SLOT * n, SLOT * n, b"x" * 200)
            for n in range(first, min(first + batch, records))
        )
        await store.commit([Change(name, version, b"{}", records=many)])
    ledger = Ledger(store, StoreClock(SystemClock()))
    taken = []
    for n in range(count):
        begin = time.perf_counter()
        await ledger.ask_one(f"job-{n % 50}", _claim(n))
        taken.append(time.perf_counter() - begin)
    await store.close()
    return taken


def _ask(name: str):  # noqa: ANN202
    from tenure.stores.contract import Ask

    return Ask(name)
