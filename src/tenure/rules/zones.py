"""Time zones as the schedule rules need them: stretches of constant offset, and the changes between.

Everything is whole seconds (inside) or milliseconds (in what is handed out) since the epoch, UTC; a
"wall second" is a local time counted as if it were UTC. Only the direction UTC to local is ever asked
of ``zoneinfo``: it has one answer for every instant, while the way back has none in a gap and two in
an overlap. Knows nothing of cron.
"""

from __future__ import annotations

import difflib
import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from tenure.rules.schedule_error import ScheduleError, shown

DAY = 86_400
# The years that datetime can count, less two days at the start so that no local time falls out of them.
FIRST_SECOND = -62_135_596_800 + 2 * DAY
LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
BLOCK = 48 * DAY  # seconds: what one look-up of a zone covers and is remembered for
MARGIN = 5 * DAY  # looked at on both sides of a block; a change reaches less than two days far
# Two changes that undo each other within one step would be missed. The closest pair in the zone data
# since 1840 is four days apart (Freetown 1939).
STEP = 3 * 3600
SEARCH_YEARS = 10  # how far clock_changes looks before it says that there are none

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  wall times are counted, not placed
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*")
# Names that mean another zone on every machine, or count leap seconds: no two instances would agree.
_NOT_ZONES = ("localtime", "posixrules")
_NOT_ZONE_ROOTS = ("posix/", "right/")


