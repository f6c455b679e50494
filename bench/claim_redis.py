"""Redis and Valkey: a claim beside one bare GET and one bare SET, many jobs in one call, claims beside old records."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import redis.asyncio
from rows import Row, p50, percentile

from tenure.rules import commands as c
from tenure.rules.job import EMPTY, encode
from tenure.scheduler.ledger import Ledger, Order
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Record
from tenure.stores.opening import store_from_url

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from redis_server import Server

SLOT = 60_000
BOUND = 10**13  # slots of these measurements are of 1970
DURABLE = {"everysec": {"appendonly": "yes"}, "always": {"appendonly": "yes", "appendfsync": "always"}}


def measure(*, quick: bool) -> list[Row]:
    """On a Valkey of this machine, over its socket; what is compared is taken in turns on the same server."""
    count = 100 if quick else 1_500
    rows = []
    for fsync, settings in DURABLE.items():
        with served(**settings) as server:
            bare, ours = asyncio.run(_turns(server, count))
        ratio = p50(ours) / p50(bare)
        detail = {
            "bare_p50_ms": p50(bare) * 1e3,
            "ours_p50_ms": p50(ours) * 1e3,
            "bare_p99_ms": percentile(bare, 0.99) * 1e3,
            "ours_p99_ms": percentile(ours, 0.99) * 1e3,
        }
        what = f"a claim / a bare GET and SET, Valkey, appendfsync {fsync}, p50"
        rows.append(Row(what, ratio, "x", "<= 1.8", ratio <= 1.8, detail))
    with served(appendonly="yes") as server:
        rows += asyncio.run(_many(server, 200 if quick else 1_000, 500 if quick else 5_000))
    return rows + _at_depth(10_000 if quick else 1_000_000, count)


class served:  # noqa: N801 - read as a verb
    """A private server, in a folder of its own."""

    def __init__(self, **settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tenure-bench-")
        self._server = Server("valkey9", self._folder.name, **settings)

    def __enter__(self) -> Server:
        return self._server.start()

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._folder.cleanup()


class Calls:
    """A ledger over a store, and how often it read and committed."""

    def __init__(self, store: Any) -> None:
        self.store, self.reads, self.commits = store, 0, 0
        self._read, self._commit = store.read, store.commit
        store.read, store.commit = self.read, self.commit
        self.ledger = Ledger(store, StoreClock(SystemClock()))

    async def read(self, asks: Any) -> Any:
        self.reads += 1
        return await self._read(asks)

    async def commit(self, changes: Any) -> Any:
        self.commits += 1
        return await self._commit(changes)


@asynccontextmanager
async def opened(server: Server, prefix: str = "tenure") -> Any:
    store = store_from_url(server.url, prefix=prefix)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _claim(ledger: Ledger, n: int) -> float:
    """One claim of a new run, timed; it is finished before the job's next, untimed."""
    slot, token, job = SLOT * (n + 1), f"token-{n:032}", f"job-{n % 50}"
    begin = time.perf_counter()
    answered = await ledger.ask_one(job, c.Claim(slot, token, "bench", 30_000, 3, BOUND, "skip", "schedule", True))
    took = time.perf_counter() - begin
    assert isinstance(answered.answer, c.Won), answered.answer
    await ledger.ask_one(job, c.Finish(slot, token, "success"))
    return took


async def _turns(server: Server, count: int) -> tuple[list[float], list[float]]:
    bare: list[float] = []
    ours: list[float] = []
    async with opened(server) as store, redis.asyncio.Redis(unix_socket_path=server.socket) as client:
        ledger = Ledger(store, StoreClock(SystemClock()))
        for n in range(50):
            await client.set(f"bare-{n}", b"x" * 250)
        for n in range(count):
            begin = time.perf_counter()
            await client.get(f"bare-{n % 50}")
            await client.set(f"bare-{n % 50}", b"y" * 250)
            bare.append(time.perf_counter() - begin)
            ours.append(await _claim(ledger, n))
    return bare, ours


async def _many(server: Server, jobs: int, runs: int) -> list[Row]:
    async with opened(server) as store:
        calls = Calls(store)
        begin = time.perf_counter()
        won = await calls.ledger.ask(_claims(jobs, "due"))
        claimed_ms = (time.perf_counter() - begin) * 1e3
        assert all(isinstance(one.answer, c.Won) for one in won)
        claim_calls = (calls.reads, calls.commits)
        for first in range(0, runs, 1_000):
            await calls.ledger.ask(_claims(min(1_000, runs - first), f"held-{first}"))
        calls.reads = calls.commits = 0
        beats = [
            Order(order.job, c.Heartbeat(order.command.slot, order.command.token))
            for first in range(0, runs, 1_000)
            for order in _claims(min(1_000, runs - first), f"held-{first}")
        ]
        begin = time.perf_counter()
        answered = await calls.ledger.ask(beats)
        beat_ms = (time.perf_counter() - begin) * 1e3
        assert all(isinstance(one.answer, c.Renewed) for one in answered), answered[0].answer
    total = sum(claim_calls)
    beaten = calls.reads + calls.commits
    return [
        Row(f"{jobs:,} jobs claimed at once, Valkey: calls", total, "", "2", claim_calls == (1, 1), {"ms": claimed_ms}),
        Row(f"{runs:,} heartbeats at once, Valkey: calls", beaten, "", "<= 3", beaten <= 3, {"ms": beat_ms}),
    ]


def _claims(count: int, what: str) -> list[Order]:
    return [
        Order(f"{what}-{n}", c.Claim(SLOT, f"t-{what}-{n}", "bench", 60_000, 3, BOUND, "skip", "schedule", True))
        for n in range(count)
    ]


def _at_depth(depth: int, count: int) -> list[Row]:
    """p99 of a claim beside `depth` records of history, against that beside a thousand; taken in turns."""
    with served() as server:
        shallow, deep = asyncio.run(_deep(server, depth, count))
    ratio = percentile(deep, 0.99) / percentile(shallow, 0.99)
    detail = {"p50_ratio": p50(deep) / p50(shallow), "p99_ms": percentile(deep, 0.99) * 1e3}
    what = f"a claim beside {depth:,} records / beside 1,000, Valkey, p99"
    return [Row(what, ratio, "x", "<= 1.5", ratio <= 1.5, detail)]


async def _deep(server: Server, depth: int, count: int) -> tuple[list[float], list[float]]:
    taken: tuple[list[float], list[float]] = ([], [])
    async with opened(server, "shallow") as shallow, opened(server, "deep") as deep:
        await _fill(shallow, 1_000)
        await _fill(deep, depth)
        ledgers = [Ledger(store, StoreClock(SystemClock())) for store in (shallow, deep)]
        for n in range(count):
            for at in (0, 1) if n % 2 else (1, 0):
                taken[at].append(await _claim(ledgers[at], n))
    return taken


async def _fill(store: Any, records: int) -> None:
    batch = 5_000
    for first in range(0, records, batch):
        name = f"job:job-{first // batch % 50}"
        version = (await store.read([Ask(name)])).found[0].version
        many = tuple(
            Record(f"-{n}", -n, "success", 0, 0, b"x" * 200) for n in range(first + 1, min(first + batch, records) + 1)
        )
        await store.commit([Change(name, version, encode(EMPTY), records=many)])
