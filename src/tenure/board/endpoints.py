"""Endpoints: vended, edited where they may be, rotated and ended. A human's, and an endpoint's own few settings.

Scope is fixed when an endpoint is vended; what can be edited in place is its default lease, presence, shift, display
name and revision of MCP, and nothing else (B22).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from tenure.board import audit, tables, vending
from tenure.board.access import ENDPOINT, Endpoint, Human, Worker, endpoint_from, endpoint_of, writable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.secrets import Secret
from tenure.board.telling import verb
from tenure.rules import bounds, presence
from tenure.rules import endpoints as rules
from tenure.rules.instant import iso, span_words
from tenure.rules.refusal import MISSING, Refusal, conflict, invalid

STALE: Final = Refusal("precondition_failed", "This was changed since it was read. Read it again, and decide again.")


class Vended(NamedTuple):
    """An endpoint and its new credential, on its one way out."""

    endpoint: Endpoint
    credential: Secret


class Credential(NamedTuple):
    """What can be told of a credential: the end of it, and until when it is valid (None: as long as the endpoint)."""

    id: str
    hint: str
    created: int
    seen: int | None
    expires: int | None


class LeaseSetting(NamedTuple):
    """An endpoint's default lease: what is stored, what holds and whose it is, and the bounds (B31)."""

    default_lease_ttl_seconds: int | None
    effective: rules.Effective
    minimum: int = bounds.LEASE_FLOOR_SECONDS
    maximum: int = bounds.LEASE_CAP_SECONDS


# --- a human's --------------------------------------------------------------------------------------------


def vend(
    tx: Tx,
    board: Board,
    human: Human,
    *,
    name: str,
    agent: str | None = None,
    queues: Sequence[str] = (),
    verbs: Sequence[str] = rules.DEFAULT_VERBS,
    targets: Sequence[str] = (),
    webhook_ceiling: int = bounds.WEBHOOKS_DEFAULT,
    default_lease: object = None,
    expires: int | None = None,
) -> Vended:
    """A new endpoint of the human, with a credential that is shown this once. `agent`: by name; default: as `name`."""
    scope = granted(rules.scope(queues, verbs, targets, webhook_ceiling))
    endpoint = vending.make(tx, board, human, name, agent or name, scope, default_lease, expires)
    return Vended(endpoint, vending.mint(tx, endpoint, tx.now()))


def get(tx: Tx, board: Board, human: Human, ref: str) -> Endpoint:
    """The human's endpoint, by slug or id. Raises Refused(MISSING)."""
    return endpoint_of(tx, human, ref)


def list_all(tx: Tx, board: Board, human: Human) -> list[Endpoint]:
    """The human's endpoints, newest first; ended ones too."""
    table = tables.endpoints
    statement = sa.select(*ENDPOINT).where(table.c.human == human.id).order_by(table.c.created.desc(), table.c.id)
    now = tx.now()
    return [endpoint_from(row, now) for row in tx.all(statement)]


def credentials(tx: Tx, board: Board, human: Human, ref: str) -> list[Credential]:
    """The credentials of an endpoint that are valid, the newest first."""
    endpoint, table = endpoint_of(tx, human, ref), tables.credentials
    statement = sa.select(*(table.c[name] for name in Credential._fields)).where(table.c.endpoint == endpoint.id)
    now = tx.now()
    rows = [Credential._make(row) for row in tx.all(statement.order_by(table.c.id.desc()))]
    return [row for row in rows if row.expires is None or now < row.expires]


def edit_lease(
    tx: Tx, board: Board, human: Human, ref: str, value: object, revisions: Collection[int] | None = None
) -> Endpoint:
    """Set or, with None, reset the default lease. Refused in this order (B42): reach, state, `revisions`, value.

    revisions: those that the caller knows (If-Match); None: any will do.
    """
    expect(tx, human, ref, revisions)
    endpoint, now = to_edit(tx, human, ref)
    return _set_lease(tx, human, endpoint, value, now)


def set_display_name(tx: Tx, board: Board, human: Human, ref: str, name: str) -> Endpoint:
    """Another name for people; the slug stays."""
    endpoint, now = to_edit(tx, human, ref)
    label = granted(rules.label(name, "name"))
    return _edit(tx, human, endpoint, now, f"is called {label}", name=label)


