"""Instants and lengths of time: what people may write, what is refused and in which words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules.instant import DAY, HOUR, LAST, MINUTE, SECOND, aware, instant, iso, span, span_words

NOW = 1_800_000_000_123


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (0, 0),
        (90, 90 * SECOND),
        (0.25, 250),
        (0.0004, 0),
        (1e-9, 0),
        ("91", 91 * SECOND),
        (" 90 ", 90 * SECOND),
        ("0.5", 500),
        ("250ms", 250),
        ("90s", 90 * SECOND),
        ("45m", 45 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("30d", 30 * DAY),
        ("2w", 14 * DAY),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
        (timedelta(minutes=2), 2 * MINUTE),
        (timedelta(microseconds=1600), 2),
        (LAST // SECOND, LAST),
    ],
)
def test_lengths_of_time_that_are_understood(written: float | str | timedelta, ms: int) -> None:
    """Seconds, timedeltas, and text with units; to the nearest millisecond."""
    assert span(written) == ms


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (True, "is no length of time"),
        (None, "is no length of time"),
        ([], "is no length of time"),
        (float("nan"), "is no length of time"),
        (float("inf"), "is no length of time"),
        ("", "is no length of time"),
        ("soon", "is no length of time"),
        ("1 h", "is no length of time"),
        ("1H", "is no length of time"),
        ("-5s", "is no length of time"),
        ("5y", "is no length of time"),
        ("1e3", "is no length of time"),
        ("٣s", "is no length of time"),
        ("5s junk", "is no length of time"),
        ("9" * 40, "is no length of time"),
        (-1, "is negative"),
        (-0.001, "is negative"),
        (timedelta(seconds=-1), "is negative"),
        (LAST, "is longer than eight thousand years"),
        ("999999999999w", "is longer than eight thousand years"),
        (timedelta.max, "is longer than eight thousand years"),
    ],
)
def test_lengths_of_time_that_are_refused(written: object, why: str) -> None:
    """Each with a sentence that goes on after the name and the value of an option."""
    with pytest.raises(ValueError, match=f"^{why}.*[.]$"):
        span(written)  # type: ignore[arg-type]


def test_a_number_beyond_all_floats_is_refused_too() -> None:
    """In the same words as every other length that is too long."""
    with pytest.raises(ValueError, match="is longer than eight thousand years"):
        span(10**400)


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0ms"),
        (250, "250ms"),
        (SECOND, "1s"),
        (2_500, "2.5s"),
        (59_999, "59.999s"),
        (MINUTE, "1m"),
        (90 * SECOND, "1m30s"),
        (90 * MINUTE, "1h30m"),
        (DAY, "1d"),
        (3 * DAY + 4 * HOUR + 5 * MINUTE + 6 * SECOND, "3d4h5m"),
        (-90 * SECOND, "-1m30s"),
    ],
)
def test_lengths_of_time_in_words(ms: int, words: str) -> None:
    """The usual spelling, to three units."""
    assert span_words(ms) == words


@given(st.integers(0, 59_999) | st.integers(0, 10**7).map(lambda minutes: minutes * MINUTE))
def test_what_is_spelled_is_understood(ms: int) -> None:
    """Below a minute to the millisecond, above it in whole minutes: there and back."""
    assert span(span_words(ms)) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (NOW, "2027-01-15T08:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (LAST, "9999-12-31T23:59:59Z"),
    ],
)
def test_instants_as_text(ms: int, text: str) -> None:
    """RFC 3339 in UTC; milliseconds only where there are any; read again they are the same."""
    assert iso(ms) == text
    assert instant(text, NOW) == ms


def test_years_before_1000_have_four_digits_too() -> None:
    """RFC 3339 knows no others."""
    assert iso(-62_135_596_800_000) == "0001-01-01T00:00:00Z"


@given(st.integers(-62_135_596_800_000, LAST))
def test_every_instant_goes_there_and_back(ms: int) -> None:
    """By text and by datetime, from the year 1 to the year 9999."""
    assert instant(aware(ms), NOW) == ms
    assert instant(iso(ms), NOW) == ms
    assert aware(ms).tzinfo is UTC


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("now", NOW),
        (" now ", NOW),
        ("now-2h", NOW - 2 * HOUR),
        ("now+5m", NOW + 5 * MINUTE),
        ("now-90", NOW - 90 * SECOND),
        ("2027-01-15", 1_799_971_200_000),
        ("2027-01-15T09:00:00.123+01:00", NOW),
        ("2027-01-15 08:00:00.123", NOW),
        (datetime(2027, 1, 15, 8, 0, 0, 123_000, UTC), NOW),
        (datetime(2027, 1, 15, 9, 0, 0, 123_000, timezone(timedelta(hours=1))), NOW),
        (datetime(2027, 1, 15, 9, 0, 0, 123_000, ZoneInfo("Europe/Berlin")), NOW),
    ],
)
def test_instants_that_are_understood(written: str | datetime, ms: int) -> None:
    """ISO 8601, aware datetimes and times from now; text without a zone is UTC."""
    assert instant(written, NOW) == ms


def test_the_two_passes_of_a_clock_change_are_two_instants() -> None:
    """02:30 comes twice in Berlin on the last Sunday of October."""
    first = datetime(2027, 10, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert instant(first.replace(fold=1), 0) - instant(first, 0) == HOUR


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "is no time"),
        ("yesterday", "is no time"),
        ("2027-13-01", "is no time"),
        ("2027-01-15T08:00:60Z", "is no time"),
        ("10000-01-01T00:00:00Z", "is no time"),
        ("now-", "is no length of time"),
        ("now+soon", "is no length of time"),
        ("now-5y", "is no length of time"),
        (datetime(2027, 1, 15), "has no time zone"),  # noqa: DTZ001 (that is what is refused)
    ],
)
def test_instants_that_are_refused(written: str | datetime, why: str) -> None:
    """Each with a sentence."""
    with pytest.raises(ValueError, match=f"^{why}.*[.]$"):
        instant(written, NOW)
