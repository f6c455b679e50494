"""What is no schedule: each refusal names the field, the value and what to write, in one sentence."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules.schedule import ScheduleError, cron, every

REFUSED = [
    # Out of bounds: the bound is named, and what was likely meant.
    ("61 * * * *", "minute", "61", "over 59"),
    ("60 * * * *", "minute", "60", "takes 0-59; write 0"),
    ("* 24 * * *", "hour", "24", "takes 0-23; write 0 for midnight"),
    ("0 0 0 * *", "day of month", "0", "the first is 1"),
    ("0 0 32 * *", "day of month", "32", "takes 1-31; write L"),
    ("0 0 1 0 *", "month", "0", "January is 1"),
    ("0 0 1 13 *", "month", "13", "takes 1-12"),
    ("0 0 * * 8", "day of week", "8", "Sunday is 0 or 7"),
    ("60 0 0 * * *", "seconds", "60", "takes 0-59"),
    ("0 0-24 * * *", "hour", "24", "write 0 for midnight"),
    ("999999999999999999999 * * * *", "minute", "999999999999999999999", "over 59"),
    # Lists, ranges, steps.
    ("1,,2 * * * *", "minute", "", "empty item"),
    (",1 * * * *", "minute", "", "empty item"),
    ("1, * * * *", "minute", "", "empty item"),
    ("5-1 * * * *", "minute", "5-1", "write 5-59,0-1"),
    ("0 22-2 * * *", "hour", "22-2", "write 22-23,0-2"),
    ("0 0 * * FRI-MON", "day of week", "FRI-MON", "write FRI-SAT,SUN-MON"),
    ("0 0 * * SAT-SUN", "day of week", "SAT-SUN", "write SAT,SUN"),
    ("0 0 * * 6-1", "day of week", "6-1", "write 6,0-1"),
    ("0 0 * NOV-FEB *", "month", "NOV-FEB", "write NOV-DEC,JAN-FEB"),
    ("1-2-3 * * * *", "minute", "1-2-3", "a range is written 1-5"),
    ("-1 * * * *", "minute", "-1", "a range is written 1-5"),
    ("1- * * * *", "minute", "1-", "a range is written 1-5"),
    ("*-5 * * * *", "minute", "*", "stands alone"),
    ("*/0 * * * *", "minute", "*/0", "never moves on"),
    ("*/ * * * *", "minute", "*/", "no number as its step"),
    ("/5 * * * *", "minute", "", "missing before the /"),
    ("*/-5 * * * *", "minute", "*/-5", "no number as its step"),
    ("*/5/2 * * * *", "minute", "*/5/2", "no number as its step"),
    ("*5 * * * *", "minute", "*5", "*/5"),
    ("** * * * *", "minute", "**", "stands alone"),
    ("?/5 * * * *", "minute", "?", "stands alone"),
    ("1.5 * * * *", "minute", "1.5", "write a number"),
    ("+5 * * * *", "minute", "+5", "write a number"),
    ("0x1 * * * *", "minute", "0x1", "write a number"),
    # Names.
    ("0 0 * * MONDAY", "day of week", "MONDAY", "write MON"),
    ("0 0 * SEPT *", "month", "SEPT", "write SEP"),
    ("0 0 * * tues-thurs", "day of week", "tues", "write TUE"),
    ("0 0 * MAI *", "month", "MAI", "JAN FEB MAR"),
    ("0 0 * * MO", "day of week", "MO", "SUN MON TUE"),
    ("0 0 * MON *", "month", "MON", "MON belongs in day of week"),
    ("0 0 * * JUL", "day of week", "JUL", "JUL belongs in month"),
    ("0 0 JAN * *", "day of month", "JAN", "JAN belongs in month"),
    ("MON * * * *", "minute", "MON", "MON belongs in day of week"),
    ("H * * * *", "minute", "H", "jitter"),
    # L, W and #.
    ("0 0 15W * *", "day of month", "15W", "LW for the last weekday"),
    ("0 0 L-3 * *", "day of month", "L-3", "write L for the last day"),
    ("0 0 L/2 * *", "day of month", "L/2", "write L for the last day"),
    ("0 0 5L * *", "day of month", "5L", "write L for the last day"),
    ("0 0 * * L", "day of week", "L", "write 5L"),
    ("0 0 * * L5", "day of week", "L5", "write 5L"),
    ("0 0 * * 8L", "day of week", "8", "takes 0-7"),
    ("0 0 * * 5L/2", "day of week", "5L/2", "write 5L alone"),
    ("0 0 * * MON#6", "day of week", "MON#6", "1 to 5"),
    ("0 0 * * MON#0", "day of week", "MON#0", "1 to 5"),
    ("0 0 * * MON#", "day of week", "MON#", "1 to 5"),
    ("0 0 * * 1-5#2", "day of week", "1-5#2", "one day"),
    ("0 0 * * 9#1", "day of week", "9", "takes 0-7"),
    ("0 0 2#1 * *", "day of month", "2#1", "stands in day of week"),
    ("L * * * *", "minute", "L", "write a number"),
    # Aliases.
    ("@reboot", "expression", "@reboot", "shared by all instances"),
    ("@dayly", "expression", "@dayly", "did you mean @daily?"),
    ("@every 10s", "expression", "@every 10s", "use every(...)"),
    ("@daily 5", "expression", "@daily 5", "stands alone"),
    ("@", "expression", "@", "@hourly @daily"),
    # The number of fields.
    ("", "expression", "", "empty"),
    (" \t\n", "expression", " \t\n", "empty"),
    ("*", "expression", "*", "has 1 field, not 5"),
    ("* * * *", "expression", "* * * *", "has 4 fields, not 5 (or 6, with seconds first)"),
    ("0 0 12 * * ? 2026", "expression", "0 0 12 * * ? 2026", "has 7 fields"),
    # Seconds last, as croniter has them.
    ("*/5 * * * * 30", "day of week", "30", "write '30 */5 * * * *'"),
    # What is no text of ours.
    ("\uff11 * * * *", "expression", "\uff11", "write 1"),
    ("0 0 * *\xa0*", "expression", "\xa0", "write a plain space"),
    ("0 0 * * \u041c\u041e\u041d", "expression", "\u041c", "ASCII"),
    ("0 0 * * *\x00", "expression", "\x00", "control character U+0000"),
    ("0 0 * *\x1f*", "expression", "\x1f", "control character U+001F"),
    ("\ufeff0 0 * * *", "expression", "\ufeff", "U+FEFF"),
    ("0 0 * * *\ud800", "expression", "\ud800", "U+D800"),
    ("0 0 * * * " * 100_000, "expression", None, "at most 200"),
    ("0," * 500_000 + "0 * * * *", "expression", None, "at most 200"),
    (None, "expression", "None", "must be text"),
    (b"0 0 * * *", "expression", None, "must be text"),
    # Never due.
    ("0 0 31 2 *", "day of month", "31", "February has at most 29 days"),
    ("0 0 30 2 *", "day of month", "30", "February has at most 29 days"),
    ("0 0 31 4,6,9,11 *", "day of month", "31", "September and November have 30"),
    ("0 0 30-31 2 *", "day of month", "30-31", "never comes"),
    ("0 0 0 30 2 *", "day of month", "30", "never comes"),
    ("0 0 */29 2 1#5", "day of month", "*/29", "never fall on one date"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "field", "value", "phrase"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_r34_malformed_expressions(expression, field, value, phrase):
    """Refused when the job is defined, with the field and the reason named."""
    with pytest.raises(ScheduleError) as caught:
        cron(expression)
    error = caught.value
    assert error.field == field
    assert value is None or error.value == value
    assert phrase in str(error)
    check_shape(error)


def check_shape(error: ScheduleError) -> None:
    text = str(error)
    assert "\n" not in text
    assert text.isprintable()
    assert text.isascii()
    assert len(text) < 600
    caret = error.caret()
    if error.column is None:
        assert caret == ""
    else:
        line, marks = caret.split("\n")
        assert set(marks) == {" ", "^"} or set(marks) == {"^"}
        assert len(line) < 250


@pytest.mark.parametrize(
    ("expression", "caret"),
    [
        ("0 61 * * *", "0 61 * * *\n  ^^"),
        ("0  0 * *   MONDAY", "0  0 * *   MONDAY\n           ^^^^^^"),
        ("1,2,61 * * * *", "1,2,61 * * * *\n    ^^"),
        ("1,,2 * * * *", "1,,2 * * * *\n  ^"),
        ("0 0 31 2 *", "0 0 31 2 *\n    ^^"),
        ("0 0 \uff11 * *", "0 0 \uff11 * *\n    ^^"),  # two columns wide
        ("0\x00 0 1 * *", "0? 0 1 * *\n ^"),
        ("0 0 1 *", ""),
        ("@dayly", "@dayly\n^^^^^^"),
    ],
)
def test_r34_caret(expression, caret):
    """The place that is wrong, under the expression as it was given."""
    with pytest.raises(ScheduleError) as caught:
        cron(expression)
    assert caught.value.caret() == caret


@pytest.mark.parametrize(
    ("tz", "phrase"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("US/New_York", "did you mean America/New_York?"),
        ("Europe", "add a place"),
        ("CEST", "abbreviations are ambiguous"),
        ("UTC+2", "an offset knows no clock changes"),
        ("+02:00", "an offset knows no clock changes"),
        ("Mars/Phobos", "is not a time zone known here"),
        ("../x", "is not the name of a time zone"),
        ("Europe/../Europe/Berlin", "is not the name of a time zone"),
        ("/etc/localtime", "is not the name of a time zone"),
        ("Europe/Berlin\x00", "is not the name of a time zone"),
        ("Europe//Berlin", "is not the name of a time zone"),
        ("x" * 100_000, "is not the name of a time zone"),
        ("Zürich", "is not the name of a time zone"),
        ("\ud800", "is not the name of a time zone"),
        ("", "is not the name of a time zone"),
        ("localtime", "different times on different machines"),
        ("right/UTC", "different times on different machines"),
        ("posix/Europe/Berlin", "different times on different machines"),
        ("zone.tab", "is not the name of a time zone"),
        ("tzdata", "is not"),
        (None, "not NoneType"),
        (3600, "not int"),
    ],
)
def test_r34_unknown_zones(tz, phrase):
    """Refused by name, with the nearest one that exists."""
    with pytest.raises(ScheduleError) as caught:
        cron("@daily", tz)
    assert caught.value.field == "tz"
    assert phrase in str(caught.value)
    check_shape(caught.value)


@pytest.mark.parametrize("interval", [0, -1, 1.5, 10.0, True, False, "10", None, 10**13, 10**400, float("nan")])
def test_r35_intervals_are_whole_and_bounded(interval):
    """One millisecond to a hundred years, and no guessing at floats."""
    with pytest.raises(ScheduleError) as caught:
        every(interval)
    assert caught.value.field == "interval"
    check_shape(caught.value)


def test_r34_choices_are_checked():
    """A misspelt choice is no default."""
    with pytest.raises(ScheduleError, match="did you mean 'skip'") as caught:
        cron("@daily", dst_gap="skipp")
    assert caught.value.field == "dst_gap"
    with pytest.raises(ScheduleError, match="'first', 'second', 'both'") as caught:
        cron("@daily", dst_overlap=None)
    assert caught.value.field == "dst_overlap"


def test_r34_a_time_that_every_change_skips_never_comes():
    """The last Sunday in March at 02:30 in Berlin, with gaps left out, is refused like 31 February."""
    with pytest.raises(ScheduleError, match="clocks of Europe/Berlin skip it") as caught:
        cron("30 2 * 3 0L", "Europe/Berlin", dst_gap="skip")
    assert caught.value.field == "hour"
    assert caught.value.caret() == "30 2 * 3 0L\n   ^"
    for choice in ("shift", "asap"):
        assert cron("30 2 * 3 0L", "Europe/Berlin", dst_gap=choice).next(0) is not None
    assert cron("30 2 * 3 0L", "UTC", dst_gap="skip").next(0) is not None
    assert cron("30 2 29 3 *", "Europe/Berlin", dst_gap="skip").next(0) is not None


def test_r34_errors_cross_process_borders():
    """A refusal keeps its field and caret through pickle."""
    with pytest.raises(ScheduleError) as caught:
        cron("0 61 * * *")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own bytes
    assert (str(again), again.field, again.column) == (str(caught.value), "hour", 2)
    assert again.caret() == caught.value.caret()


CRONISH = st.text(alphabet="0123456789*/-,?LW# @ABCDEFGJMNORSTUVY", max_size=30)


@given(st.one_of(st.text(max_size=40), CRONISH, st.lists(CRONISH, min_size=5, max_size=6).map(" ".join)))
def test_r34_any_text_is_a_schedule_or_refused_in_a_sentence(text):
    """Never another error, and what is accepted can be asked everything."""
    try:
        schedule = cron(text, "Europe/Berlin")
    except ScheduleError as error:
        check_shape(error)
        return
    assert schedule.next(0) is not None
    assert schedule.words()
    assert cron(schedule.expression, "Europe/Berlin") == schedule
    for warning in schedule.warnings():
        assert "\n" not in warning


@given(st.text(max_size=40))
def test_r34_any_text_is_a_zone_or_refused_in_a_sentence(text):
    """No name leads out of the zone data, whatever it is made of."""
    try:
        schedule = cron("@daily", text)
    except ScheduleError as error:
        check_shape(error)
    else:
        assert schedule.tz == text
