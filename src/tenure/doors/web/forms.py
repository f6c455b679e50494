"""What is typed into forms, read: texts, choices, lengths of time. A refusal is a sentence for beside its field."""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import ImmutableMultiDict

from tenure.board.refused import Refused
from tenure.doors.wire.strict import NotJson, parse
from tenure.rules.instant import DAY, SECOND, span, span_words
from tenure.rules.refusal import Refusal, invalid

# Lifetimes that forms offer, beside "until revoked" (B24).
LIFETIME_DAYS: Final = (1, 7, 30, 90)
NO_LIFETIME: Final = Refusal("invalid_argument", "This form offers no such lifetime; choose one that it lists.")


Form = ImmutableMultiDict[str, str]


class Filled(dict[str, Any]):
    """Values of a form by field: what was typed, or what is wrong. A field that is not there is blank."""

    def __missing__(self, field: str) -> str:
        return ""


def text(form: Form, name: str) -> str:
    """A field as it was typed; nothing where there is none."""
    return form.get(name, "")


def texts(form: Form, name: str) -> list[str]:
    """All values of a field."""
    return form.getlist(name)


def names(typed: str) -> list[str]:
    """Names separated by commas or blanks."""
    return typed.replace(",", " ").split()


def until(form: Form, now: int) -> int | None:
    """The end that was chosen among the lifetimes; nothing chosen is None: until revoked. Raises Refused."""
    days = text(form, "days")
    if days and days not in [str(day) for day in LIFETIME_DAYS]:
        raise Refused(NO_LIFETIME)
    return now + int(days) * DAY if days else None


def lease(typed: str, *, vending: bool) -> int | None:
    """A default lease in seconds; `default`, and when vending nothing, is the server's (B46).

    What is a whole number of seconds is the rule's to judge. Raises Refused for what is none.
    """
    word = typed.strip()
    if word.lower() == "default" or (vending and not word):
        return None
    field = "default_lease_ttl_seconds"
    if not word:
        raise Refused(invalid(field, "is empty. Write a length such as 45m, or default for the server default."))
    try:
        ms = span(word)
    except ValueError:
        raise Refused(invalid(field, "is no length of time. Write 900, 45m or 1h30m, or default.")) from None
    if ms % SECOND:
        raise Refused(invalid(field, "must be whole seconds. Write 900, 45m or 1h30m, or default."))
    return ms // SECOND


def lease_words(seconds: int | None) -> str:
    """A default lease as it would be typed."""
    return "default" if seconds is None else span_words(seconds * SECOND)


def problem_of(refusal: Refusal, *fields: str) -> Filled:
    """Beside which field of a form a refusal stands: the one it names, else the first. Raises what is no mistake."""
    if refusal.code not in ("invalid_argument", "conflict") or "state" in refusal.details:
        raise Refused(refusal)
    named = refusal.details.get("field")
    at = named if named in fields else fields[0]
    return Filled({at: refusal.message.removeprefix(f"{named} ") if named else refusal.message})


def json_value(form: Form, name: str) -> Any:
    """A field as JSON; nothing typed is null. Raises Refused."""
    typed = text(form, name).strip()
    if not typed:
        return None
    try:
        return parse(typed.encode("utf-8", "surrogatepass"))
    except NotJson as error:
        raise Refused(invalid(name, f"{error}.")) from None


def whole_number(form: Form, name: str, blank: int) -> int:
    """A field as a whole number. Raises Refused."""
    typed = text(form, name).strip()
    if not typed:
        return blank
    if not (typed.removeprefix("-").isdecimal() and typed.isascii() and len(typed) < 12):
        raise Refused(invalid(name, "must be a whole number."))
    return int(typed)
