"""Schedules: when a job is due. Cron expressions in a time zone, and fixed intervals (R34, R35).

All instants are whole milliseconds since the epoch, UTC. cronsim parses expressions and says which dates
match; it never hears of a zone. What a clock change does to a wall time stands in ``readings``, the
arithmetic in ``slots``. This module must not know what time it is.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Final, Protocol, TypeVar, get_args

from cronsim import CronSim, CronSimError

from tenure.rules import wording
from tenure.rules.cronfields import check
from tenure.rules.readings import DstGap, DstOverlap, Shifted
from tenure.rules.schedule_error import ScheduleError, shown
from tenure.rules.slots import Calendar, Found, count_between, first_from, last_until
from tenure.rules.walltimes import TimesOfDay, WallTimes
from tenure.rules.zones import DAY, FIRST_SECOND, LAST_SECOND, Change, clock_changes, iso, zone

__all__ = [
    "Change",
    "Cron",
    "DstGap",
    "DstOverlap",
    "Every",
    "Schedule",
    "ScheduleError",
    "Shifted",
    "Slot",
    "clock_changes",
    "cron",
    "every",
    "next_nights",
]

LONGEST_INTERVAL_MS: Final = 100 * 366 * DAY * 1000
_FIRST_MS: Final = FIRST_SECOND * 1000
_LAST_MS: Final = LAST_SECOND * 1000
# Years whose rules are those that all zone data ends in: asked when a schedule is defined, without a clock.
_FAR_FUTURE: Final = 2_145_916_800  # 2038-01-01
_NIGHT_SLOTS: Final = 100
_START: Final = datetime(1999, 12, 31, 23, 59, 59)  # noqa: DTZ001  cronsim wants one; naive: it knows no zone

_Choice = TypeVar("_Choice", bound=str)


@dataclass(frozen=True, slots=True)
class Slot:
    """An instant at which a job is due.

    ``local`` is the wall time that was meant, ISO 8601 without an offset; ``shifted`` says whether a clock
    change touched it: "" no; "gap": that time does not exist on that day, and the slot was moved;
    "overlap-first" and "overlap-second": that time comes twice, and this is its first or second pass.
    """

    at_ms: int
    local: str
    shifted: Shifted


class Schedule(Protocol):
    """What a scheduler needs of a schedule. ``Cron`` and ``Every`` are the two; both frozen and hashable."""

    @property
    def identity(self) -> str:
        """The schedule in one normalised line: equal lines, equal slots under equal zone data."""
        ...

    @property
    def tz(self) -> str:
        """The IANA name of the zone its wall times are in."""
        ...

    def next(self, after_ms: int) -> Slot | None:
        """The first slot strictly later than ``after_ms``; None past year 9999."""
        ...

    def previous(self, until_ms: int) -> Slot | None:
        """The last slot at or before ``until_ms``; None if there is none."""
        ...

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many slots s there are with after_ms < s <= until_ms."""
        ...

    def smallest_gap_ms(self) -> int:
        """The smallest distance between neighbouring slots, clock changes aside."""
        ...

    def words(self) -> str:
        """The schedule as an English sentence, without a full stop."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """What is allowed but likely not meant, a sentence each."""
        ...


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a zone; made by ``cron()``."""

    expression: str  # normalised: five fields, or six with seconds first
    tz: str
    dst_gap: DstGap
    dst_overlap: DstOverlap
    calendar: Calendar = field(compare=False, repr=False)
    notes: tuple[str, ...] = field(compare=False, repr=False)  # warnings found while it was checked

    @property
    def identity(self) -> str:
        """``cron 30 2 * * * Europe/Berlin``, then the choices that are not the default."""
        parts = ["cron", self.expression, self.tz]
        if self.dst_gap != "shift":
            parts.append(f"dst_gap={self.dst_gap}")
        if self.dst_overlap != "first":
            parts.append(f"dst_overlap={self.dst_overlap}")
        return " ".join(parts)

    @property
    def is_elapsed(self) -> bool:
        """True if all 24 hours match: it runs by elapsed time, on every real instant that matches."""
        return self.calendar.wall_times.every_hour

    def next(self, after_ms: int) -> Slot | None:
        """The first slot strictly later than ``after_ms``; None past year 9999."""
        return _slot(first_from(self.calendar, after_ms // 1000 + 1))

    def previous(self, until_ms: int) -> Slot | None:
        """The last slot at or before ``until_ms``; None if there is none back to year 1."""
        return _slot(last_until(self.calendar, until_ms // 1000))

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many slots s there are with after_ms < s <= until_ms; exact, by arithmetic."""
        return count_between(self.calendar, after_ms // 1000 + 1, until_ms // 1000)

    def smallest_gap_ms(self) -> int:
        """The smallest distance between neighbouring slots on days without a clock change."""
        return self.calendar.wall_times.smallest_gap() * 1000

    def words(self) -> str:
        """An English sentence, such as "At 02:30 every day, Europe/Berlin time"."""
        explained = CronSim(wording.without_idle_steps(self.expression), _START).explain()
        return wording.cron_words(explained, self.expression, self.tz)

    def warnings(self) -> tuple[str, ...]:
        """What is allowed but likely not meant, a sentence each."""
        return self.notes + wording.cron_warnings(self.expression, self.calendar)


@dataclass(frozen=True, slots=True)
class Every:
    """Slots at the multiples of an interval since the epoch: the same everywhere; made by ``every()``."""

    interval_ms: int

    @property
    def identity(self) -> str:
        """``every 10000ms``."""
        return f"every {self.interval_ms}ms"

    @property
    def tz(self) -> str:
        """Always UTC: an interval has no wall clock."""
        return "UTC"

    def next(self, after_ms: int) -> Slot | None:
        """The first multiple strictly later than ``after_ms``; None past year 9999."""
        at_ms = (max(after_ms, _FIRST_MS - 1) // self.interval_ms + 1) * self.interval_ms
        return self._slot(at_ms) if at_ms <= _LAST_MS else None

    def previous(self, until_ms: int) -> Slot | None:
        """The last multiple at or before ``until_ms``; None before year 1."""
        at_ms = min(until_ms, _LAST_MS) // self.interval_ms * self.interval_ms
        return self._slot(at_ms) if at_ms >= _FIRST_MS else None

    def count(self, after_ms: int, until_ms: int) -> int:
        """How many multiples m there are with after_ms < m <= until_ms."""
        after, until = max(after_ms, _FIRST_MS - 1), min(until_ms, _LAST_MS)
        return max(until // self.interval_ms - after // self.interval_ms, 0)

    def smallest_gap_ms(self) -> int:
        """The interval."""
        return self.interval_ms

    def words(self) -> str:
        """An English sentence, such as "Every 10 seconds, counted from 1970-01-01 00:00 UTC"."""
        return wording.every_words(self.interval_ms)

    def warnings(self) -> tuple[str, ...]:
        """None: nothing about an interval is doubtful."""
        return ()

    def _slot(self, at_ms: int) -> Slot:
        rest = at_ms % 1000
        return Slot(at_ms, iso(at_ms // 1000) + (f".{rest:03d}" if rest else ""), "")


def cron(
    expression: str,
    tz: str = "UTC",
    *,
    dst_gap: DstGap = "shift",
    dst_overlap: DstOverlap = "first",
) -> Cron:
    """A schedule by a cron expression: five fields, six with seconds first, or an alias such as @daily.

    ``dst_gap`` is for wall times that a clock change skips: "shift" reads them with the offset before it
    (02:30 runs at 03:30), "asap" makes them all one slot right after it, "skip" leaves them out.
    ``dst_overlap`` is for those that come twice: the "first" pass, the "second", or "both". Neither
    matters where all 24 hours match: such a job runs by elapsed time.
    Raises ScheduleError for anything that can't be meant, also for a schedule that never comes.
    """
    checked = check(expression)
    place = zone(tz)
    gap = _one_of("dst_gap", dst_gap, get_args(DstGap))
    overlap = _one_of("dst_overlap", dst_overlap, get_args(DstOverlap))
    try:
        wall_times = _wall_times(checked.expression)
    except CronSimError as error:  # ours let it pass, so this would be a fault of ours; still a plain refusal
        checked.refuse("expression", f"the expression {shown(expression)} can't be read: {error}")
    if wall_times is None:
        checked.refuse("day of month", wording.never_due(checked.expression))
    if wall_times.every_hour:
        calendar = Calendar(wall_times, place, "skip", "both")
    else:
        calendar = Calendar(wall_times, place, gap, overlap)
    if calendar.gap == "skip" and first_from(calendar, _FAR_FUTURE) is None:
        checked.refuse("hour", wording.always_in_gap(checked.expression, tz))
    return Cron(checked.expression, tz, gap, overlap, calendar, checked.notes)


def every(interval_ms: int) -> Every:
    """A schedule at the multiples of an interval since the epoch, in whole milliseconds, 1 or more."""
    if type(interval_ms) is not int:  # nor a bool, nor a float
        what = f"{interval_ms!r}"[:40]
        raise ScheduleError(f"interval {what} is not a whole number of milliseconds; write 10000", "interval", what)
    if not 1 <= interval_ms <= LONGEST_INTERVAL_MS:
        what = str(interval_ms) if abs(interval_ms) < 10**30 else "beyond 10^30"
        raise ScheduleError(
            f"interval {what} ms is out of bounds: it takes 1 ms to 100 years ({LONGEST_INTERVAL_MS} ms); "
            "for dates write a cron expression",
            "interval",
            what,
        )
    return Every(interval_ms)


def next_nights(schedule: Schedule, after_ms: int, count: int = 2) -> tuple[tuple[Change, tuple[Slot, ...]], ...]:
    """The next clock changes of the schedule's zone, each with the slots meant for the local day of it.

    A change at midnight belongs to the day whose time it skips or repeats. Where that day has more than
    100 slots, the 100 around the change are given. Empty for a zone without changes in the next ten years.
    """
    return tuple((change, _slots_of_day(schedule, change)) for change in clock_changes(schedule.tz, after_ms, count))


def _slots_of_day(schedule: Schedule, change: Change) -> tuple[Slot, ...]:
    day = min(change.local_before, change.local_after)[:10]
    offsets = (change.offset_before_ms, change.offset_after_ms)
    midnight_ms = (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY * 1000
    # The day in UTC, as far as it can reach: it starts with one of the offsets and ends with the other, and
    # what is shifted runs on for the length of the gap.
    start_ms, end_ms = (
        midnight_ms - max(offsets) - 1,
        midnight_ms + DAY * 1000 - min(offsets) + abs(change.shift_ms),
    )
    if schedule.count(start_ms, end_ms) > _NIGHT_SLOTS:
        start_ms = max(start_ms, _around(schedule, change.at_ms))
    slots: list[Slot] = []
    slot = schedule.next(start_ms)
    while slot is not None and slot.at_ms < end_ms and len(slots) < _NIGHT_SLOTS:
        if slot.local[:10] == day:
            slots.append(slot)
        slot = schedule.next(slot.at_ms)
    return tuple(slots)


def _around(schedule: Schedule, at_ms: int) -> int:
    """The instant from which half of ``_NIGHT_SLOTS`` come before ``at_ms``."""
    for _ in range(_NIGHT_SLOTS // 2):
        slot = schedule.previous(at_ms - 1)
        if slot is None:
            break
        at_ms = slot.at_ms
    return at_ms - 1


@lru_cache(maxsize=1024)
def _wall_times(expression: str) -> WallTimes | None:
    """The wall times of a normalised expression; None if no date ever matches."""
    try:
        parsed = CronSim(expression, _START)
        next(CronSim(expression, _START))  # gives up after 50 years; dates repeat after 40 at most
    except StopIteration:
        return None
    except CronSimError as error:
        if str(error) == "Bad day-of-month":  # what is left of it after our check: 30 or 31 in short months
            return None
        raise
    every_date = parsed.days >= set(range(1, 32)) and parsed.weekdays >= set(range(7))
    return WallTimes(
        TimesOfDay(parsed.hours, parsed.minutes, parsed.seconds),
        parsed.months,
        parsed.match_day,
        every_day=every_date and len(parsed.months) == 12,
        every_hour=len(parsed.hours) == 24,
    )


def _one_of(name: str, value: _Choice, known: tuple[str, ...]) -> _Choice:
    if value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"write {', '.join(map(repr, known))}"
    raise ScheduleError(f"{name} {shown(str(value))} is no choice; {hint}", name, str(value))


def _slot(found: Found | None) -> Slot | None:
    return None if found is None else Slot(found.at * 1000, iso(found.wall), found.shifted)
