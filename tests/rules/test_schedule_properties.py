"""Laws of schedules over random expressions, zones and instants; and cronsim as a second opinion."""

from __future__ import annotations

import zoneinfo
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenure.rules.schedule import ScheduleError, clock_changes, cron, every

HOUR, DAY, YEAR = 3_600_000, 86_400_000, 365 * 86_400_000
NOW = 1_790_000_000_000  # September 2026
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  wall times are counted, not placed
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "America/Santiago",
    "Africa/Cairo", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll", "America/Nuuk", "Asia/Kathmandu",
    "Pacific/Kwajalein", "America/Sitka", "Asia/Gaza", "Pacific/Kiritimati",
]  # fmt: skip
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@st.composite
def field(draw, low, high, names=(), extra=()):
    """One field: a star, a step, or a list of values, ranges, steps, names and special forms."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(["*", "*", "?", "*/2", "*/7", f"{low}/5"]))
    items = []
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        forms = [str(first), str(first), f"{first}-{last}", f"{first}-{last}/{draw(st.integers(1, 9))}", f"{first}/3"]
        forms += [draw(st.sampled_from(names))] if names else []
        forms += [draw(st.sampled_from(extra))] if extra else []
        items.append(draw(st.sampled_from(forms)))
    return ",".join(items)


@st.composite
def expressions(draw):
    fields = [
        draw(field(0, 59)),
        draw(st.one_of(st.just("*"), field(0, 23), st.sampled_from(["0-3", "2", "1,2", "0", "23", "1-23"]))),
        draw(st.one_of(st.just("*"), field(1, 31, extra=["L", "LW"]))),
        draw(st.one_of(st.just("*"), field(1, 12, MONTHS))),
        draw(st.one_of(st.just("*"), field(0, 7, DAYS, ["5L", "0L", "MON#2", "3#5", "7#1"]))),
    ]
    if draw(st.booleans()):
        fields.insert(0, draw(field(0, 59)))
    return " ".join(fields)


@st.composite
def schedules(draw):
    if draw(st.integers(0, 9)) == 0:
        return every(draw(st.one_of(st.integers(1, 10_000), st.integers(1, 40 * DAY))))
    try:
        return cron(
            draw(expressions()),
            draw(st.sampled_from(ZONES)),
            dst_gap=draw(st.sampled_from(["shift", "asap", "skip"])),
            dst_overlap=draw(st.sampled_from(["first", "second", "both"])),
        )
    except ScheduleError as error:
        assume("never" not in str(error))
        raise


@st.composite
def instants(draw, tz="UTC"):
    """Any instant, most of them in our time, and many close to a change of the zone."""
    near = draw(st.sampled_from(["change", "now", "century", "any"]))
    if near == "change":
        changes = clock_changes(tz, draw(st.integers(NOW - 90 * YEAR, NOW + 50 * YEAR)), 1)
        if changes:
            return changes[0].at_ms + draw(st.integers(-4 * HOUR, 4 * HOUR))
    if near == "now":
        return draw(st.integers(NOW - 3 * YEAR, NOW + 3 * YEAR))
    if near == "century":
        return draw(st.integers(NOW - 150 * YEAR, NOW + 150 * YEAR))
    return draw(st.integers(-(10**15), 10**15))


@given(st.data())
@settings(max_examples=400)
def test_case_r57_next_is_later_and_previous_agrees(data):
    """next(t) > t, always; nothing lies between; and one direction is the other read backwards."""
    schedule = data.draw(schedules())
    at = data.draw(instants(schedule.tz))
    slot, before = schedule.next(at), schedule.previous(at)
    assert before is None or before.at_ms <= at
    if slot is None:
        assert at > NOW
        return
    assert slot.at_ms > at
    assert schedule.previous(slot.at_ms) == slot
    assert schedule.previous(slot.at_ms - 1) == before
    assert schedule.next(slot.at_ms - 1) == slot
    assert schedule.count(at, slot.at_ms) == 1
    assert schedule.count(at, slot.at_ms - 1) == 0
    if before is not None:
        assert schedule.next(before.at_ms) == slot
        assert schedule.next(before.at_ms - 1) == before


@given(st.data())
@settings(max_examples=300)
def test_case_r57_slots_increase_and_are_counted(data):
    """Sixty slots forward, the same sixty backward, and count agrees between any two of them."""
    schedule = data.draw(schedules())
    at = data.draw(instants(schedule.tz))
    forward, after = [], at
    while len(forward) < 60 and (slot := schedule.next(after)) is not None:
        assert slot.at_ms > after
        forward.append(slot)
        after = slot.at_ms
    assume(forward)
    backward, until = [], forward[-1].at_ms
    while (slot := schedule.previous(until)) is not None and slot.at_ms > at:
        backward.append(slot)
        until = slot.at_ms - 1
    assert backward[::-1] == forward
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(forward) - 1)] * 2)))
    if forward[last].at_ms - forward[first].at_ms < 400 * YEAR:
        assert schedule.count(forward[first].at_ms, forward[last].at_ms) == last - first
        assert schedule.count(forward[first].at_ms - 1, forward[last].at_ms) == last - first + 1


@given(schedules(), st.integers(NOW - 20 * YEAR, NOW + 20 * YEAR), *[st.integers(0, 3 * YEAR)] * 2)
@settings(max_examples=200)
def test_case_r57_counts_add_up(schedule, start, first, second):
    """Over years, without walking through them: the parts make the whole."""
    middle, end = start + first, start + first + second
    whole = schedule.count(start, end)
    assert whole == schedule.count(start, middle) + schedule.count(middle, end)
    assert whole >= 0
    assert schedule.count(end, start) == 0


@given(expressions(), st.integers(-20 * 365, 180 * 365), st.integers(0, 86_399))
@settings(max_examples=400)
def test_r34_without_a_zone_it_is_cronsims_own_enumeration(expression, day, second):
    """In UTC, slots are what cronsim itself walks through; its reading of fields is ours."""
    try:
        schedule = cron(expression)
    except ScheduleError as error:
        assume("never" not in str(error))
        raise
    start = EPOCH + timedelta(days=day, seconds=second)
    after = (start - EPOCH) // timedelta(milliseconds=1)
    for expected in islice(CronSim(schedule.expression, start), 8):
        slot = schedule.next(after)
        assert slot.local == expected.isoformat()
        assert slot.at_ms == (expected - EPOCH) // timedelta(milliseconds=1)
        after = slot.at_ms


@given(expressions())
@settings(max_examples=200)
def test_r34_smallest_gap_is_never_beaten(expression):
    """No two of the next 300 slots are closer than the smallest gap."""
    try:
        schedule = cron(expression)
    except ScheduleError as error:
        assume("never" not in str(error))
        raise
    found, after = [], NOW
    for _ in range(300):
        slot = schedule.next(after)
        if slot is None:
            break
        found.append(slot.at_ms)
        after = slot.at_ms
    gaps = [b - a for a, b in pairwise(found)]
    assert min(gaps) >= schedule.smallest_gap_ms()


FOLDS = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "America/Santiago",
         "Africa/Cairo", "Antarctica/Troll", "America/Nuuk"]  # fmt: skip
IN_FOLDS = ["30 2 * * *", "*/15 * * * *", "0 * * * *", "30 0-2,23 * * *", "5 1,2 * * *", "0 */2 * * *",
            "10,50 * * * * *"]  # fmt: skip


@pytest.mark.parametrize("tz", FOLDS)
def test_case_r57_starts_inside_folds_never_give_the_past(tz):
    """2,072 starts in the repeated hours of eight zones: each gives what the forward list says."""
    starts = 0
    (fold,) = (change for change in clock_changes(tz, NOW - YEAR // 2, 2) if change.kind == "overlap")
    length = -fold.shift_ms
    for expression in IN_FOLDS:
        schedule = cron(expression, tz)
        forward, after = [], fold.at_ms - 30 * HOUR
        while after < fold.at_ms + 30 * HOUR:
            after = schedule.next(after).at_ms
            forward.append(after)
        for n in range(37):
            start = fold.at_ms - length + 2 * length * n // 37 + n
            assert schedule.next(start).at_ms == forward[bisect_right(forward, start)] > start
            assert schedule.previous(start).at_ms == forward[bisect_right(forward, start) - 1] <= start
            starts += 1
    assert starts == 2_072 // len(FOLDS)


def test_r34_every_zone_can_be_scheduled_in():
    """All names of the zone data work, but for the two that mean another zone on each machine."""
    for tz in zoneinfo.available_timezones() - {"localtime", "posixrules"}:
        slot = cron("30 2 * * *", tz).next(NOW)
        local = datetime.fromtimestamp(slot.at_ms / 1000, UTC).astimezone(zoneinfo.ZoneInfo(tz))
        assert f"{local:%H:%M}" == "02:30"


def test_case_r57_work_is_bounded_whatever_is_asked():
    """Sparse, never, and far away: no question walks through all the slots in between."""
    assert cron("* * * * * *", "Europe/Berlin").count(0, NOW) > 1_700_000_000
    assert cron("0 0 29 2 */7", "Europe/Berlin").next(NOW).local == "2032-02-29T00:00:00"
    assert cron("0 0 29 2 */7", "Europe/Berlin").previous(NOW).local == "2004-02-29T00:00:00"
    assert cron("0 0 * 2 MON#5", "Europe/Berlin").next(NOW).local == "2044-02-29T00:00:00"
    skipping = cron("30 2 * 3 0L", "Europe/Lisbon", dst_gap="skip")  # its gap is at 01:00
    assert skipping.next(NOW).shifted == ""
    assert every(1).count(-(10**30), 10**30) > 10**14
