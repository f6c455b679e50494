"""Several instances on one memory store, on a clock that is turned: takeovers in milliseconds of test time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from tenure.errors import StoreUnavailable
from tenure.proof.turned import TurnedLoop, on_node
from tenure.rules.instant import instant
from tenure.rules.job import Past, decode_past
from tenure.scheduler.events import Event
from tenure.scheduler.instance import Health, Instance
from tenure.scheduler.jobs import Job, document
from tenure.scheduler.ledger import Page
from tenure.scheduler.onestore import OneStore
from tenure.scheduler.seams import Begun, Ended, Handler, Told, outcome, perform
from tenure.stores.contract import Ask, Change, Reading, Record, Transaction, Verdict
from tenure.stores.memory import MemoryStore

# Half a second past the hour, so that no slot is due at once.
START: Final = "2026-01-01T00:00:00.500Z"
LAST: Final = 1 << 53


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


@dataclass
class Node:
    """One instance of the cluster and its world."""

    name: str
    instance: Instance
    clock: TurnedClock
    wire: Wire
    alive: bool = True
    events: list[Event] = field(default_factory=list)


class Cluster:
    """`n` instances of the same jobs, named `a`, `b`, `c`, …; their clock stands until it is turned.

    jobs: what `Tenure.jobs` holds, or anything with a `jobs` attribute. Use it as a context manager: leaving
    it fails if a task of an instance died unseen.
    """

    def __init__(
        self,
        jobs: Iterable[Job] | Any,
        n: int = 3,
        *,
        seed: int = 0,
        start: str | datetime = START,
        delay: tuple[float, float] = (0.0002, 0.002),
    ) -> None:
        held = getattr(jobs, "jobs", jobs)
        self.jobs: tuple[Job, ...] = tuple(held.values() if isinstance(held, dict) else held)
        self.loop = TurnedLoop(seed)
        self.seed, self._start, self._delay = seed, instant(start, 0), delay
        self.store_skew_ms = 0.0
        self.store = MemoryStore(self.now)
        self.nodes: dict[str, Node] = {}
        self._names: list[str] = []
        self.events: list[Event] = []
        for place in range(n):
            self.start(chr(ord("a") + place) if place < 26 else f"n{place}")

    def now(self) -> int:
        """The store's time, in milliseconds."""
        return int(self._start + self.loop.seconds * 1000 + self.store_skew_ms)

    # --- instances --------------------------------------------------------------------------------------

    def start(self, name: str, *, skew: float = 0.0, jobs: Iterable[Job] | None = None) -> Instance:
        """Start an instance, or start one again that ended; `skew`: seconds its wall clock is ahead."""
        generation = sum(one.split("~")[0] == name for one in self._names)
        label = name if not generation else f"{name}~{generation}"
        self._names.append(label)
        chance = SeededChance(f"{self.seed} {label}")
        wire_chance = random.Random(f"{self.seed} wire {label}")  # noqa: S311 - a seed is to decide
        clock = TurnedClock(self.loop, self._start)
        clock.skew_ms = skew * 1000
        wire = Wire(self.store, lambda: wire_chance.uniform(*self._delay))
        stage = TurnedStage(self.loop, f"{label}/handlers")
        instance = Instance(
            self.jobs if jobs is None else jobs, OneStore(lambda: wire), stage, name=label, clock=clock, chance=chance
        )
        node = self.nodes[name] = Node(label, instance, clock, wire)
        instance.events.on("*", self.events.append)
        instance.events.on("*", node.events.append)
        self.loop.run_until_complete(self.loop.spawn(label, instance.start()))
        return instance

    def kill(self, name: str) -> None:
        """kill -9: nothing of it runs any more."""
        node = self.nodes[name]
        node.alive = False
        self.loop.kill(node.name)
        self.loop.kill(f"{node.name}/handlers")

    def freeze(self, name: str) -> None:
        """SIGSTOP: the whole process stands still."""
        self.loop.freeze(self.nodes[name].name)
        self.loop.freeze(f"{self.nodes[name].name}/handlers")

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        self.loop.thaw(self.nodes[name].name)
        self.loop.thaw(f"{self.nodes[name].name}/handlers")

    def block(self, name: str, seconds: float) -> None:
        """Block the loop of its handlers for so long, as a `time.sleep` in an async handler does; turns the clock."""
        self.loop.freeze(f"{self.nodes[name].name}/handlers")
        self.advance(seconds)
        self.loop.thaw(f"{self.nodes[name].name}/handlers")

    def partition(self, name: str) -> None:
        """Cut it off from the store."""
        self.nodes[name].wire.cut = True

    def heal(self, name: str) -> None:
        """End the cut."""
        self.nodes[name].wire.cut = False

    def stop(self, name: str, timeout: float = 20.0) -> None:
        """stop(): hand over what runs; turns the clock until it has ended."""
        node = self.nodes[name]
        self.loop.run_until_complete(self.loop.spawn(node.name, node.instance.stop(timeout)))
        node.alive = False

    # --- time -------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Turn the clock forward, running all that falls due."""
        self.loop.advance(seconds)

    def until(self, what: Callable[[], Any], at_most: float = 600.0) -> None:
        """Turn the clock until `what()` is true; AssertionError if it is not within `at_most` seconds."""
        end = self.loop.seconds + at_most
        while not what():
            if self.loop.seconds >= end:
                raise AssertionError(f"it did not come true within {at_most:g} turned seconds")
            self.loop.advance(0.05)

    # --- what is seen -----------------------------------------------------------------------------------

    def page(self, job: str) -> Page:
        """The job's document as the store has it."""
        node = next(iter(self.nodes.values()))
        reading = self.loop.run_until_complete(self.store.read([Ask(document(job))]))
        return node.instance.ledger.page(document(job), reading.found[0])

    def ended(self, job: str) -> list[Past]:
        """The ended runs of a job, oldest first."""
        records = self.loop.run_until_complete(self.store.records(document(job), 0, LAST, LAST))
        return [decode_past(record.body) for record in reversed(records)]

    def marks(self, job: str) -> list[Any]:
        """Why nothing ran at other slots, oldest first."""
        return list(reversed(self.loop.run_until_complete(self.store.marks(document(job), 0, LAST, LAST))))

    def runner(self, job: str) -> str:
        """The name of the instance that holds a live lease of the job; AssertionError if none does."""
        live = [run.lease.holder for run in self.page(job).job.runs if run.lease.live(self.now())]
        assert live, f"nobody runs {job}"
        return live[0].split("~")[0]

    def heard(self, name: str, job: str | None = None) -> list[Event]:
        """All events of that name, in the order in which they happened."""
        return [one for one in self.events if one.name == name and job in (None, one.job)]

    def health(self, name: str) -> Health:
        """How an instance says it is."""
        return self.nodes[name].instance.health()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
        if error is None:
            assert not self.loop.errors, f"a task died unseen: {self.loop.errors[0]}"

    def close(self) -> None:
        """End everything at once."""
        for node in self.nodes.values():
            self.loop.kill(node.name)
            self.loop.kill(f"{node.name}/handlers")
        for task in asyncio.all_tasks(self.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it was killed on purpose
            with suppress(RuntimeError):
                task.get_coro().close()
        self.loop.close()


def cluster(jobs: Iterable[Job] | Any, n: int = 3, **options: Any) -> Cluster:
    """`n` instances of an app's jobs on one memory store and a turned clock; see `Cluster`."""
    return Cluster(jobs, n, **options)
