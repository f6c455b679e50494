"""The standard small worlds: together they reach every branch of the rules, at their bounds and around them.

A lease is 60 s, a decision valid for 2 s, and a slot may be 30 s + 10 s late where nothing else is said. So
instants a second apart let a commit be late and still in time, and those farther apart let it come too late.
"""

from __future__ import annotations

from typing import Final

from tenure.proof.smallworld import World, claim
from tenure.rules import commands as c
from tenure.rules.instant import SECOND
from tenure.rules.job import Job, Request

FIRST: Final = 0
NEXT: Final = 30 * SECOND
# The slot that may be asked for when the first one was forgotten, and a bound of a later deploy.
LATER: Final = 60 * SECOND
GENEROUS: Final = 300 * SECOND


def at(*seconds: int) -> tuple[int, ...]:
    """Instants in milliseconds."""
    return tuple(second * SECOND for second in seconds)


SKIP: Final = World(
    "skip",
    at(0, 1, 30, 40, 41, 59, 60, 70, 71, 119, 120),
    (claim(FIRST), claim(NEXT)),
    endings=("success", "failed", "handed-over", "unsure"),
)
THREE: Final = World("skip, three instances", at(0, 30, 59, 60, 90, 120), (claim(FIRST), claim(NEXT)), instances=3)
SHORT: Final = World("skip, named", at(0, 30, 60, 90), (claim(FIRST), claim(NEXT)), wins=3)
BACK: Final = World("skip, clock back", at(0, 30, 60, 90, 120), (claim(FIRST), claim(NEXT)), steps_back=True)
ALLOW: Final = World(
    "allow",
    at(0, 30, 59, 60, 90, 120),
    (claim(FIRST, overlap="allow"), claim(NEXT, overlap="allow")),
    endings=("success", "unsure"),
)
# A deploy from allow to skip, while a wish waits: instances of both definitions ask.
MIXED: Final = World(
    "mixed",
    at(0, 30, 60, 90),
    (
        claim(FIRST, overlap="allow"),
        claim(NEXT, overlap="allow"),
        claim(FIRST),
        claim(NEXT),
        claim(FIRST, request="w", bound_ms=90 * SECOND),
    ),
    wins=3,
    endings=("success", "handed-over"),
    start=Job(requests=(Request("w", FIRST, ""),)),
)
# The same slot is asked for again by a later deploy whose bound would let it: only the floor stands against it.
FORGET: Final = World(
    "forget",
    at(0, 10, 60, 70, 71, 120, 121, 180, 240),
    (
        claim(FIRST, overlap="allow", bound_ms=0),
        claim(LATER, overlap="allow", bound_ms=0),
        claim(FIRST, overlap="allow", bound_ms=GENEROUS),
    ),
    wins=3,
    endings=("success",),
    pruning=True,
)
FORGET_SKIP: Final = World(
    "forget, skip",
    at(0, 60, 70, 71, 120, 121, 180, 240),
    (claim(FIRST, bound_ms=0), claim(LATER, bound_ms=0), claim(FIRST, bound_ms=GENEROUS)),
    wins=3,
    endings=("success",),
    pruning=True,
)
MANUAL: Final = World(
    "manual, paused",
    at(0, 40, 41, 60, 100),
    (claim(FIRST), claim(FIRST, request="w")),
    others=(c.Trigger("w", ""), c.Pause(), c.Resume()),
    wins=3,
    endings=("success", "handed-over"),
)
# Claim-only, and one instance still with a lease, as in a deploy.
CLAIMED: Final = World(
    "claim-only",
    at(0, 1, 30, 40, 41, 60, 61, 90),
    (claim(FIRST, lease_ms=None), claim(NEXT, lease_ms=None), claim(FIRST)),
)
# Three definitions at once: with overlaps, without, and claim-only.
DEPLOYS: Final = World(
    "deploys",
    at(0, 30, 60, 90),
    (
        claim(FIRST, overlap="allow"),
        claim(NEXT, lease_ms=None, overlap="allow"),
        claim(FIRST, request="w", bound_ms=90 * SECOND),
    ),
    wins=3,
    endings=("success", "handed-over"),
    start=Job(requests=(Request("w", FIRST, ""),)),
)
WORLDS: Final = (SKIP, THREE, BACK, ALLOW, MIXED, FORGET, FORGET_SKIP, MANUAL, CLAIMED, DEPLOYS)

# Those that take minutes and a gigabyte.
LONG: Final = (
    World(
        "skip, three slots",
        at(0, 1, 30, 40, 41, 59, 60, 70, 71, 90, 119, 120, 121, 150),
        (claim(FIRST), claim(NEXT), claim(LATER)),
        wins=5,
    ),
    World(
        "allow, longer",
        at(0, 1, 30, 41, 59, 60, 71, 90, 119, 120, 121, 150),
        (claim(FIRST, overlap="allow"), claim(NEXT, overlap="allow")),
    ),
    World(
        "all definitions",
        at(0, 30, 60, 90),
        (
            claim(FIRST, overlap="allow"),
            claim(NEXT, overlap="allow"),
            claim(FIRST),
            claim(NEXT),
            claim(NEXT, lease_ms=None, overlap="allow"),
            claim(FIRST, request="w", bound_ms=90 * SECOND),
            claim(FIRST, request="w", bound_ms=90 * SECOND, overlap="allow"),
        ),
        wins=3,
        endings=("success", "handed-over"),
        start=Job(requests=(Request("w", FIRST, ""),)),
    ),
)
