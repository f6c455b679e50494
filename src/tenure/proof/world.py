"""N instances, the shipping ones, on one seeded loop: they start, die, freeze and stop; the store is behind a network.

What befalls them is said by `faults.py`, what they work at by `workload.py`; `witness.py` sees all of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from tenure.errors import StoreError
from tenure.proof.network import CLEAR, Link, Site
from tenure.proof.nodes import SeededChance, TurnedClock, TurnedStage
from tenure.proof.turned import TurnedLoop, on_node
from tenure.proof.witness import Witness
from tenure.rules import commands as c
from tenure.scheduler.instance import Instance
from tenure.scheduler.jobs import Job
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.onestore import OneStore
from tenure.scheduler.storeclock import StoreClock

# 2026-01-01T00:00:00.5Z: no slot is due at once.
START: Final = 1_767_225_600_500
# Clocks of instances go faster or slower than the store's by up to this share (I9).
DRIFT: Final = 0.000_99
STOP: Final = 20.0
# How long after it stood still an instance may need to come to itself, in seconds.
STIFF: Final = 2.0


@dataclass
class Node:
    """One life of one instance. `name` is new with each start, `role` stays; times are turned seconds."""

    name: str
    role: str
    instance: Instance
    clock: TurnedClock
    link: Link
    born: float
    stage: str
    died: float | None = None
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was the matter, where (a node's name, or `store`), from when until when."""

    where: str
    what: str
    begin: float
    end: float


