"""The picture of one job's runs: a pure function from a `Timeline` to lines of text.

Rows are instances, bars attempts, the thin bar below each its lease with a tick for each heartbeat; an arrow
is a takeover or the way of a hand-over, a diamond the hand-over; hatched slots were skipped or missed.
Every position is a time of the record. Only the heartbeats between the first and the last are placed evenly,
since a record keeps their number and the time of the last. Must not know what time it is, nor any store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tenure.doors.cli.canvas import Canvas, Cell, shortened, wrapped
from tenure.doors.cli.signs import ASCII, IMPORTANCE, LEGEND, STYLES, UNICODE, Signs
from tenure.rules.axis import round_times
from tenure.rules.instant import SECOND, iso
from tenure.rules.times import about
from tenure.scheduler.picture import by_start, ending, lease_end, marked

if TYPE_CHECKING:
    from tenure.rules.job import Attempt
    from tenure.scheduler.records import RunView, Timeline

LEAST_WIDTH: Final = 24
ROWS: Final = 3  # of the grid per instance: the attempts, their leases, room for arrows


def draw(
    timeline: Timeline,
    width: int = 80,
    *,
    unicode: bool = True,
    colour: bool = False,
    instances: Sequence[str] = (),
) -> list[str]:
    """The picture, at most `width` columns wide. `instances`: rows to show first, also where they ran nothing."""
    picture = _Picture(timeline, max(width, LEAST_WIDTH), UNICODE if unicode else ASCII, instances)
    if not timeline.runs and not timeline.marks:
        return [*picture.title(), "nothing happened in that time: no run, and no slot skipped or missed"]
    picture.attempts()
    picture.moves()
    return [*picture.title(), "", *picture.lines(colour), *picture.axis(colour), "", *picture.legend(colour)]


class _Picture:
    def __init__(self, timeline: Timeline, width: int, signs: Signs, instances: Sequence[str]) -> None:
        self.timeline, self.signs, self.width = timeline, signs, width
        runners = [one.runner for run in by_start(timeline.runs) for one in run.attempts if self._seen(run, one)]
        self.names = list(dict.fromkeys((*instances, *runners)))
        longest = max([len(name) for name in self.names] + [len("slots")])
        self.gutter = min(longest, max(5, width // 4), 24)
        self.columns = width - self.gutter - 2
        self.grid = Canvas(self.columns, ROWS * len(self.names), IMPORTANCE)
        self.slots = Canvas(self.columns, 1, ("skipped", "missed", "ran", "wish"))

    # --- places -----------------------------------------------------------------------------------------

    def column(self, ms: int) -> int:
        """The column of an instant; beyond the edges where it lies beyond them."""
        since, until = self.timeline.since, max(self.timeline.until, self.timeline.since + 1)
        place = (ms - since) * self.columns // (until - since)
        return self.columns - 1 if ms == until else place

    def _seen(self, run: RunView, attempt: Attempt) -> bool:
        """Whether any of it lies in the picture."""
        end = max(ending(run, attempt, self.timeline)[1], lease_end(run, attempt)[0])
        return attempt.started <= self.timeline.until and end >= self.timeline.since

    def put(self, x: int, y: int, sign: str, style: str = "", letter: str = "") -> None:
        self.grid.put(x, y, Cell(letter or self.signs[sign], style or STYLES.get(sign, ""), sign))

    # --- what happened ----------------------------------------------------------------------------------

    def attempts(self) -> None:
        for run in self.timeline.runs:
            for attempt in run.attempts:
                if self._seen(run, attempt):
                    self._bar(run, attempt)
                    self._lease(run, attempt)
            self._slot(self.column(run.slot), self.column(run.slot), "wish" if run.request else "ran")
        for mark in self.timeline.marks:
            sign = "missed" if mark.why == "missed" else "skipped"
            for first, last in marked(self.timeline, mark, self.columns):
                self._slot(self.column(first), self.column(last), sign)

    def _slot(self, first: int, last: int, sign: str) -> None:
        for x in range(max(first, 0), min(last, self.columns - 1) + 1):
            self.slots.put(x, 0, Cell(self.signs[sign], STYLES[sign], sign))

    def _bar(self, run: RunView, attempt: Attempt) -> None:
        end_sign, end, silent_from = ending(run, attempt, self.timeline)
        y = ROWS * self.names.index(attempt.runner)
        first, last = self.column(attempt.started), self.column(end)
        quiet = self.column(silent_from) if silent_from is not None else last + 1
        style = "good" if end_sign == "success" else "bad" if end_sign == "failed" else STYLES["bar"]
        for x in range(max(first, 0), min(last, self.columns - 1) + 1):
            self.put(x, y, *(("silent",) if x > quiet else ("bar", style)))
        if len(run.attempts) > 1 and last - first >= 2:
            self.put(first, y, "number", style, str(attempt.number % 10))
        if last - first >= 2 or end_sign != "success":
            self.put(last, y, end_sign)

    def _lease(self, run: RunView, attempt: Attempt) -> None:
        end, ran_out = lease_end(run, attempt)
        y = ROWS * self.names.index(attempt.runner) + 1
        first, last = self.column(attempt.started), self.column(end)
        for x in range(max(first, 0), min(last, self.columns - 1) + 1):
            self.put(x, y, "lease")
        for beat in range(1, attempt.beats + 1):
            at = attempt.started + (attempt.renewed - attempt.started) * beat // attempt.beats
            self.put(self.column(at), y, "tick")
        if ran_out:
            self.put(last, y, "lease-end")

    def moves(self) -> None:
        """From each attempt to the next one of its run: a takeover, or the way of a hand-over."""
        for run in self.timeline.runs:
            for before, after in pairwise(run.attempts):
                if self._seen(run, before) and self._seen(run, after):
                    self._move(run, before, after)

    def _move(self, run: RunView, before: Attempt, after: Attempt) -> None:
        sign, end, _ = ending(run, before, self.timeline)
        style = STYLES[sign]
        left, right = self.names.index(before.runner), self.names.index(after.runner)
        x, y = self.column(after.started), ROWS * left
        for between in range(self.column(end) + 1, x):
            self.put(between, y, "link", style, self.signs["dash"])
        if left == right:
            self.put(x - 1, y, "side", style)
            return
        turn = "turn-down" if right > left else "turn-up"
        self.put(x, y, "link", style, self.signs[turn])
        way = range(y + 1, ROWS * right) if right > left else range(ROWS * right + 1, y)
        for row in way:
            self.put(x, row, "link", style)
        self.put(x, ROWS * right - 1 if right > left else ROWS * right + 1, "down" if right > left else "up", style)

    # --- lines ------------------------------------------------------------------------------------------

    def title(self) -> list[str]:
        since, until = self.timeline.since, self.timeline.until
        column = about(max(1, (until - since) // self.columns))
        start, end = iso(since // SECOND * SECOND)[:-1], iso(until // SECOND * SECOND)[:-1]
        if start[:10] == end[:10]:
            end = end[11:]
        start, end = start.replace("T", " "), end.replace("T", " ")
        return wrapped([self.timeline.job, f"{start} to {end} UTC", f"one column is {column}"], self.width, "   ")

    def lines(self, colour: bool) -> list[str]:
        lines = []
        for y in range(self.grid.height):
            name = self.names[y // ROWS] if y % ROWS == 0 else ""
            shown = shortened(name, self.gutter, self.signs is UNICODE)
            line = f"{shown:<{self.gutter}}  {self.grid.line(y, colour)}".rstrip()
            if line or y % ROWS != ROWS - 1:
                lines.append(line)
            elif y < self.grid.height - 1:
                lines.append("")
        return [*lines, f"{'slots':<{self.gutter}}  {self.slots.line(0, colour)}".rstrip()]

    def axis(self, colour: bool) -> list[str]:
        """Round times, as far apart as their labels need."""
        axis = Canvas(self.columns, 2, ())
        for x in range(self.columns):
            axis.put(x, 0, Cell(self.signs["axis"], "dim", "axis"))
        for at, label in round_times(self.timeline.since, self.timeline.until, self.columns):
            x = self.column(at)
            axis.put(x, 0, Cell(self.signs["mark"], "dim", "mark"))
            if x + len(label) <= self.columns:
                for place, letter in enumerate(label):
                    axis.put(x + place, 1, Cell(letter, "dim", "label"))
        blank = " " * (self.gutter + 2)
        return [(blank + axis.line(0, colour)).rstrip(), (blank + axis.line(1, colour)).rstrip()]

    def legend(self, colour: bool) -> list[str]:
        """What the signs mean that are to be seen."""
        seen = self.grid.kinds() | self.slots.kinds()
        if seen & {"up", "down", "side"}:
            seen.add("moved")
        entries = []
        for name, words in LEGEND.items():
            if name in seen:
                sign = {"number": "2", "moved": self.signs["up"] + self.signs["down"]}.get(name) or self.signs[name]
                entries.append(f"{sign} {words}")
        if "tick" in seen:
            entries.append("(the last heartbeat at its time, those before it evenly)")
        lines = wrapped(entries, self.width, "   ")
        return [f"\x1b[2m{line}\x1b[0m" for line in lines] if colour else lines
