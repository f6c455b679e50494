"""Several instances on one memory store, on a clock that is turned: takeovers in milliseconds of test time."""

from __future__ import annotations

import asyncio
import difflib
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from tenure.errors import ConfigError, NotFound
from tenure.proof.nodes import SeededChance, TurnedClock, TurnedStage
from tenure.proof.turned import TurnedLoop
from tenure.rules import commands
from tenure.rules.instant import instant
from tenure.rules.job import Past, decode_past
from tenure.scheduler.events import Event, check_event
from tenure.scheduler.instance import Health, Instance
from tenure.scheduler.jobs import Job, check_whole, document
from tenure.scheduler.ledger import Ledger, Page
from tenure.scheduler.onestore import OneStore
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask
from tenure.stores.memory import MemoryStore
from tenure.testing.wire import Wire

# Half a second past the hour, so that no slot is due at once.
START: Final = "2026-01-01T00:00:00.500Z"
LAST: Final = 1 << 53


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
        check_whole("n", n, 0)
        try:
            self._start = instant(start, 0)
        except ValueError as error:
            raise ConfigError("start", start, str(error)) from None
        held = getattr(jobs, "jobs", jobs)
        self.jobs: tuple[Job, ...] = tuple(held.values() if isinstance(held, dict) else held)
        self.loop = TurnedLoop(seed)
        self.seed, self._delay = seed, delay
        self.store_skew_ms = 0.0
        self.store = MemoryStore(self.now)
        self.nodes: dict[str, Node] = {}
        self._names: list[str] = []
        self.events: list[Event] = []
        self._jobs: set[str] = set()
        self._wishes = 0
        self._killed: list[asyncio.Task[Any]] = []
        self._ledger = Ledger(self.store, StoreClock(TurnedClock(self.loop, self._start)))
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
        self._jobs |= set(instance.jobs)
        node = self.nodes[name] = Node(label, instance, clock, wire)
        instance.events.on("*", self.events.append)
        instance.events.on("*", node.events.append)
        self.loop.run_until_complete(self.loop.spawn(label, instance.start()))
        return instance

    def kill(self, name: str) -> None:
        """kill -9: nothing of it runs any more."""
        node = self._node(name)
        node.alive = False
        self._killed += asyncio.all_tasks(self.loop)  # or those of its tasks that nothing will wake die loudly
        self.loop.kill(node.name)
        self.loop.kill(f"{node.name}/handlers")

    def freeze(self, name: str) -> None:
        """SIGSTOP: the whole process stands still."""
        node = self._node(name)
        self.loop.freeze(node.name)
        self.loop.freeze(f"{node.name}/handlers")

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        node = self._node(name)
        self.loop.thaw(node.name)
        self.loop.thaw(f"{node.name}/handlers")

    def block(self, name: str, seconds: float) -> None:
        """Block the loop of its handlers for so long, as a `time.sleep` in an async handler does; turns the clock."""
        node = self._node(name)
        self.loop.freeze(f"{node.name}/handlers")
        self.advance(seconds)
        self.loop.thaw(f"{node.name}/handlers")

    def partition(self, name: str) -> None:
        """Cut it off from the store."""
        self._node(name).wire.cut = True

    def heal(self, name: str) -> None:
        """End the cut."""
        self._node(name).wire.cut = False

    def stop(self, name: str, timeout: float = 20.0) -> None:
        """stop(): hand over what runs; turns the clock until it has ended."""
        node = self._node(name)
        if self.loop.still(node.name):  # it would be waited for for ever
            why = "was killed, or is frozen: it hears no stop()."
            raise ConfigError("name", name, why, "Thaw it, or start it anew.")
        self.loop.run_until_complete(self.loop.spawn(node.name, node.instance.stop(timeout)))
        node.alive = False

    def _node(self, name: str) -> Node:
        return self.nodes[one_of("instance", name, self.nodes)]

    def _document(self, job: str) -> str:
        return document(one_of("job", job, self._jobs))

    # --- time -------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Turn the clock forward, running all that falls due."""
        if not self.nodes:
            raise ConfigError("n", 0, "makes no instance, so nothing will happen.", "Start one: c.start('a')")
        if not seconds >= 0:
            raise ConfigError("seconds", seconds, "is negative, and the clock is only turned forward.")
        self.loop.advance(seconds)

    def until(self, what: Callable[[], Any], at_most: float = 600.0) -> None:
        """Turn the clock until `what()` is true; AssertionError if it is not within `at_most` seconds."""
        end = self.loop.seconds + at_most
        while not what():
            if self.loop.seconds >= end:
                raise AssertionError(f"it did not come true within {at_most:g} turned seconds")
            self.loop.advance(0.05)

    # --- what can be said -------------------------------------------------------------------------------

    def trigger(self, job: str) -> str:
        """Ask for a run of a job, as `Tenure.trigger` does: the way to run one without a schedule.

        Returns the wish's id; turn the clock, and an instance claims it:

            c.trigger("report")
            c.until(lambda: c.ended("report"))
        """
        one_of("job", job, self._jobs)
        self._wishes += 1
        wish = f"wish-{self._wishes}"
        self.loop.run(self._ledger.ask_one(job, commands.Trigger(wish, "the test")))
        return wish

    # --- what is seen -----------------------------------------------------------------------------------

    def page(self, job: str) -> Page:
        """The job's document as the store has it."""
        reading = self.loop.run_until_complete(self.store.read([Ask(self._document(job))]))
        return self._ledger.page(document(job), reading.found[0])

    def ended(self, job: str) -> list[Past]:
        """The ended runs of a job, oldest first."""
        records = self.loop.run_until_complete(self.store.records(self._document(job), 0, LAST, LAST))
        return [decode_past(record.body) for record in reversed(records)]

    def marks(self, job: str) -> list[Any]:
        """Why nothing ran at other slots, oldest first."""
        return list(reversed(self.loop.run_until_complete(self.store.marks(self._document(job), 0, LAST, LAST))))

    def runner(self, job: str) -> str:
        """The name of the instance that holds a live lease of the job; AssertionError if none does."""
        live = [run.lease.holder for run in self.page(job).job.runs if run.lease.live(self.now())]
        assert live, f"nobody runs {job}"
        return live[0].split("~")[0]

    def heard(self, name: str, job: str | None = None) -> list[Event]:
        """All events of that name, in the order in which they happened."""
        check_event(name)
        if job is not None:
            one_of("job", job, self._jobs)
        return [one for one in self.events if one.name == name and job in (None, one.job)]

    def health(self, name: str) -> Health:
        """How an instance says it is."""
        return self._node(name).instance.health()

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


def one_of(kind: str, name: str, known: Iterable[str]) -> str:
    """The name; raises NotFound, with the nearest, for one that is not there: an empty answer would hide a typo."""
    names = sorted(known)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}."
    raise NotFound(f"there is no {kind} {name!r} in this cluster. {hint}")


def cluster(jobs: Iterable[Job] | Any, n: int = 3, **options: Any) -> Cluster:
    """`n` instances of an app's jobs on one memory store and a turned clock; see `Cluster`."""
    return Cluster(jobs, n, **options)
