"""What is said of a schedule in English: its sentence, its warnings, and why one never comes.

Takes cronsim's own explanation as text; must not parse expressions again beyond splitting fields.
"""

from __future__ import annotations

import re
from typing import Final

from tenure.rules.slots import Calendar
from tenure.rules.walltimes import DAY
from tenure.rules.zones import Change

# Clock changes are looked up in a year whose rules are those the zone data ends in: a fixed one, since no
# rule asks a clock. (Morocco's and Gaza's tables reach into the 2080s, the others end in 2037 or before.)
_YEAR: Final = (2_114_380_800, 2_145_916_799)  # 2037
_SMALL_HOURS: Final = 4 * 3600
_UNITS: Final = (
    ("week", 604_800_000),
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1000),
)
_RANGES: Final = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_FIELD_WORDS: Final = ("second", "minute", "hour")


def without_idle_steps(expression: str) -> str:
    """A step that is larger than its field's range as what it comes to: ``*/90`` in minutes is 0."""
    fields = expression.split()
    for place, (low, high) in enumerate(_RANGES[-len(fields) :]):
        base, slash, step = fields[place].partition("/")
        if base == "*" and slash and low + int(step) > high:
            fields[place] = str(low)
    return " ".join(fields)


def cron_words(explained: str, expression: str, tz: str) -> str:
    """cronsim's sentence, its ordinals mended, with the zone, and the order of six fields made visible."""
    text = re.sub(r"\b(\d+)th\b", lambda match: _ordinal(int(match[1])), explained)
    # "every second hour" beside a field named second reads badly
    text = re.sub(r"very second (?=(second|minute|hour|day|month)\b)", "very other ", text)
    fields = expression.split()
    if either_day_matches(expression):
        text = text.replace(" and on ", " or on ")
    if len(fields) == 6:
        order = ", ".join(f"{name} {value}" for name, value in zip(_FIELD_WORDS, fields, strict=False))
        text += f" (seconds first: {order})"
    return f"{text}, {tz} time" if tz != "UTC" else f"{text}, UTC"


def every_words(interval_ms: int) -> str:
    """ "Every 10 seconds", and from when it is counted."""
    parts: list[str] = []
    rest = interval_ms
    for name, size in (*_UNITS, ("millisecond", 1)):
        whole, rest = divmod(rest, size)
        if whole:
            parts.append(f"{whole} {name}{'' if whole == 1 else 's'}")
    span = parts[0][2:] if len(parts) == 1 and parts[0].startswith("1 ") else " ".join(parts)
    return f"Every {span}, counted from 1970-01-01 00:00 UTC"


def either_day_matches(expression: str) -> bool:
    """True if day of month and day of week are both set and either is enough, as in Debian's cron."""
    fields = expression.split()
    return not (fields[-3].startswith("*") or fields[-1].startswith("*"))


def cron_warnings(expression: str, calendar: Calendar) -> tuple[str, ...]:
    """Two day fields at once, and times that clock changes touch or may touch."""
    found: list[str] = []
    day_of_month, _, day_of_week = expression.split()[-3:]
    if either_day_matches(expression):
        found.append(
            f"day of month ({day_of_month}) and day of week ({day_of_week}) are both set, so either is "
            "enough, as in Debian's cron; write * in one of them if you mean the other alone"
        )
    elif day_of_month != "*" and day_of_week != "*":
        found.append(
            f"day of month ({day_of_month}) and day of week ({day_of_week}) are both set and one starts "
            "with *, so both must match, as in Debian's cron"
        )
    found += _clock_warnings(calendar)
    return tuple(found)


def _clock_warnings(calendar: Calendar) -> list[str]:
    times, zone = calendar.wall_times.times, calendar.zone
    if calendar.wall_times.every_hour or zone.is_fixed:
        return []
    changes = zone.changes(*_YEAR)
    touched = [change for change in changes if _touches(calendar, change)]
    if not changes or (not touched and times.first >= _SMALL_HOURS):
        return []
    moves = ", ".join(f"{c.local_before[11:16]} to {c.local_after[11:16]}" for c in touched or changes)
    if not touched:
        note = (
            "it runs between 00:00 and 03:59, when clocks are usually changed; those of "
            f"{zone.name} go from {moves}, which touches none of its times today, but such rules change"
        )
        return [note]
    gap = {
        "shift": "runs that much later",
        "asap": "runs once, right after the change",
        "skip": "is left out",
    }
    overlap = {"first": "in its first pass", "second": "in its second pass", "both": "in both passes"}
    note = (
        f"clocks in {zone.name} go from {moves}, and it has times in there: one that is skipped "
        f"{gap[calendar.gap]} (dst_gap), one that comes twice runs {overlap[calendar.overlap]} (dst_overlap)"
    )
    return [note]


def _touches(calendar: Calendar, change: Change) -> bool:
    """Whether a time of day lies in what the change skips or repeats, on whatever date."""
    times = calendar.wall_times.times
    before = (change.at_ms + change.offset_before_ms) // 1000
    after = (change.at_ms + change.offset_after_ms) // 1000
    start, length = min(before, after) % DAY, abs(after - before)
    end = start + length
    within = times.count_below(min(end, DAY)) - times.count_below(start)
    return within > 0 or times.count_below(min(max(end - DAY, 0), DAY)) > 0


def never_due(expression: str) -> str:
    """Why no date ever matches: a day that its months do not have, or two day fields that never meet."""
    day_of_month, month, day_of_week = expression.split()[-3:]
    if day_of_week == "*":
        return (
            f"day of month '{day_of_month}' never comes in month '{month}': February has at most 29 days, "
            "April, June, September and November have 30; use L for the last day of a month"
        )
    return (
        f"day of month '{day_of_month}' and day of week '{day_of_week}' never fall on one date in month "
        f"'{month}', and both must match, as one starts with *; set one of them alone"
    )


def always_in_gap(expression: str, tz: str) -> str:
    """Why a schedule with ``dst_gap="skip"`` never comes."""
    return (
        f"the time of '{expression}' never comes: on those dates the clocks of {tz} skip it, and dst_gap is "
        "'skip'; use dst_gap='shift', or another time"
    )


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
