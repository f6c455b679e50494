"""The wall times that a cron expression matches, as a set that is asked by arithmetic.

A calendar without zones: days of matching dates, and in each the same times of day. Wall seconds are
local times counted as if they were UTC; a day number counts days since 1970-01-01. Nothing here walks
from one time to the next: "the first at or after", "the last at or before" and "how many between"
cost the same for one time a day and for 86,400.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from datetime import date
from itertools import pairwise
from typing import Final

DAY: Final = 86_400
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_DAY: Final = date.min.toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date.max.toordinal() - _EPOCH_DAY
_END_DAY: Final = _LAST_DAY + 1
_FIRST_MONTH: Final = 12  # months are numbered year * 12 + month - 1; January of year 1
_LAST_MONTH: Final = 9999 * 12 + 11
# Dates repeat after 28 years, after 40 across a century that is no leap year; two turns are plenty.
_SURVEYED_MONTHS: Final = range(2000 * 12, 2080 * 12)
_SURVEYED_DAYS: Final = 400
_KNOWN_MONTHS: Final = 1000  # remembered per expression


class TimesOfDay:
    """Hours x minutes x seconds, in order: the same on every matching day. Seconds since midnight."""

    __slots__ = ("_hours", "_minutes", "_seconds", "count", "first", "last")

    def __init__(self, hours: Iterable[int], minutes: Iterable[int], seconds: Iterable[int]) -> None:
        self._hours = tuple(sorted(hours))
        self._minutes = tuple(sorted(minutes))
        self._seconds = tuple(sorted(seconds))
        self.count = len(self._hours) * len(self._minutes) * len(self._seconds)
        self.first = self._hours[0] * 3600 + self._minutes[0] * 60 + self._seconds[0]
        self.last = self._hours[-1] * 3600 + self._minutes[-1] * 60 + self._seconds[-1]

    def at_or_after(self, time: int) -> int | None:
        """The first time of day from ``time`` on, or None."""
        hour, minute, second = time // 3600, time // 60 % 60, time % 60
        at = bisect_left(self._hours, hour)
        if at < len(self._hours) and self._hours[at] == hour:
            found = self._in_hour(minute, second)
            if found is not None:
                return hour * 3600 + found
            at += 1
        if at == len(self._hours):
            return None
        return self._hours[at] * 3600 + self._minutes[0] * 60 + self._seconds[0]

    def _in_hour(self, minute: int, second: int) -> int | None:
        at = bisect_left(self._minutes, minute)
        if at < len(self._minutes) and self._minutes[at] == minute:
            place = bisect_left(self._seconds, second)
            if place < len(self._seconds):
                return minute * 60 + self._seconds[place]
            at += 1
        return None if at == len(self._minutes) else self._minutes[at] * 60 + self._seconds[0]

    def at_or_before(self, time: int) -> int | None:
        """The last time of day up to ``time``, itself included, or None."""
        below = self.count_below(time + 1)
        return None if below == 0 else self._nth(below - 1)

    def _nth(self, number: int) -> int:
        number, second = divmod(number, len(self._seconds))
        hour, minute = divmod(number, len(self._minutes))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]

    def count_below(self, time: int) -> int:
        """How many times of day are before ``time`` (0 to 86,400)."""
        hour, minute, second = time // 3600, time // 60 % 60, time % 60
        hours = bisect_left(self._hours, hour)
        count = hours * len(self._minutes) * len(self._seconds)
        if hours < len(self._hours) and self._hours[hours] == hour:
            minutes = bisect_left(self._minutes, minute)
            count += minutes * len(self._seconds)
            if minutes < len(self._minutes) and self._minutes[minutes] == minute:
                count += bisect_left(self._seconds, second)
        return count

    def smallest_gap(self) -> int | None:
        """The smallest distance of two neighbours in a day, in seconds; None if there is one time only."""
        first, last = self._seconds[0], self._seconds[-1]
        minutes, hours = _smallest_step(self._minutes), _smallest_step(self._hours)
        inner = (self._minutes[-1] - self._minutes[0]) * 60 + last - first
        gaps = [
            _smallest_step(self._seconds),
            None if minutes is None else minutes * 60 - (last - first),
            None if hours is None else hours * 3600 - inner,
        ]
        return min((gap for gap in gaps if gap is not None), default=None)


def _smallest_step(values: tuple[int, ...]) -> int | None:
    return min((b - a for a, b in pairwise(values)), default=None)


class WallTimes:
    """Matching dates x times of day; ``matches`` says whether a date of a matching month counts."""

    __slots__ = ("_gap", "_known", "_matches", "_months", "every_day", "every_hour", "times")

    def __init__(
        self,
        times: TimesOfDay,
        months: Iterable[int],
        matches: Callable[[date], bool],
        *,
        every_day: bool,
        every_hour: bool,
    ) -> None:
        self.times = times
        self.every_day = every_day
        self.every_hour = every_hour
        self._months = frozenset(months)
        self._matches = matches
        self._gap: int | None = None
        self._known: dict[int, tuple[int, ...]] = {}

    def days_of(self, month: int) -> tuple[int, ...]:
        """The day numbers that match in a month (year * 12 + month - 1)."""
        days = self._known.get(month)
        if days is None:
            if len(self._known) >= _KNOWN_MONTHS:
                self._known.clear()
            days = self._known[month] = self._find_days(month)
        return days

    def _find_days(self, month: int) -> tuple[int, ...]:
        year, index = divmod(month, 12)
        if index + 1 not in self._months:
            return ()
        found = []
        start = date(year, index + 1, 1).toordinal()
        for ordinal in range(start, min(start + 31, date.max.toordinal() + 1)):
            day = date.fromordinal(ordinal)
            if day.month != index + 1:
                break
            if self._matches(day):
                found.append(ordinal - _EPOCH_DAY)
        return tuple(found)

    def day_at_or_after(self, day: int) -> int | None:
        """The first matching day from ``day`` on; None past year 9999."""
        if self.every_day:
            return day if day <= _LAST_DAY else None
        if day > _LAST_DAY:
            return None
        month = _month_of(day)
        days = self.days_of(month)
        at = bisect_left(days, day)
        while at == len(days):
            month += 1
            if month > _LAST_MONTH:
                return None
            days, at = self.days_of(month), 0
        return days[at]

    def day_at_or_before(self, day: int) -> int | None:
        """The last matching day up to ``day``, itself included; None before year 1."""
        if self.every_day:
            return day if day >= _FIRST_DAY else None
        if day < _FIRST_DAY:
            return None
        month = _month_of(day)
        days = self.days_of(month)
        at = bisect_right(days, day)
        while at == 0:
            month -= 1
            if month < _FIRST_MONTH:
                return None
            days = self.days_of(month)
            at = len(days)
        return days[at - 1]

    def at_or_after(self, wall: int) -> int | None:
        """The first matching wall second from ``wall`` on; None past year 9999."""
        day, time = divmod(max(wall, _FIRST_DAY * DAY), DAY)
        found = self.day_at_or_after(day)
        if found == day:
            at = self.times.at_or_after(time)
            if at is not None:
                return day * DAY + at
            found = self.day_at_or_after(day + 1)
        return None if found is None else found * DAY + self.times.first

    def at_or_before(self, wall: int) -> int | None:
        """The last matching wall second up to ``wall``, itself included; None before year 1."""
        day, time = divmod(min(wall, _END_DAY * DAY - 1), DAY)
        found = self.day_at_or_before(day)
        if found == day:
            at = self.times.at_or_before(time)
            if at is not None:
                return day * DAY + at
            found = self.day_at_or_before(day - 1)
        return None if found is None else found * DAY + self.times.last

    def count(self, start: int, end: int) -> int:
        """How many matching wall seconds lie in [start, end)."""
        start, end = max(start, _FIRST_DAY * DAY), min(end, _END_DAY * DAY)
        if end <= start:
            return 0
        first, time_from = divmod(start, DAY)
        last, time_to = divmod(end, DAY)
        count = self._count_days(first, last) * self.times.count
        if self.day_at_or_after(first) == first:
            count -= self.times.count_below(time_from)
        if time_to and self.day_at_or_after(last) == last:
            count += self.times.count_below(time_to)
        return count

    def _count_days(self, first: int, last: int) -> int:
        """How many days in [first, last) match."""
        if self.every_day or last <= first:
            return max(last - first, 0)
        from_month, to_month = _month_of(first), _month_of(last)
        between = sum(len(self.days_of(month)) for month in range(from_month, to_month))
        return between - bisect_left(self.days_of(from_month), first) + bisect_left(self.days_of(to_month), last)

    def smallest_gap(self) -> int:
        """The smallest distance of two neighbouring wall times, in seconds, as seen over the calendar."""
        if self._gap is None:
            within = self.times.smallest_gap()
            over_night = self._smallest_day_gap() * DAY - (self.times.last - self.times.first)
            self._gap = over_night if within is None else min(within, over_night)
        return self._gap

    def _smallest_day_gap(self) -> int:
        if self.every_day:
            return 1
        smallest, seen, before = 12 * 366, 0, None
        for month in _SURVEYED_MONTHS:
            for day in self.days_of(month):
                smallest = min(smallest, smallest if before is None else day - before)
                before, seen = day, seen + 1
            if smallest == 1 or seen >= _SURVEYED_DAYS:
                break
        return smallest


def _month_of(day: int) -> int:
    when = date.fromordinal(min(max(day, _FIRST_DAY), _LAST_DAY) + _EPOCH_DAY)
    return when.year * 12 + when.month - 1
