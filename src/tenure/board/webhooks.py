"""Inbound webhooks: each delivery that is rightly signed makes one todo in a fixed queue of an endpoint (B38a).

Signed after Standard Webhooks. The secret is made of the server's own and of the webhook's generation: it is shown
once, stands nowhere, and a rotation makes the next one. The endpoint manages its webhooks by the same use cases.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from standardwebhooks import Webhook as Signing

from tenure.board import audit, ids, tables, todos
from tenure.board.access import (
    ENDPOINT,
    UNAUTHENTICATED,
    Endpoint,
    Human,
    Worker,
    endpoint_from,
    endpoint_of,
    storable,
    writable,
)
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.endpoints import locked_own, to_edit
from tenure.board.refused import Refused, granted
from tenure.board.secrets import Ring, Secret, digest
from tenure.board.shapes import NewTodo, Source
from tenure.board.telling import verb
from tenure.rules import endpoints as rules
from tenure.rules import todo_content
from tenure.rules.bounds import JSON_DEPTH, KEY_CHARS, TITLE_CHARS
from tenure.rules.refusal import MISSING, conflict, invalid

VERB: Final = "webhook"


class Webhook(NamedTuple):
    """What can be told of a webhook; its deliveries go to `POST /hooks/{id}`."""

    id: str
    name: str
    queue: str
    created: int
    seen: int | None


class Made(NamedTuple):
    """A webhook and its signing secret, on its one way out."""

    webhook: Webhook
    secret: Secret


class Delivered(NamedTuple):
    """The todo of a delivery; `existing`: this message had made it before."""

    todo_id: str
    existing: bool


# --- managing: a human by `ref`, an endpoint its own ------------------------------------------------------


def create(
    tx: Tx, board: Board, caller: Human | Worker, *, name: str, queue: str | None = None, ref: str | None = None
) -> Made:
    """A new webhook of the endpoint. queue: one of the endpoint's, default its first."""
    endpoint, now = _to_edit(tx, caller, ref, "create_webhook")
    label = granted(rules.label(name, "name"))
    if queue is not None and queue not in endpoint.queues:
        raise Refused(invalid("queue", f"must be one of the endpoint's: {', '.join(endpoint.queues)}."))
    if len(_all(tx, endpoint)) >= endpoint.webhook_ceiling:
        ceiling = endpoint.webhook_ceiling
        said = f"may have {ceiling} webhooks. Delete one first." if ceiling else "may have no webhooks: vend another."
        raise Refused(conflict(f"This endpoint {said}", "webhook_ceiling", webhook_ceiling=ceiling))
    webhook = Webhook(ids.new("wh", now), label, queue or endpoint.queues[0], now, None)
    key = board.ring.newest
    tx.execute(sa.insert(tables.webhooks).values(**webhook._asdict(), endpoint=endpoint.id, generation=1, secret=key))
    _audit(tx, endpoint, caller, "add", webhook, f"was made; its todos go to {webhook.queue}", now)
    return Made(webhook, _secret(board.ring, webhook.id, 1, key))


def list_all(tx: Tx, board: Board, caller: Human | Worker, ref: str | None = None) -> list[Webhook]:
    """The webhooks of the endpoint, oldest first."""
    if isinstance(caller, Human):
        return _all(tx, endpoint_of(tx, caller, ref or ""))
    verb(caller, "list_webhooks")
    return _all(tx, caller.endpoint)


def rotate(tx: Tx, board: Board, caller: Human | Worker, webhook_id: str, ref: str | None = None) -> Made:
    """Another secret; what is signed with the one before is refused from now on."""
    endpoint, now = _to_edit(tx, caller, ref, "rotate_webhook")
    webhook = _one(tx, endpoint, webhook_id)
    table, key = tables.webhooks, board.ring.newest
    renew = sa.update(table).where(table.c.id == webhook.id).values(generation=table.c.generation + 1, secret=key)
    generation = tx.execute(renew.returning(table.c.generation)).scalar_one()
    _audit(tx, endpoint, caller, "rotate", webhook, "has another secret", now)
    return Made(webhook, _secret(board.ring, webhook.id, generation, key))


def delete(tx: Tx, board: Board, caller: Human | Worker, webhook_id: str, ref: str | None = None) -> None:
    """End a webhook: its deliveries are refused from now on."""
    endpoint, now = _to_edit(tx, caller, ref, "delete_webhook")
    webhook = _one(tx, endpoint, webhook_id)
    tx.execute(sa.update(tables.webhooks).where(tables.webhooks.c.id == webhook.id).values(deleted=now))
    _audit(tx, endpoint, caller, "remove", webhook, "was deleted", now)


# --- deliveries -------------------------------------------------------------------------------------------


