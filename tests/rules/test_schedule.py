"""Schedules, read as tables: what runs on the nights of a clock change, and the small rules around it."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tenure.rules.schedule import Slot, clock_changes, cron, every, next_nights

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def slots(schedule, after: str, until: str) -> list[Slot]:
    found, slot = [], schedule.next(ms(after))
    while slot is not None and slot.at_ms <= ms(until):
        found.append(slot)
        slot = schedule.next(slot.at_ms)
    return found


def told(slot: Slot, tz: str) -> str:
    """What the wall clock shows at the slot, and what the slot is: "03:30+02:00 for 02:30"."""
    shows = datetime.fromtimestamp(slot.at_ms / 1000, ZoneInfo(tz))
    offset = f"{shows:%z}"
    text = f"{shows:%H:%M}{offset[:3]}:{offset[3:5]}"
    notes = {"": "", "gap": f" for {slot.local[11:16]}", "overlap-first": " first", "overlap-second": " second"}
    return text + notes[slot.shifted]


def on(day: str, schedule, tz: str) -> list[str]:
    """All slots at which the wall clock shows a date, as told."""
    noon = ms(f"{day}T12:00:00+00:00")
    found, slot = [], schedule.next(noon - 2 * DAY)
    while slot is not None and slot.at_ms < noon + 2 * DAY:
        if f"{datetime.fromtimestamp(slot.at_ms / 1000, ZoneInfo(tz)):%Y-%m-%d}" == day:
            found.append(told(slot, tz))
        slot = schedule.next(slot.at_ms)
    return found


NIGHTS = [
    # The gap of Berlin: 02:00 to 03:00.
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", {}, "03:30+02:00 for 02:30"),
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", {"dst_gap": "asap"}, "03:00+02:00 for 02:30"),
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", {"dst_gap": "skip"}, ""),
    ("Europe/Berlin", "2026-03-29", "0 */2 * * *", {}, ", ".join(
        ["00:00+01:00", "03:00+02:00 for 02:00"] + [f"{hour:02}:00+02:00" for hour in range(4, 24, 2)])),
    ("Europe/Berlin", "2026-03-29", "30 2,3 * * *", {}, "03:30+02:00"),
    ("Europe/Berlin", "2026-03-29", "*/20 2 * * *", {},
     "03:00+02:00 for 02:00, 03:20+02:00 for 02:20, 03:40+02:00 for 02:40"),
    ("Europe/Berlin", "2026-03-29", "*/20 2 * * *", {"dst_gap": "asap"}, "03:00+02:00 for 02:00"),
    ("Europe/Berlin", "2026-03-29", "30 2 * * *", {"dst_overlap": "both"}, "03:30+02:00 for 02:30"),
    ("Europe/Berlin", "2026-03-29", "45 1-3 * * *", {}, "01:45+01:00, 03:45+02:00"),
    ("Europe/Berlin", "2026-03-29", "50 2,3 * * *", {"dst_gap": "asap"}, "03:00+02:00 for 02:50, 03:50+02:00"),
    ("Europe/Berlin", "2026-03-29", "0 2,3 * * *", {"dst_gap": "asap"}, "03:00+02:00"),
    ("Europe/Berlin", "2026-03-29", "15 30 2 * * *", {}, "03:30+02:00 for 02:30"),
    # The overlap of Berlin: 03:00 back to 02:00.
    ("Europe/Berlin", "2026-10-25", "30 2 * * *", {}, "02:30+02:00 first"),
    ("Europe/Berlin", "2026-10-25", "30 2 * * *", {"dst_overlap": "second"}, "02:30+01:00 second"),
    ("Europe/Berlin", "2026-10-25", "30 2 * * *", {"dst_overlap": "both"},
     "02:30+02:00 first, 02:30+01:00 second"),
    ("Europe/Berlin", "2026-10-25", "0 1-3 * * *", {}, "01:00+02:00, 02:00+02:00 first, 03:00+01:00"),
    ("Europe/Berlin", "2026-10-25", "0 1-3 * * *", {"dst_overlap": "second"},
     "01:00+02:00, 02:00+01:00 second, 03:00+01:00"),
    # New York: 02:00 to 03:00, and 02:00 back to 01:00.
    ("America/New_York", "2026-03-08", "30 2 * * *", {}, "03:30-04:00 for 02:30"),
    ("America/New_York", "2026-03-08", "30 1,3 * * *", {}, "01:30-05:00, 03:30-04:00"),
    ("America/New_York", "2026-11-01", "30 1 * * *", {}, "01:30-04:00 first"),
    ("America/New_York", "2026-11-01", "30 1 * * *", {"dst_overlap": "second"}, "01:30-05:00 second"),
    ("America/New_York", "2026-11-01", "30 2 * * *", {}, "02:30-05:00"),
    # Lord Howe: half an hour, 02:00 to 02:30, and 02:00 back to 01:30.
    ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", {}, "02:45+11:00 for 02:15"),
    ("Australia/Lord_Howe", "2026-10-04", "15 2 * * *", {"dst_gap": "asap"}, "02:30+11:00 for 02:15"),
    ("Australia/Lord_Howe", "2026-10-04", "15,45 2 * * *", {}, "02:45+11:00"),
    ("Australia/Lord_Howe", "2026-10-04", "30 2 * * *", {}, "02:30+11:00"),
    ("Australia/Lord_Howe", "2026-04-05", "15,45 1 * * *", {}, "01:15+11:00, 01:45+11:00 first"),
    ("Australia/Lord_Howe", "2026-04-05", "15,45 1 * * *", {"dst_overlap": "both"},
     "01:15+11:00, 01:45+11:00 first, 01:45+10:30 second"),
    # Havana: midnight itself is skipped, and comes twice.
    ("America/Havana", "2026-03-08", "0 0 * * *", {}, "01:00-04:00 for 00:00"),
    ("America/Havana", "2026-03-08", "@daily", {"dst_gap": "skip"}, ""),
    ("America/Havana", "2026-11-01", "0 0 * * *", {}, "00:00-04:00 first"),
    ("America/Havana", "2026-11-01", "0 0 * * *", {"dst_overlap": "both"},
     "00:00-04:00 first, 00:00-05:00 second"),
    # Santiago: the gap at midnight; the overlap is the last hour of a day, lived twice.
    ("America/Santiago", "2026-09-06", "0 0 * * *", {}, "01:00-03:00 for 00:00"),
    ("America/Santiago", "2026-04-04", "30 23 * * *", {}, "23:30-03:00 first"),
    ("America/Santiago", "2026-04-04", "30 23 * * *", {"dst_overlap": "second"}, "23:30-04:00 second"),
    ("America/Santiago", "2026-04-05", "0 0 * * *", {}, "00:00-04:00"),
    # Cairo: the same on a Friday and a Thursday.
    ("Africa/Cairo", "2026-04-24", "0 0 * * *", {}, "01:00+03:00 for 00:00"),
    ("Africa/Cairo", "2026-04-24", "0 0,1 * * FRI", {}, "01:00+03:00"),
    ("Africa/Cairo", "2026-10-29", "30 23 * * *", {"dst_overlap": "both"},
     "23:30+03:00 first, 23:30+02:00 second"),
    ("Africa/Cairo", "2026-10-30", "0 0 * * *", {}, "00:00+02:00"),
    # Apia had no 30 December 2011: its noon, read with the offset before, is noon of the 31st.
    ("Pacific/Apia", "2011-12-31", "0 12 30 12 *", {}, "12:00+14:00 for 12:00"),
    ("Pacific/Apia", "2011-12-31", "0 12 30 12 *", {"dst_gap": "asap"}, "00:00+14:00 for 12:00"),
    ("Pacific/Apia", "2011-12-31", "0 12 30 12 *", {"dst_gap": "skip"}, ""),
    ("Pacific/Apia", "2011-12-31", "0 12 * * *", {}, "12:00+14:00"),
    ("Pacific/Apia", "2011-12-30", "0 12 * * *", {}, ""),
    # A new standard time is a change like any other: Caracas, 2016-05-01 02:30 to 03:00.
    ("America/Caracas", "2016-05-01", "45 2 * * *", {}, "03:15-04:00 for 02:45"),
    # Pyongyang, 2018-05-04 23:30 to midnight.
    ("Asia/Pyongyang", "2018-05-05", "45 23 * * *", {}, "00:15+09:00 for 23:45, 23:45+09:00"),
    # Elapsed time, since all 24 hours match: nothing for the gap, both passes of the overlap.
    ("Europe/Berlin", "2026-03-29", "30 0-23 1,29 3 *", {}, ", ".join(
        ["00:30+01:00", "01:30+01:00"] + [f"{hour:02}:30+02:00" for hour in range(3, 24)])),
    ("Australia/Lord_Howe", "2026-04-05", "45 */1 5 4 *", {"dst_gap": "asap", "dst_overlap": "second"}, ", ".join(
        ["00:45+11:00", "01:45+11:00 first", "01:45+10:30 second"]
        + [f"{hour:02}:45+10:30" for hour in range(2, 24)])),
]  # fmt: skip


@pytest.mark.parametrize(("tz", "day", "expression", "choices", "expected"), NIGHTS)
def test_r34_nights_of_a_clock_change(tz, day, expression, choices, expected):
    """Each row was worked out by hand from R34 and the zone's rule."""
    assert ", ".join(on(day, cron(expression, tz, **choices), tz)) == expected


