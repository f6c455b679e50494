"""Which instants a wall time stands for: the gap and the overlap of a clock change, by the job's choice.

The law (R34), said once for all zones. A zone is a row of segments, stretches of UTC with one offset;
each shows a stretch of wall times. A wall time that no segment shows lies in a gap, one that several
show lies in an overlap. From that, and the job's choice, follow *readings*: stretches of wall times,
each with the offset it is read with. Slots are then plain arithmetic, also for a job with 86,400 slots
a day. Nothing here says "one hour", "spring" or "at most one change a day".
Seconds since the epoch throughout; wall seconds are local times counted as if they were UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from tenure.rules.zones import Segment, Zone

DstGap = Literal["shift", "asap", "skip"]
DstOverlap = Literal["first", "second", "both"]
Shifted = Literal["", "gap", "overlap-first", "overlap-second"]

Span = tuple[int, int]  # from, up to (exclusive)


class Reading(NamedTuple):
    """Wall seconds from ``wall_start`` up to ``wall_end``, read with one offset: at = wall - offset.

    ``squeezed_to`` is set for ``dst_gap="asap"`` alone: all of them become one slot, at that second.
    """

    wall_start: int
    wall_end: int
    offset: int
    shifted: Shifted
    squeezed_to: int | None = None


@lru_cache(maxsize=4096)
def readings(zone: Zone, block: int, gap: DstGap, overlap: DstOverlap) -> tuple[Reading, ...]:
    """All readings whose instants lie in a block of the zone.

    Those of segments never share an instant. Those of gaps (``shifted="gap"``) may fall on an instant
    of another one: 02:30 read as 03:30 beside 03:30 itself; whoever counts merges them.
    """
    low, high = zone.bounds(block)
    segments = zone.segments(block)
    shown = [_walls(segment) for segment in segments]
    found: list[Reading] = []
    for number, segment in enumerate(segments):
        for shifted, spans in _of_segment(number, shown, overlap):
            inside = _within(spans, (low + segment.offset, high + segment.offset))
            found += [Reading(start, end, segment.offset, shifted) for start, end in inside]
    if gap != "skip":
        found += _of_gaps(segments, shown, gap, (low, high))
    return tuple(found)


def _walls(segment: Segment) -> Span:
    return segment.start + segment.offset, segment.end + segment.offset


def _of_segment(number: int, shown: list[Span], overlap: DstOverlap) -> list[tuple[Shifted, list[Span]]]:
    """The wall times of one segment that count, by what they are: ordinary, first or later pass."""
    earlier, later = shown[:number], shown[number + 1 :]
    fresh = _minus([shown[number]], earlier)
    ordinary = _minus(fresh, later)
    first_pass = _minus(fresh, ordinary)
    again = _minus([shown[number]], fresh)
    last_pass = _minus(again, later)  # of three passes, "second" means the last
    if overlap == "first":
        return [("", ordinary), ("overlap-first", first_pass)]
    if overlap == "second":
        return [("", ordinary), ("overlap-second", last_pass)]
    return [("", ordinary), ("overlap-first", first_pass), ("overlap-second", again)]


def _of_gaps(segments: tuple[Segment, ...], shown: list[Span], gap: DstGap, block: Span) -> list[Reading]:
    """Gap times: read with the offset before the change ("shift"), or squeezed to its instant ("asap")."""
    found: list[Reading] = []
    skipped: list[Span] = []
    low, high = block
    for before, after in pairwise(segments):
        change = after.start
        jump = (change + before.offset, change + after.offset)
        if jump[0] >= jump[1]:
            continue
        # What is shown elsewhere is no gap, and what two changes skip belongs to the first of them.
        spans = _minus([jump], shown + skipped)
        skipped.append(jump)
        if gap == "shift":
            inside = _within(spans, (low + before.offset, high + before.offset))
            found += [Reading(start, end, before.offset, "gap") for start, end in inside]
        elif low <= change < high:
            found += [Reading(start, end, before.offset, "gap", squeezed_to=change) for start, end in spans]
    return found


def _within(spans: Iterable[Span], bounds: Span) -> list[Span]:
    """What of some spans lies in the bounds."""
    cut = [(max(start, bounds[0]), min(end, bounds[1])) for start, end in spans]
    return [(start, end) for start, end in cut if start < end]


def _minus(spans: Iterable[Span], cuts: Iterable[Span]) -> list[Span]:
    """What is left of some spans when others are cut out of them."""
    left = list(spans)
    for cut_start, cut_end in cuts:
        pieces: list[Span] = []
        for start, end in left:
            if cut_end <= start or end <= cut_start:
                pieces.append((start, end))
                continue
            if start < cut_start:
                pieces.append((start, cut_start))
            if cut_end < end:
                pieces.append((cut_end, end))
        left = pieces
    return left
