"""Schedules held against brute force: every minute of UTC, looked at on the zone's own clock.

The oracle shares nothing with the rules but the zone data. It writes down what the clock shows at each
UTC minute, and reads R34 off that list: a wall time that is shown has its passes there, one that is never
shown lies where the list jumps.
"""

from __future__ import annotations

import struct
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import pytest

from tenure.rules.schedule import Cron, clock_changes, cron

GAPS, OVERLAPS = ("shift", "asap", "skip"), ("first", "second", "both")
DAY = 86_400
# Machine-dependent, and refused by us.
ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "posixrules"})


@dataclass(frozen=True)
class Case:
    """An expression, whether all 24 hours match, and what it means in plain Python."""

    expression: str
    elapsed: bool
    matches: Callable[[datetime], bool]


CASES = [
    Case("30 2 * * *", False, lambda w: (w.hour, w.minute) == (2, 30)),
    Case("0 0 * * *", False, lambda w: (w.hour, w.minute) == (0, 0)),
    Case("59 23 * * *", False, lambda w: (w.hour, w.minute) == (23, 59)),
    Case("0 */2 * * *", False, lambda w: w.minute == 0 and w.hour % 2 == 0),
    Case("7,37 1-23 * * *", False, lambda w: w.minute in (7, 37) and w.hour >= 1),
    Case("*/20 0-3,22,23 * * *", False, lambda w: w.minute % 20 == 0 and w.hour in (0, 1, 2, 3, 22, 23)),
    Case("15 0,1,2 * * SUN,5", False, lambda w: w.minute == 15 and w.hour < 3 and w.isoweekday() in (5, 7)),
    Case("45 0-12 L * 0", False, lambda w: w.minute == 45 and w.hour <= 12 and (_is_last(w) or w.isoweekday() == 7)),
    Case("0 * * * *", True, lambda w: w.minute == 0),
    Case("*/25 * * * *", True, lambda w: w.minute % 25 == 0),
    Case("30 0-23 * * 0-5", True, lambda w: w.minute == 30 and w.isoweekday() != 6),
]


def utc(text: str) -> int:
    """UTC seconds of a time written without an offset."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _is_last(when: datetime) -> bool:
    return (when + timedelta(days=1)).day == 1


class Clock:
    """What a zone's clock shows at each step of UTC, as naive datetimes, and where it jumps ahead."""

    def __init__(self, tz: str, start: int, end: int, step: int = 60) -> None:
        zone = ZoneInfo(tz)
        self.utc = list(range(start, end, step))
        self.local = [datetime.fromtimestamp(second, zone).replace(tzinfo=None) for second in self.utc]
        self.passes: dict[datetime, list[int]] = {}
        for second, local in zip(self.utc, self.local, strict=True):
            self.passes.setdefault(local, []).append(second)
        one = timedelta(seconds=step)
        self.jumps = [n for n in range(1, len(self.utc)) if self.local[n] - self.local[n - 1] > one]
        first, last = min(self.local), max(self.local)
        self.walls = [first + one * n for n in range(round((last - first) / one) + 1)]

    def slots(self, case: Case, gap: str, overlap: str, walls: list[datetime]) -> list[int]:
        """The slots by R34, as UTC seconds, in order; ``walls`` are the wall times that match."""
        found: set[int] = set()
        for wall in walls:
            passes = self.passes.get(wall)
            if case.elapsed or (passes and overlap == "both"):
                found.update(passes or ())
            elif passes:
                found.add(passes[0] if overlap == "first" else passes[-1])
            elif gap != "skip":
                found.add(self.in_gap(wall, gap))
        return sorted(found)

    def in_gap(self, wall: datetime, gap: str) -> int:
        """Where a wall time that is never shown runs."""
        after = next(n for n in self.jumps if self.local[n - 1] < wall < self.local[n])
        if gap == "asap":
            return self.utc[after]
        before = after - 1  # read with the offset in force before the change
        return self.utc[before] + round((wall - self.local[before]).total_seconds())


def hold(clock: Clock, tz: str, first: int, last: int, cases: list[Case] = CASES) -> int:
    """Every case and choice agrees with the clock at UTC seconds from ``first`` to ``last``."""
    compared = 0
    for case in cases:
        walls = [wall for wall in clock.walls if wall.second == 0 and case.matches(wall)]
        choices = [("shift", "first")] if case.elapsed else list(product(GAPS, OVERLAPS))
        for gap, overlap in choices:
            expected = [s for s in clock.slots(case, gap, overlap, walls) if first <= s <= last]
            schedule = cron(case.expression, tz, dst_gap=gap, dst_overlap=overlap)
            hold_one(schedule, expected, first, last)
            compared += len(expected)
    return compared