class World:
    """The instances, their store, and what became of them."""

    def __init__(
        self, seed: int | str, witness: Callable[[TurnedLoop], Witness], *, start: int = START, drift: float = DRIFT
    ) -> None:
        self.seed, self._drift = seed, drift
        self.loop = TurnedLoop(_number(f"{seed} order"))
        self.witness = witness(self.loop)
        self.site = Site(self.loop, start)
        self.site.applied = self.witness.applied
        self.witness.frozen, self.witness.stiff, self.witness.now = self.frozen, self.stiff, self.site.now
        self.start_ms = start
        self.nodes: dict[str, Node] = {}
        self.lives: list[Node] = []
        self.troubles: list[Trouble] = []
        self.deploys: Callable[[int], Sequence[Job]] = lambda _: ()
        self.deployed: dict[str, int] = {}
        self.peace = float("inf")
        self.unspoken: set[tuple[str, int]] = set()  # slots of jobs whose outcome the store has lost
        self._thawed: dict[str, float] = {}
        self._away = on_node("world")
        self.people = Ledger(self._link("people"), StoreClock(TurnedClock(self.loop, start)))

    def _link(self, name: str) -> Link:
        link = Link(self.site, name, f"{self.seed} link {name}")
        link.noted = self.witness.noted
        return link

    # --- instances --------------------------------------------------------------------------------------

    def start(self, role: str, jobs: Sequence[Job], *, skew_ms: float = 0.0) -> Node:
        """Start an instance, or start it again after its end, under a new name."""
        lives = sum(one.role == role for one in self.lives)
        name = role if not lives else f"{role}~{lives}"
        chance = random.Random(f"{self.seed} clock {name}")  # noqa: S311 - a seed is to decide
        clock = TurnedClock(self.loop, self.start_ms, 1 + chance.uniform(-self._drift, self._drift))
        clock.skew_ms = skew_ms
        link = self._link(name)
        stage = TurnedStage(self.loop, f"{name}/handlers")
        instance = Instance(
            jobs, OneStore(lambda: link), stage, name=name, clock=clock, chance=SeededChance(f"{self.seed} {name}")
        )
        instance.events.on("*", self.witness.hear)
        node = self.nodes[role] = Node(name, role, instance, clock, link, self.loop.seconds, stage.node)
        self.lives.append(node)
        self.witness.line(name, "start")
        _ = self.loop.spawn(name, instance.start())
        return node

    def again(self, role: str) -> None:
        """Start one that ended, with the definitions that were last deployed to it; nothing where it is up."""
        if all(node.role != role for node in self.alive()):
            self.start(role, self.deploys(self.deployed.get(role, 0)))

    def kill(self, node: Node) -> None:
        """kill -9: nothing of it runs any more; what it has sent still arrives."""
        self.loop.kill(node.name)
        self.loop.kill(node.stage)
        self._ended(node, "kill")

    def stop(self, node: Node) -> None:
        """stop(), as on SIGTERM: what runs is handed over."""
        node.stopping = True
        self.witness.line(node.name, "stop")
        work = self.loop.spawn(node.name, node.instance.stop(STOP))
        work.add_done_callback(lambda done: self._stopped(node, done), context=self._away)

    def _stopped(self, node: Node, done: asyncio.Task[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.witness.broken("R27", f"stop() of {node.name} died: {'' if done.cancelled() else done.exception()!r}")
        if node.died is None:
            self.loop.kill(node.name)  # the process ends, whatever still runs in it
            self.loop.kill(node.stage)
            self._ended(node, "stopped")

    def _ended(self, node: Node, what: str) -> None:
        node.died = self.loop.seconds
        self.witness.line(node.name, what)

    def freeze(self, node: Node, *, handlers: bool = True, engine: bool = True) -> None:
        """Stand still: the whole process, or the loop of its handlers, or the thread that keeps its leases."""
        for name in self._threads(node, handlers, engine):
            self.loop.freeze(name)

    def thaw(self, node: Node, *, handlers: bool = True, engine: bool = True) -> None:
        """Go on; all that fell due meanwhile runs at once."""
        for name in self._threads(node, handlers, engine):
            self.loop.thaw(name)
        self._thawed[node.name] = self.loop.seconds

    @staticmethod
    def _threads(node: Node, handlers: bool, engine: bool) -> list[str]:
        return [node.name] * engine + [node.stage] * handlers

    def frozen(self, name: str) -> bool:
        """Whether the handlers of an instance stand still, or are no more."""
        return self.loop.still(f"{name}/handlers")

    def stiff(self, name: str) -> bool:
        """Whether the thread that keeps its leases stands still, or did a moment ago."""
        return self.loop.still(name) or self.loop.seconds - self._thawed.get(name, -STIFF) < STIFF

    # --- what is the matter -----------------------------------------------------------------------------

    def alive(self) -> list[Node]:
        """The instances that are up and not stopping, in the order of their roles."""
        return [node for _, node in sorted(self.nodes.items()) if node.died is None and not node.stopping]

    def trouble(self, where: str, what: str, lasts: float = 0.0) -> None:
        """Note what is the matter, for the laws that excuse it."""
        self.troubles.append(Trouble(where, what, self.loop.seconds, self.loop.seconds + lasts))
        self.witness.line(where, what, "", None, "", 0, f"{lasts:.3f} s")

    def over(self, where: str) -> None:
        """What was the matter there is the matter no more."""
        now = self.loop.seconds
        self.troubles = [replace(one, end=min(one.end, now)) if one.where == where else one for one in self.troubles]

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Do it after so many turned seconds, by nobody's hand."""
        self.loop.call_later(seconds, work, context=self._away)

    def heal(self) -> None:
        """All that can be mended is: clocks stay as they are, and the dead are dead."""
        self.site.rise()
        self.site.go_on()
        for node in self.lives:
            node.link.weather = CLEAR
            node.link.cut_out = node.link.cut_in = False
            if node.died is None:
                self.thaw(node)
        for where in sorted({one.where for one in self.troubles}):
            self.over(where)
        self.witness.line("world", "healed")

    def say(self, job: str, command: c.Command) -> None:
        """A command of somebody outside: trigger, pause, resume. Nobody asks again where the store is away."""

        async def asked() -> None:
            with suppress(StoreError):
                await self.people.ask_one(job, command)

        _ = self.loop.spawn("people", asked())

    # --- time -------------------------------------------------------------------------------------------

    @contextmanager
    def open(self) -> Iterator[None]:
        """While it goes, the witness stands at the rules; in the end everything ends at once."""
        try:
            with self.witness.watching():
                yield
        finally:
            self.close()

    def close(self) -> None:
        """End everything at once."""
        for node in self.lives:
            self.loop.kill(node.name)
            self.loop.kill(node.stage)
        for task in asyncio.all_tasks(self.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it was killed on purpose
            with suppress(RuntimeError):
                task.get_coro().close()
        self.loop.close()


def _number(seed: str) -> int:
    return random.Random(seed).getrandbits(64)  # noqa: S311 - a seed is to decide
