"""How a demo is told: one line per thing that happens, with its second, and on a terminal a line that moves."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from tenure.doors.cli.output import look, pad, put, wrap

STYLES: Final = ("accent", "move", "warn", "good", "strong")


class Teller:
    """Writes to stdout. `names`: whose lines get a colour of their own."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._begun = time.monotonic()
        self._names = {name: STYLES[place % len(STYLES)] for place, name in enumerate(names)}
        self._wide = max(len(name) for name in names)
        self._moving = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

    def line(self, who: str, text: str, style: str = "") -> None:
        """One thing that happened."""
        self.clear()
        seen = look()
        head = f"{self.elapsed:5.1f}s  "
        room = None if seen.width is None else max(20, seen.width - len(head) - self._wide - 2)
        for place, part in enumerate(wrap(text, room)):
            at = seen.paint(head, "dim") if place == 0 else " " * len(head)
            name = seen.paint(pad(who if place == 0 else "", self._wide), self._names.get(who, "dim"))
            put(f"{at}{name}  {seen.paint(part, style)}")
        sys.stdout.flush()

    def plain(self, text: str = "", *, wrapped: bool = True) -> None:
        """A line without a second."""
        self.clear()
        for part in wrap(text, look().width) if wrapped else [text]:
            put(part)
        sys.stdout.flush()

    def moving(self, text: str, done: float) -> None:
        """On a terminal: a bar that is full at 1, replaced by whatever is told next."""
        if not self._moving:
            return
        seen = look()
        room = (seen.width or 80) - len(text) - 4
        full = round(max(0.0, min(1.0, done)) * min(40, room))
        bar = ("█" if seen.unicode else "#") * full + ("░" if seen.unicode else ".") * (min(40, room) - full)
        sys.stdout.write(f"\r\x1b[2K  {seen.paint(f'{text}  {bar}', 'dim')}")
        sys.stdout.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the moving line away."""
        if self._shown:
            sys.stdout.write("\r\x1b[2K")
            sys.stdout.flush()
            self._shown = False
