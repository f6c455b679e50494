"""Claims of new runs through the ledger, one at a time, timed; and every call to a store, counted."""

from __future__ import annotations

import time
from typing import Any

from tenure.rules import commands as c
from tenure.rules.job import EMPTY, encode
from tenure.scheduler.ledger import Ledger, Order
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Record
from tenure.stores.opening import store_from_url

SLOT = 60_000
JOBS = 50
LEASE = 600_000
LONG_AGO = 10**13  # slots of these measurements are of 1970


def claim(slot: int, token: str) -> c.Claim:
    """A claim of a schedule's run, which nobody has claimed yet."""
    return c.Claim(slot, token, "bench", LEASE, 3, LONG_AGO, "skip", "schedule", True)


class Claimer:
    """Read, decide, commit, timed; each run is finished before the job's next, untimed."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.ledger = Ledger(store, StoreClock(SystemClock()))
        self.taken: list[float] = []

    @classmethod
    async def open(cls, url: str, **options: Any) -> Claimer:
        """On a store of its own; `options` as the store's."""
        store = store_from_url(url, **options)
        await store.open()
        return cls(store)

    async def claim(self, n: int) -> None:
        """The n-th claim."""
        slot, token, job = SLOT * (n + 1), f"token-{n:032}", f"job-{n % JOBS}"
        begin = time.perf_counter()
        answered = await self.ledger.ask_one(job, claim(slot, token))
        self.taken.append(time.perf_counter() - begin)
        assert isinstance(answered.answer, c.Won), answered.answer
        await self.ledger.ask_one(job, c.Finish(slot, token, "success"))

    @property
    def known(self) -> list[float]:
        """Those that updated a document: the first claim of each job, once in its life, inserts it."""
        return self.taken[JOBS:]

    async def define(self, prefix: str, count: int) -> list[Order]:
        """Documents of so many jobs that never ran, and the order to claim a run of each."""
        names = [f"{prefix}-{n}" for n in range(count)]
        for first in range(0, count, 1_000):
            some = names[first : first + 1_000]
            await self.store.commit([Change(f"job:{name}", 0, encode(EMPTY)) for name in some])
        return [Order(name, claim(SLOT, f"token-{name:>32}")) for name in names]

    async def close(self) -> None:
        """Give the store back."""
        await self.store.close()


async def fill(store: Any, records: int) -> None:
    """Put so many records of old runs beside the documents of the jobs."""
    batch = 5_000
    for first in range(0, records, batch):
        name = f"job:job-{first // batch % JOBS}"
        version = (await store.read([Ask(name)])).found[0].version
        many = tuple(
            Record(f"-{n}", -n, "success", 0, 0, b"x" * 200) for n in range(first + 1, min(first + batch, records) + 1)
        )
        await store.commit([Change(name, version, encode(EMPTY), records=many)])


class Calls:
    """The calls to a store that are about runs: when each was made, by the wall clock.

    Those that look after instances, definitions and old history are not.
    """

    def __init__(self, store: Any) -> None:
        self.made: list[float] = []
        self._read, self._commit = store.read, store.commit
        store.read, store.commit = self.read, self.commit

    async def read(self, asks: Any) -> Any:
        """As the store's."""
        self._note(asks)
        return await self._read(asks)

    async def commit(self, changes: Any) -> Any:
        """As the store's."""
        self._note(changes)
        return await self._commit(changes)

    def _note(self, what: Any) -> None:
        if any(one.name.startswith("job:") and getattr(one, "runs", True) for one in what):
            self.made.append(time.time())

    def between(self, begin: float, end: float) -> int:
        """How many were made meanwhile."""
        return sum(begin <= at < end for at in self.made)
