"""Who asks, and what of theirs they may reach. Another's is the same as none (B26).

Each way in is one statement that finds a secret by its hash and brings along whom it belongs to. There is no look-up
by id alone here or in any use case: the human who asks stands in the WHERE.
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa

from tenure.board import tables
from tenure.board.board import Board
from tenure.board.database import CLOCK, Tx
from tenure.board.refused import Refused
from tenure.board.secrets import Kind, digest, well_spelled
from tenure.rules import endpoints as rules
from tenure.rules import presence
from tenure.rules.instant import MINUTE
from tenure.rules.refusal import MISSING, Refusal

# One answer for all that lets nobody in, so that nothing can be learned from it (B27).
UNAUTHENTICATED: Final = Refusal(
    "unauthenticated", "This needs a valid sign-in, token or credential. Sign in again, or use one that is still valid."
)
# When something was last seen is written down at most this often: no write for each call. One that only reads has it
# written after its answer.
SEEN_MS: Final = MINUTE


class Human(NamedTuple):
    """A signed-in human, how they came in, and by which token or session; `csrf` is what forms of a session carry."""

    id: str
    name: str
    via: Literal["token", "session", "link"]
    via_id: str = ""
    csrf: str = ""


class Endpoint(NamedTuple):
    """A row of `endpoints`, with its lists decoded; `state` is what holds now."""

    id: str
    slug: str
    name: str
    human: str
    agent: str
    agent_name: str
    queues: tuple[str, ...]
    verbs: tuple[str, ...]
    targets: tuple[str, ...]
    webhook_ceiling: int
    state: rules.State
    origin: Literal["own", "friend"]
    default_lease_ttl_seconds: int | None
    mcp_era: rules.Era | None
    override: Literal["in", "out"] | None
    override_until: int | None
    shift: str | None
    revision: int
    lease_revision: int
    created: int
    expires: int | None
    ended: int | None
    seen: int | None

    @property
    def effective(self) -> rules.Effective:
        """The lease that holds when a call says nothing."""
        return rules.effective(self.default_lease_ttl_seconds)

    def presence(self, now: int) -> presence.Presence:
        """Whether it is in or out (B36)."""
        return presence.effective(self.override, self.override_until, self.shift, now)


class Worker(NamedTuple):
    """Whoever uses an endpoint's credential; `lasts_ms`: how long that is valid from now, None: without end."""

    endpoint: Endpoint
    credential_id: str
    lasts_ms: int | None = None

    @property
    def id(self) -> str:
        return self.endpoint.id


def human_by_token(tx: Tx, board: Board, token: str) -> Human:
    """The human whose token for REST and the command line this is. Raises Refused."""
    row, _ = _by_secret(tx, "human", token)
    if row.revoked is not None:
        raise Refused(UNAUTHENTICATED)
    return Human(row.id, row.name, "token", row.secret_id)


def human_by_session(tx: Tx, board: Board, cookie: str) -> Human:
    """The human who signed in with this session's cookie. Raises Refused."""
    row, _ = _by_secret(tx, "session", cookie)
    return Human(row.id, row.name, "session", row.secret_id, digest(f"csrf:{cookie}"))


def worker_by_credential(tx: Tx, board: Board, credential: str, slug: str | None = None) -> Worker:
    """The worker with this endpoint credential, which must belong to `slug` if one is given. Raises Refused (B27).

    In a transaction that writes, the endpoint can't be ended before the commit.
    """
    row, now = _by_secret(tx, "endpoint", credential)
    found = endpoint_from(row, now)
    if found.state != "active" or slug not in (None, found.slug):
        raise Refused(UNAUTHENTICATED)
    return Worker(found, row.secret_id, None if row.secret_expires is None else row.secret_expires - now)


def endpoint_of(tx: Tx, human: Human, ref: str, *, lock: bool = False, end: bool = False) -> Endpoint:
    """The human's endpoint by slug or id. Raises Refused(MISSING).

    lock: others may not change or end it until the commit; end: nor may its workers' calls go on meanwhile.
    """
    row = tx.one(_endpoint_of(tx.postgres, lock, end), {"ref": ref, "human": human.id}) if storable(ref) else None
    if row is None:
        raise Refused(MISSING)
    return endpoint_from(row, tx.now() if lock or end else tx.at(row.now))


def writable(endpoint: Endpoint, now: int) -> None:
    """Raises Refused if the endpoint has ended (B25)."""
    refusal = rules.writable(rules.state_at(endpoint.state, endpoint.expires, now))
    if refusal is not None:
        raise Refused(refusal)


