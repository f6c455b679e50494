"""The faults that befall a simulated world: each kind, how long it lasts, and a plan of them drawn by a seed.

A plan is drawn whole before anything happens, and each fault carries its own dice: so any part of it can be left out,
and what is left means the same as before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from tenure.proof import conduct
from tenure.proof.network import Weather
from tenure.proof.world import Node, World

# The mean time between two faults, and how long a world is left in peace at its end, in seconds.
EVERY: Final = 38.0
CALM: Final = 150.0
# A decision is valid for 2 s; a standby promoted sooner could take one that was made on what was lost (docs/proof.md).
PROMOTED: Final = 2.5


class Fault(NamedTuple):
    """One fault: when, which, how long (seconds), and two dice (0 to 1): whom it befalls, and how hard."""

    at: float
    kind: str
    lasts: float
    whom: float
    size: float

    def __str__(self) -> str:
        return f"{self.at:7.3f} s  {self.kind} for {self.lasts:.3f} s"


Befall = Callable[[World, Fault], None]


def _whom(world: World, fault: Fault) -> Node | None:
    alive = world.alive()
    return alive[int(fault.whom * len(alive))] if alive else None


def _kill(world: World, fault: Fault) -> None:
    if (node := _whom(world, fault)) is not None:
        world.trouble(node.name, "killed", fault.lasts)
        world.kill(node)
        world.later(fault.lasts, lambda: world.again(node.role))


def _stop(world: World, fault: Fault) -> None:
    if (node := _whom(world, fault)) is not None:
        world.trouble(node.name, "told to stop", fault.lasts)
        world.stop(node)
        world.later(fault.lasts, lambda: world.again(node.role))


def _deploy(world: World, fault: Fault) -> None:
    """It stops, and comes again with other definitions of its jobs."""
    if (node := _whom(world, fault)) is not None:
        world.deployed[node.role] = 1 - world.deployed.get(node.role, 0)
        _stop(world, fault)


def _standing(what: str, *, handlers: bool, engine: bool) -> Befall:
    def befall(world: World, fault: Fault) -> None:
        if (node := _whom(world, fault)) is not None:
            world.trouble(node.name, what, fault.lasts)
            world.freeze(node, handlers=handlers, engine=engine)
            world.later(fault.lasts, lambda: world.thaw(node, handlers=handlers, engine=engine))

    return befall


def _cut(what: str, *, out: bool, back: bool) -> Befall:
    def befall(world: World, fault: Fault) -> None:
        node = _whom(world, fault)
        if node is None:
            return
        link = node.link

        def heal() -> None:
            link.cut_out, link.cut_in = link.cut_out and not out, link.cut_in and not back

        world.trouble(node.name, what, fault.lasts)
        link.cut_out, link.cut_in = link.cut_out or out, link.cut_in or back
        world.later(fault.lasts, heal)

    return befall


def _storm(world: World, fault: Fault) -> None:
    if (node := _whom(world, fault)) is None:
        return
    link, size = node.link, 0.05 + 0.35 * fault.size
    weather = Weather(lost=size / 2, doubled=size, late=size)

    def clear() -> None:
        if link.weather is weather:
            link.weather = Weather()

    world.trouble(node.name, "storm", fault.lasts)
    link.weather = weather
    world.later(fault.lasts, clear)


def _own_clock(world: World, fault: Fault) -> None:
    """No trouble at all, by R33: nothing excuses what comes of it."""
    if (node := _whom(world, fault)) is not None:
        step = (-3_600_000, -90_000, -2_000, 2_000, 90_000, 3_600_000)[int(fault.size * 6)]
        world.witness.line(node.name, "its clock steps", "", None, "", 0, str(step))
        node.clock.skew_ms += step


def _stall(world: World, fault: Fault) -> None:
    world.trouble("store", "stalled", fault.lasts)
    world.site.stall()
    world.later(fault.lasts, world.site.go_on)


def _restart(world: World, fault: Fault) -> None:
    world.trouble("store", "restarts", fault.lasts)
    world.site.fall()
    world.later(fault.lasts, world.site.rise)


def _store_clock(world: World, fault: Fault) -> None:
    step = (-40_000, -5_000, -700, 700, 5_000, 40_000, 600_000)[int(fault.size * 7)]
    world.trouble("store", "its clock steps", max(0, -step) / 1000)
    world.site.step(step)
    world.witness.doubtful_until = max(world.witness.doubtful_until, world.loop.seconds + LONGEST_LEASE)


def _failover(world: World, fault: Fault) -> None:
    """The last writes were never copied to the standby that takes the store's place."""
    lose_writes, lose_told = world.site.keep(), world.witness.keep()

    def fall() -> None:
        world.trouble("store", "fails over, its last writes are lost", fault.lasts)
        world.witness.doubtful_until = world.loop.seconds + fault.lasts + LONGEST_LEASE
        world.site.fall()
        before = conduct.spoken(world)
        lose_writes()
        lose_told()
        world.unspoken |= before - conduct.spoken(world)
        world.later(fault.lasts, world.site.rise)

    world.later(0.05 + 3 * fault.size, fall)


# By no fault is a lease believed for longer than this, in seconds: jobs of simulated worlds keep to it.
LONGEST_LEASE: Final = 31.0

KINDS: Final[dict[str, tuple[int, tuple[float, float], Befall]]] = {
    "kill": (12, (0.5, 60), _kill),
    "stop": (10, (0.5, 30), _stop),
    "deploy": (5, (0.5, 30), _deploy),
    "freeze": (12, (0.5, 90), _standing("frozen", handlers=True, engine=True)),
    "block handlers": (6, (1, 60), _standing("handlers blocked", handlers=True, engine=False)),
    "block keeper": (6, (1, 60), _standing("keeper blocked", handlers=False, engine=True)),
    "cut": (8, (0.5, 60), _cut("cut off", out=True, back=True)),
    "cut requests": (5, (0.5, 45), _cut("its requests are lost", out=True, back=False)),
    "cut replies": (8, (0.5, 45), _cut("its replies are lost", out=False, back=True)),
    "storm": (12, (5, 90), _storm),
    "clock": (6, (0, 0), _own_clock),
    "store stalls": (5, (0.2, 25), _stall),
    "store restarts": (6, (0.05, 12), _restart),
    "store clock": (4, (0, 0), _store_clock),
    "failover": (4, (PROMOTED, 12), _failover),
}


def draw(seed: int, seconds: float) -> tuple[Fault, ...]:
    """The plan of a world of this seed and length."""
    dice = random.Random(f"{seed} faults")  # noqa: S311 - a seed is to decide
    kinds, weights = list(KINDS), [weight for weight, _, _ in KINDS.values()]
    faults: list[Fault] = []
    at = dice.expovariate(1 / EVERY)
    while at < seconds - CALM:
        (kind,) = dice.choices(kinds, weights)
        low, high = KINDS[kind][1]
        lasts = low * (high / low) ** dice.random() if low else 0.0  # short ones are as likely as long ones
        faults.append(Fault(round(at, 3), kind, round(lasts, 3), dice.random(), dice.random()))
        at += dice.expovariate(1 / EVERY)
    return tuple(faults)


def befall(world: World, fault: Fault) -> None:
    """Let it happen, now."""
    KINDS[fault.kind][2](world, fault)
