"""The board's tables. What the rules bound, the schema bounds too: CHECKs, foreign keys, partial unique indexes.

Times are whole milliseconds since the epoch by the database's clock; JSON is text, checked by the rules.
Secrets are here as SHA-256 alone. `migrations/` makes these tables; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa

from tenure.rules import bounds

NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata: Final = sa.MetaData(naming_convention=NAMING)

# A failed todo that has ended is a dead letter (B1); one that has not has a time for its next retry.
TODO_STATES: Final = ("pending", "claimed", "done", "failed", "cancelled")
ENDPOINT_STATES: Final = ("active", "expired", "revoked")
CLAIM_ENDS: Final = (
    "completed", "failed", "released", "lapsed", "revoked", "expired", "released_by_operator", "taken_by_operator",
    "completed_by_operator", "failed_by_operator",
)  # fmt: skip
TODO_SOURCES: Final = ("human", "schedule", "webhook", "endpoint")
TTL_SOURCES: Final = ("call", "endpoint", "server", "board")

Instant = sa.BigInteger


def _key() -> sa.Column[Any]:
    return sa.Column("id", sa.Text, primary_key=True)


def _owner(table: str, name: str = "", *, nullable: bool = False) -> sa.Column[Any]:
    name = name or table.rstrip("s")
    return sa.Column(name, sa.Text, sa.ForeignKey(f"{table}.id"), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, Instant, nullable=nullable)


def _count(name: str, default: int = 0) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text(str(default)))


def _check(name: str, rule: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(rule, name=name)


def _partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    rule = sa.text(where)
    return sa.Index(name, *columns, unique=unique, postgresql_where=rule, sqlite_where=rule)


def _one_of(column: str, words: Iterable[str]) -> sa.CheckConstraint:
    return _check(column, f"{column} IN ({', '.join(repr(word) for word in words)})")


humans = sa.Table(
    "humans",
    metadata,
    _key(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    _text("password", nullable=True),  # argon2id
    sa.Column("friend_code", sa.Text, nullable=False, unique=True),
    _time("created"),
    _check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
)
sessions = sa.Table(
    "sessions",
    metadata,
    _key(),
    _owner("humans"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    _text("agent", nullable=True),  # what browser, for the list of sessions
    _time("created"),
    _time("seen"),
    _time("expires"),
)
links = sa.Table(  # one-time sign-in links
    "links",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    _owner("humans"),
    _time("created"),
    _time("expires"),
    _time("used", nullable=True),
)
tokens = sa.Table(  # a human's tokens for REST and the command line
    "tokens",
    metadata,
    _key(),
    _owner("humans"),
    _text("name"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    _text("hint"),  # the last four characters
    _time("created"),
    _time("seen", nullable=True),
    _time("expires", nullable=True),
    _time("revoked", nullable=True),
)
agents = sa.Table(
    "agents",
    metadata,
    _key(),
    _owner("humans"),
    _text("name"),
    _time("created"),
    sa.UniqueConstraint("human", "name"),
    _check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
)
endpoints = sa.Table(
    "endpoints",
    metadata,
    _key(),
    sa.Column("slug", sa.Text, nullable=False, unique=True),
    _text("name"),
    _owner("humans"),
    _owner("agents"),
    _text("queues"),  # JSON arrays of names
    _text("verbs"),
    _text("targets"),  # slugs of endpoints of the same human
    sa.Column("webhook_ceiling", sa.Integer, nullable=False),
    _text("state"),
    _text("origin"),
    sa.Column("default_lease_ttl_seconds", sa.Integer, nullable=True),
    _text("mcp_era", nullable=True),
    _text("override", nullable=True),  # in or out, until `override_until` (null: the next boundary of the shift)
    _time("override_until", nullable=True),
    _text("shift", nullable=True),
    sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    # of the default lease alone: what agents read changes with it
    sa.Column("lease_revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    _time("created"),
    _time("expires", nullable=True),
    _time("ended", nullable=True),
    _one_of("state", ENDPOINT_STATES),
    _one_of("origin", ("own", "friend")),
    _one_of("mcp_era", ("handshake", "both")),
    _one_of("override", ("in", "out")),
    _check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
    _check("webhook_ceiling", f"webhook_ceiling BETWEEN 0 AND {bounds.WEBHOOKS_LIMIT}"),
    _check(
        "default_lease",
        f"default_lease_ttl_seconds BETWEEN {bounds.LEASE_FLOOR_SECONDS} AND {bounds.LEASE_CAP_SECONDS}",
    ),
    _check("default_lease_type", "typeof(default_lease_ttl_seconds) IN ('integer', 'null')").ddl_if(dialect="sqlite"),
    sa.Index("ix_endpoints_human", "human", "created"),
    _partial("ix_endpoints_expires", "expires", where="state = 'active' AND expires IS NOT NULL"),
)  # fmt: skip
credentials = sa.Table(  # of endpoints; at most two are valid at a time
    "credentials",
    metadata,
    _key(),
    _owner("endpoints"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    _text("hint"),
    _time("created"),
    _time("seen", nullable=True),
    _time("expires", nullable=True),  # set by a rotation: the end of the overlap
    sa.Index("ix_credentials_endpoint", "endpoint"),
)
todos = sa.Table(
    "todos",
    metadata,
    _key(),
    _owner("endpoints"),
    _text("queue"),
    _text("title"),
    _text("body"),
    _text("payload", nullable=True),
    _text("result", nullable=True),
    _text("state"),
    # True only for pending todos that claim_next may take: no blocker is left and their time has come.
    sa.Column("ready", sa.Boolean(create_constraint=False), nullable=False),
    _time("order_ms"),
    _count("priority"),
    _time("not_before", nullable=True),
    _count("blockers"),  # how many of those it depends on are not done
    # Others wait, or have waited, for this one: who completes it under its lock sees whether to look for them.
    sa.Column("needed", sa.Boolean(create_constraint=False), nullable=False, server_default=sa.text("false")),
    _text("idempotency_key", nullable=True),
    _text("content_hash"),
    _count("attempts"),
    _count("failures"),
    _count("lapses"),
    _count("failures_cap", bounds.CAP_DEFAULT),
    _count("lapses_cap", bounds.CAP_DEFAULT),
    _time("retry_at", nullable=True),
    _text("claim", nullable=True),  # the open claim
    _text("source"),
    _text("source_id", nullable=True),
    _text("reason", nullable=True),  # why it failed, died or was cancelled, for people
    _time("created"),
    _time("ended", nullable=True),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    _one_of("state", TODO_STATES),
    _one_of("source", TODO_SOURCES),
    _check("ready", "NOT ready OR (state = 'pending' AND blockers = 0)"),
    _check("claim", "(state = 'claimed') = (claim IS NOT NULL)"),
    _check("ended", "state = 'failed' OR (state IN ('done', 'cancelled')) = (ended IS NOT NULL)"),
    _check("retry", "(state = 'failed' AND ended IS NULL) = (retry_at IS NOT NULL)"),
    _check("title", f"length(title) BETWEEN 1 AND {bounds.TITLE_CHARS}"),
    _check("priority", f"priority BETWEEN -{bounds.PRIORITY_LIMIT} AND {bounds.PRIORITY_LIMIT}"),
    _check("counts", "attempts >= 0 AND failures >= 0 AND lapses >= 0 AND blockers >= 0"),
    _partial("ix_todos_ready", "endpoint", "queue", "order_ms", "id", where="ready"),
    _partial("ix_todos_waiting", "not_before", where="state = 'pending' AND NOT ready AND blockers = 0"),
    _partial("ix_todos_retry", "retry_at", where="retry_at IS NOT NULL"),
    _partial("ix_todos_ended", "ended", where="ended IS NOT NULL"),
    _partial("ix_todos_live", "endpoint", "id", where="ended IS NULL"),
    sa.Index("ix_todos_endpoint", "endpoint", "id"),
    _partial("uq_todos_live_key", "endpoint", "idempotency_key",
             where="ended IS NULL AND idempotency_key IS NOT NULL", unique=True),
    postgresql_with={"fillfactor": "80"},
)  # fmt: skip
dependencies = sa.Table(
    "dependencies",
    metadata,
    sa.Column("todo", sa.Text, sa.ForeignKey("todos.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("needs", sa.Text, sa.ForeignKey("todos.id"), primary_key=True),
    sa.Index("ix_dependencies_needs", "needs"),
)
claims = sa.Table(
    "claims",
    metadata,
    _key(),
    sa.Column("todo", sa.Text, sa.ForeignKey("todos.id", ondelete="CASCADE"), nullable=False),
    _owner("endpoints", nullable=True),  # the endpoint that holds it, or
    _owner("humans", nullable=True),  # the human, on the Board
    _text("worker", nullable=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("hash", sa.Text, nullable=True),  # of the lease token; Board claims have none
    _text("secret", nullable=True),  # the id of the server's secret that made the token
    _time("granted"),
    _time("expires"),
    sa.Column("ttl_seconds", sa.Integer, nullable=False),
    _text("ttl_source"),
    _count("heartbeats"),
    _time("heartbeat", nullable=True),
    _time("ended", nullable=True),
    _text("end", nullable=True),
    _text("reason", nullable=True),
    _text("late", nullable=True),  # JSON: a result or failure that came too late and was refused
    _time("late_at", nullable=True),
    _one_of("ttl_source", TTL_SOURCES),
    sa.CheckConstraint(f"\"end\" IN ({', '.join(repr(word) for word in CLAIM_ENDS)})", name="end"),
    _check("ended", '(ended IS NULL) = ("end" IS NULL)'),
    _check("holder", "(endpoint IS NULL) <> (human IS NULL)"),
    _check("ttl", f"ttl_seconds BETWEEN 1 AND {bounds.LEASE_CAP_SECONDS}"),
    sa.UniqueConstraint("todo", "attempt"),
    # `expires` stands in no index, so that heartbeats stay cheap; the reaper reads this one, and it is small.
    _partial("uq_claims_open", "todo", where="ended IS NULL", unique=True),
    _partial("ix_claims_held", "endpoint", "worker", where="ended IS NULL"),
    _partial("ix_claims_lapsed", "ended", where="\"end\" = 'lapsed'"),  # how many did lately is asked by /metrics
    postgresql_with={"fillfactor": "80"},
)  # fmt: skip
notes = sa.Table(
    "notes",
    metadata,
    _key(),
    sa.Column("todo", sa.Text, sa.ForeignKey("todos.id", ondelete="CASCADE"), nullable=False),
    _text("author"),  # human or endpoint
    _text("author_id"),
    _text("worker", nullable=True),
    _text("text"),
    _time("created"),
    sa.Index("ix_notes_todo", "todo", "id"),
)
requests = sa.Table(  # what a repeated call is answered with (B12a), and Idempotency-Key of REST
    "requests",
    metadata,
    sa.Column("owner", sa.Text, primary_key=True),  # an endpoint or a human
    sa.Column("verb", sa.Text, primary_key=True),
    sa.Column("request_id", sa.Text, primary_key=True),
    _text("arguments"),  # their hash
    _text("answer"),  # JSON: ids of claims or of a todo
    _time("created"),
    sa.Index("ix_requests_created", "created"),
)
webhooks = sa.Table(  # their secrets are made of the server's, and stand nowhere
    "webhooks",
    metadata,
    _key(),
    _owner("endpoints"),
    _text("name"),
    _text("queue"),
    _count("generation", 1),  # grows with each rotation
    _text("secret"),  # the id of the server's secret
    _time("created"),
    _time("seen", nullable=True),
    _time("deleted", nullable=True),
    sa.Index("ix_webhooks_endpoint", "endpoint"),
)
friendships = sa.Table(
    "friendships",
    metadata,
    _key(),
    _owner("humans", "requester"),
    _owner("humans", "approver", nullable=True),  # null: nobody has that code, which the requester is not told
    _text("queues"),
    _text("verbs"),
    _text("reason"),
    _text("state"),
    _owner("endpoints", nullable=True),
    _time("created"),
    _time("decided", nullable=True),
    _time("collect_until", nullable=True),  # null: collected, or nothing to collect
    _time("ended", nullable=True),
    _one_of("state", ("requested", "approved", "declined", "ended")),
    sa.Index("ix_friendships_requester", "requester"),
    sa.Index("ix_friendships_approver", "approver"),
)
schedules = sa.Table(
    "schedules",
    metadata,
    _key(),
    _owner("humans"),
    _owner("endpoints"),
    _text("name"),
    _text("definition"),  # JSON: expression, zone, title, body, payload, queue, priority, overlap, catch_up
    _text("paused", nullable=True),  # the reason
    _text("last_todo", nullable=True),  # the newest that it made, and for which slot: what `overlap` asks about
    _time("last_slot", nullable=True),
    sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    _time("created"),
    _time("removed", nullable=True),
    _partial("uq_schedules_name", "human", "name", where="removed IS NULL", unique=True),
)  # fmt: skip
slots = sa.Table(  # what each slot of a schedule became (B49); outlives its todo
    "slots",
    metadata,
    sa.Column("schedule", sa.Text, sa.ForeignKey("schedules.id"), primary_key=True),
    sa.Column("slot", Instant, primary_key=True),
    _text("todo", nullable=True),
    _text("outcome"),
    _text("reason", nullable=True),
    _time("created"),
    sa.Index("ix_slots_created", "created"),
)
audit = sa.Table(
    "audit",
    metadata,
    _key(),
    _owner("humans"),
    _text("actor"),  # human or endpoint
    _text("actor_id"),
    _text("action"),
    _text("subject"),
    _text("subject_id"),
    _text("summary"),
    _time("created"),
    sa.Index("ix_audit_human", "human", "id"),
)
buckets = sa.Table(  # GCRA: the theoretical arrival time, in microseconds; one row per bucket
    "buckets",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    _time("arrival"),
)