def test_r34_hourly_and_quarter_hourly_run_by_elapsed_time():
    """On both nights of Berlin every real hour and quarter has its slot, and no more."""
    for first in ("2026-03-28T12:00:00+00:00", "2026-10-24T12:00:00+00:00"):
        for expression, step in (("0 * * * *", HOUR), ("*/15 * * * *", 15 * MINUTE), ("* * * * * *", 1000)):
            schedule = cron(expression, "Europe/Berlin")
            assert schedule.is_elapsed
            assert schedule.count(ms(first), ms(first) + DAY) == DAY // step
            found, at = [], ms(first) + 11 * HOUR
            for _ in range(20):
                at = schedule.next(at).at_ms
                found.append(at)
            assert found == [ms(first) + 11 * HOUR + step * n for n in range(1, 21)]


def test_r34_wall_clock_with_seconds_on_change_nights():
    """82,800 slots a day in 23 hours: those of the gap that meet others are one, and are counted so."""
    schedule = cron("* * 0-22 * * *", "Europe/Berlin")
    assert not schedule.is_elapsed
    day = ("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00")
    assert schedule.count(ms(day[0]) - 1, ms(day[1]) - 1) == 22 * 3600  # 02:xx falls on 03:xx, second by second
    day = ("2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00")
    assert schedule.count(ms(day[0]) - 1, ms(day[1]) - 1) == 23 * 3600
    both = cron("* * 0-22 * * *", "Europe/Berlin", dst_overlap="both")
    assert both.count(ms(day[0]) - 1, ms(day[1]) - 1) == 24 * 3600


