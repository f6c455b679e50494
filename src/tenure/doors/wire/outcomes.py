"""How the answers of verbs and of their human counterparts are spelled: what was claimed, renewed, ended or made."""

from __future__ import annotations

from typing_extensions import TypedDict

from tenure.board import shapes
from tenure.doors.wire.spelling import Answer, Note, Todo, at, todo


class OneTodo(Answer):
    """A todo, whole."""

    todo: Todo


class OneNote(Answer):
    """A note that was added."""

    note: Note


class Claim(TypedDict):
    """A claimed todo and its lease. `state`: `open`, or how it ended, which a repeated request may tell of."""

    todo: Todo
    attempt: int
    lease_token: str | None
    lease_expires_at: str
    lease_ttl_seconds: int
    lease_ttl_source: str
    clamped: bool
    state: str


class Claimed(Answer):
    """What was claimed. `repeated`: this request_id was answered before."""

    empty: bool
    claims: list[Claim]
    repeated: bool
    server_time: str
    endpoint_expires_at: str | None


def claim(one: shapes.Granted) -> Claim:
    return {
        "todo": todo(one.todo),
        "attempt": one.attempt,
        "lease_token": one.lease.token.reveal() if one.lease.token is not None else None,
        "lease_expires_at": at(one.lease.expires),
        "lease_ttl_seconds": one.lease.ttl_seconds,
        "lease_ttl_source": one.lease.ttl_source,
        "clamped": one.lease.clamped,
        "state": one.state,
    }


def claimed(one: shapes.Claimed) -> Claimed:
    return {
        "empty": one.empty,
        "claims": [claim(each) for each in one.granted],
        "repeated": one.repeated,
        "server_time": at(one.now),
        "endpoint_expires_at": at(one.endpoint_expires),
    }


class Renewed(Answer):
    """A lease after a heartbeat. `extended`: it ends later than it did; `shortened`: earlier, as the call asked."""

    todo_id: str
    extended: bool
    shortened: bool
    revived: bool
    lease_expires_at: str
    seconds_left: int
    lease_ttl_seconds: int
    lease_ttl_source: str
    clamped: bool
    server_time: str


def renewed(one: shapes.Renewed) -> Renewed:
    return {
        "todo_id": one.todo_id,
        "extended": one.extended,
        "shortened": one.shortened,
        "revived": one.revived,
        "lease_expires_at": at(one.expires),
        "seconds_left": one.seconds_left,
        "lease_ttl_seconds": one.ttl_seconds,
        "lease_ttl_source": one.ttl_source,
        "clamped": one.clamped,
        "server_time": at(one.now),
    }


class Checked(Answer):
    """Whether a claim is still held; where not, why, and whether a heartbeat would bring it back."""

    todo_id: str
    held: bool
    recoverable: bool
    reason: str | None
    lease_expires_at: str
    seconds_left: int
    server_time: str


def checked(one: shapes.Checked) -> Checked:
    return {
        "todo_id": one.todo_id,
        "held": one.held,
        "recoverable": one.recoverable,
        "reason": one.reason,
        "lease_expires_at": at(one.expires),
        "seconds_left": one.seconds_left,
        "server_time": at(one.now),
    }


class Ended(Answer):
    """What became of a todo whose claim was ended. `already`: the same call had ended it before."""

    todo_id: str
    state: str
    already: bool
    dead: bool
    retry_at: str | None
    server_time: str


def ended(one: shapes.Ended) -> Ended:
    return {
        "todo_id": one.todo_id,
        "state": one.state,
        "already": one.already,
        "dead": one.dead,
        "retry_at": at(one.retry_at),
        "server_time": at(one.now),
    }


class Created(Answer):
    """The todo that was made, or the live one of the same key and content."""

    todo: Todo
    existing: bool


def created(one: shapes.Created) -> Created:
    return {"todo": todo(one.todo), "existing": one.existing}