def storable(text: str) -> bool:
    """Whether a database can be asked for this text at all: no NUL, no half of a surrogate pair."""
    return text.isprintable()


_CREDENTIALS: Final = tables.credentials.alias()  # of its own name: the statement may look for one of them
# What `endpoint_from` reads, in the order of the fields of `Endpoint`. An endpoint was last seen when any of its
# credentials was: workers write nothing into the row that humans edit.
_ELSEWHERE: Final = {
    "agent_name": sa.select(tables.agents.c.name).where(tables.agents.c.id == tables.endpoints.c.agent),
    "seen": sa.select(sa.func.max(_CREDENTIALS.c.seen)).where(_CREDENTIALS.c.endpoint == tables.endpoints.c.id),
}
ENDPOINT: Final = tuple(
    _ELSEWHERE[name].scalar_subquery().label(name) if name in _ELSEWHERE else tables.endpoints.c[name]
    for name in Endpoint._fields
)


def endpoint_from(row: sa.Row[Any], now: int) -> Endpoint:
    """The endpoint in a row that begins with the columns `ENDPOINT`, as of `now`."""
    found = Endpoint._make(row[: len(ENDPOINT)])
    return found._replace(
        queues=tuple(json.loads(row.queues)),
        verbs=tuple(json.loads(row.verbs)),
        targets=tuple(json.loads(row.targets)),
        state=rules.state_at(found.state, found.expires, now),
    )


# --- the statements, each built once: to build one takes longer than to run it ------------------------------


@cache
def _endpoint_of(postgres: bool, lock: bool, end: bool) -> sa.Select[Any]:
    table = tables.endpoints
    mine = sa.select(*ENDPOINT, _clock(postgres)).where(
        sa.or_(table.c.slug == sa.bindparam("ref"), table.c.id == sa.bindparam("ref")),
        table.c.human == sa.bindparam("human"),
    )
    return mine.with_for_update(key_share=not end, of=table) if postgres and (lock or end) else mine


@cache
def _find(kind: Kind, postgres: bool, writes: bool) -> sa.Select[Any]:
    """The row of a secret of this kind, with its owner."""
    table, owner, columns = _WAYS[kind]
    of_secret = (table.c[name].label(f"secret_{name}") for name in ("id", "expires", "seen"))
    find = sa.select(*columns, *of_secret, _clock(postgres)).select_from(table).join(owner)
    find = find.where(table.c.hash == sa.bindparam("digest"))
    if kind == "endpoint" and postgres and writes:
        find = find.with_for_update(read=True, key_share=True, of=owner)  # it is not to end before the commit
    return find


def _clock(postgres: bool) -> sa.ColumnElement[int]:
    return (CLOCK if postgres else sa.literal_column("0", sa.BigInteger)).label("now")


_NAMED: Final = (tables.humans.c.id, tables.humans.c.name)
_WAYS: Final[dict[Kind, tuple[sa.Table, sa.Table, tuple[Any, ...]]]] = {
    "human": (tables.tokens, tables.humans, (*_NAMED, tables.tokens.c.revoked)),
    "session": (tables.sessions, tables.humans, _NAMED),
    "endpoint": (tables.credentials, tables.endpoints, ENDPOINT),
}


def _by_secret(tx: Tx, kind: Kind, secret: str) -> tuple[sa.Row[Any], int]:
    """The row of a secret that is valid, with its owner, and the time. Raises Refused."""
    if not well_spelled(secret, kind):
        raise Refused(UNAUTHENTICATED)
    row = tx.one(_find(kind, tx.postgres, tx.writes), {"digest": digest(secret)})
    now = tx.at(row.now) if row is not None else 0
    if row is None or (row.secret_expires is not None and now >= row.secret_expires):
        raise Refused(UNAUTHENTICATED)
    if row.secret_seen is None or now - row.secret_seen >= SEEN_MS:
        see = partial(_see, table=_WAYS[kind][0], secret_id=row.secret_id, now=now)
        if tx.writes:
            see(tx)
        else:
            tx.aside.append(see)
    return row, now


def _see(tx: Tx, table: sa.Table, secret_id: str, now: int) -> None:
    """Write down when it was used, unless another call is just doing so."""
    same = table.alias()
    old = sa.and_(same.c.id == secret_id, sa.or_(same.c.seen.is_(None), same.c.seen <= now - SEEN_MS))
    free = tx.locked(sa.select(same.c.id).where(old), skip=True, how="edit").scalar_subquery()
    tx.execute(sa.update(table).where(table.c.id == free).values(seen=now))