def test_r34_either_day_field_matches_unless_one_starts_with_a_star():
    """The 13th or a Friday, as Debian's cron; with a star in front, both."""
    found = [s.local[:10] for s in slots(cron("0 0 13 * 5"), "2026-02-01T00:00+00:00", "2026-03-01T00:00+00:00")]
    assert found == ["2026-02-06", "2026-02-13", "2026-02-20", "2026-02-27"]
    found = [s.local[:10] for s in slots(cron("0 0 13 * 2"), "2026-02-01T00:00+00:00", "2026-02-28T00:00+00:00")]
    assert found == ["2026-02-03", "2026-02-10", "2026-02-13", "2026-02-17", "2026-02-24"]
    found = [s.local[:10] for s in slots(cron("0 0 */2 * TUE"), "2026-02-01T00:00+00:00", "2026-02-28T00:00+00:00")]
    assert found == ["2026-02-03", "2026-02-17"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("0 0 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        ("0 0 15,L 2 *", ["2026-02-15", "2026-02-28", "2027-02-15"]),
        ("0 0 * * MON#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
        ("0 0 * * 1#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
        ("0 0 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * friL", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * 7L", ["2026-01-25", "2026-02-22", "2026-03-29"]),
        ("0 0 1 jan,JUL ?", ["2026-01-01", "2026-07-01", "2027-01-01"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 29 2 */7", ["2032-02-29", "2060-02-29", "2088-02-29"]),
        ("0 0 29 2 1", ["2026-02-02", "2026-02-09", "2026-02-16"]),
        ("0 0 ? * sat-6", ["2026-01-03", "2026-01-10", "2026-01-17"]),
        ("@hourly", ["2026-01-01", "2026-01-01", "2026-01-01"]),
        ("@Daily", ["2026-01-01", "2026-01-02", "2026-01-03"]),
        ("@midnight", ["2026-01-01", "2026-01-02", "2026-01-03"]),
        (" @weekly ", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("@monthly", ["2026-01-01", "2026-02-01", "2026-03-01"]),
        ("@yearly", ["2026-01-01", "2027-01-01", "2028-01-01"]),
        ("@annually", ["2026-01-01", "2027-01-01", "2028-01-01"]),
    ],
)
def test_r34_forms(expression, expected):
    """Names, lists, ranges, L, LW, # and the aliases."""
    schedule, at, found = cron(expression), ms("2025-12-31T23:59:59+00:00"), []
    for _ in expected:
        slot = schedule.next(at)
        found.append(slot.local[:10])
        at = slot.at_ms
    assert found == expected


def test_r34_six_fields_have_seconds_first():
    """And the sentence says so."""
    schedule = cron("15 30 2 * * *")
    assert schedule.next(0).local == "1970-01-01T02:30:15"
    assert schedule.words() == "At 02:30:15 every day (seconds first: second 15, minute 30, hour 2), UTC"


def test_r34_slots_are_strictly_later_to_the_millisecond():
    """A slot is never its own next, and a millisecond before it is enough to get it."""
    schedule = cron("30 2 * * *", "Europe/Berlin")
    slot = ms("2026-03-29T03:30:00+02:00")
    assert schedule.next(slot - 1).at_ms == slot
    assert schedule.next(slot).at_ms == ms("2026-03-30T02:30:00+02:00")
    assert schedule.previous(slot).at_ms == slot
    assert schedule.previous(slot - 1).at_ms == ms("2026-03-28T02:30:00+01:00")
    assert schedule.count(slot - 1, slot) == 1
    assert schedule.count(slot, slot) == schedule.count(slot, slot - 1) == 0


def test_r34_identity_is_normalised():
    """One spelling per schedule: what R29a compares."""
    assert cron("30 02 * * ?", "Europe/Berlin").identity == "cron 30 2 * * * Europe/Berlin"
    assert cron("@daily").identity == "cron 0 0 * * * UTC"
    assert cron("0\t0 1  jan friL\n").identity == "cron 0 0 1 JAN 5L UTC"
    assert cron("0 0 * * *", dst_gap="asap", dst_overlap="both").identity == (
        "cron 0 0 * * * UTC dst_gap=asap dst_overlap=both"
    )
    assert cron("@daily") == cron("0 0 * * *")
    assert hash(cron("@daily")) == hash(cron("00 00 * * *"))
    assert cron("@daily") != cron("@daily", "Europe/Berlin")
    assert cron("@daily") != cron("@daily", dst_gap="skip")


def test_r34_schedules_can_be_copied_and_pickled():
    """They cross process borders with a job's definition."""
    for schedule in (cron("0 0 L * *", "Africa/Cairo"), every(10_000)):
        for again in (pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):  # noqa: S301  our own bytes
            assert again == schedule
            assert again.next(0) == schedule.next(0)


def test_r34_the_ends_of_time():
    """Year 1 to year 9999, and never an error beyond."""
    for schedule in (cron("@daily", "Europe/Berlin"), cron("@hourly", "Pacific/Apia"), every(60_000), cron("@daily")):
        assert schedule.next(-(10**30)).local.startswith("0001-01-0")
        assert schedule.next(10**30) is None
        assert schedule.previous(-(10**30)) is None
        last = schedule.previous(10**30)
        assert last.local.startswith("9999-12-31")
        assert schedule.next(last.at_ms) is None
        assert schedule.previous(last.at_ms) == last
        assert datetime.fromtimestamp(last.at_ms / 1000, UTC).year == 9999
    assert cron("@hourly").count(-(10**30), 10**30) == cron("@hourly").count(-62_135_596_800_000, 253_402_300_799_999)
    assert cron("0 0 29 2 *").next(ms("9996-03-01T00:00:00+00:00")) is None
    assert cron("0 0 29 2 *").previous(ms("0005-01-01T00:00:00+00:00")).local == "0004-02-29T00:00:00"
    assert cron("0 0 29 2 *").previous(ms("0004-01-01T00:00:00+00:00")) is None


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("* * * * *", 60),
        ("* * * * * *", 1),
        ("*/20 * * * * *", 20),
        ("*/25 * * * * *", 10),
        ("*/25 * 9 * * *", 10),
        ("0 */25 9 * * *", 1500),
        ("0 * * * *", 3600),
        ("*/40 * * * *", 1200),
        ("0,50 9-17 * * *", 600),
        ("30 2 * * *", 86_400),
        ("0 0,23 * * *", 3600),
        ("10 1,22 * * *", 3 * 3600),
        ("@weekly", 7 * 86_400),
        ("0 0 1 * *", 28 * 86_400),
        ("0 0 1,31 * *", 86_400),
        ("0 0 13 * 5", 86_400),
        ("0 0 29 2 *", 1461 * 86_400),
        ("59 23,0 1 * *", 23 * 3600),
        ("0 5 0,12 28,29 2 *", 12 * 3600),
    ],
)
def test_r34_smallest_gap(expression, seconds):
    """The distance that bounds the jitter, clock changes aside."""
    assert cron(expression, "Europe/Berlin").smallest_gap_ms() == seconds * 1000


def test_r35_every_has_multiples_of_the_interval_since_the_epoch():
    """The same on every instance, without talking."""
    schedule = every(10_000)
    assert schedule.identity == "every 10000ms"  # stored with a job: not to be changed
    assert schedule.tz == "UTC"
    assert schedule.next(0) == Slot(10_000, "1970-01-01T00:00:10", "")
    assert schedule.next(9_999).at_ms == 10_000
    assert schedule.next(10_000).at_ms == 20_000
    assert schedule.previous(19_999).at_ms == 10_000
    assert schedule.previous(20_000).at_ms == 20_000
    assert schedule.next(-10_001).at_ms == -10_000
    assert schedule.previous(-1).at_ms == -10_000
    assert schedule.count(0, 100_000) == 10
    assert schedule.count(-1, 100_000) == 11
    assert schedule.count(100_000, 0) == 0
    assert schedule.smallest_gap_ms() == 10_000
    assert every(250).next(1_000) == Slot(1_250, "1970-01-01T00:00:01.250", "")
    assert every(7 * 3_600_000).count(0, 10**14) == 10**14 // (7 * 3_600_000)
    assert every(1) == every(1)
    assert len({every(1), every(1), every(2)}) == 2


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (1, "Every millisecond"),
        (1_000, "Every second"),
        (10_000, "Every 10 seconds"),
        (90_000, "Every 1 minute 30 seconds"),
        (3_600_000, "Every hour"),
        (8 * 86_400_000, "Every 1 week 1 day"),
    ],
)
def test_r35_words(interval, words):
    """From when it is counted is part of the sentence."""
    assert every(interval).words() == f"{words}, counted from 1970-01-01 00:00 UTC"
    assert every(interval).warnings() == ()


@pytest.mark.parametrize(
    ("expression", "tz", "words"),
    [
        ("30 2 * * *", "Europe/Berlin", "At 02:30 every day, Europe/Berlin time"),
        ("*/15 9-17 * * MON-FRI", "UTC", "Every 15th minute from 09:00 through 17:59 on Monday through Friday, UTC"),
        ("0 0 21,22,23 * *", "UTC", "At 00:00 on the 21st, the 22nd, and the 23rd day of month, UTC"),
        ("0 0 11 * *", "UTC", "At 00:00 on the 11th day of every month, UTC"),
        ("0 0 13 * 5", "UTC", "At 00:00 on the 13th day of month or on Friday, UTC"),
        ("0 */2 * * *", "UTC", "At minute 0 past every other hour, UTC"),
        ("* * * * * *", "UTC", "Every second (seconds first: second *, minute *, hour *), UTC"),
        ("*/90 * * * *", "UTC", "At the start of every hour, UTC"),
        ("0 0 */40 * *", "UTC", "At 00:00 on the first day of every month, UTC"),
        ("0 */24 * * *", "UTC", "At 00:00 every day, UTC"),
        ("0 0 * * */7", "UTC", "At 00:00 on Sunday, UTC"),
        ("0 0 LW * *", "UTC", "At 00:00 on the last weekday of every month, UTC"),
    ],
)
def test_r34_words(expression, tz, words):
    """cronsim's sentence, with its ordinals mended, an honest "or", and the zone."""
    assert cron(expression, tz).words() == words


@pytest.mark.parametrize(
    ("expression", "tz", "phrase"),
    [
        ("*/70 * * * *", "UTC", "step 70 is larger than the range 0-59, so only 0 matches"),
        ("0 8-12/9 * * *", "UTC", "step 9 is larger than the range 8-12, so only 8 matches"),
        ("50/10 * * * *", "UTC", "step 10 is larger than the range 50-59"),
        ("0 0 * * */7", "UTC", "step 7 is larger than the range 0-6"),
        ("0 0 13 * 5", "UTC", "either is enough"),
        ("0 0 */2 * 5", "UTC", "both must match"),
        ("30 2 * * *", "Europe/Berlin", "one that is skipped runs that much later"),
        ("0 3 * * *", "Europe/Berlin", "between 00:00 and 03:59"),
        ("30 23 * * *", "America/Santiago", "00:00 to 23:00"),
        ("30 2 * * * 0", "UTC", "write '0 30 2 * * *'"),
        ("*/5 * * * * 0", "UTC", "write '0 */5 * * * *'"),
        ("* * * * * */10", "UTC", "write '*/10 * * * * *'"),
    ],
)
def test_r34_warnings(expression, tz, phrase):
    """Allowed, but likely not meant; each says what will happen or what to write."""
    (found,) = (warning for warning in cron(expression, tz).warnings() if phrase in warning)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("expression", "tz"),
    [
        ("30 2 * * *", "UTC"),
        ("30 2 * * *", "Asia/Tokyo"),
        ("30 4 * * *", "Europe/Berlin"),
        ("*/15 * * * *", "Europe/Berlin"),
        ("0 30 * * * 1", "UTC"),
        ("0 30 2 * * *", "UTC"),
        ("0 0 9 * * MON", "UTC"),
        ("*/30 * * * *", "UTC"),
        ("0 0 * * 0", "UTC"),
        ("0 0 ? * 0", "UTC"),
    ],
)
def test_r34_no_warning_without_a_reason(expression, tz):
    """Ordinary schedules are quiet."""
    assert cron(expression, tz).warnings() == ()


def test_r34_clock_changes():
    """The next changes of a zone, with both offsets and both local times."""
    spring, autumn = clock_changes("Europe/Berlin", ms("2026-01-01T00:00:00+00:00"))
    assert (spring.at_ms, spring.kind, spring.shift_ms) == (ms("2026-03-29T01:00:00+00:00"), "gap", HOUR)
    assert (spring.local_before, spring.local_after) == ("2026-03-29T02:00:00", "2026-03-29T03:00:00")
    assert (spring.offset_before_ms, spring.offset_after_ms) == (HOUR, 2 * HOUR)
    assert (autumn.at_ms, autumn.kind, autumn.shift_ms) == (ms("2026-10-25T01:00:00+00:00"), "overlap", -HOUR)
    assert clock_changes("Europe/Berlin", spring.at_ms, 1) == (autumn,)
    assert clock_changes("Europe/Berlin", spring.at_ms - 1, 1) == (spring,)
    assert clock_changes("Europe/Berlin", spring.at_ms, 0) == ()
    assert len(clock_changes("Europe/Berlin", ms("1979-01-01T00:00:00+00:00"), 7)) == 7
    for quiet in ("UTC", "Asia/Tokyo", "Etc/GMT-5"):
        assert clock_changes(quiet, ms("2026-01-01T00:00:00+00:00")) == ()
    assert clock_changes("Europe/Berlin", 10**30) == clock_changes("UTC", -(10**30)) == ()
    (apia,) = clock_changes("Pacific/Apia", ms("2011-12-01T00:00:00+00:00"), 1)
    assert apia.shift_ms == DAY


def test_r34_next_nights():
    """For each of the next changes: what the schedule does on that local day."""
    nights = next_nights(cron("30 0,2 * * *", "Europe/Berlin"), ms("2026-01-01T00:00:00+00:00"))
    assert [(change.kind, [told(slot, "Europe/Berlin") for slot in slots]) for change, slots in nights] == [
        ("gap", ["00:30+01:00", "03:30+02:00 for 02:30"]),
        ("overlap", ["00:30+02:00", "02:30+02:00 first"]),
    ]
    nights = next_nights(cron("30 23 * * *", "America/Santiago"), ms("2026-01-01T00:00:00+00:00"))
    assert [(change.local_before[:10], [slot.local for slot in slots]) for change, slots in nights] == [
        ("2026-04-05", ["2026-04-04T23:30:00"]),  # the hour that comes twice belongs to the day before midnight
        ("2026-09-06", ["2026-09-06T23:30:00"]),
    ]
    ((change, slots),) = next_nights(cron("0 12 * * *", "Pacific/Apia"), ms("2011-12-01T00:00:00+00:00"), 1)
    assert change.kind == "gap"
    assert slots == ()  # noon of the missing day meets noon of the next, which is the one told
    ((change, slots),) = next_nights(cron("0 12 30 * *", "Pacific/Apia"), ms("2011-12-01T00:00:00+00:00"), 1)
    assert [told(slot, "Pacific/Apia") for slot in slots] == ["12:00+14:00 for 12:00"]


def test_r34_next_nights_of_busy_schedules_are_cut_around_the_change():
    """Every second: a hundred slots, half of them before the change."""
    for expression in ("* * * * * *", "* * 0-22 * * *", "* * * * *"):
        for change, slots in next_nights(cron(expression, "Europe/Berlin"), ms("2026-01-01T00:00:00+00:00")):
            assert len(slots) == 100
            assert sum(slot.at_ms < change.at_ms for slot in slots) == 50
    assert next_nights(every(1_000), 0) == ()
    assert next_nights(cron("* * * * *"), 0) == ()


def test_case_r51_after_a_block_the_latest_slot_and_the_number_of_the_others():
    """A loop blocked for ten minutes asks twice, whatever the number of slots it slept over."""
    schedule, now = cron("* * * * * *", "Europe/Berlin"), ms("2026-10-25T02:05:00.250+01:00")
    assert schedule.previous(now).at_ms == ms("2026-10-25T02:05:00+01:00")
    assert schedule.count(now - 10 * MINUTE, now) == 600
    assert schedule.next(now).at_ms == ms("2026-10-25T02:05:01+01:00")
    assert cron("* * * * *", "Europe/Berlin").count(now - 10 * MINUTE, now) == 10


@pytest.mark.parametrize("tz", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana"])
@pytest.mark.parametrize(("expression", "interval"), [("* * * * *", MINUTE), ("0 * * * *", HOUR)])
def test_case_r54_no_hole_in_the_repeated_hour(tz, expression, interval):
    """Minutely and hourly jobs go on through every change of the year; half hours are as Lord Howe has them."""
    schedule = cron(expression, tz)
    for change in clock_changes(tz, ms("2026-01-01T00:00:00+00:00")):
        at, end = change.at_ms - 3 * HOUR, change.at_ms + 3 * HOUR
        while at < end:
            following = schedule.next(at).at_ms
            half_hours = tz == "Australia/Lord_Howe" and interval == HOUR
            assert following - at <= (interval + HOUR // 2 if half_hours else interval)
            at = following


def test_case_r59_a_weekly_job_is_not_a_week_late_after_a_short_day():
    """Sunday noon in Berlin, asked from the Thursday before the 23-hour Sunday."""
    schedule = cron("0 12 * * 0", "Europe/Berlin")
    slot = schedule.next(ms("2026-03-26T10:00:00+01:00"))
    assert slot == Slot(ms("2026-03-29T12:00:00+02:00"), "2026-03-29T12:00:00", "")


def test_case_r66_a_new_expression_is_another_schedule():
    """What R29a keeps the first sight of: the identity differs, and from 10:00 nothing is due until 04:00."""
    old, new = cron("0 3 * * *", "Europe/Berlin"), cron("0 4 * * *", "Europe/Berlin")
    assert old.identity != new.identity
    assert new.next(ms("2026-06-01T10:00:00+02:00")).local == "2026-06-02T04:00:00"
