"""A grid of letters with styles, for pictures in a terminal. Knows nothing of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.doors.cli.output import STYLES


class Cell(NamedTuple):
    """One column of one row: its letter, its style, and the kind of sign it is."""

    letter: str
    style: str
    kind: str


class Canvas:
    """A grid. `importance`: kinds from the least; a sign gives way only to one at least as important as it is."""

    def __init__(self, width: int, height: int, importance: Sequence[str]) -> None:
        self.width, self.height = width, height
        self._rank = {kind: rank for rank, kind in enumerate(importance, 1)}
        self._cells: dict[tuple[int, int], Cell] = {}

    def put(self, x: int, y: int, cell: Cell) -> None:
        """Draw a sign; what lies outside is not drawn."""
        there = self._cells.get((x, y))
        lower = there is not None and self._rank.get(there.kind, 0) > self._rank.get(cell.kind, 0)
        if 0 <= x < self.width and 0 <= y < self.height and not lower:
            self._cells[x, y] = cell

    def kinds(self) -> set[str]:
        """The kinds of sign that are to be seen."""
        return {cell.kind for cell in self._cells.values()}

    def line(self, y: int, colour: bool) -> str:
        """One row as text, without spaces at its end."""
        cells = [self._cells.get((x, y)) for x in range(self.width)]
        while cells and cells[-1] is None:
            cells.pop()
        if not colour:
            return "".join(cell.letter if cell else " " for cell in cells)
        parts: list[str] = []
        style = ""
        for cell in cells:
            wanted = cell.style if cell else ""
            if wanted != style:
                parts.append("\x1b[0m" if style else "")
                parts.append(f"\x1b[{STYLES[wanted]}m" if wanted else "")
                style = wanted
            parts.append(cell.letter if cell else " ")
        return "".join(parts) + ("\x1b[0m" if style else "")


def shortened(name: str, width: int, unicode: bool) -> str:
    """A name in `width` columns; of a long one its end, where names of instances differ."""
    if len(name) <= width:
        return name
    return ("…" if unicode else "~") + name[-(width - 1) :]


def wrapped(parts: Sequence[str], width: int, between: str) -> list[str]:
    """Parts in lines of at most `width` columns; no part is broken unless it is longer than a line."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(between) + len(part) > width:
            lines.append("")
        lines[-1] += (between if lines[-1] else "") + part
    broken: list[str] = []
    for line in lines:
        words = line.split(" ") if len(line) > width else [line]
        short = ""
        for word in words:
            if short and len(short) + 1 + len(word) > width:
                broken.append(short)
                short = word
            else:
                short = f"{short} {word}" if short else word
        broken.append(short)
    return broken
