"""PostgreSQL: a claim (read, decide, commit) beside one bare primary-key read and one bare update; batches; depth.

Both go through psycopg connections of the same kind, equally durable, without prepared statements, in turns.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from rows import Row, p50, percentile

from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger, Order
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.opening import store_from_url

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from postgres_server import Postgres, wheel

SLOT = 60_000
JOBS = 50
LONG_AGO = 10**13  # these slots are of 1970
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "128MB"}


def measure(*, quick: bool) -> list[Row]:
    """On one server, made for it and removed."""
    with _server() as url:
        return asyncio.run(_measured(url, quick))


@contextmanager
def _server() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="tenure-bench-"))
    folder.chmod(0o755)  # the user that PostgreSQL runs as reads it
    server = Postgres(wheel(), folder, **DURABLE).make()
    try:
        yield server.url
    finally:
        server.remove()


async def _measured(url: str, quick: bool) -> list[Row]:
    count = 60 if quick else 600
    bare, ours = await _turns(url, "durable", count)
    quickly = url + "?options=-csynchronous_commit%3Doff"
    bare_quick, ours_quick = await _turns(quickly, "lazy", count)
    prepared = await _turns(quickly, "prepared", count, prepare=1)
    ratio = p50(ours) / p50(bare)
    detail = {
        "bare_p50_ms": p50(bare) * 1e3,
        "ours_p50_ms": p50(ours) * 1e3,
        "bare_p99_ms": percentile(bare, 0.99) * 1e3,
        "ours_p99_ms": percentile(ours, 0.99) * 1e3,
    }
    lazily = {"bare_p50_ms": p50(bare_quick) * 1e3, "ours_p50_ms": p50(ours_quick) * 1e3}
    ready = {"bare_p50_ms": p50(prepared[0]) * 1e3, "ours_p50_ms": p50(prepared[1]) * 1e3}
    what = "a claim / a bare read and update, PostgreSQL"
    return [
        Row(f"{what}, p50", ratio, "x", "<= 1.8", ratio <= 1.8, detail),
        # Without the disk only the statements and Python are left: no goal, but to be seen.
        Row(f"{what}, synchronous_commit=off, p50", p50(ours_quick) / p50(bare_quick), "x", detail=lazily),
        Row(f"{what}, off and prepared, p50", p50(prepared[1]) / p50(prepared[0]), "x", detail=ready),
        *await _batches(url, quick),
        await _at_depth(url, 20_000 if quick else 1_000_000, count),
    ]


async def _turns(url: str, schema: str, count: int, prepare: int | None = None) -> tuple[list[float], list[float]]:
    """The two in turns, so that both see the same machine."""
    ours = await Claimer.open(url, schema, prepare)
    plain = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=prepare)
    await plain.execute("DROP TABLE IF EXISTS bare")
    await plain.execute("CREATE TABLE bare (name text PRIMARY KEY, version bigint, body bytea)")
    async with plain.cursor() as cursor:
        names = [(f"job-{n}", b"x" * 250) for n in range(JOBS)]
        await cursor.executemany("INSERT INTO bare VALUES (%s, 0, %s)", names)
    bare: list[float] = []
    for n in range(count):
        name = f"job-{n % JOBS}"
        begin = time.perf_counter()
        await (await plain.execute("SELECT version, body FROM bare WHERE name = %s", (name,))).fetchone()
        await plain.execute("UPDATE bare SET version = version + 1, body = %b WHERE name = %s", (b"y" * 250, name))
        bare.append(time.perf_counter() - begin)
        await ours.claim(n)
    await plain.close()
    await ours.store.close()
    return bare, ours.known


class Claimer:
    """Claims of new runs through the ledger, timed; each is finished before the job's next, untimed."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.ledger = Ledger(store, StoreClock(SystemClock()))
        self.taken: list[float] = []

    @property
    def known(self) -> list[float]:
        """Those that updated a document: the first claim of each job, once in its life, inserts it."""
        return self.taken[JOBS:]

    @classmethod
    async def open(cls, url: str, schema: str, prepare: int | None = None) -> Claimer:
        store = store_from_url(url, schema=schema, prepare=prepare)
        await store.open()
        return cls(store)

    async def claim(self, n: int) -> None:
        slot, token, job = SLOT * (n + 1), f"token-{n:032}", f"job-{n % JOBS}"
        command = c.Claim(slot, token, "bench", 30_000, 3, LONG_AGO, "skip", "schedule", True)
        begin = time.perf_counter()
        answered = await self.ledger.ask_one(job, command)
        self.taken.append(time.perf_counter() - begin)
        assert isinstance(answered.answer, c.Won), answered.answer
        await self.ledger.ask_one(job, c.Finish(slot, token, "success"))