def set_era(tx: Tx, board: Board, human: Human, ref: str, era: rules.Era | None) -> Endpoint:
    """Which generations of MCP the endpoint speaks; None: as the server."""
    endpoint, now = to_edit(tx, human, ref)
    if era not in (None, *rules.ERAS):
        raise Refused(invalid("mcp_era", f"must be one of {', '.join(rules.ERAS)}, or null for the server's."))
    return _edit(tx, human, endpoint, now, f"speaks MCP as {era or 'the server does'}", tell=True, mcp_era=era)


def set_presence(
    tx: Tx, board: Board, human: Human, ref: str, value: presence.Value | None, seconds: int | None = None
) -> Endpoint:
    """Override the shift, for so long or until its next boundary; None ends the override (B36)."""
    endpoint, now = to_edit(tx, human, ref)
    if value not in (None, "in", "out"):
        raise Refused(invalid("presence", "must be in, out, or null to end what overrides the shift."))
    if seconds is not None and (type(seconds) is not int or not 1 <= seconds <= bounds.PRESENCE_LIMIT_SECONDS):
        raise Refused(invalid("for", "must be a whole number of seconds, 1 or more, of ten years at most."))
    asked = None if seconds is None else seconds * 1000
    until = presence.override_until(asked, endpoint.shift, now) if value else None
    told = f"is {value} {_until(until)}" if value else "is in and out by its shift"
    return _edit(tx, human, endpoint, now, told, override=value, override_until=until)


def set_shift(tx: Tx, board: Board, human: Human, ref: str, shift: str | None) -> Endpoint:
    """Give the endpoint a weekly shift, or none. It is the newest word: an override ends with it (B37)."""
    endpoint, now = to_edit(tx, human, ref)
    if shift is not None:
        shift = " ".join(shift.split())
        granted(presence.read_shift(shift))
    told = f"has the shift {shift}" if shift else "has no shift"
    return _edit(tx, human, endpoint, now, told, shift=shift, override=None, override_until=None)


def rotate(tx: Tx, board: Board, human: Human, ref: str, overlap_seconds: int = 0) -> Vended:
    """A new credential; the one before stays valid for the overlap, and no third is (B21)."""
    endpoint, now = to_edit(tx, human, ref)
    if type(overlap_seconds) is not int or not 0 <= overlap_seconds <= rules.OVERLAP_LIMIT_SECONDS:
        limit = rules.OVERLAP_LIMIT_SECONDS
        raise Refused(invalid("overlap_seconds", f"must be a whole number of seconds from 0 to {limit} (24 hours)."))
    if endpoint.origin == "friend":
        raise Refused(
            conflict("Its credential is your friend's alone. Allow one more collect instead.", "friend_endpoint")
        )
    vending.end_credentials(tx, endpoint, now, overlap_seconds * 1000)
    credential = vending.mint(tx, endpoint, now)
    told = f"credential of {endpoint.slug} rotated; the one before is valid for another {overlap_seconds} s"
    audit.write(tx, human.id, human, "rotate", ("endpoint", endpoint.id), told, now)
    return Vended(_edited(tx, endpoint), credential)


def revoke(tx: Tx, board: Board, human: Human, ref: str) -> Endpoint:
    """End the endpoint at once: its claims and todos with it (B25). A second time: 409 with its state."""
    endpoint = endpoint_of(tx, human, ref, end=True)
    now = tx.now()
    writable(endpoint, now)
    vending.end(tx, board, human, endpoint, "revoked", now)
    return endpoint._replace(state="revoked", ended=now, revision=endpoint.revision + 1)


# --- the endpoint's own -----------------------------------------------------------------------------------


def get_default_lease(tx: Tx, board: Board, worker: Worker) -> LeaseSetting:
    """The caller's own default lease."""
    verb(worker, "get_default_lease")
    default = worker.endpoint.default_lease_ttl_seconds
    return LeaseSetting(default, rules.effective(default))


