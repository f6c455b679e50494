"""The world of one instance under turned time: its clocks, its chance, where its handlers run, its way to the store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tenure.errors import StoreUnavailable
from tenure.proof.turned import TurnedLoop, on_node
from tenure.scheduler.seams import Begun, Ended, Handler, Told, outcome, perform
from tenure.stores.contract import Ask, Change, Reading, Record, Transaction, Verdict
from tenure.stores.memory import MemoryStore


class TurnedClock:
    """A node's own clocks: `skew_ms` is how far its wall clock is off; stepping it does not move `boot`."""

    def __init__(self, loop: TurnedLoop, start: int) -> None:
        self._loop, self._start, self.skew_ms = loop, start, 0.0

    def boot(self) -> float:
        return self._loop.seconds * 1000

    def wall(self) -> float:
        return self._start + self._loop.seconds * 1000 + self.skew_ms


class SeededChance:
    """Draws and tokens that a seed decides."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a seed is to decide

    def draw(self) -> float:
        return self._random.random()

    def token(self) -> str:
        return f"{self._random.getrandbits(128):032x}"


class TurnedStage:
    """Handlers on a node of their own, so that they can be blocked while leases are kept."""

    def __init__(self, loop: TurnedLoop, node: str) -> None:
        self._loop, self.node = loop, node

    alive = True

    def play(
        self, handler: Handler, arguments: tuple[Any, ...], is_async: bool, begun: Begun, told: Told
    ) -> Callable[[], None]:
        engine = on_node(self.node.removesuffix("/handlers"))

        async def play() -> Ended:
            self._loop.call_soon(begun, context=engine)
            return await perform(handler, arguments, is_async)

        task = self._loop.spawn(self.node, play())
        task.add_done_callback(lambda done: told(outcome(done)), context=engine)

        def cancel() -> None:
            # A sync handler can't be cancelled, and here it takes no time.
            if is_async:
                task.cancel()

        return cancel

    def ping(self, pong: Callable[[], None]) -> None:
        engine = on_node(self.node.removesuffix("/handlers"))
        self._loop.call_soon(lambda: self._loop.call_soon(pong, context=engine), context=on_node(self.node))

    def deliver(self, call: Callable[[], None]) -> None:
        call()

    def close(self) -> None:
        pass


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
