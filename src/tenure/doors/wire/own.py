"""The verbs by which an endpoint sees itself and its own few settings: who it is, its lease, presence and webhooks.

None takes an endpoint: what a credential may touch is its own alone (B31). They exist on the door for agents only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, PlainValidator, WithJsonSchema
from typing_extensions import TypedDict

from tenure.board import endpoints, webhooks
from tenure.board.access import Endpoint, Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.doors.wire import owned
from tenure.doors.wire.arguments import Arguments, Id, Queue
from tenure.doors.wire.refusals import check
from tenure.doors.wire.spelling import at
from tenure.doors.wire.verb import Spelled, Verb
from tenure.rules import endpoints as rules
from tenure.rules import presence
from tenure.rules.bounds import LEASE_CAP_SECONDS, LEASE_FLOOR_SECONDS, NAME_CHARS


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


class CreateWebhook(Arguments):
    name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS)]
    queue: Annotated[Queue | None, Field(description="Where its todos go; default: the first queue.")] = None


class OfWebhook(Arguments):
    webhook_id: Annotated[Id, Field(description="The id of the webhook, such as wh_01….")]


class LeaseSetting(TypedDict):
    """The default lease: as set (null: the server's), what holds, whose it is, and the bounds of what may be set."""

    default_lease_ttl_seconds: int | None
    effective_lease_ttl_seconds: int
    effective_lease_ttl_source: str
    minimum: int
    maximum: int


def lease_setting(one: endpoints.LeaseSetting) -> LeaseSetting:
    return {
        "default_lease_ttl_seconds": one.default_lease_ttl_seconds,
        "effective_lease_ttl_seconds": one.effective.seconds,
        "effective_lease_ttl_source": one.effective.source,
        "minimum": one.minimum,
        "maximum": one.maximum,
    }


class Present(TypedDict):
    """Whether the endpoint is woken by new todos, and the shift that says so where nothing overrides it."""

    presence: owned.Presence
    shift: str | None
    server_time: str


def _present(endpoint: Endpoint, now: int) -> Spelled:
    told: Present = {"presence": owned.presence_of(endpoint, now), "shift": endpoint.shift, "server_time": at(now)}
    return {**told}


class Identity(TypedDict):
    """Who the caller is on this board."""

    endpoint: owned.Endpoint
    server_time: str


def _whoami(tx: Tx, _board: Board, worker: Worker, _: Nothing) -> Spelled:
    now = tx.now()
    told: Identity = {"endpoint": owned.endpoint(worker.endpoint, now), "server_time": at(now)}
    return {**told}


def _presence(tx: Tx, _board: Board, worker: Worker, _: Nothing) -> Spelled:
    return _present(worker.endpoint, tx.now())


def _clock_in(tx: Tx, board: Board, worker: Worker, asked: ClockIn) -> Spelled:
    return _present(endpoints.clock_in(tx, board, worker, asked.for_seconds), tx.now())


def _clock_out(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    return _present(endpoints.clock_out(tx, board, worker), tx.now())


def _get_default_lease(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    return {**lease_setting(endpoints.get_default_lease(tx, board, worker))}


def _set_default_lease(tx: Tx, board: Board, worker: Worker, asked: SetDefaultLease) -> Spelled:
    return {**lease_setting(endpoints.set_default_lease(tx, board, worker, asked.default_lease_ttl_seconds))}


def _new_webhook(board: Board, made: webhooks.Made) -> Spelled:
    hook = owned.webhook(made.webhook, board.settings.public_url)
    told: owned.NewWebhook = {"webhook": hook, "secret": made.secret.reveal()}
    return {**told}


def _create_webhook(tx: Tx, board: Board, worker: Worker, asked: CreateWebhook) -> Spelled:
    return _new_webhook(board, webhooks.create(tx, board, worker, name=asked.name, queue=asked.queue))


def _list_webhooks(tx: Tx, board: Board, worker: Worker, _: Nothing) -> Spelled:
    found = webhooks.list_all(tx, board, worker)
    told: owned.Webhooks = {"webhooks": [owned.webhook(one, board.settings.public_url) for one in found]}
    return {**told}


def _rotate_webhook(tx: Tx, board: Board, worker: Worker, asked: OfWebhook) -> Spelled:
    return _new_webhook(board, webhooks.rotate(tx, board, worker, asked.webhook_id))


class Deleted(TypedDict):
    """What is no more."""

    deleted: str


def _delete_webhook(tx: Tx, board: Board, worker: Worker, asked: OfWebhook) -> Spelled:
    webhooks.delete(tx, board, worker, asked.webhook_id)
    told: Deleted = {"deleted": asked.webhook_id}
    return {**told}


_ALL: Final = (
    Verb("get_default_lease", Nothing, LeaseSetting, _get_default_lease, writes=False),
    Verb("set_default_lease", SetDefaultLease, LeaseSetting, _set_default_lease),
    Verb("create_webhook", CreateWebhook, owned.NewWebhook, _create_webhook),
    Verb("list_webhooks", Nothing, owned.Webhooks, _list_webhooks, writes=False),
    Verb("rotate_webhook", OfWebhook, owned.NewWebhook, _rotate_webhook),
    Verb("delete_webhook", OfWebhook, Deleted, _delete_webhook),
    Verb("whoami", Nothing, Identity, _whoami, writes=False),
    Verb("clock_in", ClockIn, Present, _clock_in),
    Verb("clock_out", Nothing, Present, _clock_out),
    Verb("presence", Nothing, Present, _presence, writes=False),
)
OWN_VERBS: Final[Mapping[str, Verb]] = {verb.name: verb for verb in _ALL}
