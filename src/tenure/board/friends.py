"""Friends: one human lets another work on some queues, by an endpoint vended on the approver's agent (B39).

A request goes to a friend code, and one to a code that nobody has is kept and shown just the same, so that codes can't
be tried out. The credential is minted when the requester collects it, and is never seen by the approver.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables, vending
from tenure.board.access import ENDPOINT, Endpoint, Human, endpoint_from, storable, writable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.secrets import Secret
from tenure.rules import endpoints as rules
from tenure.rules.bounds import REASON_CHARS
from tenure.rules.instant import DAY
from tenure.rules.refusal import MISSING, conflict, invalid

Side = Literal["requester", "approver"]
COLLECT_MS: Final = 7 * DAY
# Requests of one human that wait at a time: codes are not to be tried out, nor people to be flooded.
OPEN_REQUESTS: Final = 20


class Friendship(NamedTuple):
    """A friendship as one side sees it. `other`: who it is, to the requester only once it was approved."""

    id: str
    side: Side
    other: str | None
    queues: tuple[str, ...]
    verbs: tuple[str, ...]
    reason: str
    state: Literal["requested", "approved", "declined", "ended"]
    slug: str | None
    created: int
    decided: int | None
    collect_until: int | None
    ended: int | None


class Collected(NamedTuple):
    """What the requester takes away: where the endpoint is, and its credential, on its one way out."""

    friendship: Friendship
    credential: Secret


def request(
    tx: Tx, board: Board, human: Human, code: str, *, queues: Sequence[str], verbs: Sequence[str], reason: str = ""
) -> Friendship:
    """Ask whoever shows this friend code. The answer says nothing about whether anybody does."""
    refused = rules.friendly(verbs)
    if refused is not None:
        raise Refused(refused)
    scope = granted(rules.scope(queues, verbs, (), 0))
    if not scope.verbs:
        raise Refused(invalid("verbs", f"must name one or more of {', '.join(rules.GRANTABLE)}."))
    if len(reason) > REASON_CHARS or "\0" in reason or not _encodable(reason):
        raise Refused(invalid("reason", f"may have {REASON_CHARS} characters at most, and must be text."))
    table, now = tables.friendships, tx.now()
    waiting = sa.select(sa.func.count()).where(table.c.requester == human.id, table.c.state == "requested")
    if tx.execute(waiting).scalar_one() >= OPEN_REQUESTS:
        raise Refused(conflict(f"{OPEN_REQUESTS} of your requests wait for an answer. End one first.", "requests_wait"))
    approver = _by_code(tx, code)
    if approver == human.id:
        raise Refused(conflict("That is your own friend code; give it to a friend.", "own_code"))
    values = {"queues": json.dumps(scope.queues), "verbs": json.dumps(scope.verbs), "reason": reason}
    made = ids.new("fr", now)
    tx.execute(
        sa.insert(table).values(
            id=made, requester=human.id, approver=approver, state="requested", created=now, **values
        )
    )
    audit.write(tx, human.id, human, "request", ("friendship", made), "asked for friendship", now)
    if approver is not None:
        audit.write(tx, approver, human, "request", ("friendship", made), f"{human.name} asks for friendship", now)
        tx.notify("board", approver)
    return get(tx, board, human, made)


def get(tx: Tx, board: Board, human: Human, friendship_id: str) -> Friendship:
    """A friendship that the human asked for or was asked for. Raises Refused(MISSING)."""
    find = _seen_by(human).where(tables.friendships.c.id == friendship_id)
    row = tx.one(find) if storable(friendship_id) else None
    if row is None:
        raise Refused(MISSING)
    return _friendship(row, human)


def list_all(tx: Tx, board: Board, human: Human) -> list[Friendship]:
    """All that the human asked for or was asked for, newest first."""
    statement = _seen_by(human).order_by(tables.friendships.c.id.desc())
    return [_friendship(row, human) for row in tx.all(statement)]


def approve(
    tx: Tx,
    board: Board,
    human: Human,
    friendship_id: str,
    *,
    agent: str,
    name: str | None = None,
    queues: Sequence[str] | None = None,
    verbs: Sequence[str] | None = None,
    default_lease: object = None,
    expires: int | None = None,
) -> Friendship:
    """Vend the endpoint on the approver's agent; queues and verbs may be fewer than were asked for."""
    asked = _locked(tx, human, friendship_id, "approver", "requested")
    scope = rules.Scope(
        granted(rules.narrowed(asked.queues, queues, "queues")),
        granted(rules.narrowed(asked.verbs, verbs, "verbs")),
        (),
        0,
    )
    if not scope.queues or not scope.verbs:
        raise Refused(invalid("verbs" if scope.queues else "queues", "must keep one at least; or decline the request."))
    label = name or asked.other or "friend"
    endpoint = vending.make(tx, board, human, label, agent, scope, default_lease, expires, "friend")
    now = tx.now()
    _store(tx, asked, state="approved", endpoint=endpoint.id, decided=now, collect_until=now + COLLECT_MS,
           queues=json.dumps(scope.queues), verbs=json.dumps(scope.verbs))  # fmt: skip
    return _told(tx, board, human, asked, "approve", "approved the friendship", now)


def decline(tx: Tx, board: Board, human: Human, friendship_id: str) -> Friendship:
    """Say no to a request."""
    asked, now = _locked(tx, human, friendship_id, "approver", "requested"), tx.now()
    _store(tx, asked, state="declined", decided=now, ended=now)
    return _told(tx, board, human, asked, "decline", "declined the friendship", now)