def set_default_lease(tx: Tx, board: Board, worker: Worker, value: object) -> LeaseSetting:
    """Set the caller's own default lease; no other endpoint can be named (B31)."""
    verb(worker, "set_default_lease")
    endpoint, now = locked_own(tx, worker)
    edited = _set_lease(tx, worker, endpoint, value, now)
    return LeaseSetting(edited.default_lease_ttl_seconds, edited.effective)


def clock_in(tx: Tx, board: Board, worker: Worker, seconds: object = None) -> Endpoint:
    """Be in, for an hour or as long as asked, eight hours at most, until the shift's next boundary at most (B36)."""
    endpoint, now = locked_own(tx, worker)
    until = presence.override_until(granted(presence.clock_in_ms(seconds)), endpoint.shift, now)
    return _edit(tx, worker, endpoint, now, None, override="in", override_until=until)


def clock_out(tx: Tx, board: Board, worker: Worker) -> Endpoint:
    """Be out until the shift's next boundary, or until clocked in."""
    endpoint, now = locked_own(tx, worker)
    until = presence.override_until(None, endpoint.shift, now)
    return _edit(tx, worker, endpoint, now, None, override="out", override_until=until)


# --- common -----------------------------------------------------------------------------------------------


def expect(tx: Tx, human: Human, ref: str, revisions: Collection[int] | None) -> None:
    """Raises Refused unless the endpoint can be edited and is in one of these revisions; None: any will do."""
    if revisions is not None and to_edit(tx, human, ref)[0].revision not in revisions:
        raise Refused(STALE)


def to_edit(tx: Tx, human: Human, ref: str) -> tuple[Endpoint, int]:
    """The human's endpoint, locked and not ended, and the time. Raises Refused."""
    endpoint = endpoint_of(tx, human, ref, lock=True)
    now = tx.now()
    writable(endpoint, now)
    return endpoint, now


def locked_own(tx: Tx, worker: Worker) -> tuple[Endpoint, int]:
    """The worker's endpoint as it is now, locked; another call may have edited it since the credential was read."""
    table = tables.endpoints
    statement = sa.select(*ENDPOINT).where(table.c.id == worker.endpoint.id, table.c.human == worker.endpoint.human)
    row = tx.one(tx.locked(statement, table, how="edit"))
    if row is None:
        raise Refused(MISSING)
    now = tx.now()
    endpoint = endpoint_from(row, now)
    writable(endpoint, now)
    return endpoint, now


def _set_lease(tx: Tx, actor: Human | Worker, endpoint: Endpoint, value: object, now: int) -> Endpoint:
    lease = granted(rules.default_lease(value))
    seconds, whose = rules.effective(lease)
    told = f"has the default lease {span_words(seconds * 1000)}" + (" of the server" if whose == "server" else "")
    return _edit(tx, actor, endpoint, now, told, tell=True, default_lease_ttl_seconds=lease)


def _edit(
    tx: Tx, actor: Human | Worker, endpoint: Endpoint, now: int, told: str | None, *, tell: bool = False, **values: Any
) -> Endpoint:
    """Store the values; what is stored already changes nothing and tells nobody (B30).

    told: what the audit says, None for nothing; tell: what agents read of the endpoint is another text now.
    """
    changed = {name: value for name, value in values.items() if getattr(endpoint, name) != value}
    if not changed:
        return endpoint
    if "default_lease_ttl_seconds" in changed:
        changed["lease_revision"] = endpoint.lease_revision + 1
    if told is not None:
        summary = f"endpoint {endpoint.slug} {told}"
        audit.write(tx, endpoint.human, actor, "edit", ("endpoint", endpoint.id), summary, now)
    if tell:
        tx.notify("endpoint", endpoint.id)
    if changed.keys() & {"override", "override_until", "shift"}:
        tx.notify("todo", endpoint.id)  # who waits may have come in
    return _edited(tx, endpoint, **changed)


def _edited(tx: Tx, endpoint: Endpoint, **changed: Any) -> Endpoint:
    table = tables.endpoints
    revision = endpoint.revision + 1
    tx.execute(sa.update(table).where(table.c.id == endpoint.id).values(revision=revision, **changed))
    tx.notify("board", endpoint.human)
    return endpoint._replace(revision=revision, **changed)


def _until(time: int | None) -> str:
    return f"until {iso(time)}" if time is not None else "until that is changed"
