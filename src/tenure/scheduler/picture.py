"""What a picture of one job's runs shows, whoever draws it: its window, and when attempts and leases begin and end.

Everything but `pictured` is a pure function of what was recorded. Must not know how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tenure.rules.instant import HOUR, SECOND
from tenure.rules.job import Attempt
from tenure.scheduler.jobs import read_schedule
from tenure.scheduler.records import Records, RunView, Timeline
from tenure.stores.contract import Mark

# How an outcome looks; what is not here looks like nothing special.
STATUS_STYLES: Final = {
    "success": "good",
    "claimed": "good",
    "running": "accent",
    "failed": "bad",
    "timeout": "bad",
    "interrupted": "bad",
    "missed": "bad",
    "expired": "warn",
    "unsure": "warn",
    "late": "warn",
    "released": "move",
    "handed-over": "move",
    "paused": "warn",
}
# A run that began before the picture may reach into it.
_BACK: Final = 24 * HOUR
_LAST: Final = 5
_ROWS: Final = 12


@dataclass(frozen=True, slots=True)
class Pictured:
    """A timeline in its window; `instances` that know the job and are alive; the newest run, which may lie outside."""

    timeline: Timeline
    instances: tuple[str, ...]
    newest: RunView | None


async def pictured(records: Records, job: str, since: int | None = None, until: int | None = None) -> Pictured:
    """What happened between two times. Where none was named: the last hour's doings or, without any, the last runs."""
    now = await records.now()
    end = now if until is None else until
    start = end - HOUR if since is None else since
    newest = await records.runs([job], limit=_LAST)
    told = await records.timeline(job, start - _BACK, end)
    reaching = tuple(run for run in told.runs if reach(run, told.now)[1] >= start)
    marks = tuple(mark for mark in told.marks if mark.until >= start)
    picture = replace(told, since=start, until=end, runs=reaching, marks=marks)
    if since is None and until is None:
        if newest and not (picture.runs or picture.marks):
            reaches = [reach(run, now) for run in newest]
            picture = await records.timeline(job, min(one[0] for one in reaches), max(one[1] for one in reaches))
        picture = fitted(picture)
    alive = [one.name for one in await records.instances() if one.alive and job in one.jobs]
    return Pictured(picture, tuple(alive[:_ROWS]), newest[0] if newest else None)


def ending(run: RunView, attempt: Attempt, timeline: Timeline) -> tuple[str, int, int | None]:
    """How an attempt ends in the picture: its sign, when, and from when on nothing was heard of its runner."""
    current = attempt is run.attempts[-1]
    how = attempt.how
    if how is None and current and run.status == "running":
        heartbeat = timeline.told.get("heartbeat_ms") or run.lease_ms // 6
        silent = timeline.now - attempt.renewed > 2 * heartbeat
        return "open", max(timeline.now, attempt.started), attempt.renewed if silent else None
    end = attempt.ended if attempt.ended is not None else run.ended
    if how in ("expired", None):
        end = end if end is not None else lease_end(run, attempt)[0]
        return "died", end, attempt.renewed
    end = end if end is not None else attempt.renewed
    if how in ("handed-over", "unsure"):
        return ("handed" if how == "handed-over" else "unsure"), end, None
    return ("success" if how in ("success", "claimed") else "failed"), end, None


def lease_end(run: RunView, attempt: Attempt) -> tuple[int, bool]:
    """Until when the lease of an attempt reaches, and whether it ran out, or will, by itself."""
    if attempt.how == "expired" or (attempt.how is None and attempt.ended is None):
        known = run.lease_until if attempt is run.attempts[-1] else None
        return attempt.ended or known or attempt.renewed + run.lease_ms, True
    return attempt.ended if attempt.ended is not None else attempt.renewed, False


def reach(run: RunView, now: int) -> tuple[int, int]:
    """From when to when a run is to be seen."""
    ends = [one.ended or 0 for one in run.attempts]
    open_end = max(now, run.lease_until or 0) if run.ended is None else run.ended
    return min([run.slot, *(one.started for one in run.attempts)]), max([*ends, open_end])


def fitted(picture: Timeline) -> Timeline:
    """The picture cut to what happened in it, with a little room on both sides."""
    places = [place for run in picture.runs for place in reach(run, picture.now)]
    places += [place for mark in picture.marks for place in (mark.slot, mark.until)]
    if not places:
        return picture
    first, last = max(min(places), picture.since), max(places)
    room = max(SECOND, (last - first) // 40)
    return replace(picture, since=first - room, until=last + room)


def by_start(runs: Sequence[RunView]) -> list[RunView]:
    """Runs in the order in which their first attempts began."""
    return sorted(runs, key=lambda run: run.attempts[0].started if run.attempts else run.slot)


def marked(picture: Timeline, mark: Mark, most: int) -> list[tuple[int, int]]:
    """The slots of a mark, each as a stretch of its own; one stretch where there are more than `most`."""
    schedule = read_schedule(picture.told)
    if mark.count == 1 or mark.count > most or schedule is None:
        return [(mark.slot, mark.until)]
    slots: list[tuple[int, int]] = []
    slot = schedule.next(mark.slot - 1)
    while slot is not None and slot.at_ms <= mark.until and len(slots) < mark.count:
        slots.append((slot.at_ms, slot.at_ms))
        slot = schedule.next(slot.at_ms)
    return slots