def collect(tx: Tx, board: Board, human: Human, friendship_id: str) -> Collected:
    """Mint the credential for the requester, once; an earlier one, which was lost, ends."""
    seen = get(tx, board, human, friendship_id)
    _in_state(seen, "requester", "approved")
    endpoint = _endpoint(tx, human, friendship_id, end=False)
    found, now = _locked(tx, human, friendship_id, "requester", "approved"), tx.now()
    writable(endpoint, now)
    if found.collect_until is None:
        raise Refused(conflict("The credential was collected. If it is lost, ask for one more collect.", "collected"))
    if now >= found.collect_until:
        raise Refused(conflict("The time to collect, 7 days, is over. Ask for one more collect.", "collect_over"))
    vending.end_credentials(tx, endpoint, now)
    credential = vending.mint(tx, endpoint, now)
    _store(tx, found, collect_until=None)
    return Collected(_told(tx, board, human, found, "collect", "collected the credential", now), credential)


def allow_collect(tx: Tx, board: Board, human: Human, friendship_id: str) -> Friendship:
    """Let the requester collect once more, within 7 days (the approver)."""
    found, now = _locked(tx, human, friendship_id, "approver", "approved"), tx.now()
    _store(tx, found, collect_until=now + COLLECT_MS)
    return _told(tx, board, human, found, "allow_collect", "allowed one more collect", now)


def end(tx: Tx, board: Board, human: Human, friendship_id: str) -> Friendship:
    """End it, from either side; its endpoint is revoked with it (B39)."""
    seen = get(tx, board, human, friendship_id)
    _in_state(seen, seen.side, "requested", "approved")
    if seen.state == "approved":
        endpoint, now = _endpoint(tx, human, friendship_id, end=True), tx.now()
        if rules.state_at(endpoint.state, endpoint.expires, now) == "active":
            vending.end(tx, board, human, endpoint, "revoked", now)
            return _told(tx, board, human, seen, "end", "ended the friendship", now)
    # In the state that was seen: if it was approved meanwhile, there is an endpoint to be ended with it.
    found, now = _locked(tx, human, friendship_id, seen.side, seen.state), tx.now()
    _store(tx, found, state="ended", ended=now, collect_until=None)
    return _told(tx, board, human, found, "end", "ended the friendship", now)


# --- common -----------------------------------------------------------------------------------------------


def _seen_by(human: Human) -> sa.Select[Any]:
    table, requester, approver = tables.friendships, tables.humans.alias(), tables.humans.alias()
    return (
        sa.select(
            table,
            requester.c.name.label("requester_name"),
            approver.c.name.label("approver_name"),
            tables.endpoints.c.slug,
        )
        .select_from(table)
        .join(requester, requester.c.id == table.c.requester)
        .outerjoin(approver, approver.c.id == table.c.approver)
        .outerjoin(tables.endpoints, tables.endpoints.c.id == table.c.endpoint)
        .where(sa.or_(table.c.requester == human.id, table.c.approver == human.id))
    )


def _friendship(row: sa.Row[Any], human: Human) -> Friendship:
    side: Side = "requester" if row.requester == human.id else "approver"
    known = row.approver_name if row.endpoint is not None else None
    return Friendship(
        id=row.id,
        side=side,
        other=row.requester_name if side == "approver" else known,
        queues=tuple(json.loads(row.queues)),
        verbs=tuple(json.loads(row.verbs)),
        reason=row.reason,
        state=row.state,
        slug=row.slug,
        created=row.created,
        decided=row.decided,
        collect_until=row.collect_until,
        ended=row.ended,
    )


def _locked(tx: Tx, human: Human, friendship_id: str, side: Side, *states: str) -> Friendship:
    """The friendship, locked, if the human stands on this side of it. Raises Refused."""
    table = tables.friendships
    statement = _seen_by(human).where(table.c.id == friendship_id)
    row = tx.one(tx.locked(statement, table)) if storable(friendship_id) else None
    if row is None:
        raise Refused(MISSING)
    found = _friendship(row, human)
    _in_state(found, side, *states)
    return found


def _in_state(friendship: Friendship, side: Side, *states: str) -> None:
    if friendship.side != side:
        raise Refused(MISSING)
    if friendship.state not in states:
        raise Refused(conflict(f"This friendship is {friendship.state}.", state=friendship.state))


def _endpoint(tx: Tx, human: Human, friendship_id: str, *, end: bool) -> Endpoint:
    """The endpoint of a friendship of the human's, locked; it may be the other's. Raises Refused."""
    table, friendships = tables.endpoints, tables.friendships
    statement = (
        sa.select(*ENDPOINT)
        .join(friendships, friendships.c.endpoint == table.c.id)
        .where(
            friendships.c.id == friendship_id,
            sa.or_(friendships.c.requester == human.id, friendships.c.approver == human.id),
        )
    )
    row = tx.one(tx.locked(statement, table, how="end" if end else "edit"))
    if row is None:
        raise Refused(MISSING)
    return endpoint_from(row, tx.now())


def _store(tx: Tx, friendship: Friendship, **values: object) -> None:
    table = tables.friendships
    tx.execute(sa.update(table).where(table.c.id == friendship.id).values(values))


def _told(tx: Tx, board: Board, human: Human, friendship: Friendship, action: str, what: str, now: int) -> Friendship:
    """Write the step into the audit of both sides, and give the friendship as it is now."""
    table = tables.friendships
    sides = tx.execute(sa.select(table.c.requester, table.c.approver).where(table.c.id == friendship.id)).one()
    for one in sides:
        if one is not None:
            audit.write(tx, one, human, action, ("friendship", friendship.id), f"{human.name} {what}", now)
            tx.notify("board", one)
    return get(tx, board, human, friendship.id)


def _by_code(tx: Tx, code: str) -> str | None:
    table = tables.humans
    row = tx.one(sa.select(table.c.id).where(table.c.friend_code == code.strip().upper())) if storable(code) else None
    return None if row is None else str(row.id)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)
