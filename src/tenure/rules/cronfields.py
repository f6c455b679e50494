"""The checker in front of cronsim: which cron expressions are meant, and what to say of the others.

Ours decides: each refusal names the field, the value, the bound and what to write instead. What passes
is handed on in one normalised spelling: capitals, single spaces, plain numbers, no aliases.
Knows nothing of zones or time, and imports no parser.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, NoReturn

from tenure.rules.cronterms import FIELDS, Part, check_field
from tenure.rules.schedule_error import ScheduleError, shown

LONGEST: Final = 200  # characters

ALIASES: Final = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression that may be handed on. ``notes`` are warnings, whole sentences."""

    expression: str
    notes: tuple[str, ...]
    given: str
    columns: tuple[int, ...]  # where each field starts in `given`; empty for an alias

    def refuse(self, field: str, message: str) -> NoReturn:
        """Refuse it for a reason that shows only when the fields are read together."""
        names = [f.name for f in FIELDS][-len(self.columns) :] if self.columns else []
        place = names.index(field) if field in names else None
        column = None if place is None else self.columns[place]
        value = self.given if place is None else self.given.split()[place]
        raise ScheduleError(message, field, value, expression=self.given, column=column)


def check(expression: str) -> Checked:
    """Check a cron expression of five fields, or six with seconds first, or an alias such as @daily.

    Raises ScheduleError, with the offset of what is wrong.
    """
    expression = check_text(expression)
    words = [(match.start(), match.group()) for match in re.finditer(r"\S+", expression)]
    if not words:
        raise ScheduleError(
            f"the expression {shown(expression)} is empty; write five fields, for example '30 2 * * *'",
            "expression",
            expression,
        )
    if words[0][1].startswith("@"):
        return Checked(_alias(expression, words[0][0]), (), expression, ())
    if len(words) not in (5, 6):
        _refuse_count(expression, len(words))
    try:
        normalised, notes = _fields(expression, words)
    except ScheduleError as error:
        raise _with_order_hint(error, expression, words) from None
    notes += _order_notes(normalised)
    return Checked(normalised, tuple(notes), expression, tuple(column for column, _ in words))


def _fields(expression: str, words: list[tuple[int, str]]) -> tuple[str, list[str]]:
    """The normalised expression of five or six (column, word), and the warnings on its fields."""
    notes: list[str] = []
    texts = [
        check_field(Part(field, word, column, expression), notes)
        for field, (column, word) in zip(FIELDS[-len(words) :], words, strict=True)
    ]
    return " ".join(texts), notes


def _seconds_moved_first(words: list[str]) -> str | None:
    """Six fields read as croniter does, seconds last, and put into our order; None where that can't be."""
    if len(words) != 6:
        return None
    moved = " ".join([words[5], *words[:5]])
    try:
        return _fields(moved, [(0, word) for word in moved.split()])[0]
    except ScheduleError:
        return None


def _with_order_hint(error: ScheduleError, expression: str, words: list[tuple[int, str]]) -> ScheduleError:
    moved = _seconds_moved_first([word for _, word in words])
    if moved is None:
        return error
    message = f"{error}; seconds come first here: write '{moved}'"
    return ScheduleError(message, error.field, error.value, expression=expression, column=error.column)


def _order_notes(normalised: str) -> list[str]:
    """A warning for six fields likely meant with seconds last: every hour of one weekday is rare."""
    words = normalised.split()
    moved = _seconds_moved_first(words)
    if moved is None or words[2] != "*" or not re.fullmatch(r"\d+|\*/\d+", words[5]):
        return []
    # A leading 0 is how seconds-first expressions begin; "0 30 * * * 1" is every hour on Mondays.
    if words[0] == "0" and words[5] != "0" and "/" not in words[5]:
        return []
    note = (
        f"six fields are read with seconds first, so '{normalised}' runs at second {words[0]} of minute "
        f"{words[1]} of every hour on day of week {words[5]}; if the seconds were meant to be last, write "
        f"'{moved}'"
    )
    return [note]


def check_text(expression: object) -> str:
    """The expression, if it is text that can be read at all."""
    if not isinstance(expression, str):
        raise ScheduleError(
            f"the expression must be text such as '30 2 * * *', not {type(expression).__name__}",
            "expression",
            repr(expression)[:LONGEST],
        )
    if len(expression) > LONGEST:
        raise ScheduleError(
            f"the expression has {len(expression)} characters; at most {LONGEST} are read, so split the "
            "schedule into several jobs",
            "expression",
            expression[:LONGEST],
        )
    for column, character in enumerate(expression):
        if " " <= character <= "~" or character in "\t\r\n":
            continue
        plain = unicodedata.normalize("NFKC", character)
        if character < " " or character == "\x7f":
            why, hint = f"holds the control character U+{ord(character):04X}", "remove it"
        elif plain != character and plain.isascii() and plain.isprintable():
            why = f"holds {shown(character)} (U+{ord(character):04X})"
            hint = "write a plain space" if plain == " " else f"write {plain}"
        else:
            why = f"holds {shown(character)} (U+{ord(character):04X})"
            hint = "only plain ASCII letters, digits and signs are read"
        raise ScheduleError(
            f"the expression {why} at offset {column}; {hint}",
            "expression",
            character,
            expression=expression,
            column=column,
        )
    return expression


def _alias(expression: str, column: int) -> str:
    word = expression.strip()
    known = ALIASES.get(word.upper())
    if known is not None:
        return known
    name = word.split()[0].lower()
    if name == "@reboot":
        why = "has no instants"
        hint = "a schedule is shared by all instances, and the start of one is none; call app.trigger() at start"
    elif name == "@every":
        why, hint = "is no cron alias", "use every(...), whose slots are multiples of the interval since 1970"
    else:
        near = difflib.get_close_matches(name, [a.lower() for a in ALIASES], n=1)
        why = "is no alias" if len(word.split()) == 1 else "stands alone, without further fields"
        hint = f"did you mean {near[0]}?" if near else f"known are {' '.join(a.lower() for a in ALIASES)}"
    raise ScheduleError(
        f"the expression {shown(word)} {why}; {hint}",
        "expression",
        word,
        expression=expression,
        column=column,
    )


def _refuse_count(expression: str, found: int) -> NoReturn:
    if found < 5:
        hint = "write minute, hour, day of month, month, day of week, with * for any"
    else:
        hint = "a year field (Quartz) or a command (crontab) is not read here"
    s = "" if found == 1 else "s"
    raise ScheduleError(
        f"the expression {shown(expression)} has {found} field{s}, not 5 (or 6, with seconds first); {hint}",
        "expression",
        expression,
    )
