"""What a search must have met before "no law was broken" means anything: the rare branches, by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tenure.proof.conduct import Case

# Two that a thousand schedules did not meet, `R11 forgotten, floor` and `R16 released before`, `explore.py` meets.
# Branches of the rules, as `branches.py` names them; what became of changes; events; and what `met` sees.
REQUIRED: Final = frozenset((
    "R1 won", "R1 won, manual", "R2 running", "R3 next attempt, expired", "R3 next attempt, released", "R4 used up",
    "R5 newer run won", "R6 won, dead runs interrupted", "R7 overlap, new run", "R7 overlap, takeover",
    "R7 heartbeat blocked", "R8 late", "R8 late, wish dropped", "R10 ended", "R13 renewed",
    "R13 renewed after expiry", "R14 finish refused, ended", "R14 finish refused, running",
    "R14 heartbeat refused, ended", "R14 heartbeat refused, running", "R14 heartbeat refused, unknown",
    "R14 release refused, running", "R15 finished", "R15 finished after expiry", "R15 finished before",
    "R16 given back", "R16 handed over", "R36 no such wish", "R37 paused",
    "R40a won before, lease renewed", "R46 claimed", "R46 claimed before", "R46 left by a lease", "early", "gone",
    "prune: done",
    "store: done", "store: raced", "store: expired",
    "event: lost", "event: unsure", "event: overdue", "event: abandoned", "event: missed", "event: stalled",
    "event: clock", "event: interrupted", "event: retry", "event: drift",
    "won by catch-up", "won by takeover", "won by manual", "won by schedule",
    "a takeover by the second backup", "a takeover of what was handed over", "two attempts at work at once",
    "the store's clock stepped under a live lease", "acknowledged writes were lost under a live lease",
    "a slot was told as missed alone",
))  # fmt: skip


def met(case: Case) -> Iterator[str]:
    """Each rare thing that happened in a world, again and again where it did."""
    yield from (f"won by {one.reason}" for one in case.witness.tenancies.values())
    yield from (f"event: {line.what}" for line in case.witness.lines if line.node != "store")
    for outcome, count in case.world.site.outcomes.items():
        yield from (f"store: {outcome}" for _ in range(count))
    for attempts in case.by_run.values():
        for first, second in pairwise(attempts):
            if first.how == "handed over":
                yield "a takeover of what was handed over"
            if first.begun is not None and second.begun is not None and (first.left or case.end) > second.begun:
                yield "two attempts at work at once"
        if len({one.runner.split("~")[0] for one in attempts}) == len("abc"):
            yield "a takeover by the second backup"
    for trouble in case.world.troubles:
        what = {
            "its clock steps": "the store's clock stepped under a live lease",
            "fails over, its last writes are lost": "acknowledged writes were lost under a live lease",
        }.get(trouble.what)
        live = any(one.won < trouble.begin < (one.over or case.end) for one in case.witness.tenancies.values())
        if what is not None and trouble.where == "store" and live:
            yield what
    if any(line.what == "missed" and "count=1 " in line.told for line in case.witness.lines):
        yield "a slot was told as missed alone"