class Segment(NamedTuple):
    """UTC seconds from ``start`` up to ``end`` (exclusive) with one ``offset`` (seconds east)."""

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a zone's UTC offset (clock change or new standard time).

    ``local_before`` is the wall time the clocks reach at ``at_ms``, ``local_after`` what they are set
    to at that instant; a "gap" is what lies between when they go forward, an "overlap" when they go
    back and the stretch is lived through twice.
    """

    tz: str
    at_ms: int
    offset_before_ms: int
    offset_after_ms: int
    kind: Literal["gap", "overlap"]
    local_before: str
    local_after: str

    @property
    def shift_ms(self) -> int:
        """By how much the clocks are moved: positive forward (gap), negative back (overlap)."""
        return self.offset_after_ms - self.offset_before_ms


class Zone:
    """A zone by its name; compare and hash by identity, ``zone()`` keeps one object per name."""

    __slots__ = ("_fixed", "_tz", "name")

    def __init__(self, name: str, tz: tzinfo) -> None:
        self.name = name
        self._tz = tz
        fixed = tz.utcoffset(None)  # zoneinfo answers only for a zone that never changes
        self._fixed = None if fixed is None else _whole_seconds(fixed)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return zone, (self.name,)

    @property
    def is_fixed(self) -> bool:
        """True if the zone has one offset for all times, and so no changes at all."""
        return self._fixed is not None

    def offset_at(self, second: int) -> int:
        """The offset in seconds east of UTC at a UTC second; beyond year 9999 the last one known."""
        if self._fixed is not None:
            return self._fixed
        second = min(max(second, FIRST_SECOND), LAST_SECOND - 2 * DAY)
        utc = (_EPOCH + timedelta(seconds=second)).replace(tzinfo=self._tz)
        # Of one tzinfo, so this is the plain difference of the two walls; utcoffset() would find its way back
        # from the wall time, and of three passes it knows two.
        return _whole_seconds(self._tz.fromutc(utc) - utc)

    def offsets(self, low: int, high: int) -> list[int]:
        """The offsets at UTC seconds from ``low`` to ``high``, ``STEP`` apart."""
        if low < FIRST_SECOND or high > LAST_SECOND - 2 * DAY:
            return [self.offset_at(second) for second in range(low, high + 1, STEP)]
        utc = (_EPOCH + timedelta(seconds=low)).replace(tzinfo=self._tz)
        step, from_utc = timedelta(seconds=STEP), self._tz.fromutc
        found: list[int] = []
        span, offset = timedelta(), 0
        for _ in range(low, high + 1, STEP):
            now = from_utc(utc) - utc
            if now != span:
                span, offset = now, _whole_seconds(now)
            found.append(offset)
            utc += step
        return found

    def block_of(self, second: int) -> int:
        """The number of the block that holds a UTC second; a fixed zone is one single block."""
        return 0 if self._fixed is not None else second // BLOCK

    def bounds(self, block: int) -> tuple[int, int]:
        """First UTC second of a block, and the one after its last."""
        if self._fixed is not None:
            return FIRST_SECOND, LAST_SECOND + 1
        return block * BLOCK, (block + 1) * BLOCK

    def segments(self, block: int) -> tuple[Segment, ...]:
        """The stretches of one offset in a block and ``MARGIN`` on both sides, in order, without holes."""
        return _segments(self, block)

    def changes(self, first: int, last: int) -> list[Change]:
        """The changes at UTC seconds from ``first`` to ``last``, both included."""
        first, last = max(first, FIRST_SECOND), min(last, LAST_SECOND)
        found: list[Change] = []
        if self.is_fixed:
            return found
        for block in range(self.block_of(first), self.block_of(last) + 1):
            low, high = self.bounds(block)
            stretches = self.segments(block)
            for before, after in pairwise(stretches):
                if max(low, first) <= after.start < high and after.start <= last:
                    found.append(_change(self.name, after.start, before.offset, after.offset))
        return found


@lru_cache(maxsize=4096)
def _segments(zone: Zone, block: int) -> tuple[Segment, ...]:
    low, high = zone.bounds(block)
    if zone.is_fixed:
        return (Segment(low - MARGIN, high + MARGIN, zone.offset_at(low)),)
    low, high = low - MARGIN, high + MARGIN
    samples = zone.offsets(low, high)
    starts = [(low, samples[0])]
    for number, (before, after) in enumerate(pairwise(samples)):
        if before != after:
            second = low + number * STEP
            starts += _changes_within(zone, (second, before), (second + STEP, after))
    ends = [start for start, _ in starts[1:]] + [high]
    return tuple(Segment(start, end, offset) for (start, offset), end in zip(starts, ends, strict=True))


def _changes_within(zone: Zone, low: tuple[int, int], high: tuple[int, int]) -> list[tuple[int, int]]:
    """The (second, new offset) of changes after ``low`` and up to ``high``, by halving where they differ."""
    if low[1] == high[1]:
        return []
    if high[0] - low[0] == 1:
        return [high]
    second = (low[0] + high[0]) // 2
    middle = (second, zone.offset_at(second))
    return _changes_within(zone, low, middle) + _changes_within(zone, middle, high)


def _change(tz: str, second: int, before: int, after: int) -> Change:
    return Change(
        tz=tz,
        at_ms=second * 1000,
        offset_before_ms=before * 1000,
        offset_after_ms=after * 1000,
        kind="gap" if after > before else "overlap",
        local_before=iso(second + before),
        local_after=iso(second + after),
    )


def clock_changes(tz: str, after_ms: int, count: int = 2) -> tuple[Change, ...]:
    """The next changes of a zone's offset, strictly later than ``after_ms``; at most ``count``.

    Fewer, or none, when the zone's data names no more within ten years. Raises ScheduleError for
    a name that is no zone.
    """
    place = zone(tz)
    first = max(after_ms // 1000 + 1, FIRST_SECOND)
    horizon = min(first + SEARCH_YEARS * 366 * DAY, LAST_SECOND)
    found: list[Change] = []
    while len(found) < count and first <= horizon:
        last = min(place.bounds(place.block_of(first))[1] - 1, horizon)
        found += place.changes(first, last)
        first = last + 1
    return tuple(found[: max(count, 0)])


def zone(name: object) -> Zone:
    """The zone of an IANA name. Raises ScheduleError (field "tz") with the nearest name for any other."""
    if not isinstance(name, str):
        kind = type(name).__name__
        raise ScheduleError(
            f"tz must be the name of a time zone such as 'Europe/Berlin', not {kind}", "tz", repr(name)[:100]
        )
    return _zone(name)


@lru_cache(maxsize=1024)
def _zone(name: str) -> Zone:
    if name == "UTC":
        return Zone(name, UTC)  # also where the machine has no zone data
    if name in _NOT_ZONES or name.startswith(_NOT_ZONE_ROOTS):
        raise _refused(name, "means different times on different machines")
    if not name.isascii() or len(name) > 100 or not _ZONE_NAME.fullmatch(name):
        raise _refused(name, "is not the name of a time zone")
    try:
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (KeyError, ValueError, OSError):  # not found; not a zone file; a folder such as "Europe"
        raise _refused(name, "is not a time zone known here") from None


def _refused(name: str, why: str) -> ScheduleError:
    return ScheduleError(f"tz {shown(name)} {why}; {_hint(name)}", "tz", name)


def _hint(name: str) -> str:
    known = sorted(n for n in zoneinfo.available_timezones() if n not in _NOT_ZONES)
    if not known:
        return 'this machine has no zone data: run pip install "tzdata"'
    if re.fullmatch(r"(UTC|GMT|Z)?\s*[+-]\s*\d.*", name, re.IGNORECASE):
        return "an offset knows no clock changes: name a place such as Europe/Berlin"
    inside = [zone_name for zone_name in known if zone_name.startswith(f"{name}/")]
    if inside:
        return f"add a place, for example {inside[0]}"
    if re.fullmatch(r"[A-Z]{2,5}", name):
        return "abbreviations are ambiguous: name a place such as Europe/Berlin"
    near = _nearest(name, known)
    if near:
        return f"did you mean {near}?"
    return "name one as in the IANA list, for example UTC, Europe/Berlin or America/New_York"


def _nearest(name: str, known: list[str]) -> str | None:
    """The known zone that was most likely meant: same letters, same city, or a near spelling."""
    wanted = re.sub(r"[\s_]+", "_", name.strip()).lower()[:100]
    by_lower = {zone_name.lower(): zone_name for zone_name in reversed(known)}
    by_city = {zone_name.lower().rpartition("/")[2]: zone_name for zone_name in reversed(known)}
    city = wanted.rpartition("/")[2]
    if wanted in by_lower:
        return by_lower[wanted]
    if len(city) > 3 and city in by_city:
        return by_city[city]
    near = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=0.75)
    if near:
        return by_lower[near[0]]
    near = difflib.get_close_matches(city, by_city, n=1, cutoff=0.8) if len(city) > 3 else []
    return by_city[near[0]] if near else None


def iso(wall_second: int) -> str:
    """A wall second as ISO 8601 without an offset, e.g. ``2026-03-29T02:30:00``."""
    return (_EPOCH + timedelta(seconds=wall_second)).isoformat()


def _whole_seconds(span: timedelta) -> int:
    return span.days * DAY + span.seconds
