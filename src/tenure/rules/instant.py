"""Instants and spans: whole milliseconds since the Unix epoch, UTC, and how people write them.

Must not know what time it is: `now` is always an argument.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# The last whole second of the year 9999, the end of what `datetime` can spell.
LAST: Final = 253_402_300_799_000

_UNITS: Final = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_SPAN: Final = re.compile(r"(?:\d{1,12}(?:\.\d{1,6})?(?:ms|[smhdw]))+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_PLAIN: Final = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)
_NO_TIME: Final = "is no time; write ISO 8601 (2026-12-01T06:00:00Z) or now-2h."
_SPAN_HELP: Final = "write seconds (90), or 250ms, 90s, 45m, 1h30m, 30d"


def span(value: float | str | timedelta) -> int:
    """A length of time in whole milliseconds, from seconds, a `timedelta`, or text such as `1h30m`.

    Raises ValueError, with a sentence, for anything else: booleans, NaN, negative or endless lengths.
    """
    if isinstance(value, timedelta):
        ms = value / timedelta(milliseconds=1)
    elif isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"is no length of time; {_SPAN_HELP}.")
    elif isinstance(value, str):
        ms = _span_of_text(value.strip())
    elif not -math.inf < value < math.inf:  # not isfinite(), which can't take an int beyond all floats
        raise ValueError(f"is no length of time; {_SPAN_HELP}.")
    else:
        ms = value * SECOND
    if ms < 0:
        raise ValueError(f"is negative; {_SPAN_HELP}.")
    if ms > LAST:
        raise ValueError("is longer than eight thousand years; use a shorter one.")
    return round(ms)


def _span_of_text(text: str) -> float:
    if _PLAIN.fullmatch(text):
        return float(text) * SECOND
    if not _SPAN.fullmatch(text):
        raise ValueError(f"is no length of time; {_SPAN_HELP}.")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def span_words(ms: int) -> str:
    """The shortest usual spelling of a span: `30s`, `1h30m`, `250ms`, `2.5s`, `3d`."""
    sign, ms = ("-", -ms) if ms < 0 else ("", ms)
    if ms < SECOND:
        return f"{sign}{ms}ms"
    if ms < MINUTE:
        return f"{sign}{ms / SECOND:g}s"
    parts = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        whole, ms = divmod(ms, size)
        if whole:
            parts.append(f"{whole}{unit}")
    if ms >= SECOND and len(parts) < 3:
        parts.append(f"{ms // SECOND}s")
    return sign + "".join(parts)


def iso(ms: int) -> str:
    """An instant as RFC 3339 in UTC with `Z`; milliseconds only where there are any."""
    moment = datetime.fromtimestamp(ms // SECOND, UTC).isoformat().removesuffix("+00:00")
    rest = ms % SECOND
    return f"{moment}.{rest:03d}Z" if rest else f"{moment}Z"


def aware(ms: int) -> datetime:
    """An instant as an aware `datetime` in UTC, exact to the millisecond."""
    return datetime.fromtimestamp(ms // SECOND, UTC) + timedelta(milliseconds=ms % SECOND)


def instant(value: str | datetime, now: int) -> int:
    """An instant in milliseconds from ISO 8601 text, an aware `datetime`, or `now`, `now-2h`, `now+5m`.

    Text without a zone is read as UTC. Raises ValueError with a sentence.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("has no time zone; give an aware datetime.")
        return round((value - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    if not isinstance(value, str):
        raise ValueError(_NO_TIME)
    text = value.strip()
    if text == "now":
        return now
    if text[:4] in ("now-", "now+"):
        away = span(text[4:])
        return now + away if text[3] == "+" else now - away
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(_NO_TIME) from None
    return instant(moment if moment.tzinfo else moment.replace(tzinfo=UTC), now)


def recorded(value: str, now: int) -> int:
    """An instant at which a store can have something, from 1970 to 9999, read as `instant` does. Raises ValueError."""
    try:
        found = instant(value, now)
    except OverflowError:
        found = -1
    if not 0 <= found <= LAST:
        raise ValueError("is out of reach; write a time in the years 1970 to 9999.")
    return found
