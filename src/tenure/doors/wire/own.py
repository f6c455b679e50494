"""The verbs by which an endpoint sees itself and its own few settings: who it is, its lease, presence and webhooks.

None takes an endpoint: what a credential may touch is its own alone (B31). They exist on the door for agents only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, PlainValidator, WithJsonSchema
from typing_extensions import TypedDict

from tenure.board import endpoints
from tenure.board.access import Endpoint, Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.doors.wire.arguments import Arguments
from tenure.doors.wire.refusals import check
from tenure.doors.wire.spelling import at
from tenure.doors.wire.verb import Spelled, Verb
from tenure.rules import endpoints as rules
from tenure.rules import presence
from tenure.rules.bounds import LEASE_CAP_SECONDS, LEASE_FLOOR_SECONDS


class Nothing(Arguments):
    """Arguments of a verb that takes none."""


class SetDefaultLease(Arguments):
    default_lease_ttl_seconds: Annotated[
        int | None,
        PlainValidator(lambda value: check(rules.default_lease(value))),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "integer", "minimum": LEASE_FLOOR_SECONDS, "maximum": LEASE_CAP_SECONDS},
                    {"type": "null"},
                ],
                "description": "Seconds; null for the server default.",
            }
        ),
    ]


class ClockIn(Arguments):
    for_seconds: Annotated[
        int | None,
        PlainValidator(lambda value: value if value is None else check(presence.clock_in_ms(value)) // 1000),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": presence.CLOCK_IN_LIMIT_MS // 1000},
                    {"type": "null"},
                ],
                "description": "For how many seconds; an hour by default.",
            }
        ),
        Field(alias="for"),
    ] = None


class LeaseSetting(TypedDict):
    """The default lease: as set (null: the server's), what holds, whose it is, and the bounds of what may be set."""

    default_lease_ttl_seconds: int | None
    effective_lease_ttl_seconds: int
    source: str
    minimum: int
    maximum: int


def lease_setting(one: endpoints.LeaseSetting) -> LeaseSetting:
    return {
        "default_lease_ttl_seconds": one.default_lease_ttl_seconds,
        "effective_lease_ttl_seconds": one.effective.seconds,
        "source": one.effective.source,
        "minimum": one.minimum,
        "maximum": one.maximum,
    }


class Presence(TypedDict):
    """Whether the endpoint is woken by new todos, what says so, and when that changes by itself."""

    presence: str
    source: str
    until: str | None
    shift: str | None
    server_time: str


def presence_of(endpoint: Endpoint, now: int) -> Presence:
    found = presence.effective(endpoint.override, endpoint.override_until, endpoint.shift, now)
    return {
        "presence": found.value,
        "source": found.source,
        "until": at(found.until),
        "shift": endpoint.shift,
        "server_time": at(now),
    }


class Identity(TypedDict):
    """Who the caller is on this board."""

    endpoint: str
    name: str
    agent: str
    queues: list[str]
    verbs: list[str]
    targets: list[str]
    lease: LeaseSetting
    presence: Presence
    endpoint_expires_at: str | None


def _whoami(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    endpoint = worker.endpoint
    identity: Identity = {
        "endpoint": endpoint.slug,
        "name": endpoint.name,
        "agent": endpoint.agent_name,
        "queues": list(endpoint.queues),
        "verbs": [*endpoint.verbs, *rules.SELF],
        "targets": list(endpoint.targets),
        "lease": lease_setting(endpoints.get_default_lease(tx, board, worker)),
        "presence": presence_of(endpoint, tx.now()),
        "endpoint_expires_at": at(endpoint.expires),
    }
    return {**identity}


def _presence(tx: Tx, _board: Board, worker: Worker, _: Nothing) -> Spelled:
    return {**presence_of(worker.endpoint, tx.now())}


def _clock_in(tx: Tx, board: Board, worker: Worker, asked: ClockIn) -> Spelled:
    return {**presence_of(endpoints.clock_in(tx, board, worker, asked.for_seconds), tx.now())}


def _clock_out(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    return {**presence_of(endpoints.clock_out(tx, board, worker), tx.now())}


def _get_default_lease(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    return {**lease_setting(endpoints.get_default_lease(tx, board, worker))}


def _set_default_lease(tx: Tx, board: Board, worker: Worker, asked: SetDefaultLease) -> Spelled:
    return {**lease_setting(endpoints.set_default_lease(tx, board, worker, asked.default_lease_ttl_seconds))}


_ALL: Final = (
    Verb("get_default_lease", Nothing, LeaseSetting, _get_default_lease, writes=False),
    Verb("set_default_lease", SetDefaultLease, LeaseSetting, _set_default_lease),
    Verb("whoami", Nothing, Identity, _whoami, writes=False),
    Verb("clock_in", ClockIn, Presence, _clock_in),
    Verb("clock_out", Nothing, Presence, _clock_out),
    Verb("presence", Nothing, Presence, _presence, writes=False),
)
OWN_VERBS: Final[Mapping[str, Verb]] = {verb.name: verb for verb in _ALL}