def hold_one(schedule: Cron, expected: list[int], first: int, last: int) -> None:
    found, after = [], first * 1000 - 1
    while (slot := schedule.next(after)) is not None and slot.at_ms <= last * 1000:
        assert slot.at_ms > after
        found.append(slot.at_ms // 1000)
        after = slot.at_ms
    assert found == expected, schedule.identity
    assert schedule.count(first * 1000 - 1, last * 1000) == len(expected), schedule.identity
    back, until = [], last * 1000
    while (slot := schedule.previous(until)) is not None and slot.at_ms >= first * 1000:
        assert slot.at_ms <= until
        back.append(slot.at_ms // 1000)
        until = slot.at_ms - 1
    assert back[::-1] == expected, schedule.identity


def hold_around(tz: str, at: int, step: int = 60, cases: list[Case] = CASES) -> int:
    """The 30 hours around a change; the clock is watched for a day more on both sides."""
    start = at - 42 * 3600
    clock = Clock(tz, start - start % step, at + 42 * 3600, step)
    return hold(clock, tz, at - 15 * 3600, at + 15 * 3600, cases)


@cache
def every_change(first_year: int, last_year: int) -> tuple[tuple[str, int], ...]:
    """(zone, UTC second) of every offset change of every zone, one zone per distinct set of offsets.

    Found by asking zoneinfo every six hours; two changes that undo each other within six would be missed.
    """
    start, end = (utc(f"{year}-01-01T00:00") for year in (first_year, last_year + 1))
    moments = [datetime.fromtimestamp(second, UTC) for second in range(start, end, 6 * 3600)]
    seen: dict[tuple[int, timedelta, timedelta], tuple[str, int]] = {}
    for tz in ZONES:
        zone = ZoneInfo(tz)
        offsets = [moment.astimezone(zone).utcoffset() for moment in moments]
        for n in range(1, len(offsets)):
            if offsets[n] != offsets[n - 1]:
                at = _first_with(zone, offsets[n], start + (n - 1) * 6 * 3600, start + n * 6 * 3600)
                seen.setdefault((at, offsets[n - 1], offsets[n]), (tz, at))
    return tuple(seen.values())


def _first_with(zone: ZoneInfo, offset: timedelta, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high


PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_r34_every_change_of_every_zone(part):
    """The 30 hours around every change from 2025 to 2030, all expressions, all choices."""
    compared = 0
    changes = every_change(2025, 2030)
    assert len(changes) > 300
    for tz, at in changes[part::PARTS]:
        compared += hold_around(tz, at)
    assert compared > 0


@pytest.mark.parametrize(
    ("tz", "at", "step"),
    [
        ("Pacific/Apia", "2011-12-30T10:00", 60),  # a day that never was
        ("Pacific/Kwajalein", "1993-08-21T12:00", 60),  # and another
        ("Pacific/Kwajalein", "1969-09-30T13:00", 60),  # a day lived twice, nearly
        ("Antarctica/Casey", "2010-03-04T15:00", 60),  # three hours back
        ("America/Caracas", "2007-12-09T07:00", 60),
        ("Asia/Pyongyang", "2015-08-14T15:00", 60),
        ("Africa/Freetown", "1939-09-01T01:00", 60),  # twenty minutes
        ("Asia/Gaza", "2040-10-20T00:00", 60),  # twice within a week
        ("Africa/Monrovia", "1972-01-07T00:44:30", 30),  # offsets that are no whole minutes
        ("America/Sitka", "1867-10-19T00:30", 1),  # a whole day back, by local mean time
        ("Asia/Manila", "1844-12-31T15:56:08", 1),  # a whole day forward
    ],
)
def test_r34_changes_that_history_has_seen(tz, at, step):
    """The odd ones, where a rule that knows of summer time only would fail."""
    assert hold_around(tz, utc(at), step) > 0


# Zones made up for the test: (UTC seconds into 2030-05-15, offset in seconds), from an offset of 0 before.
MADE_UP = {
    "TwiceADay": [(6 * 3600, 3600), (12 * 3600, 0)],
    "ThreePasses": [(10 * 3600, -3600), (10 * 3600 + 1800, -7200)],
    "GapOnGap": [(10 * 3600, 3600), (10 * 3600 + 1800, 7200)],
    "GapTakenBack": [(10 * 3600, 7200), (10 * 3600 + 1800, 3600)],
    "BackAndFurtherOn": [(10 * 3600, -3600), (10 * 3600 + 2400, 1800)],
    "GapShownLater": [(10 * 3600, 7200), (12 * 3600, -3600), (13 * 3600, 1800)],
    "GapBeforeOverlap": [(23 * 3600, 5400), (23 * 3600 + 1200, 4500)],
    "SkippedTwice": [(10 * 3600, 7200), (10 * 3600 + 1800, -3600), (10 * 3600 + 2400, 10_800)],
    "DayForwardAndBack": [(10 * 3600, 12 * 3600), (34 * 3600, -11 * 3600)],
}


def tzif(changes: list[tuple[int, int]]) -> bytes:
    """A version 1 zone file, with an offset of 0 before the first change."""
    offsets = [0, *(offset for _, offset in changes)]
    start = utc("2030-05-15T00:00")
    head = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, len(changes), len(offsets), 4)
    times = b"".join(struct.pack(">l", start + second) for second, _ in changes)
    types = b"".join(struct.pack(">lBB", offset, 0, 0) for offset in offsets)
    return head + times + bytes(range(1, len(offsets))) + types + b"XXX\0"


@pytest.fixture
def made_up_zones(tmp_path):
    (tmp_path / "MadeUp").mkdir()
    for name, changes in (MADE_UP | AT_AN_EDGE).items():
        (tmp_path / "MadeUp" / name).write_bytes(tzif(changes))
    zoneinfo.reset_tzpath(to=[tmp_path, *zoneinfo.TZPATH])
    yield
    zoneinfo.reset_tzpath()


@pytest.mark.parametrize("name", MADE_UP)
def test_r34_several_changes_in_a_day(made_up_zones, name):
    """Two gaps, three passes, a gap that is shown after all: what no zone has done yet."""
    tz, at = f"MadeUp/{name}", utc("2030-05-15T10:00")
    found = clock_changes(tz, at * 1000 - 86_400_000, 9)
    offsets = [0, *(offset for _, offset in MADE_UP[name])]
    assert [(c.offset_before_ms, c.offset_after_ms) for c in found] == [
        (before * 1000, after * 1000) for before, after in pairwise(offsets)
    ]
    assert hold_around(tz, at) > 0
    assert hold_around(tz, at + MADE_UP[name][-1][0]) > 0


# One date a year, so that a search goes on from block to block; 2030-06-15 begins a block of 48 days.
SPARSE = [
    Case("30 23 14 6 *", False, lambda w: (w.month, w.day, w.hour, w.minute) == (6, 14, 23, 30)),
    Case("0,20,40 0 15 6 *", False, lambda w: (w.month, w.day, w.hour, w.minute % 20) == (6, 15, 0, 0)),
    Case("59 * 14 6 *", True, lambda w: (w.month, w.day, w.minute) == (6, 14, 59)),
]
AT_AN_EDGE = {
    f"Edge{late}{'Back' if offset < 0 else 'Forward'}{abs(offset)}": [(31 * DAY + late * 600, offset)]
    for late in range(5)
    for offset in (-3600, 3600, -20 * 3600, 20 * 3600)
}


@pytest.mark.parametrize("name", AT_AN_EDGE)
def test_r34_changes_where_one_look_up_ends(made_up_zones, name):
    """A pass, or a shifted slot, that lies in the next block though its date is over is not jumped over."""
    hold_around(f"MadeUp/{name}", utc("2030-06-15T00:00"), cases=SPARSE + CASES[:4])


def test_r34_forward_and_back_give_one_list_across_blocks():
    """Where one look-up of the zone ends and the next begins, no slot is lost or told twice."""
    for tz in ("Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe"):
        for edge in range(20_400, 20_900, 48):  # days since 1970; a block is 48 days
            clock = Clock(tz, (edge - 2) * DAY, (edge + 2) * DAY)
            hold(clock, tz, edge * DAY - 8 * 3600, edge * DAY + 8 * 3600, CASES[3:6])


@cache
def distinct_zones(first: int, last: int) -> tuple[str, ...]:
    """One zone for each different run of offsets, looked at hour by hour."""
    moments = [datetime.fromtimestamp(second, UTC) for second in range(first, last, 3600)]
    seen: dict[tuple[timedelta | None, ...], str] = {}
    for tz in ZONES:
        seen.setdefault(tuple(moment.astimezone(ZoneInfo(tz)).utcoffset() for moment in moments), tz)
    return tuple(seen.values())


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_case_r56_400_days_of_all_zones(part):
    """Every slot once, strictly increasing, none missing, minute by minute through 400 days."""
    first, last = utc("2026-01-01T00:00"), utc("2027-02-05T00:00")
    zones = distinct_zones(first - 2 * DAY, last + 2 * DAY)
    assert len(zones) > 60
    for tz in zones[part::PARTS]:
        hold(Clock(tz, first - 2 * DAY, last + 2 * DAY), tz, first, last)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_case_r56_every_change_since_1900(part):
    """All changes the zone data knows of between 1900 and 2040, but those by local mean time."""
    for tz, at in every_change(1900, 2040)[part::PARTS]:
        offsets = {datetime.fromtimestamp(second, ZoneInfo(tz)).utcoffset() for second in (at - 1, at)}
        if at % 60 == 0 and all(offset.total_seconds() % 60 == 0 for offset in offsets):
            hold_around(tz, at)
