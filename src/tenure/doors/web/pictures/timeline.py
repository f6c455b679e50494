"""The timeline of one job's runs, the same picture as the terminal's (`tenure runs timeline`).

Rows are instances, bars attempts, the thin bar below each its lease with a tick for each heartbeat; an arrow is a
takeover or the way of a hand-over, a diamond the hand-over; hatched slots were skipped or missed. Where things begin
and end is `scheduler.picture`'s to say. Only the heartbeats between first and last are placed evenly, since a record
keeps their number and the time of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from tenure.doors.web.pictures.svg import line, path, picture, rect, text
from tenure.rules.axis import round_times
from tenure.rules.instant import span_words
from tenure.rules.job import Attempt
from tenure.rules.times import short
from tenure.scheduler.picture import by_start, ending, lease_end, marked
from tenure.scheduler.records import RunView, Timeline

WIDTH: Final = 1040
GUTTER: Final = 160
ROW: Final = 44
BAR: Final = 14
LETTER: Final = 6.6  # how wide a letter of the axis is
# What each sign means, in the terminal's words.
LEGEND: Final = {
    "success": "succeeded",
    "failed": "failed",
    "open": "running",
    "silent": "no heartbeat any more",
    "died": "gone: lease ran out",
    "handed": "handed over",
    "unsure": "gave up, unsure of its lease",
    "lease": "lease",
    "tick": "heartbeat",
    "lease-end": "lease end",
    "moved": "next attempt",
    "ran": "slot that ran",
    "wish": "triggered",
    "skipped": "slot skipped",
    "missed": "slot missed",
}


def draw(timeline: Timeline, instances: Sequence[str] = ()) -> Markup:
    """The picture. `instances`: rows to show first, also where they ran nothing."""
    return _Drawing(timeline, instances).whole()


def signs(timeline: Timeline) -> dict[str, str]:
    """The signs that the picture has, each with its meaning: its legend."""
    drawing = _Drawing(timeline, ())
    drawing.whole()
    return {name: words for name, words in LEGEND.items() if name in drawing.seen}


class _Drawing:
    def __init__(self, timeline: Timeline, instances: Sequence[str]) -> None:
        self.timeline = timeline
        runners = [one.runner for run in by_start(timeline.runs) for one in run.attempts if self._visible(run, one)]
        self.names = list(dict.fromkeys((*instances, *runners)))
        self.plot = WIDTH - GUTTER - 16
        self.floor = 10 + ROW * max(1, len(self.names))
        self.parts: list[Markup] = []
        self.seen: set[str] = set()

    def x(self, ms: int) -> float:
        """Where an instant lies, within the edges of the picture."""
        since, until = self.timeline.since, max(self.timeline.until, self.timeline.since + 1)
        return GUTTER + self.plot * min(1.0, max(0.0, (ms - since) / (until - since)))

    def y(self, runner: str) -> float:
        return 14 + ROW * self.names.index(runner)

    def _visible(self, run: RunView, attempt: Attempt) -> bool:
        end = max(ending(run, attempt, self.timeline)[1], lease_end(run, attempt)[0])
        return attempt.started <= self.timeline.until and end >= self.timeline.since

    def whole(self) -> Markup:
        self._frame()
        for run in self.timeline.runs:
            visible = [one for one in run.attempts if self._visible(run, one)]
            for attempt in visible:
                self._lease(run, attempt)
                self._bar(run, attempt)
            for before, after in pairwise(visible):
                self._move(run, before, after)
            self._slot(run.slot, run.slot, "wish" if run.request else "ran", f"{run.key}: {run.status}")
        for mark in self.timeline.marks:
            sign = "missed" if mark.why == "missed" else "skipped"
            for first, last in marked(self.timeline, mark, int(self.plot)):
                self._slot(first, last, sign, f"{short(first)}: {sign}, {mark.why}")
        label = f"Timeline of {self.timeline.job}: {len(self.timeline.runs)} runs on {len(self.names)} instances"
        return picture(WIDTH, self.floor + 52, label, *self.parts, class_="timeline")

    def _frame(self) -> None:
        for place, name in enumerate(self.names):
            y = 10 + ROW * place
            self.parts.append(rect(0, y - 6, WIDTH, ROW, "row odd" if place % 2 else "row"))
            shown = name if len(name) <= 24 else "…" + name[-23:]
            self.parts.append(text(8, y + 15, shown, "name"))
        self.parts.append(text(8, self.floor + 14, "slots", "name dim"))
        axis = self.floor + 26
        self.parts.append(line(GUTTER, axis, GUTTER + self.plot, axis, "axis"))
        for at, label in round_times(self.timeline.since, self.timeline.until, int(self.plot / LETTER)):
            x = self.x(at)
            self.parts.append(line(x, 6, x, axis + 4, "grid"))
            if x + len(label) * LETTER / 2 <= WIDTH:
                self.parts.append(text(x, axis + 17, label, "tickmark", "middle"))

    def _bar(self, run: RunView, attempt: Attempt) -> None:
        sign, end, silent_from = ending(run, attempt, self.timeline)
        self.seen.add(sign)
        left, right, y = self.x(attempt.started), self.x(end), self.y(attempt.runner)
        quiet = right if silent_from is None else max(left, self.x(silent_from))
        says = f"{run.key}, attempt {attempt.number} ({attempt.reason}) on {attempt.runner}: "
        says += f"{attempt.how or run.status} after {span_words(max(0, end - attempt.started))}"
        self.parts.append(rect(left, y, quiet - left, BAR, f"bar {sign}", says=says, rx=2))
        if quiet < right:
            self.seen.add("silent")
            self.parts.append(rect(quiet, y, right - quiet, BAR, "silent", says="no heartbeat any more"))
        if len(run.attempts) > 1 and right - left > 12:
            self.parts.append(text(left + 4, y + 11, str(attempt.number), "number"))
        self._end(sign, right, y + BAR / 2)

    def _end(self, sign: str, x: float, y: float) -> None:
        """What must not be missed is a shape, not a colour alone."""
        if sign == "handed":
            self.parts.append(path(f"M{x:.1f} {y - 8:.1f}l8 8-8 8-8-8z", "handed", "handed over"))
        elif sign == "failed":
            self.parts.append(path(f"M{x - 5:.1f} {y - 5:.1f}l10 10m0-10l-10 10", "cross failed", LEGEND[sign]))
        elif sign == "died":
            self.parts.append(path(f"M{x:.1f} {y - 8:.1f}v16m-5-11h10", "cross died", LEGEND[sign]))
        elif sign == "unsure":
            self.parts.append(text(x, y + 5, "?", "unsure", "middle"))
        elif sign == "open":
            self.parts.append(path(f"M{x:.1f} {y - 7:.1f}l8 7-8 7z", "open", "running"))

    def _lease(self, run: RunView, attempt: Attempt) -> None:
        end, ran_out = lease_end(run, attempt)
        left, right, y = self.x(attempt.started), self.x(end), self.y(attempt.runner) + BAR + 3
        self.seen.add("lease")
        self.parts.append(rect(left, y, right - left, 3, "lease", says=f"lease until {short(end)}"))
        # More ticks than can be told apart are thinned out.
        drawn = min(attempt.beats, max(1, int((self.x(attempt.renewed) - left) / 3)))
        if attempt.beats:
            self.seen.add("tick")
            span = attempt.renewed - attempt.started
            places = [self.x(attempt.started + span * beat // drawn) for beat in range(1, drawn + 1)]
            d = "".join(f"M{place:.1f} {y - 1:.1f}v6" for place in places)
            self.parts.append(path(d, "tick"))
        if ran_out:
            self.seen.add("lease-end")
            self.parts.append(path(f"M{right:.1f} {y - 2:.1f}v8", "lease-end", "lease end"))

    def _move(self, run: RunView, before: Attempt, after: Attempt) -> None:
        self.seen.add("moved")
        sign, end, _ = ending(run, before, self.timeline)
        x1, x2 = self.x(end), self.x(after.started)
        y1, y2 = self.y(before.runner) + BAR / 2, self.y(after.runner) + BAR / 2
        if y1 == y2:
            d = f"M{x1:.1f} {y1:.1f}H{x2 - 5:.1f}"
            tip = f"M{x2:.1f} {y1:.1f}l-6-4v8z"
        else:
            down = 1 if y2 > y1 else -1
            near = y2 - down * (BAR / 2 + 1)
            d = f"M{x1:.1f} {y1:.1f}H{x2:.1f}V{near - down * 5:.1f}"
            tip = f"M{x2:.1f} {near:.1f}l-4-{6}h8z" if down > 0 else f"M{x2:.1f} {near:.1f}l-4 6h8z"
        says = f"{before.runner} to {after.runner}, {span_words(max(0, after.started - end))} later"
        self.parts.append(path(d, f"way {sign}", says))
        self.parts.append(path(tip, f"tip {sign}"))

    def _slot(self, first: int, last: int, sign: str, says: str) -> None:
        if last < self.timeline.since or first > self.timeline.until:
            return
        self.seen.add(sign)
        left, right = self.x(first), self.x(last)
        wide = max(right - left, 3 if sign in ("ran", "wish") else 6)
        self.parts.append(rect(left - (wide - (right - left)) / 2, self.floor + 4, wide, 12, f"slot {sign}", says=says))
