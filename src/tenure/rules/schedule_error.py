"""The one exception of the schedule rules: a schedule that was asked for wrongly.

Knows nothing of cron, zones or time; it carries what a message, a caret and a form field need.
"""

from __future__ import annotations

import unicodedata

SHOWN_VALUE = 40  # characters of a refused value that a message repeats


class ScheduleError(ValueError):
    """A schedule that can't be meant; ``str()`` is one sentence: what, why, and what to do.

    ``field`` names the part that is wrong ("minute", "day of week", "tz", "interval", ...),
    ``value`` is that part as it was given, and ``column`` its offset in the expression
    (characters from 0), or None where no single place is to blame.
    """

    def __init__(
        self,
        message: str,
        field: str | None = None,
        value: str = "",
        *,
        expression: str = "",
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.column = column
        self._expression = expression

    def caret(self) -> str:
        """The expression with ``^^^`` below the part that is wrong (two lines), or ""."""
        if self.column is None or not self._expression:
            return ""
        before = self._expression[: self.column]
        under = self._expression[self.column : self.column + max(len(self.value), 1)]
        marks = sum(_columns(character) for character in under) or 1
        line = "".join(_printable(character) for character in self._expression)
        return f"{line}\n{' ' * sum(_columns(character) for character in before)}{'^' * marks}"


def shown(value: str) -> str:
    """A refused value as a message may repeat it: quoted, printable ASCII, one line, not long."""
    text = ascii(value)[1:-1]
    return f"'{text}'" if len(text) <= SHOWN_VALUE else f"'{text[:SHOWN_VALUE]}...'"


def _printable(character: str) -> str:
    return character if character.isprintable() else "?"


def _columns(character: str) -> int:
    """How many columns of a terminal the character takes: full-width digits take two."""
    if not character.isprintable():
        return 1  # printed as "?"
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
