"""One field of a cron expression, item by item: what is meant, and what to say of the rest.

Each refusal names the field, the value, the bound and what to write instead. What passes is spelled in one
way: capitals, plain numbers. Knows nothing of whole expressions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from tenure.rules.schedule_error import ScheduleError, shown

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # the first stands for `low`
    below: str = ""  # what to write instead of the number just below the range, and just above it
    above: str = ""


SECONDS: Final = Field("seconds", 0, 59, above="write 0 for the full minute")
MINUTE: Final = Field("minute", 0, 59, above="write 0 for the full hour")
HOUR: Final = Field("hour", 0, 23, above="write 0 for midnight")
DAY: Final = Field("day of month", 1, 31, below="the first is 1, the last is L", above="write L for the last")
MONTH: Final = Field("month", 1, 12, MONTHS, below="January is 1", above="December is 12")
WEEKDAY: Final = Field("day of week", 0, 7, WEEKDAYS, above="Sunday is 0 or 7, Saturday 6")
FIELDS: Final = (SECONDS, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of one field, with its place in the expression as it was given."""

    field: Field
    text: str
    column: int
    given: str

    def refuse(self, why: str, hint: str) -> NoReturn:
        """Refuse it: "hour 24: is over 23; write 0 for midnight"."""
        bound = f"{self.field.low}-{self.field.high}"
        raise ScheduleError(
            f"{self.field.name} {shown(self.text)} {why}: {self.field.name} takes {bound}; {hint}",
            self.field.name,
            self.text,
            expression=self.given,
            column=self.column,
        )

    def cut(self, start: int, end: int | None = None) -> Part:
        """A piece of this piece."""
        return Part(self.field, self.text[start:end], self.column + start, self.given)

    def split(self, separator: str) -> list[Part]:
        """The pieces between separators, empty ones too."""
        pieces: list[Part] = []
        start = 0
        for piece in self.text.split(separator):
            pieces.append(self.cut(start, start + len(piece)))
            start += len(piece) + len(separator)
        return pieces


def check_field(part: Part, notes: list[str]) -> str:
    if part.text == "?":
        return "*"
    return ",".join(_term(term, notes) for term in part.split(","))


def _term(part: Part, notes: list[str]) -> str:
    """One item of a list, normalised: ``*``, a value or range, maybe with a step, or a form of L or #."""
    field = part.field
    if not part.text:
        part.refuse("has an empty item", "a list is written 1,2,3")
    base, slash, _ = part.text.partition("/")
    special = _special(part)
    if special is not None:
        return special
    if base == "*":
        first, last, text = field.low, field.high, "*"
    elif "-" in base:
        first, last, text = _range(part.cut(0, len(base)))
    else:
        first = _value(part.cut(0, len(base)))
        last, text = field.high, _spelled(base)
    if not slash:
        return text
    size = _step(part, len(base) + 1)
    if field is WEEKDAY and base == "*":
        last = 6  # Sunday stands there twice, as 0 and 7; the longest step is still 6
    if first + size > last:
        notes.append(
            f"{field.name} {part.text}: the step {size} is larger than the range {first}-{last}, so only "
            f"{first} matches; write {first}, or use every(...) for a fixed interval"
        )
    return f"{text}/{size}"


def _step(part: Part, start: int) -> int:
    step = part.text[start:]
    if not step.isdigit():
        part.refuse("has no number as its step", "a step is written */5, 10/5 or 8-18/2")
    if int(step) == 0:
        part.refuse("has a step of 0, which never moves on", "write * for every one, or a step of 1 or more")
    return int(step)


def _range(part: Part) -> tuple[int, int, str]:
    ends = part.split("-")
    if len(ends) != 2 or not ends[0].text or not ends[1].text:
        part.refuse("is no range", "a range is written 1-5")
    first, last = _value(ends[0]), _value(ends[1])
    low, high = _spelled(ends[0].text), _spelled(ends[1].text)
    if last < first:
        field = part.field
        ends_at = 6 if field is WEEKDAY else field.high
        top = field.names[-1] if field.names and not low.isdigit() else str(ends_at)
        bottom = field.names[0] if field.names and not high.isdigit() else str(field.low)
        head = low if low == top else f"{low}-{top}"
        tail = high if high == bottom else f"{bottom}-{high}"
        part.refuse("runs backwards", f"to go over the end write {head},{tail}")
    return first, last, f"{low}-{high}"


def _value(part: Part) -> int:
    """The number of a value or name, inside its field's range."""
    field, text = part.field, part.text
    if text.isdigit():
        number = int(text)
        if number < field.low:
            part.refuse(f"is under {field.low}", field.below or f"write {field.low}")
        if number > field.high:
            part.refuse(f"is over {field.high}", field.above or f"write {field.high}")
        return number
    if text.upper() not in field.names:
        part.refuse("is no value", _word_hint(part))
    return field.names.index(text.upper()) + field.low


def _word_hint(part: Part) -> str:
    field, word = part.field, part.text.upper()
    if not word:
        return "a value is missing before the /"
    if word in ("H", "R"):
        return "a hash or random start is not read here; the job's jitter spreads the load"
    if "?" in word or "*" in word:
        return f"{word[0]} stands alone, or before a step: */5"
    if field.names and word.isalpha() and len(word) > 3 and word[:3] in field.names:
        return f"write {word[:3]}"
    for other, names in (("month", MONTHS), ("day of week", WEEKDAYS)):
        if field.name != other and word[:3] in names:
            return f"{word[:3]} belongs in {other}; the order is minute, hour, day, month, day of week"
    if field.names:
        return f"numbers, or the names {' '.join(field.names)}"
    return "write a number, a range 1-5, a list 1,2,3, a step */5, or *"


def _special(part: Part) -> str | None:
    """L, LW, 5L and MON#2, or None if the item is none of them; the neighbours we don't read are refused."""
    field, word = part.field, part.text.upper()
    if field is DAY:
        if word in ("L", "LW"):
            return word
        if re.fullmatch(r"\d+W|W\d*|WL", word):
            part.refuse("(nearest weekday) is not supported", "write LW for the last weekday, or a day from 1 to 31")
        if "L" in word and not any(name in word for name in (*MONTHS, *WEEKDAYS)):
            part.refuse("is not supported", "write L for the last day, LW for the last weekday, alone in their item")
    elif field is WEEKDAY and re.fullmatch(r"\w+L/.*", word):
        part.refuse("has a step on one day", f"write {word.partition('/')[0]} alone")
    elif field is WEEKDAY and word[:3] not in MONTHS and (last := re.fullmatch(r"(\w+)L", word)):
        return f"{_value(part.cut(0, last.end(1))) % 7}L"
    elif field is WEEKDAY and re.fullmatch(r"L(\w*)", word):
        day = word[1:] if word[1:].isdigit() else "5"
        part.refuse("names no day", f"write {day}L for the last such weekday of the month")
    if "#" not in word:
        return None
    if field is not WEEKDAY:
        part.refuse("is not supported", "# stands in day of week, as in MON#2 for the second Monday")
    base, _, nth = word.partition("#")
    if "-" in base or "," in base:
        part.refuse("has more than one day before #", "write one day each, as in MON#2,TUE#2")
    _value(part.cut(0, len(base)))
    if nth not in ("1", "2", "3", "4", "5"):
        part.refuse("counts no week", "after # write 1 to 5, as in MON#2, or 1L for the last Monday")
    return f"{_spelled(base)}#{nth}"


def _spelled(text: str) -> str:
    return str(int(text)) if text.isdigit() else text.upper()