async def _batches(url: str, quick: bool) -> list[Row]:
    """A thousand claims, and the heartbeats of five thousand runs: calls, and how long they take."""
    claims, beats = (200, 500) if quick else (1_000, 5_000)
    claimer = await Claimer.open(url, "batches")
    calls = Calls(claimer.store)
    names = [f"job-{n:05}" for n in range(beats)]
    wins = [
        Order(name, c.Claim(SLOT, f"token-{name:032}", "bench", 600_000, 3, LONG_AGO, "skip", "schedule", True))
        for name in names
    ]
    first = await calls.taken(claimer.ledger.ask(wins[:claims]))
    await claimer.ledger.ask(wins[claims:])
    beating = [Order(one.job, c.Heartbeat(SLOT, one.command.token)) for one in wins]  # type: ignore[union-attr]
    second = await calls.taken(claimer.ledger.ask(beating))
    await claimer.store.close()
    return [
        Row(f"{claims:,} claims at once: calls to the store", first[0], "", "2", first[0] == 2, {"ms": first[1]}),
        Row(f"{beats:,} heartbeats at once: calls", second[0], "", "<= 3", second[0] <= 3, {"ms": second[1]}),
    ]


class Calls:
    """Counts the calls to a store."""

    def __init__(self, store: Any) -> None:
        self.count = 0
        self._read, self._commit = store.read, store.commit
        store.read, store.commit = self.read, self.commit

    async def read(self, asks: Any) -> Any:
        self.count += 1
        return await self._read(asks)

    async def commit(self, changes: Any) -> Any:
        self.count += 1
        return await self._commit(changes)

    async def taken(self, work: Any) -> tuple[int, float]:
        """How many calls the work took, and how many milliseconds."""
        self.count, begin = 0, time.perf_counter()
        await work
        return self.count, (time.perf_counter() - begin) * 1e3


async def _at_depth(url: str, depth: int, count: int) -> Row:
    """p99 of a claim beside `depth` records of history, against that beside a thousand; taken in turns."""
    claimers = []
    for records in (1_000, depth):
        schema = f"deep_{records}"
        claimers.append(await Claimer.open(url, schema))
        async with await psycopg.AsyncConnection.connect(url, options=f"-csearch_path={schema}") as plain:
            await plain.execute(
                "INSERT INTO tenure_history SELECT 'job:job-' || n %% 50, '-' || n, -n, 'success', 0, 0, "
                "repeat('x', 200)::bytea FROM generate_series(1, %s::int) n",
                (records,),
            )
    for n in range(count):
        for claimer in claimers if n % 2 else claimers[::-1]:
            await claimer.claim(n)
    for claimer in claimers:
        await claimer.store.close()
    shallow, deep = (claimer.known for claimer in claimers)
    ratio = percentile(deep, 0.99) / percentile(shallow, 0.99)
    detail = {"p50_ratio": p50(deep) / p50(shallow), "p99_ms": percentile(deep, 0.99) * 1e3}
    what = f"a claim beside {depth:,} records / beside 1,000, PostgreSQL, p99"
    return Row(what, ratio, "x", "<= 1.5", ratio <= 1.5, detail)