def deliver(tx: Tx, board: Board, webhook_id: str, headers: Mapping[str, str], body: bytes) -> Delivered:
    """Make the todo of a delivery, once. Raises Refused: the one 401 for all that is not rightly signed."""
    table = tables.webhooks
    find = sa.select(table).where(table.c.id == webhook_id, table.c.deleted.is_(None))
    hook = tx.one(find) if storable(webhook_id) else None
    if hook is None or not _signed(board.ring, hook, headers, body):
        raise Refused(UNAUTHENTICATED)
    endpoint = _endpoint_of(tx, hook.endpoint)
    now = tx.now()
    writable(endpoint, now)
    message = {name.lower(): value for name, value in headers.items()}["webhook-id"]
    if not message.isprintable() or len(message) > KEY_CHARS:
        raise Refused(invalid("webhook-id", f"must be one line of up to {KEY_CHARS} characters."))
    mine = {"owner": hook.id, "verb": VERB, "request_id": message}
    if not tx.insert_new(tables.requests, **mine, arguments=digest(body.decode()), answer="", created=now):
        requests = tables.requests
        answer = tx.execute(sa.select(requests.c.answer).filter_by(**mine)).scalar_one()
        return Delivered(answer, True)
    todo_id = todos.create(tx, board, Source("webhook", hook.id), endpoint, _todo(hook, body.decode())).todo.summary.id
    tx.execute(sa.update(tables.requests).filter_by(**mine).values(answer=todo_id))
    tx.execute(sa.update(table).where(table.c.id == hook.id).values(seen=now))
    return Delivered(todo_id, False)


def _signed(ring: Ring, hook: Any, headers: Mapping[str, str], body: bytes) -> bool:
    try:
        secret = _secret(ring, hook.id, hook.generation, hook.secret).reveal()
        Signing(secret).verify(body, dict(headers), json_parse=False)
    except Exception:  # noqa: BLE001 - a header that can't be read is no signature, whatever it breaks on
        return False
    return True


def _todo(hook: Any, text: str) -> NewTodo:
    """JSON that a payload can hold becomes it, and its `type` stands in the title; other text becomes the body."""
    try:
        payload = json.loads(text, parse_constant=_no_number, object_pairs_hook=_object)
        _check_depth(payload)
        granted(todo_content.json_text(payload, "payload"))
    except (ValueError, RecursionError, Refused):
        return NewTodo(title=hook.name, queue=hook.queue, body=text)
    kind = payload.get("type") if isinstance(payload, dict) else None
    title = hook.name
    if isinstance(kind, str) and kind.strip().isprintable() and kind.strip():
        title = f"{hook.name}: {kind.strip()}"[:TITLE_CHARS]
    return NewTodo(title=title, queue=hook.queue, payload=payload)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice: two readers may read two things")
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(JSON_DEPTH):
        inside = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [child for children in inside for child in children]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError("nested too deep for some readers, such as our own")


def _endpoint_of(tx: Tx, endpoint_id: str) -> Endpoint:
    """The endpoint of a webhook whose signature was right: not to be ended before the commit."""
    table = tables.endpoints
    statement = sa.select(*ENDPOINT).where(table.c.id == endpoint_id)
    row = tx.execute(tx.locked(statement, table, how="keep")).one()
    return endpoint_from(row, tx.now())


# --- common -----------------------------------------------------------------------------------------------


def _secret(ring: Ring, webhook_id: str, generation: int, key: str) -> Secret:
    raw = ring.derive("webhook", f"{webhook_id}:{generation}", key)
    return Secret("whsec_" + base64.b64encode(raw).decode("ascii"))


def _to_edit(tx: Tx, caller: Human | Worker, ref: str | None, name: str) -> tuple[Endpoint, int]:
    """The endpoint, locked and not ended, and the time: a human's by `ref`, a worker's own if it has the verb."""
    if isinstance(caller, Worker):
        verb(caller, name)
        return locked_own(tx, caller)
    return to_edit(tx, caller, ref or "")


def _all(tx: Tx, endpoint: Endpoint) -> list[Webhook]:
    table = tables.webhooks
    statement = sa.select(*(table.c[name] for name in Webhook._fields)).where(
        table.c.endpoint == endpoint.id, table.c.deleted.is_(None)
    )
    return [Webhook._make(row) for row in tx.all(statement.order_by(table.c.id))]


def _one(tx: Tx, endpoint: Endpoint, webhook_id: str) -> Webhook:
    for webhook in _all(tx, endpoint):
        if webhook.id == webhook_id:
            return webhook
    raise Refused(MISSING)


def _audit(
    tx: Tx, endpoint: Endpoint, caller: Human | Worker, action: str, webhook: Webhook, told: str, now: int
) -> None:
    summary = f"webhook {webhook.name} of {endpoint.slug} {told}"
    audit.write(tx, endpoint.human, caller, action, ("webhook", webhook.id), summary, now)
