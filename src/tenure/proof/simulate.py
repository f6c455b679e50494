"""One schedule: a world of three instances, what befalls it, and whether every law held. A seed gives it all.

The same seed, length and choice of faults give the same history on every machine and every run.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from tenure.proof import conduct, faults
from tenure.proof.faults import CALM, Fault
from tenure.proof.smallworld import Decide
from tenure.proof.sometimes import met
from tenure.proof.steps import Breach
from tenure.proof.turned import TurnedLoop
from tenure.proof.witness import Line, Witness
from tenure.proof.workload import Workload
from tenure.proof.world import World
from tenure.rules.runs import decide

MINUTES: Final = 12.0
ROLES: Final = "abc"


@dataclass(frozen=True)
class Outcome:
    """What became of one schedule. faults, reached: how many of each kind; plan: all that was drawn."""

    seed: int
    minutes: float
    digest: str
    breach: Breach | None
    faults: Mapping[str, int]
    reached: Mapping[str, int]
    plan: tuple[Fault, ...]
    lines: tuple[Line, ...]
    wins: int
    steps: int


@dataclass(frozen=True)
class Planted:
    """What is to go wrong on purpose: in the rules, in what `during` alters, or in what `world` does to a new world."""

    rule: Decide = decide
    during: Callable[[], AbstractContextManager[object]] = nullcontext
    world: Callable[[World], None] = lambda _: None


SOUND: Final = Planted()


def simulate(
    seed: int,
    minutes: float = MINUTES,
    *,
    only: Iterable[int] | None = None,
    planted: Planted = SOUND,
    without: frozenset[str] = frozenset(),
) -> Outcome:
    """Play a schedule. only: the numbers of the faults that happen, else all do; without: laws that are not asked."""
    seconds = minutes * 60
    plan = faults.draw(seed, seconds)
    chosen = plan if only is None else tuple(plan[place] for place in only if place < len(plan))

    def witness(loop: TurnedLoop) -> Witness:
        return Witness(loop, without=without, rule=planted.rule)

    with quietly(), planted.during():
        world = World(seed, witness)
        planted.world(world)
        with world.open():
            _run(world, chosen, seconds)
            seen = world.witness
            reached = Counter(seen.reached)
            if seen.breach is None:
                case = conduct.Case(world, seconds)
                conduct.check(case)
                reached.update(met(case))
            return Outcome(
                seed,
                minutes,
                seen.digest(),
                seen.breach,
                Counter(one.kind for one in chosen),
                reached,
                plan,
                tuple(seen.lines),
                len(seen.tenancies),
                world.loop.steps,
            )


def _run(world: World, chosen: Iterable[Fault], seconds: float) -> None:
    try:
        world.loop.run(_play(world, Workload(world.seed, world.witness), chosen, seconds))
    except RuntimeError:
        if world.witness.breach is None:  # else the witness stopped the loop
            raise


async def _play(world: World, workload: Workload, chosen: Iterable[Fault], seconds: float) -> None:
    """Three instances start; faults and people come; in the end there is peace."""
    dice = random.Random(f"{world.seed} skews")  # noqa: S311 - a seed is to decide
    world.deploys = workload.jobs
    for role in ROLES:
        world.start(role, workload.jobs(0), skew_ms=dice.choice((0, 3, -250, 1_800, -3_600_000)))
    comes: list[tuple[float, Callable[[], object]]] = [(one.at, partial(faults.befall, world, one)) for one in chosen]
    comes += [(at, partial(world.say, job, command)) for at, job, command in workload.people(seconds)]
    comes.append((seconds - CALM, lambda: _peace(world)))
    for at, happen in sorted(comes, key=lambda one: one[0]):
        await asyncio.sleep(at - world.loop.seconds)
        happen()
    await asyncio.sleep(seconds - world.loop.seconds)
    for error in world.loop.errors:
        world.witness.broken("R28a", f"a task died unseen: {error.get('exception')!r}")


def _peace(world: World) -> None:
    """From now on nothing goes wrong, and everybody is there."""
    world.heal()
    world.peace = world.loop.seconds
    for role in ROLES:
        world.again(role)


@contextmanager
def quietly() -> Iterator[None]:
    """No log lines, and no collection of garbage in the middle: both would cost more than the schedule."""
    before, collecting = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logging.disable(before)
        if collecting:
            gc.enable()
