"""A schedule of the board: when it makes a todo, and what todo that is (B49). Pure: `now` and slots are arguments.

Titles and bodies may hold fields in braces that each slot fills in: `{slot}` is its time in the schedule's zone,
`{slot:%Y-%m-%d}` a part of that (see `datetime.strftime`), `{name}` the schedule's name; `{{` is a brace.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from tenure.rules import bounds, endpoints
from tenure.rules.endpoints import DEFAULT_QUEUE
from tenure.rules.instant import DAY, aware, span, span_words
from tenure.rules.refusal import Refusal, invalid
from tenure.rules.schedule import Schedule, ScheduleError, cron, every
from tenure.rules.todo_content import NewTodo, checked
from tenure.rules.zones import zone

Overlap = Literal["skip", "allow"]
CATCH_UP_LIMIT: Final = 30 * DAY
EXPRESSION_CHARS: Final = 200
_FIELDS: Final = "has braces around what is no field; there are {slot}, {slot:%Y-%m-%d} and {name}, and {{ is a brace."
_CHOICES: Final = {
    "dst_gap": ("shift", "asap", "skip"),
    "dst_overlap": ("first", "second", "both"),
    "overlap": ("skip", "allow"),
}


class Plan(NamedTuple):
    """What a human gives an endpoint. `expression`: cron, or a length of time such as `10m`."""

    expression: str
    title: str
    tz: str = "UTC"
    dst_gap: str = "shift"
    dst_overlap: str = "first"
    body: str = ""
    payload: Any = None
    queue: str | None = None
    priority: int = 0
    overlap: str = "skip"
    catch_up_ms: int = 0

    @property
    def schedule(self) -> Schedule:
        """When it is due. Raises ScheduleError, which a checked plan does not."""
        return timetable(self.expression, self.tz, self.dst_gap, self.dst_overlap)


def timetable(expression: str, tz: str, dst_gap: Any = "shift", dst_overlap: Any = "first") -> Schedule:
    """A schedule as people write it: a cron expression, or a length of time such as `10m`. Raises ScheduleError."""
    word = expression.strip()
    if not (word and word[0].isdecimal() and " " not in word):
        return cron(expression, tz, dst_gap=dst_gap, dst_overlap=dst_overlap)
    zone(tz)  # refused as for cron: titles are filled in with its time
    try:
        return every(span(word))
    except ScheduleError:
        raise
    except ValueError:
        raise ScheduleError(
            f"the expression {word[:40]!r} is neither a length of time nor a cron expression; write 90s or 1h30m, "
            "or five fields, for example '30 2 * * *'",
            "expression",
            word,
        ) from None


def plan(raw: Mapping[str, Any], called: str = "x" * bounds.NAME_CHARS) -> Plan | Refusal:
    """A checked plan from the fields of a request; `catch_up` is a length of time. Names and sizes are checked too.

    called: what `{name}` becomes, as long as it may be where it can still be given.
    """
    values = {name: raw[name] for name in Plan._fields if raw.get(name) is not None}
    for name, allowed in _CHOICES.items():
        if name in values and values[name] not in allowed:
            return invalid(name, f"must be one of {', '.join(allowed)}.")
    for name in ("expression", "title"):
        if not isinstance(values.get(name), str) or not values[name].strip():
            return invalid(name, "is required.")
    if len(values["expression"]) > EXPRESSION_CHARS:
        return invalid("expression", f"may be {EXPRESSION_CHARS} characters long.")
    catch_up = _catch_up(raw.get("catch_up", 0))
    if isinstance(catch_up, Refusal):
        return catch_up
    found = Plan(**{**values, "catch_up_ms": catch_up})
    return _judged(found, called) or found


def _judged(found: Plan, called: str) -> Refusal | None:
    try:
        schedule = found.schedule
    except ScheduleError as error:
        return Refusal("invalid_argument", str(error), {"field": "tz" if error.field == "tz" else "expression"})
    first = schedule.next(0)
    for field in ("title", "body"):
        try:
            fill(getattr(found, field), found.tz, "x", 0)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError):
            return invalid(field, _FIELDS)
    todo = made(found, called, first.at_ms if first is not None else 0)
    content = checked(todo, (found.queue or DEFAULT_QUEUE,), "schedule", None)
    return content if isinstance(content, Refusal) else None


def label(name: str) -> str | Refusal:
    """A schedule's name. It stands in addresses, so that it is one part of a path."""
    found = endpoints.label(name, "name")
    if isinstance(found, str) and ("/" in found or found in {".", ".."}):
        return invalid("name", "stands in addresses: it may hold no slash, and not be . or .. alone.")
    return found


def made(plan: Plan, name: str, slot_ms: int) -> NewTodo:
    """The todo of this slot, its fields filled in."""
    return NewTodo(
        title=fill(plan.title, plan.tz, name, slot_ms),
        body=fill(plan.body, plan.tz, name, slot_ms),
        queue=plan.queue,
        payload=plan.payload,
        priority=plan.priority,
    )


def _catch_up(value: object) -> int | Refusal:
    try:
        ms = span(value)  # type: ignore[arg-type] # it refuses what is no length
    except ValueError as error:
        return invalid("catch_up", str(error))
    if ms > CATCH_UP_LIMIT:
        return invalid("catch_up", f"may be {span_words(CATCH_UP_LIMIT)} at most.")
    return ms


class _Fields(string.Formatter):
    """Only whole fields of ours: no attributes, no indices, nothing positional, none in another's form."""

    def parse(self, format_string: str) -> Iterable[tuple[str, str | None, str | None, str | None]]:
        for literal, field, form, conversion in super().parse(format_string):
            # A name has no form (`{name:>2000000000}` would be a text of gigabytes), and no form has fields.
            if form and (field != "slot" or "{" in form):
                raise ValueError(form)
            yield literal, field, form, conversion

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        return kwargs[field_name], field_name

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion is not None:
            raise ValueError(conversion)
        return value


class _Slot:
    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.moment.isoformat(timespec="seconds")
        if len(spec) > bounds.NAME_CHARS:
            raise ValueError(spec)
        return self.moment.strftime(spec)


def fill(text: str, tz: str, name: str, slot_ms: int) -> str:
    """The text with its fields filled in for this slot. Raises ValueError, KeyError, … for what is no field."""
    moment = aware(slot_ms).astimezone(ZoneInfo(tz))
    return _Fields().vformat(text, (), {"slot": _Slot(moment), "name": name})
