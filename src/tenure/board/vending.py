"""How endpoints begin and end: made, given credentials, revoked, expired. For `endpoints`, `friends` and the reaper."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa

from tenure.board import agents, audit, ids, tables, todos
from tenure.board.access import ENDPOINT, Endpoint, Human, endpoint_from, endpoint_of
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.secrets import Secret, digest, draw
from tenure.rules import endpoints as rules
from tenure.rules.instant import iso
from tenure.rules.refusal import invalid

_ENDINGS: Final = "23456789bcdfghjkmnpqrstvwxz"  # no vowels: no words by chance


def make(
    tx: Tx,
    board: Board,
    human: Human,
    name: str,
    agent: str,
    scope: rules.Scope,
    default_lease: object = None,
    expires: int | None = None,
    origin: Literal["own", "friend"] = "own",
) -> Endpoint:
    """A new endpoint, as yet without a credential."""
    label = granted(rules.label(name, "name"))
    lease = granted(rules.default_lease(default_lease))
    of_agent = agents.named(tx, board, human, agent)
    now = tx.now()
    granted(rules.expiry(expires, now))
    values: dict[str, Any] = {
        "name": label,
        "human": human.id,
        "queues": json.dumps(scope.queues),
        "verbs": json.dumps(scope.verbs),
        "targets": json.dumps(_slugs(tx, human, scope.targets)),
        "webhook_ceiling": scope.webhook_ceiling,
        "state": "active",
        "origin": origin,
        "default_lease_ttl_seconds": lease,
        "created": now,
        "expires": expires,
        "agent": of_agent.id,
    }
    endpoint_id = str(uuid.uuid4())
    while not tx.insert_new(tables.endpoints, id=endpoint_id, slug=_slug(label), **values):
        pass  # the slug was taken
    until = f"until {iso(expires)}" if expires is not None else "until revoked"
    endpoint = endpoint_of(tx, human, endpoint_id)
    told = f"endpoint {endpoint.slug} vended, {until}: {', '.join(scope.verbs)} on {', '.join(scope.queues)}"
    audit.write(tx, human.id, human, "vend", ("endpoint", endpoint_id), told, now)
    tx.notify("board", human.id)
    return endpoint


def mint(tx: Tx, endpoint: Endpoint, now: int) -> Secret:
    """A new credential for the endpoint."""
    credential = draw("endpoint")
    clear = credential.reveal()
    tx.execute(
        sa.insert(tables.credentials).values(
            id=ids.new("cr", now), endpoint=endpoint.id, hash=digest(clear), hint=clear[-4:], created=now
        )
    )
    return credential


def end_credentials(tx: Tx, endpoint: Endpoint, now: int, overlap_ms: int = 0) -> None:
    """The newest credential ends after the overlap, and any before it now."""
    table = tables.credentials
    mine = table.c.endpoint == endpoint.id
    tx.execute(sa.update(table).where(mine, table.c.expires > now).values(expires=now))
    tx.execute(sa.update(table).where(mine, table.c.expires.is_(None)).values(expires=now + overlap_ms))
    tx.notify("ended", endpoint.id)  # whoever came in by one that has ended must go


def end(
    tx: Tx,
    board: Board,
    actor: Human | None,
    endpoint: Endpoint,
    how: Literal["revoked", "expired"],
    now: int,
) -> None:
    """End an endpoint whose row is locked, and all that hangs on it."""
    table = tables.endpoints
    values = {"state": how, "ended": now, "revision": table.c.revision + 1}
    tx.execute(sa.update(table).where(table.c.id == endpoint.id).values(values))
    todos.end_endpoint(tx, board, endpoint, how, now)
    friendships = tables.friendships
    tx.execute(
        sa.update(friendships)
        .where(friendships.c.endpoint == endpoint.id, friendships.c.state == "approved")
        .values(state="ended", ended=now, collect_until=None)
    )
    action = "revoke" if how == "revoked" else "expire"
    audit.write(tx, endpoint.human, actor, action, ("endpoint", endpoint.id), f"endpoint {endpoint.slug} {how}", now)
    tx.notify("ended", endpoint.id)
    tx.notify("board", endpoint.human)


def expire_due(tx: Tx, board: Board, limit: int = 20) -> int:
    """End endpoints whose time has come; how many. The rest is left for the next call, and for other servers."""
    table, now = tables.endpoints, tx.now()
    due = sa.select(*ENDPOINT).where(table.c.state == "active", table.c.expires <= now).limit(limit)
    rows = tx.all(tx.locked(due, table, skip=True))
    for row in rows:
        end(tx, board, None, endpoint_from(row, now), "expired", now)
    return len(rows)


def _slug(name: str) -> str:
    return rules.slug(name, "".join(secrets.choice(_ENDINGS) for _ in range(4)))


def _slugs(tx: Tx, human: Human, targets: Sequence[str]) -> list[str]:
    """The slugs of the human's endpoints that these refs name."""
    found = []
    for ref in targets:
        try:
            found.append(endpoint_of(tx, human, ref).slug)
        except Refused:
            raise Refused(invalid("targets", f"names no endpoint of yours: {ref[:80]!r}.")) from None
    return list(dict.fromkeys(found))
