"""What a todo may hold (B2): its contents, their limits, and when two contents are the same (B6)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from tenure.rules import bounds
from tenure.rules.refusal import Refusal, invalid
from tenure.rules.todo import Origin, Todo
from tenure.rules.todos import order_ms

# What no database keeps, or no terminal should be sent: NUL and half a surrogate pair in texts, controls in lines.
_UNFIT_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_UNFIT_LINE: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# The end of the year 9999: later than anything that can be meant, and writable as a date.
LATEST_MS: Final = 253_402_300_799_999


class NewTodo(NamedTuple):
    """A todo to be made. `payload` is JSON as Python values; queue None: the target's first."""

    title: str
    queue: str | None = None
    body: str = ""
    payload: Any = None
    priority: int = 0
    not_before: int | None = None
    depends_on: tuple[str, ...] = ()
    idempotency_key: str | None = None
    failures_cap: int | None = None
    lapses_cap: int | None = None
    relative: str | None = None
    """`not_before` as it was asked, where that depends on when: `now+30m`."""

    @property
    def as_asked(self) -> NewTodo:
        """By what it is compared with another: the same call, sent again later, asks for the same."""
        return self if self.relative is None else self._replace(not_before=None)


class Content(NamedTuple):
    """What was checked, and is stored as it is: nothing here changes during a todo's life."""

    title: str
    body: str
    payload: str | None
    idempotency_key: str | None
    content_hash: str
    source: Origin
    source_id: str | None


def checked(new: NewTodo, queues: Sequence[str], source: Origin, source_id: str | None) -> Content | Refusal:
    """The contents of a todo for an endpoint with these queues, or the first thing that is wrong with them."""
    payload = json_text(new.payload, "payload")
    if isinstance(payload, Refusal):
        return payload
    wrong = (
        _line(new.title, "title", bounds.TITLE_CHARS)
        or text(new.body, "body", bounds.BODY_BYTES)
        or _within("priority", new.priority, -bounds.PRIORITY_LIMIT, bounds.PRIORITY_LIMIT)
        or _within("not_before", 0 if new.not_before is None else new.not_before, 0, LATEST_MS)
        or _cap("failures_cap", new.failures_cap)
        or _cap("lapses_cap", new.lapses_cap)
        or (
            _line(new.idempotency_key, "idempotency_key", bounds.KEY_CHARS) if new.idempotency_key is not None else None
        )
        or _queue(new.queue, queues)
        or _depends_on(new.depends_on)
    )
    if wrong:
        return wrong
    return Content(new.title, new.body, payload, new.idempotency_key, _hash(new, queues), source, source_id)


def todo_of(
    new: NewTodo, todo_id: str, endpoint: str, *, queues: Sequence[str], waits: Collection[str], now: int
) -> Todo:
    """The todo as it begins: ready when nothing blocks it and its time has come (B3). `waits`: what is not done yet."""
    due = new.not_before is None or new.not_before <= now
    blockers = sum(one in waits for one in set(new.depends_on))
    return Todo(
        id=todo_id,
        endpoint=endpoint,
        queue=new.queue or queues[0],
        state="pending",
        ready=due and not blockers,
        order_ms=order_ms(max(now, new.not_before or now), new.priority),
        priority=new.priority,
        not_before=new.not_before,
        blockers=blockers,
        attempts=0,
        failures=0,
        lapses=0,
        failures_cap=new.failures_cap or bounds.CAP_DEFAULT,
        lapses_cap=new.lapses_cap or bounds.CAP_DEFAULT,
        retry_at=None,
        claim=None,
        reason=None,
        ended=None,
        needed=False,
    )


def json_text(value: Any, field: str) -> str | Refusal | None:
    """A payload or a result as it is stored; null is none."""
    if value is None:
        return None
    try:
        spelled = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        size = len(spelled.encode())
    except (TypeError, ValueError, RecursionError):
        return invalid(field, "must be JSON: no NaN, no lone surrogates, nothing too deep.")
    if "\\u0000" in spelled and _holds_nul(value):
        return invalid(field, "must not hold the character U+0000.")
    if size > bounds.JSON_BYTES:
        return invalid(field, f"may be {bounds.JSON_BYTES // 1024} KiB at most as UTF-8, and is {size} bytes.")
    return spelled


def text(value: str, field: str, limit_bytes: int) -> Refusal | None:
    """What is wrong with a text of so many bytes at most."""
    if _UNFIT_TEXT.search(value):
        return invalid(field, "must not hold U+0000 or lone surrogates.")
    size = len(value.encode())
    return (
        None
        if size <= limit_bytes
        else invalid(field, f"may be {limit_bytes // 1024} KiB at most as UTF-8, and is {size} bytes.")
    )


def reason(value: str) -> Refusal | None:
    """What is wrong with the reason of a failure, a release or a cancellation."""
    if _UNFIT_TEXT.search(value):
        return invalid("reason", "must not hold U+0000 or lone surrogates.")
    if len(value) > bounds.REASON_CHARS:
        return invalid("reason", f"may have {bounds.REASON_CHARS} characters at most, and has {len(value)}.")
    return None


def worker(value: str | None) -> Refusal | None:
    """What is wrong with a worker's label."""
    return None if value is None else _line(value, "worker", bounds.WORKER_CHARS)


def request_id(value: str | None) -> Refusal | None:
    """What is wrong with a request id (B12a)."""
    least, most = bounds.REQUEST_ID_CHARS
    if value is None or (least <= len(value) <= most and re.fullmatch("[!-~]+", value)):
        return None
    return invalid("request_id", f"must be {least} to {most} visible ASCII characters, drawn at random for each call.")


def _hash(new: NewTodo, queues: Sequence[str]) -> str:
    content = new.as_asked._replace(
        idempotency_key=None, queue=new.queue or queues[0], depends_on=tuple(sorted(set(new.depends_on)))
    )
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _line(value: str, field: str, limit: int) -> Refusal | None:
    if not 1 <= len(value) <= limit or not value.strip():
        return invalid(field, f"must have 1 to {limit} characters that are not all blank, and has {len(value)}.")
    return invalid(field, "must be one line, without control characters.") if _UNFIT_LINE.search(value) else None


def _within(field: str, value: int, least: int, most: int) -> Refusal | None:
    if type(value) is int and least <= value <= most:
        return None
    return invalid(field, f"must be a whole number from {least} to {most}.")


def _cap(field: str, value: int | None) -> Refusal | None:
    return None if value is None else _within(field, value, 1, bounds.CAP_LIMIT)


def _queue(value: str | None, queues: Sequence[str]) -> Refusal | None:
    if value is None or value in queues:
        return None
    return invalid("queue", f"must be one of the endpoint's: {', '.join(queues)}.")


def _depends_on(ids: Sequence[str]) -> Refusal | None:
    if len(set(ids)) <= bounds.DEPENDENCIES:
        return None
    return invalid("depends_on", f"may name {bounds.DEPENDENCIES} todos at most.")


def _holds_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_holds_nul(key) or _holds_nul(one) for key, one in value.items())
        case list() | tuple():
            return any(map(_holds_nul, value))
        case _:
            return False
