"""What the use cases of todos take and answer: plain values, spelled by the doors. Times are milliseconds."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tenure.board.secrets import Secret
from tenure.rules import todo_content
from tenure.rules.todo import Origin, Shown

NewTodo = todo_content.NewTodo


class Source(NamedTuple):
    """A webhook or a schedule that makes todos."""

    kind: Literal["webhook", "schedule"]
    id: str


# --- asked ------------------------------------------------------------------------------------------------


class Next(NamedTuple):
    """What `claim_next` is asked for; no queues: any of the endpoint's. `lease_ttl_seconds` is judged by the rules."""

    queues: tuple[str, ...] = ()
    max: int = 1
    lease_ttl_seconds: object = None
    worker_label: str | None = None
    request_id: str | None = None


class Beat(NamedTuple):
    """One heartbeat of a batch."""

    todo_id: str
    lease_token: str
    lease_ttl_seconds: object = None


class Completion(NamedTuple):
    """One `complete` of a batch; `result` is JSON as Python values."""

    todo_id: str
    lease_token: str
    result: Any = None


class Failing(NamedTuple):
    """One `fail` of a batch."""

    todo_id: str
    lease_token: str
    reason: str = ""


class Handback(NamedTuple):
    """One `release` of a batch."""

    todo_id: str
    lease_token: str
    reason: str = ""


class Filters(NamedTuple):
    """Which todos a list shows; None or empty: all. `claimed_by` is a worker's label."""

    endpoint_id: str | None = None
    queue: str | None = None
    states: tuple[str, ...] = ()
    """As stored, or as shown."""
    claimed_by: str | None = None
    mine: bool = False
    """Only todos with an open claim of the asking endpoint, or of the asking human on the Board."""
    source: Origin | None = None


# --- answered ---------------------------------------------------------------------------------------------


class Summary(NamedTuple):
    """A todo in a list."""

    id: str
    endpoint_id: str
    endpoint_slug: str
    queue: str
    title: str
    state: str
    """As stored: pending, claimed, done, failed, cancelled."""
    shown: Shown
    priority: int
    not_before: int | None
    blockers: int
    attempts: int
    failures: int
    lapses: int
    failures_cap: int
    lapses_cap: int
    retry_at: int | None
    reason: str | None
    source: Origin
    idempotency_key: str | None
    created: int
    ended: int | None
    claim_id: str | None
    claimed_by: str | None
    """The label of the worker that holds it."""
    held_on_board: bool
    expires: int | None
    """Of the open claim's lease."""


class Attempt(NamedTuple):
    """One claim of a todo, for its history."""

    id: str
    attempt: int
    holder: Literal["endpoint", "human"]
    worker: str | None
    granted: int
    expires: int
    ttl_seconds: int
    ttl_source: str
    heartbeats: int
    heartbeat: int | None
    ended: int | None
    end: str | None
    reason: str | None
    late: dict[str, Any] | None
    """What came too late: `{"verb": "complete", "result": …}` or `{"verb": "fail", "reason": …}`."""
    late_at: int | None


class Note(NamedTuple):
    """A note on a todo."""

    id: str
    author: Literal["human", "endpoint"]
    author_id: str
    worker: str | None
    text: str
    created: int


class Detail(NamedTuple):
    """A todo whole. In the answer of a claim `attempts` are the earlier ones, and there are no notes."""

    summary: Summary
    body: str
    payload: Any
    result: Any
    source_id: str | None
    depends_on: tuple[str, ...]
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[Note, ...] = ()


class Page(NamedTuple):
    """One page of a list; `cursor` gives the next one, None at the end."""

    items: tuple[Summary, ...]
    cursor: str | None
    now: int


class Created(NamedTuple):
    """The todo that was made, or the live one that has the same key and content (B6)."""

    todo: Detail
    existing: bool


class Lease(NamedTuple):
    """A lease as granted. No token: a Board claim, or one whose server secret has been taken off the ring."""

    claim_id: str
    token: Secret | None
    granted: int
    expires: int
    ttl_seconds: int
    ttl_source: Literal["call", "endpoint", "server", "board"]
    clamped: bool


class Granted(NamedTuple):
    """One claimed todo. `state`: `open`, or how the claim ended (a repeated request may tell of such, B12a)."""

    todo: Detail
    lease: Lease
    attempt: int
    state: str = "open"


class Claimed(NamedTuple):
    """What `claim` and `claim_next` answer: nothing to do is `granted == ()`."""

    granted: tuple[Granted, ...]
    now: int
    endpoint_expires: int | None
    repeated: bool = False

    @property
    def empty(self) -> bool:
        return not self.granted


class Renewed(NamedTuple):
    """A heartbeat's answer. `extended`: the expiry moved later; `shortened`: the call's own value brought it nearer."""

    todo_id: str
    expires: int
    seconds_left: int
    ttl_seconds: int
    ttl_source: Literal["call", "endpoint", "server"]
    clamped: bool
    extended: bool
    shortened: bool
    revived: bool
    """It had lapsed, and nobody had taken it."""
    now: int


class Checked(NamedTuple):
    """Whether the claim is still held. Not held but `recoverable`: lapsed, and a heartbeat would revive it (B13)."""

    todo_id: str
    held: bool
    recoverable: bool
    reason: str | None
    """Why it is not held: `lapsed`, `taken`, `finished`, …"""
    expires: int
    seconds_left: int
    now: int


class Ended(NamedTuple):
    """An accepted complete, fail or release, and what became of the todo."""

    todo_id: str
    state: str
    already: bool
    """It had ended that very way by this token before."""
    retry_at: int | None
    dead: bool
    now: int


class Warned(NamedTuple):
    """Something that a worker should know beside its answer (B18, B24)."""

    code: Literal["lease_ending", "endpoint_ending", "lease_beyond_endpoint"]
    message: str
    todo_id: str | None
    seconds_left: int


class Lane(NamedTuple):
    """How many todos of an endpoint are shown in a state, and since when the oldest has waited."""

    endpoint_id: str
    shown: Shown
    total: int
    oldest: int | None
