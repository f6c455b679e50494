"""Pictures of many runs: how late they began, how long they took, how they ended, when in the week they come."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from tenure.doors.web.pictures.svg import line, picture, rect, tag, text, title
from tenure.rules.instant import MINUTE, SECOND, aware, span_words
from tenure.rules.times import about, short
from tenure.scheduler.overview import BAD
from tenure.scheduler.records import RunView

LATE_BOUNDS: Final = (10, 30, 100, 300, SECOND, 3 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 10 * MINUTE)
WIDTH: Final = 500
HEIGHT: Final = 190
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Bin(NamedTuple):
    """One bar of a histogram."""

    label: str
    many: int


def lateness_ms(run: RunView) -> int:
    """How long after its slot the first attempt began."""
    return max(0, run.attempts[0].started - run.slot)


def took_ms(run: RunView) -> int | None:
    """How long the run took over all attempts; None while it has not ended or keeps no lease."""
    if run.ended is None or run.status == "claimed":
        return None
    return max(0, run.ended - run.attempts[0].started)


def percentile(values: Sequence[int], share: float) -> int:
    """The value that so many of them do not exceed, the nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def lateness_bins(runs: Sequence[RunView]) -> list[Bin]:
    """How many runs began how late; bounds triple, so that milliseconds and minutes have room beside each other."""
    late = [lateness_ms(run) for run in runs if not run.request]
    edges = (0, *LATE_BOUNDS)
    bins = [
        Bin(f"≤ {span_words(high)}", sum(low < one <= high or (one == 0 and low == 0) for one in late))
        for low, high in zip(edges, LATE_BOUNDS, strict=False)
    ]
    return [*bins, Bin(f"> {span_words(LATE_BOUNDS[-1])}", sum(one > LATE_BOUNDS[-1] for one in late))]


def lateness(runs: Sequence[RunView]) -> Markup:
    """The histogram of lateness."""
    bins = lateness_bins(runs)
    most = max(1, *(one.many for one in bins))
    step, floor = WIDTH / len(bins), HEIGHT - 34
    parts = [line(0, floor, WIDTH, floor, "axis")]
    for place, one in enumerate(bins):
        height = (floor - 22) * one.many / most
        x = place * step
        class_ = "bar" if place < 5 else "bar warm" if place < 8 else "bar hot"
        if one.many:
            parts.append(
                rect(x + 3, floor - height, step - 6, height, class_, says=f"{one.many} runs {one.label}", rx=2)
            )
            parts.append(text(x + step / 2, floor - height - 5, str(one.many), "value", "middle"))
        parts.append(text(x + step / 2, floor + 16, one.label, "tickmark small", "middle"))
    return picture(WIDTH, HEIGHT, "How late runs began, by count", *parts, class_="chart")


def duration(runs: Sequence[RunView]) -> Markup:
    """How long runs took, oldest first, with p50 and p95. Needs one run that has ended."""
    taken = [(run, took) for run in sorted(runs, key=lambda run: run.slot) if (took := took_ms(run)) is not None]
    values = [took for _, took in taken]
    p50, p95, top = percentile(values, 0.5), percentile(values, 0.95), max(1, *values) * 1.08
    floor, left, room = HEIGHT - 24, 8, WIDTH - 88
    parts = [line(0, floor, WIDTH, floor, "axis")]

    def height(ms: float) -> float:
        return floor - (floor - 10) * ms / top

    for name, value in (("p50", p50), ("p95", p95)):
        parts.append(line(left, height(value), left + room, height(value), f"level {name}"))
    apart = abs(height(p50) - height(p95)) >= 14
    parts.append(text(left + room + 6, height(p50) + (4 if apart else 9), f"p50 {about(p50)}", "value"))
    parts.append(text(left + room + 6, height(p95) + (4 if apart else -5), f"p95 {about(p95)}", "value"))
    for place, (run, took) in enumerate(taken):
        x = left + room * (place + 0.5) / len(taken)
        says = f"{short(run.slot)}: {span_words(took)}, {run.status}"
        parts.append(tag("circle", title(says), cx=x, cy=height(took), r=2.6, class_=f"dot {run.status}"))
    parts.append(text(left, floor + 16, f"{len(taken)} runs, oldest first", "tickmark"))
    return picture(WIDTH, HEIGHT, f"Duration of runs: p50 {about(p50)}, p95 {about(p95)}", *parts, class_="chart")


