"""What comes of a schedule: its next slots, and as sentences what it does on days on which clocks are changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

from tenure.rules.instant import DAY, HOUR, instant
from tenure.rules.schedule import Change, Cron, Schedule, Slot, cron, next_nights
from tenure.rules.times import hours, local

LISTED: Final = 3
MOST: Final = 100
_EPOCH: Final = date(1970, 1, 1)
_SHIFTS: Final = {
    "gap": "{} does not exist on that day",
    "overlap-first": "{} comes twice: the first time",
    "overlap-second": "{} comes twice: the second time",
}


def upcoming(schedule: Schedule, after_ms: int, count: int) -> list[Slot]:
    """The next `count` slots at or after an instant."""
    found: list[Slot] = []
    slot = schedule.next(after_ms - 1) if count else None
    while slot is not None and len(found) < count:
        found.append(slot)
        slot = schedule.next(slot.at_ms)
    return found


def shift_words(slot: Slot) -> str:
    """What a clock change did to a slot; nothing for nearly all of them."""
    return _SHIFTS[slot.shifted].format(hours(slot.local)) if slot.shifted else ""


def change_words(change: Change) -> str:
    """`Sun 2026-03-29, clocks go forward from 02:00 to 03:00`."""
    day = change.local_before[:10]
    way = "forward" if change.kind == "gap" else "back"
    return (
        f"{date.fromisoformat(day):%a} {day}, clocks go {way} from {hours(change.local_before)} "
        f"to {hours(change.local_after)}"
    )


def nights(schedule: Schedule, after_ms: int, count: int = 2) -> list[tuple[Change, tuple[Slot, ...], str]]:
    """The next clock changes, the slots of each day, and what the schedule does there."""
    return [
        (change, slots, night_words(schedule, change, slots))
        for change, slots in next_nights(schedule, after_ms, count)
    ]


def no_changes(tz: str) -> str:
    """Why there are no nights to tell of."""
    return "UTC has no clock changes" if tz == "UTC" else f"The clocks of {tz} are not changed in the next ten years"


def night_words(schedule: Schedule, change: Change, slots: Sequence[Slot]) -> str:
    """What the schedule does on the day of a change."""
    if not isinstance(schedule, Cron) or schedule.is_elapsed:
        return _elapsed(schedule, change)
    told = _gap(schedule, change, slots) if change.kind == "gap" else _overlap(slots, change)
    if told:
        return told
    if not slots:
        return "no run on that day"
    return f"not touched: {_runs(slots, change)}"


def _elapsed(schedule: Schedule, change: Change) -> str:
    day = min(change.local_before, change.local_after)[:10]
    midnight = (date.fromisoformat(day) - _EPOCH).days * DAY
    start, end = midnight - change.offset_before_ms, midnight + DAY - change.offset_after_ms
    many = schedule.count(start - 1, end - 1)
    length = (end - start) / HOUR
    return f"by elapsed time, as always: {many:,} run{'' if many == 1 else 's'} in that day of {length:g} hours"


def _gap(schedule: Cron, change: Change, slots: Sequence[Slot]) -> str:
    """Times that the clocks skip: moved, one with a run that is there already, or left out."""
    meant = _skipped(schedule, change)
    if not meant:
        return ""
    lead = f"{_listed(meant)} {'does' if len(meant) == 1 else 'do'} not exist"
    if schedule.dst_gap == "skip":
        return f"{lead}: left out"
    moved = [slot for slot in slots if slot.shifted == "gap"]
    if not moved:
        return f"{lead}, and {'falls' if len(meant) == 1 else 'fall'} together with others: {_runs(slots, change)}"
    shown = list(dict.fromkeys(hours(local(slot.at_ms, change.tz)) for slot in moved))
    offset = local(moved[0].at_ms, change.tz)[-6:]
    return f"{lead}: {'runs' if len(shown) == 1 else 'run'} at {_listed(shown)} ({offset})"


def _skipped(schedule: Cron, change: Change) -> list[str]:
    """The schedule's times of day within the gap: those that it would have if no clock were ever changed."""
    unchanged = cron(schedule.expression)
    start, end = instant(change.local_before, 0), instant(change.local_after, 0)
    found: list[str] = []
    slot = unchanged.next(start - 1)
    while slot is not None and slot.at_ms < end and len(found) < MOST:
        found.append(hours(slot.local))
        slot = unchanged.next(slot.at_ms)
    return found


def _overlap(slots: Sequence[Slot], change: Change) -> str:
    """Times that come twice."""
    first = [slot for slot in slots if slot.shifted == "overlap-first"]
    second = [slot for slot in slots if slot.shifted == "overlap-second"]
    some = first or second
    if not some:
        return ""
    meant = f"{_listed([hours(slot.local) for slot in some])} {_do(some, 'comes', 'come')} twice"
    if first and second:
        return f"{meant}: {_do(some, 'runs', 'run')} both times"
    which = "first" if first else "second"
    return f"{meant}: {_do(some, 'runs', 'run')} the {which} time only ({local(some[0].at_ms, change.tz)[-6:]})"


def _do(slots: Sequence[Slot], one: str, many: str) -> str:
    return one if len({slot.local for slot in slots}) == 1 else many


def _runs(slots: Sequence[Slot], change: Change) -> str:
    times = [hours(local(slot.at_ms, change.tz)) for slot in slots]
    if len(times) > LISTED:
        return f"{len(times)}{' or more' if len(times) >= MOST else ''} runs from {times[0]} to {times[-1]}"
    return f"runs at {_listed(times)}"


def _listed(times: Sequence[str]) -> str:
    """`02:00, 02:20 and 02:40`, or the first and last of many."""
    unique = list(dict.fromkeys(times))
    if len(unique) == 1:
        return unique[0]
    if len(unique) > LISTED:
        return f"{len(unique)} times from {unique[0]} to {unique[-1]}"
    return f"{', '.join(unique[:-1])} and {unique[-1]}"
