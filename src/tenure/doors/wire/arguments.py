"""What calls may say: one model for the arguments of each verb and of each request, strict, and closed to other keys.

Types and sizes are checked here, so that schemas can tell them; what a rule decides (a lease, a name, a queue) is
asked of the rule. The descriptions are read by models: each says what a caller must know, in one sentence.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from tenure.doors.wire.refusals import check, wrong
from tenure.rules import bounds, endpoints
from tenure.rules.instant import LAST, instant


class Arguments(BaseModel):
    """The arguments of one call: exact types, no other keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _time(text: str) -> str:
    """An instant as text; what `now` is in it is the database's to say, inside the transaction."""
    try:
        if 0 <= instant(text, LAST // 2) <= LAST:
            return text
    except (ValueError, OverflowError):
        pass
    raise wrong(_TIMES)


_TIMES: Final = "must be a time: RFC 3339 such as 2026-12-01T06:00:00Z, or now+30m."
_LEASE_NOTE: Final = f"For this call alone, in seconds. More than {bounds.LEASE_CAP_SECONDS} is cut to that."

# What schemas can tell of these; the validators say it in words.
_TIME_SHAPE: Final[dict[str, Any]] = {
    "pattern": r"^(now([+-][0-9]+(s|m|h|d))?|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)?)$"
}
_QUEUE_SHAPE: Final[dict[str, Any]] = {"pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]*$"}

Time = Annotated[str, Field(max_length=40, json_schema_extra=_TIME_SHAPE), AfterValidator(_time)]
Id = Annotated[str, Field(min_length=1, max_length=64)]
_QUEUE: Final = Field(
    min_length=1,
    max_length=bounds.QUEUE_CHARS,
    json_schema_extra=_QUEUE_SHAPE,
    description="Letters, digits, '.', '_', '-'.",
)
Queue = Annotated[str, AfterValidator(lambda name: check(endpoints.queue(name))), _QUEUE]
Queues = Annotated[
    list[Annotated[str, AfterValidator(lambda name: check(endpoints.queue(name, "queues"))), _QUEUE]],
    Field(max_length=bounds.QUEUES),
]
CallLease = Annotated[
    int | None,
    PlainValidator(lambda value: check(endpoints.call_ttl(value))),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "description": _LEASE_NOTE}),
]
LeaseToken = Annotated[
    str, Field(min_length=1, max_length=128, description="The lease_token that the claim of this todo answered.")
]
Json = Annotated[Any, WithJsonSchema({"description": f"Any JSON, at most {bounds.JSON_BYTES // 1024} KiB of UTF-8."})]
RequestId = Annotated[
    str,
    Field(
        min_length=bounds.REQUEST_ID_CHARS[0],
        max_length=bounds.REQUEST_ID_CHARS[1],
        pattern="^[!-~]+$",
        description="Drawn at random for this call; the same again gets the same answer, if the first one was lost.",
    ),
]
# As stored, or as shown by the clock.
State = Literal[
    "pending", "claimed", "done", "failed", "cancelled", "waiting", "blocked", "lapsed", "retrying", "dead"
]  # fmt: skip
Reason = Annotated[str, Field(max_length=bounds.REASON_CHARS)]


class Labelled(Arguments):
    """Arguments of a verb whose caller may name itself."""

    worker: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=bounds.WORKER_CHARS,
            description="A name for yourself, shown beside your claims; it grants nothing.",
        ),
    ] = None


class OfTodo(Arguments):
    """Arguments that speak of one todo."""

    todo_id: Annotated[Id, Field(description="The id of the todo, such as td_01….")]


class OfClaim(OfTodo):
    """Arguments by which a claim's holder speaks."""

    lease_token: LeaseToken


# --- drain ------------------------------------------------------------------------------------------------


class ListTodos(Labelled):
    state: Annotated[State | None, Field(description="Only todos in this state.")] = None
    queue: Queue | None = None
    claimed_by: Annotated[
        str | None, Field(min_length=1, max_length=bounds.WORKER_CHARS, description="Open claims of this worker.")
    ] = None
    mine: Annotated[bool, Field(description="Only todos with an open claim of this endpoint.")] = False
    limit: Annotated[int, Field(ge=1, le=bounds.LIST_LIMIT)] = bounds.LIST_DEFAULT
    cursor: Annotated[str | None, Field(max_length=200, description="next_cursor of the page before.")] = None


class GetTodo(OfTodo, Labelled):
    pass


class Claim(OfTodo, Labelled):
    lease_ttl_seconds: CallLease = None
    request_id: RequestId | None = None


class ClaimNext(Labelled):
    queues: Annotated[Queues | None, Field(description="Default: all of the endpoint's.")] = None
    max: Annotated[int, Field(ge=1, le=bounds.CLAIMS_AT_ONCE, description="How many todos to claim at most.")] = 1
    wait_seconds: Annotated[
        int, Field(ge=0, le=bounds.WAIT_SECONDS, description="How long to wait where nothing is ready.")
    ] = 0
    lease_ttl_seconds: CallLease = None
    request_id: RequestId | None = None


class CheckClaim(OfClaim, Labelled):
    pass


class AddNote(OfTodo, Labelled):
    text: Annotated[str, Field(min_length=1, description=f"At most {bounds.NOTE_BYTES // 1024} KiB.")]


# What a batch may hold many of: the item by itself, and the call that says one, with the caller's name.


class Beat(OfClaim):
    lease_ttl_seconds: CallLease = None


class Completion(OfClaim):
    result: Json = None


class Failing(OfClaim):
    reason: Annotated[Reason, Field(min_length=1, description="Why, for people.")]


class Handback(OfClaim):
    reason: Annotated[Reason, Field(description="Why, for people.")] = ""


class Heartbeat(Beat, Labelled):
    pass


class Complete(Completion, Labelled):
    pass


class Fail(Failing, Labelled):
    pass


class Release(Handback, Labelled):
    pass


# --- produce ----------------------------------------------------------------------------------------------


class NewTodo(Arguments):
    """What a todo is made of (B2)."""

    title: Annotated[str, Field(min_length=1, max_length=bounds.TITLE_CHARS)]
    body: Annotated[str, Field(description=f"Markdown, at most {bounds.BODY_BYTES // 1024} KiB.")] = ""
    payload: Json = None
    queue: Annotated[Queue | None, Field(description="Default: the first queue of the endpoint.")] = None
    priority: Annotated[int, Field(ge=-bounds.PRIORITY_LIMIT, le=bounds.PRIORITY_LIMIT)] = 0
    not_before: Annotated[Time | None, Field(description="Not to be claimed before then; now+30m is a time too.")] = (
        None
    )
    depends_on: Annotated[
        list[Id], Field(max_length=bounds.DEPENDENCIES, description="Ids of todos of the same endpoint to wait for.")
    ] = []
    idempotency_key: Annotated[
        str | None,
        Field(min_length=1, max_length=bounds.KEY_CHARS, description="Among live todos a key stands once."),
    ] = None
    failures_cap: Annotated[int | None, Field(ge=1, le=bounds.CAP_LIMIT)] = None
    lapses_cap: Annotated[int | None, Field(ge=1, le=bounds.CAP_LIMIT)] = None


class CreateTodo(NewTodo, Labelled):
    to: Annotated[str | None, Field(max_length=200, description="The slug of a target; default: this endpoint.")] = None
    request_id: RequestId | None = None


class CancelTodo(Labelled):
    idempotency_key: Annotated[str, Field(min_length=1, max_length=bounds.KEY_CHARS)]
    reason: Reason = ""
