"""How instants and spans are written for people. Must not know what time it is: `now` is always an argument."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

from tenure.rules.instant import DAY, HOUR, MINUTE, SECOND, aware, iso, span_words

_WEEKDAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # the epoch was a Thursday


def about(ms: int) -> str:
    """A span as people say it: its two largest units, `3h20m`, `12s`, `2.5s`."""
    ms = abs(ms)
    if ms < 10 * SECOND:
        return f"{ms / SECOND:.1f}s" if ms >= SECOND else f"{ms}ms"
    if ms < MINUTE:
        return f"{ms // SECOND}s"
    for size, part in ((DAY, HOUR), (HOUR, MINUTE), (MINUTE, SECOND)):
        if ms >= size:
            return span_words(ms // part * part)
    return span_words(ms)


def away(ms: int, now: int) -> str:
    """How far an instant is: `in 3h20m`, `12s ago`."""
    if abs(ms - now) < SECOND // 2:
        return "now"
    return f"in {about(ms - now)}" if ms > now else f"{about(now - ms)} ago"


def short(ms: int) -> str:
    """An instant in UTC, to the second: `2026-12-01 02:30:00Z`."""
    return iso(ms // SECOND * SECOND).replace("T", " ")


def weekday(ms: int) -> str:
    """The weekday of an instant's date, read as UTC."""
    return _WEEKDAYS[ms // DAY % 7]


def local(ms: int, tz: str) -> str:
    """An instant in a zone, ISO 8601 with its offset."""
    if tz == "UTC":
        return iso(ms).replace("Z", "+00:00")
    spec = "milliseconds" if ms % SECOND else "seconds"
    return aware(ms).astimezone(ZoneInfo(tz)).isoformat(timespec=spec)


def clock(ms: int, tz: str) -> str:
    """The same for people: `Wed 2026-12-02 02:30 +01:00`; seconds only where there are any."""
    text = local(ms, tz)
    day, rest = text.split("T")
    time, offset = rest[:-6], rest[-6:]
    time = time.removesuffix(":00")
    return f"{date.fromisoformat(day):%a} {day} {time} {offset}"


def hours(local_time: str) -> str:
    """The time of day of an ISO text, without an offset and without seconds that are zero."""
    time = local_time.split("T")[1][:8]
    return time.removesuffix(":00") if len(time) == 8 else time
