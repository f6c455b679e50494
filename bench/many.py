"""A thousand jobs due at one instant, on one instance: store calls, and how late the last one starts."""

from __future__ import annotations

import asyncio
import tempfile
import time
from typing import Any

from rows import Row, p50, percentile

from tenure import Run, Tenure
from tenure.stores.opening import store_from_url

JOBS = 1_000
EVERY = 20


def measure(*, quick: bool) -> list[Row]:
    """Registered, then one slot of all, counted at the store."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        late, reads, commits = asyncio.run(_slot(f"sqlite:///{folder}/t.db", 200 if quick else JOBS))
    return [
        Row(
            f"{len(late):,} jobs due at one instant: start, p99",
            percentile(late, 0.99),
            "ms",
            "< 2,000 ms",
            percentile(late, 0.99) < 2_000,
            {"p50_ms": p50(late)},
        ),
        Row("the same, reads that claim", reads, "", "1", reads == 1),
        Row("the same, commits that claim", commits, "", "<= 3", commits <= 3),
    ]


async def _slot(url: str, jobs: int) -> tuple[list[float], int, int]:
    late: list[float] = []
    store: Any = store_from_url(url)
    calls = Calls(store)
    app = Tenure(store, jitter=0)
    enough = asyncio.Event()
    for n in range(jobs):

        @app.every(EVERY, name=f"job-{n:04}")
        async def tick(run: Run) -> None:
            late.append(time.time() * 1000 - run.slot_ms)
            if len(late) >= jobs:
                enough.set()

    async with app:
        await enough.wait()
    return late[:jobs], calls.reads, calls.commits


class Calls:
    """Counts the calls that claim: reads that ask for runs of a slot, commits that give a first lease."""

    def __init__(self, store: Any) -> None:
        self.reads = self.commits = 0
        self._read, self._commit = store.read, store.commit
        self._claimed = 0
        store.read, store.commit = self.read, self.commit

    async def read(self, asks: Any) -> Any:
        if self._claimed == 0 and any(ask.runs and ask.before is None for ask in asks):
            self.reads += 1
        return await self._read(asks)

    async def commit(self, changes: Any) -> Any:
        wins = [change for change in changes if change.body and b'"schedule"' in change.body and not change.records]
        if wins:
            self.commits += 1
            self._claimed += len(wins)
        return await self._commit(changes)
