"""The signs of the timeline: their letters, with Unicode and without, their styles, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Which sign wins where two share one column: what a reader must not miss comes last.
IMPORTANCE: Final = (
    "lease", "tick", "lease-end", "link", "silent", "bar", "number", "success", "open", "up", "down", "side",
    "handed", "unsure", "died", "failed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signs:
    """The letters of a picture: one column each."""

    letters: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.letters[name]


UNICODE: Final = Signs(
    {
        "bar": "█", "silent": "░", "success": "✓", "failed": "✗", "died": "†", "handed": "◆", "unsure": "?",
        "open": "▶", "lease": "─", "tick": "┴", "lease-end": "┘", "link": "│", "dash": "╌", "down": "▼",
        "up": "▲", "side": "▸", "turn-down": "╮", "turn-up": "╯", "ran": "╵", "wish": "m", "axis": "─", "mark": "┬",
        "skipped": "\u2571", "missed": "\u2573",  # two diagonals, which look like other letters in an editor
    }
)  # fmt: skip
ASCII: Final = Signs(
    {
        "bar": "#", "silent": ":", "success": "+", "failed": "x", "died": "!", "handed": "*", "unsure": "?",
        "open": ">", "lease": "-", "tick": "'", "lease-end": "]", "link": "|", "dash": ".", "down": "v",
        "up": "^", "side": ">", "turn-down": ".", "turn-up": "'", "ran": "'", "wish": "m", "skipped": "/",
        "missed": "X", "axis": "-", "mark": "+",
    }
)  # fmt: skip
STYLES: Final = {
    "bar": "accent", "success": "good", "failed": "bad", "died": "warn", "handed": "move", "unsure": "warn",
    "open": "accent", "silent": "dim", "lease": "dim", "tick": "dim", "lease-end": "warn", "skipped": "warn",
    "missed": "bad", "ran": "good", "wish": "good",
}  # fmt: skip
LEGEND: Final = {
    "bar": "attempt",
    "number": "which attempt",
    "success": "succeeded",
    "failed": "failed",
    "silent": "no heartbeat any more",
    "died": "gone: lease ran out",
    "handed": "handed over",
    "unsure": "gave up, unsure of its lease",
    "open": "running",
    "lease": "lease",
    "tick": "heartbeat",
    "lease-end": "lease end",
    "moved": "next attempt",
    "ran": "slot that ran",
    "wish": "triggered",
    "skipped": "slot skipped",
    "missed": "slot missed",
}
