"""What a waking timer should do: when to claim, when to look again, when to doubt, what to recover.

Pure: the time and every random draw (0 <= draw < 1) are arguments. Times named `boot` are milliseconds on
the instance's own clock that runs during suspend; all others are on the store's.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

from tenure.rules.job import Job, Past, Run
from tenure.rules.lease import unsure_after
from tenure.rules.runs import TOLERANCE

# An instance's checks stand on a common grid of this many milliseconds, and so share calls (R21).
GRID: Final = 50
# How long after a lease end, at most, a backup that knows it looks again (R21).
AFTER_END: Final = 200
BACKOFF_FIRST: Final = 100
BACKOFF_CAP: Final = 5_000

Doing = Literal["go on", "unsure"]
Ending = Literal["finish", "fail", "time out", "hand over", "give up", "nothing"]


def claim_at(slot: int, jitter_ms: int, draw: float) -> float:
    """When an instance claims a slot: one draw per instance and instant, scaled to the job's jitter (R19)."""
    return slot + draw * jitter_ms


def next_beat(boot: float, heartbeat_ms: int, phase: float) -> float:
    """The next tick of all runs with this heartbeat length, later than `boot` (R17)."""
    start = phase * heartbeat_ms
    return start + (math.floor((boot - start) / heartbeat_ms) + 1) * heartbeat_ms


def next_look(boot: float, lease_end_boot: float | None, heartbeat_ms: int, draw: float, draw_end: float) -> float:
    """When a backup asks again: after one to two heartbeats, or just after the lease end, on the grid (R21)."""
    soon = boot + (1 + draw) * heartbeat_ms
    if lease_end_boot is not None:
        # A lease that has run out already is asked for at the next grid point but one, never in a spin.
        soon = min(soon, max(lease_end_boot, boot) + 1 + draw_end * AFTER_END)
    return math.ceil(soon / GRID) * GRID


def judge(boot: float, sent: float, lease_ms: int, heartbeat_ms: int) -> Doing:
    """A runner's own judgement, with `sent` the time at which its last good renewal was asked for (R26)."""
    return "unsure" if boot - sent >= unsure_after(lease_ms, heartbeat_ms) else "go on"


def ending(returned: bool, why: str) -> Ending:
    """What to do when a handler has ended; `why` is what it was told to stop for, "" if nothing (R24 to R30a)."""
    if why in ("lost", "abandoned"):
        return "nothing"
    if why == "timeout":
        return "time out"
    if returned:
        return "finish"
    return {"stop": "hand over", "unsure": "give up"}.get(why, "fail")  # type: ignore[return-value]


def backoff(tries: int, draw: float, cap_ms: int = BACKOFF_CAP) -> float:
    """Milliseconds to wait after the `tries`-th failure in a row: doubling, capped, jittered (R25)."""
    return min(float(cap_ms), BACKOFF_FIRST * 2.0 ** min(tries - 1, 16)) * (0.5 + draw / 2)


def given_up(slot: int, next_slot: int | None, now: float, max_late_ms: int, catch_up_ms: int) -> bool:
    """Whether a slot that could not be claimed is missed for good (R25)."""
    too_late = now > slot + max(max_late_ms + TOLERANCE, catch_up_ms)
    return too_late or (next_slot is not None and next_slot <= now)


class Recovery(NamedTuple):
    """What an instance does for one job on start and on waking (R29).

    open: a slot that it may not catch up, and that others may still claim: to be told of once they can't (R25).
    """

    watch: tuple[Run, ...]
    take: tuple[Run, ...]
    catch_up: int | None
    missed: tuple[int, int] | None
    open: int | None = None


def recovery(
    job: Job,
    latest: int | None,
    past: Past | None,
    told: int | None,
    now: int,
    *,
    schedule: str,
    catch_up_ms: int,
    max_late_ms: int,
) -> Recovery:
    """R29 and R36a for one job, by an instance that knows it with this `schedule`.

    latest: the latest slot that is due; past: its record, if it ended; told: the highest slot below it with a
    record or a mark. missed: (after, until) between which slots passed that nobody has spoken of.
    """
    watch, take = [], []
    for run in job.runs:
        newer_due = not run.request and latest is not None and latest > run.slot
        if run.lease.live(now):
            watch.append(run)
        elif not newer_due:
            take.append(run)
    if latest is None:
        return Recovery(tuple(watch), tuple(take), None, None)
    since = job.since(schedule)
    fresh = since is not None and latest >= since
    new = past is None and job.find(latest, "") is None and (job.newest is None or job.newest < latest)
    in_time = now - latest < catch_up_ms
    # A slot that is still within the lateness of an ordinary claim is left to the claims under way.
    catch = latest if fresh and new and in_time and job.paused is None else None
    # What was won may be the latest itself, or newer than this instance's reckoning: it speaks of no older slot.
    open_slots = (run.slot for run in job.runs if not run.request and run.slot < latest)
    won = job.newest if job.newest is not None and job.newest < latest else None
    spoken = max((one for one in (told, won, since, *open_slots) if one is not None), default=latest)
    hopeless = fresh and new and not in_time and now - latest > max_late_ms + TOLERANCE
    until = latest if hopeless else latest - 1
    still_open = latest if fresh and new and catch is None and not hopeless else None
    return Recovery(tuple(watch), tuple(take), catch, (spoken, until) if until > spoken else None, still_open)
