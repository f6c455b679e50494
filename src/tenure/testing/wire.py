"""The way from one instance of a cluster to its store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tenure.errors import StoreUnavailable
from tenure.stores.contract import Ask, Change, Reading, Record, Transaction, Verdict
from tenure.stores.memory import MemoryStore


class Wire:
    """The way from one node to the store: it takes a moment, and it can be cut."""

    pushes = True

    def __init__(self, store: MemoryStore, delay: Callable[[], float]) -> None:
        self.url, self.timeout = store.url, store.timeout
        self._store, self._delay = store, delay
        self.cut = False
        self.calls = 0
        self.failures: list[Exception] = []

    async def _cross(self) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        if self.cut:
            await asyncio.sleep(self.timeout)
            raise StoreUnavailable("this node is cut off from the store.")
        await asyncio.sleep(self._delay())

    async def open(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        pass

    async def read(self, asks: Sequence[Ask]) -> Reading:
        await self._cross()
        reading = await self._store.read(asks)
        await self._cross()
        return reading

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        await self._cross()
        verdict = await self._store.commit(changes)
        await self._cross()
        return verdict

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        async for hint in self._store.watch():
            if not self.cut:
                yield hint

    async def names(self, prefix: str) -> tuple[str, ...]:
        await self._cross()
        return await self._store.names(prefix)

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        return await self._store.records(name, since, until, limit)

    async def marks(self, name: str, since: int, until: int, limit: int) -> Any:
        return await self._store.marks(name, since, until, limit)

    async def begin(self, limit_seconds: float) -> Transaction:
        return await self._store.begin(limit_seconds)
