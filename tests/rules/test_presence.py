"""Presence and shifts, on ordinary days and on the nights when clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.rules import presence
from tenure.rules.instant import HOUR, MINUTE
from tenure.rules.presence import Presence, Shift, boundary, effective, override_until, read_shift
from tenure.rules.refusal import Refusal

BERLIN = "TZ=Europe/Berlin Mon-Fri 09:00-18:00; Sat 10:00-14:00"
NIGHT = "TZ=Europe/Berlin Fri-Sun 22:00-06:00"
DAYS = presence.DAYS


def at(text, zone="UTC", fold=0):
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


def berlin(text, fold=0):
    return at(text, "Europe/Berlin", fold)


@pytest.mark.parametrize(
    ("text", "value", "until"),
    [
        ("2026-11-30T08:59:59", "out", "2026-11-30T09:00"),  # a Monday
        ("2026-11-30T09:00", "in", "2026-11-30T18:00"),
        ("2026-11-30T18:00", "out", "2026-12-01T09:00"),
        ("2026-12-04T20:00", "out", "2026-12-05T10:00"),
        ("2026-12-05T14:00", "out", "2026-12-07T09:00"),
    ],
)
def test_b36_a_shift_is_open_from_its_first_minute_to_its_last(text, value, until):
    """Closed before, open from the start, closed from the end on; and it is known when that changes."""
    assert effective(None, None, BERLIN, berlin(text)) == Presence(value, "shift", berlin(until))


def test_b37_a_window_may_cross_midnight_and_the_end_of_the_week():
    """Friday to Sunday from ten in the evening to six: Monday morning belongs to Sunday's window."""
    week = read_shift(NIGHT)
    monday = berlin("2026-12-07T05:59")
    assert effective(None, None, NIGHT, monday) == Presence("in", "shift", berlin("2026-12-07T06:00"))
    assert boundary(week, berlin("2026-12-07T06:00")) == berlin("2026-12-11T22:00")
    assert effective(None, None, NIGHT, berlin("2026-12-11T03:00")).value == "out"


def test_b37_the_night_on_which_clocks_go_forward_is_an_hour_shorter():
    """Wall time counts: the window of that night ends at six on the wall, seven hours after it began."""
    start, end = berlin("2026-03-28T22:00"), berlin("2026-03-29T06:00")
    assert boundary(read_shift(NIGHT), start) == end
    assert end - start == 7 * HOUR


def test_b37_the_night_on_which_clocks_go_back_is_an_hour_longer():
    """The hour that is lived through twice is worked twice."""
    start, end = berlin("2026-10-24T22:00"), berlin("2026-10-25T06:00")
    assert boundary(read_shift(NIGHT), start) == end
    assert end - start == 9 * HOUR


def test_b37_a_window_that_a_clock_change_skips_is_not_worked_that_week():
    """02:15 to 02:45 does not exist on that Sunday; the next boundary is a week later."""
    week = read_shift("TZ=Europe/Berlin Sun 02:15-02:45")
    assert boundary(week, berlin("2026-03-28T12:00")) == berlin("2026-04-05T02:15")


def test_b37_a_window_inside_the_hour_that_comes_twice_is_worked_twice():
    """In, out, in again within that night; boundaries are met by walking from one to the next."""
    week, walked = read_shift("TZ=Europe/Berlin Sun 02:15-02:45"), [berlin("2026-10-25T00:00")]
    for _ in range(4):
        walked.append(boundary(week, walked[-1]))
    assert walked[1:] == [berlin(f"2026-10-25T02:{minute}", fold) for fold in (0, 1) for minute in (15, 45)]


def test_b37_a_clock_change_itself_may_be_a_boundary():
    """A window that ends inside the skipped hour ends when the clocks jump over its end."""
    week = read_shift("TZ=Europe/Berlin Sun 01:00-02:30")
    assert boundary(week, berlin("2026-03-29T01:30")) == berlin("2026-03-29T03:00")


@pytest.mark.parametrize("text", ["TZ=UTC Mon-Sun 00:00-24:00", "TZ=UTC Fri-Thu 12:00-12:30; Mon-Sun 00:00-24:00"])
def test_b36_a_shift_that_never_closes_has_no_boundary(text):
    """In, and nothing will change that by itself."""
    assert effective(None, None, text, at("2026-12-01T12:00")) == Presence("in", "shift", None)


SHIFTS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 47), st.integers(0, 48)).filter(
        lambda part: part[2] != part[3]
    ),
    min_size=1,
    max_size=3,
)


