"""Presence: whether an endpoint is in or out, from what is stored and the clock, and the weekly shifts that say so.

A shift is wall time: an endpoint is in while the clock on the wall of its zone stands in one of the windows. What a
clock change skips is never in; what it repeats is in twice. Must not know what time it is: `now` is an argument.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from tenure.rules.instant import HOUR
from tenure.rules.refusal import Refusal, invalid
from tenure.rules.schedule_error import ScheduleError
from tenure.rules.zones import Segment, Zone, zone

Value = Literal["in", "out"]

CLOCK_IN_MS: Final = HOUR
CLOCK_IN_LIMIT_MS: Final = 8 * HOUR
SHIFT_CHARS: Final = 500

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = 86_400
_WEEK: Final = 7 * _DAY
_EPOCH_WEEKDAY: Final = 3  # 1970-01-01 was a Thursday
# A window may fall whole into the hour that a clock change skips; the week after has it again.
_SEARCH: Final = 3 * _WEEK
_EXAMPLE: Final = "TZ=Europe/Berlin Mon-Fri 09:00-18:00; Sat 10:00-14:00"
_RANGE: Final = re.compile(r"(\d\d):([0-5]\d)-(\d\d):([0-5]\d)", re.ASCII)


class Shift(NamedTuple):
    """Windows of the week in wall seconds since Monday 00:00, in order, none touching another."""

    place: Zone
    windows: tuple[tuple[int, int], ...]


class Presence(NamedTuple):
    """In or out, why, and when that changes by itself (None: never)."""

    value: Value
    source: Literal["override", "shift", "default"]
    until: int | None


def effective(override: Value | None, override_until: int | None, shift: str | None, now: int) -> Presence:
    """The live override, else the shift, else in (B36)."""
    if override is not None and (override_until is None or now < override_until):
        return Presence(override, "override", override_until)
    if shift is not None and isinstance(week := read_shift(shift), Shift):
        return Presence("in" if _open(week, now // 1000) else "out", "shift", boundary(week, now))
    return Presence("in", "default", None)


def override_until(asked_ms: int | None, shift: str | None, now: int) -> int | None:
    """When an override that is made now ends: after what was asked, or at the shift's next boundary before that."""
    week = read_shift(shift) if shift is not None else None
    ends = [now + asked_ms] if asked_ms is not None else []
    if isinstance(week, Shift) and (edge := boundary(week, now)) is not None:
        ends.append(edge)
    return min(ends, default=None)


def clock_in_ms(seconds: object) -> int | Refusal:
    """How long an agent's `clock_in` holds: an hour, or as asked, eight hours at most."""
    if seconds is None:
        return CLOCK_IN_MS
    limit = CLOCK_IN_LIMIT_MS // 1000
    if type(seconds) is not int or not 1 <= seconds <= limit:
        return invalid("for", f"must be a whole number of seconds from 1 to {limit}; leave it out for an hour.")
    return seconds * 1000


def boundary(shift: Shift, now: int) -> int | None:
    """The next instant at which the shift opens or closes; None if it never does."""
    second, here = now // 1000, _open(shift, now // 1000)
    last = second + _SEARCH
    while second < last:
        stretch = _stretch(shift.place, second)
        second = min(second + _to_edge(shift, second + stretch.offset), stretch.end)
        if _open(shift, second) is not here:
            return second * 1000
    return None


def _open(shift: Shift, second: int) -> bool:
    at = _of_week(second + shift.place.offset_at(second))
    return any(start <= at < end for start, end in shift.windows)


def _to_edge(shift: Shift, wall: int) -> int:
    """Seconds from this wall time to the next edge of a window, one at least."""
    at = _of_week(wall)
    return min(((edge - at - 1) % _WEEK + 1 for window in shift.windows for edge in window), default=_WEEK)


def _of_week(wall: int) -> int:
    return (wall + _EPOCH_WEEKDAY * _DAY) % _WEEK


def _stretch(place: Zone, second: int) -> Segment:
    segments = place.segments(place.block_of(second))
    return next(one for one in segments if one.start <= second < one.end)


# --- reading a shift --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def read_shift(text: str) -> Shift | Refusal:
    """A shift as people write it: a zone, then days and windows; a window may cross midnight."""
    if len(text) > SHIFT_CHARS:
        return invalid("shift", f"may have {SHIFT_CHARS} characters at most.")
    head, _, rest = text.strip().partition(" ")
    if not head.startswith("TZ="):
        return invalid("shift", f"must begin with its time zone, such as: {_EXAMPLE}")
    try:
        place = zone(head.removeprefix("TZ="))
    except ScheduleError as error:
        return invalid("shift", f"can't be read: {error}.")
    windows: list[tuple[int, int]] = []
    for part in rest.split(";"):
        found = _windows(part.split())
        if isinstance(found, Refusal):
            return found
        windows += found
    return Shift(place, _merged(windows))


def _windows(words: list[str]) -> list[tuple[int, int]] | Refusal:
    """`Mon-Fri 09:00-12:00 13:00-18:00`: each day with each window."""
    days = _days(words[0]) if words else []
    if not days or not words[1:]:
        said = repr(" ".join(words)[:80])
        return invalid("shift", f"needs days and windows in each part, and has {said}. Write it like: {_EXAMPLE}")
    found = []
    for word in words[1:]:
        match = _RANGE.fullmatch(word.rstrip(","))
        if match is None:
            return invalid("shift", f"has {word[:80]!r} for a window; write 09:00-18:00.")
        start, end = _second(match[1], match[2]), _second(match[3], match[4])
        if start >= _DAY or end > _DAY or start == end:
            return invalid("shift", f"has the window {word}; times go from 00:00 to 24:00, and a window is not empty.")
        length = (end - start) % _DAY or _DAY
        found += [(day * _DAY + start, day * _DAY + start + length) for day in days]
    return found


def _days(word: str) -> list[int]:
    """`Mon-Fri`, `Fri-Mon`, `Tue`, `Mon,Wed`, as numbers; [] if it is none of these."""
    found: list[int] = []
    for part in word.split(","):
        first, dash, last = part.partition("-")
        if first.capitalize() not in DAYS or (dash and last.capitalize() not in DAYS):
            return []
        start = DAYS.index(first.capitalize())
        count = (DAYS.index(last.capitalize()) - start) % 7 if dash else 0
        found += [(start + day) % 7 for day in range(count + 1)]
    return found


def _second(hours: str, minutes: str) -> int:
    return int(hours) * 3600 + int(minutes) * 60


def _merged(windows: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """In order, joined where they touch, and cut where the week ends."""
    cut = [(start, min(end, _WEEK)) for start, end in windows]
    cut += [(0, end - _WEEK) for _, end in windows if end > _WEEK]
    joined: list[tuple[int, int]] = []
    for start, end in sorted(cut):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)