def strip(runs: Sequence[RunView], count: int = 30) -> Markup:
    """How the last runs ended, oldest first: tall is good, short is bad, so that it can be read without colours."""
    last = sorted(runs, key=lambda run: (run.slot, run.request))[-count:]
    parts = []
    for place, run in enumerate(last):
        bad = run.status in (*BAD, "expired")
        x, height = 6 * place, 9 if bad else 18
        takeovers = len(run.attempts) > 1
        says = f"{short(run.slot)}: {run.status}" + (f" after {len(run.attempts)} attempts" if takeovers else "")
        parts.append(rect(x, 20 - height, 4.5, height, f"outcome {run.status}", says=says, rx=1))
        if takeovers:
            parts.append(rect(x, 21.5, 4.5, 2, "outcome again"))
    label = f"The last {len(last)} runs: " + ", ".join(
        f"{many} {status}" for status, many in Counter(run.status for run in last).most_common()
    )
    return picture(6 * max(1, len(last)), 24, label, *parts, class_="strip")


def week(runs: Sequence[RunView], tz: str) -> dict[tuple[int, int], tuple[int, int]]:
    """(weekday, hour) in a zone: how many runs, how many of them bad."""
    from zoneinfo import ZoneInfo

    zone, cells = ZoneInfo(tz), dict[tuple[int, int], tuple[int, int]]()
    for run in runs:
        at = aware(run.slot).astimezone(zone)
        many, bad = cells.get((at.weekday(), at.hour), (0, 0))
        cells[at.weekday(), at.hour] = (many + 1, bad + (run.status in BAD))
    return cells


def heat(runs: Sequence[RunView], tz: str) -> Markup:
    """The week as a map of days and hours: the darker the more runs; a dot where some failed."""
    cells = week(runs, tz)
    most = max([1, *(many for many, _ in cells.values())])
    left, size = 34, (WIDTH - 34) / 24
    parts = []
    for day, name in enumerate(DAYS):
        parts.append(text(0, 13 + day * size + size / 2, name, "tickmark"))
        for hour in range(24):
            many, bad = cells.get((day, hour), (0, 0))
            x, y = left + hour * size, 8 + day * size
            level = 0 if not many else 1 + min(3, 4 * many // (most + 1))
            says = f"{name} {hour:02}:00: {many} runs" + (f", {bad} failed" if bad else "")
            parts.append(rect(x + 1, y + 1, size - 2, size - 2, f"heat-{level}", says=says, rx=2))
            if bad:
                parts.append(tag("circle", cx=x + size / 2, cy=y + size / 2, r=3, class_="spot"))
    floor = 8 + 7 * size
    parts += [text(left + hour * size, floor + 14, f"{hour:02}", "tickmark") for hour in range(0, 24, 3)]
    return picture(WIDTH, floor + 20, f"When in the week runs come, {tz}", *parts, class_="chart")


def offsets(found: Sequence[tuple[str, int]]) -> Markup:
    """How far each instance's clock is from the store's."""
    reach = max([100, *(abs(ms) for _, ms in found)]) * 1.15
    middle, row, width = 330, 24, 640
    room = width - middle - 20
    parts = [line(middle + room / 2, 4, middle + room / 2, 10 + row * len(found), "axis")]
    for place, (name, ms) in enumerate(found):
        y, x = 18 + row * place, middle + room / 2 + room / 2 * ms / reach
        parts.append(line(middle, y, middle + room, y, "grid"))
        parts.append(text(0, y + 4, name if len(name) <= 44 else "…" + name[-43:], "name"))
        class_ = "dot failed" if abs(ms) > SECOND else "dot success"
        parts.append(tag("circle", title(f"{name}: {ms:+} ms"), cx=x, cy=y, r=5, class_=class_))
    floor = 22 + row * len(found)
    parts.append(text(middle, floor + 8, f"−{about(round(reach))}", "tickmark"))
    parts.append(text(middle + room / 2, floor + 8, "store's clock", "tickmark", "middle"))
    parts.append(text(middle + room, floor + 8, f"+{about(round(reach))}", "tickmark", "end"))
    return picture(width, floor + 14, "Clock offsets of instances", *parts, class_="chart")


def ring(left: float) -> Markup:
    """How much of a lease is left, from 1 to 0, as a ring that empties."""
    share = min(1.0, max(0.0, left))
    around = 2 * math.pi * 9
    tone = "good" if share > 0.5 else "warn" if share > 0.2 else "bad"
    dash = f"{around * share:.1f} {around:.1f}"
    arc = tag("circle", cx=12, cy=12, r=9, class_=f"ring {tone}", stroke_dasharray=dash, transform="rotate(-90 12 12)")
    return picture(24, 24, f"{share:.0%} of the lease left", tag("circle", cx=12, cy=12, r=9, class_="ring"), arc,
                   class_="lease-ring")  # fmt: skip