@given(SHIFTS, st.integers(at("2026-01-01T00:00"), at("2026-12-31T00:00")))
@example([(5, 5, 5, 6)], berlin("2026-03-28T12:00"))
def test_b36_a_boundary_is_where_a_minute_by_minute_look_finds_it(parts, now):
    """Against an oracle that reads the wall clock of each minute: the first that differs is the boundary."""
    text = "TZ=Europe/Berlin " + "; ".join(
        f"{DAYS[first]}-{DAYS[last]} {start // 2:02}:{start % 2 * 30:02}-{end // 2:02}:{end % 2 * 30:02}"
        for first, last, start, end in parts
    )
    week, now = read_shift(text), now - now % MINUTE
    assert isinstance(week, Shift), week

    def wall_in(ms):
        wall = datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo("Europe/Berlin"))
        minute, day = wall.hour * 60 + wall.minute, wall.weekday()
        for first, last, start, end in parts:
            days = {(first + step) % 7 for step in range((last - first) % 7 + 1)}
            start_minute, end_minute = start * 30, end * 30
            if end_minute > start_minute:
                if day in days and start_minute <= minute < end_minute:
                    return True
            elif (day in days and minute >= start_minute) or ((day - 1) % 7 in days and minute < end_minute):
                return True
        return False

    here = wall_in(now)
    assert effective(None, None, text, now).value == ("in" if here else "out")
    steps = (now + minute * MINUTE for minute in range(1, 9 * 24 * 60, 15))  # windows and changes fall on halves
    quarter = next(
        (step - step % (15 * MINUTE) for step in steps if wall_in(step - step % (15 * MINUTE)) != here), None
    )
    if quarter is not None and quarter > now:
        assert boundary(week, now) == quarter


def test_b36_an_override_wins_until_it_ends():
    """A live override beats the shift; from its end on the shift counts again."""
    now, until = berlin("2026-11-30T10:00"), berlin("2026-11-30T12:00")
    assert effective("out", until, BERLIN, now) == Presence("out", "override", until)
    assert effective("out", until, BERLIN, until).source == "shift"
    assert effective("out", None, None, now) == Presence("out", "override", None)
    assert effective(None, None, None, now) == Presence("in", "default", None)


@given(st.none() | st.integers(1, 100 * HOUR), st.integers(at("2026-01-01T00:00"), at("2026-12-31T00:00")))
def test_b36_an_override_ends_at_the_next_boundary_of_the_shift_at_the_latest(asked, now):
    """Whatever was asked for, and never before now."""
    edge = boundary(read_shift(BERLIN), now)
    until = override_until(asked, BERLIN, now)
    assert until == (edge if asked is None else min(edge, now + asked))
    assert until > now
    assert override_until(asked, None, now) == (None if asked is None else now + asked)


@pytest.mark.parametrize("seconds", [0, -1, 28_801, 1.5, "3600", True])
def test_b36_an_agent_clocks_in_for_eight_hours_at_most(seconds):
    """More, or what is no whole number, is refused."""
    assert isinstance(presence.clock_in_ms(seconds), Refusal)


def test_b36_an_agent_clocks_in_for_an_hour_if_it_says_nothing():
    """The default is an hour; eight are allowed."""
    assert presence.clock_in_ms(None) == HOUR
    assert presence.clock_in_ms(28_800) == 8 * HOUR


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must begin with its time zone"),
        ("Mon-Fri 09:00-18:00", "must begin with its time zone"),
        ("TZ=Europe/Berln Mon 09:00-10:00", "did you mean Europe/Berlin"),
        ("TZ=UTC", "needs days and windows"),
        ("TZ=UTC Mon", "needs days and windows"),
        ("TZ=UTC Mon 09:00-10:00;", "needs days and windows"),
        ("TZ=UTC Foo 09:00-10:00", "needs days and windows"),
        ("TZ=UTC Mon-Foo 09:00-10:00", "needs days and windows"),
        ("TZ=UTC Mon 9-10", "write 09:00-18:00"),
        ("TZ=UTC Mon 24:00-25:00", "from 00:00 to 24:00"),
        ("TZ=UTC Mon 09:00-09:00", "not empty"),
        ("TZ=UTC Mon \uff109:00-10:00", "write 09:00-18:00"),
        ("TZ=UTC " + "Mon 09:00-10:00; " * 40, "500 characters"),
    ],
)
def test_b37_a_shift_that_can_not_be_read_is_refused_with_what_to_write(text, said):
    """The sentence names what is wrong in it."""
    refused = read_shift(text)
    assert isinstance(refused, Refusal)
    assert said in refused.message


@given(st.text())
def test_b37_no_text_makes_the_reading_fail(text):
    """Whatever is written: a shift, or a refusal."""
    assert isinstance(read_shift(f"TZ=UTC {text}"), Shift | Refusal)


def test_b37_days_are_read_as_people_write_them():
    """Ranges that go round the week, lists, several windows a day, any case."""
    week = read_shift("TZ=UTC sat-sun,WED 08:00-09:00, 10:00-11:00")
    starts = sorted(timedelta(seconds=start) // timedelta(hours=1) for start, _ in week.windows)
    assert starts == [day * 24 + hour for day in (2, 5, 6) for hour in (8, 10)]
