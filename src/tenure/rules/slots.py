"""From wall times and their readings to slots: the next one, the one before, and how many between.

Whole UTC seconds here. Each question is answered block by block of the zone (48 days), by arithmetic in
each, and blocks without a matching date are jumped over; so the work is bounded for any argument, and
does not grow with the number of slots in between.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tenure.rules.readings import DstGap, DstOverlap, Reading, Shifted, readings
from tenure.rules.walltimes import WallTimes
from tenure.rules.zones import DAY, FIRST_SECOND, LAST_SECOND, Zone

# A schedule may fall into skipped gaps, year after year. Every second turn of the search, at the
# latest, jumps to the next matching date; cron() refuses a schedule whose next 200 dates would all be skipped.
MAX_BLOCKS: Final = 400
# No instant lies further from its wall time, and no overlap reaches further, than twice the largest offset.
REACH: Final = 2 * DAY


class Found(NamedTuple):
    """One slot: its UTC second, the wall second that was meant, and what the zone did to it."""

    at: int
    wall: int
    shifted: Shifted


class Calendar(NamedTuple):
    """Wall times in a zone, with what to do about clock changes."""

    wall_times: WallTimes
    zone: Zone
    gap: DstGap
    overlap: DstOverlap

    def readings(self, block: int) -> tuple[Reading, ...]:
        """The readings whose instants lie in a block of the zone."""
        return readings(self.zone, block, self.gap, self.overlap)


def first_from(calendar: Calendar, second: int) -> Found | None:
    """The first slot at or after a UTC second; None past year 9999."""
    second = max(second, FIRST_SECOND)
    zone = calendar.zone
    block = zone.block_of(second)
    for _ in range(MAX_BLOCKS):
        if second > LAST_SECOND:
            return None
        found, upcoming = _first_in_block(calendar, block, second)
        if found is not None:
            return found if found.at <= LAST_SECOND else None
        block_start, block_end = zone.bounds(block)
        if upcoming is None or block_end > LAST_SECOND:
            return None
        block += 1
        # No matching wall time is left before `upcoming`, but for those that a change in the next two
        # days may show again.
        if block_end - max(second, block_start) >= REACH:
            block = max(block, zone.block_of(upcoming - REACH))
    return None


def _first_in_block(calendar: Calendar, block: int, second: int) -> tuple[Found | None, int | None]:
    """The first slot in the block from ``second`` on, and the first matching wall time past its readings."""
    best: Found | None = None
    upcoming: int | None = None
    examined = False
    for reading in calendar.readings(block):
        if reading.squeezed_to is not None:
            start = reading.wall_start if reading.squeezed_to >= second else reading.wall_end
        else:
            start = max(reading.wall_start, second + reading.offset)
        if start >= reading.wall_end:
            continue
        examined = True
        wall = calendar.wall_times.at_or_after(start)
        if wall is None:
            continue
        if wall >= reading.wall_end:
            upcoming = wall if upcoming is None else min(upcoming, wall)
            continue
        found = _found(reading, wall)
        if best is None or _rank(found) < _rank(best):
            best = found
    return best, upcoming if examined else second


def last_until(calendar: Calendar, second: int) -> Found | None:
    """The last slot at or before a UTC second; None before year 1."""
    second = min(second, LAST_SECOND)
    zone = calendar.zone
    block = zone.block_of(second)
    for _ in range(MAX_BLOCKS):
        if second < FIRST_SECOND:
            return None
        found, preceding = _last_in_block(calendar, block, second)
        if found is not None:
            return found if found.at >= FIRST_SECOND else None
        block_start, block_end = zone.bounds(block)
        if preceding is None or block_start <= FIRST_SECOND:
            return None
        block -= 1
        if min(second, block_end - 1) - block_start >= REACH:
            block = min(block, zone.block_of(preceding + REACH))
    return None


def _last_in_block(calendar: Calendar, block: int, second: int) -> tuple[Found | None, int | None]:
    """The last slot in the block up to ``second``, and the last matching wall time before its readings."""
    best: Found | None = None
    preceding: int | None = None
    examined = False
    for reading in calendar.readings(block):
        if reading.squeezed_to is not None:
            wall = calendar.wall_times.at_or_after(reading.wall_start)
            if reading.squeezed_to > second or wall is None or wall >= reading.wall_end:
                continue
        else:
            end = min(reading.wall_end, second + reading.offset + 1)
            if end <= reading.wall_start:
                continue
            examined = True
            wall = calendar.wall_times.at_or_before(end - 1)
            if wall is None:
                continue
            if wall < reading.wall_start:
                preceding = wall if preceding is None else max(preceding, wall)
                continue
        found = _found(reading, wall)
        if best is None or _late_rank(found) > _late_rank(best):
            best = found
    return best, preceding if examined else second


def _found(reading: Reading, wall: int) -> Found:
    at = wall - reading.offset if reading.squeezed_to is None else reading.squeezed_to
    return Found(at, wall, reading.shifted)


def _rank(found: Found) -> tuple[int, bool, int]:
    """Of slots at one instant, the one whose wall time the clocks really show is told, else the earliest."""
    return found.at, found.shifted == "gap", found.wall


def _late_rank(found: Found) -> tuple[int, bool, int]:
    return found.at, found.shifted != "gap", -found.wall


def count_between(calendar: Calendar, first: int, last: int) -> int:
    """How many slots lie at UTC seconds from ``first`` to ``last``, both included; exact."""
    first, last = max(first, FIRST_SECOND), min(last, LAST_SECOND)
    if last < first:
        return 0
    blocks = range(calendar.zone.block_of(first), calendar.zone.block_of(last) + 1)
    return sum(_count_in_block(calendar, block, first, last) for block in blocks)


def _count_in_block(calendar: Calendar, block: int, first: int, last: int) -> int:
    count = 0
    shown: list[Reading] = []
    moved: list[Reading] = []
    for reading in calendar.readings(block):
        if reading.shifted == "gap":
            moved.append(reading)
            continue
        shown.append(reading)
        start = max(reading.wall_start, first + reading.offset)
        end = min(reading.wall_end, last + 1 + reading.offset)
        count += calendar.wall_times.count(start, end)
    if not moved:
        return count
    # At most a gap's worth of slots, twice a year: these are looked at one by one, to merge them.
    instants = {at for reading in moved for at in _instants(calendar, reading, first, last)}
    return count + sum(not _is_slot(calendar, shown, at) for at in instants)


def _instants(calendar: Calendar, reading: Reading, first: int, last: int) -> list[int]:
    """The instants of a gap's reading from ``first`` to ``last``."""
    found: list[int] = []
    wall = calendar.wall_times.at_or_after(reading.wall_start)
    while wall is not None and wall < reading.wall_end:
        at = _found(reading, wall).at
        if first <= at <= last:
            found.append(at)
        if at > last or reading.squeezed_to is not None:
            break
        wall = calendar.wall_times.at_or_after(wall + 1)
    return found


def _is_slot(calendar: Calendar, shown: list[Reading], at: int) -> bool:
    """Whether a wall time that the clocks show at this second, and that counts, matches."""
    for reading in shown:
        wall = at + reading.offset
        if reading.wall_start <= wall < reading.wall_end:
            return calendar.wall_times.count(wall, wall + 1) == 1
    return False
