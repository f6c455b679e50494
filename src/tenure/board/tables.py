"""The board's tables. What the rules bound, the schema bounds too: CHECKs, foreign keys, partial unique indexes.

Times are whole milliseconds since the epoch by the database's clock; JSON is text, checked by the rules.
Secrets are here as SHA-256 alone. `migrations/` makes these tables; a test holds the two together.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from tenure.board.columns import check, count, key, one_of, owner, partial, text, time
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

humans = sa.Table(
    "humans",
    metadata,
    key(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    text("password", nullable=True),  # argon2id
    sa.Column("friend_code", sa.Text, nullable=False, unique=True),
    time("created"),
    check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
)
sessions = sa.Table(
    "sessions",
    metadata,
    key(),
    owner("humans"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    text("agent", nullable=True),  # what browser, for the list of sessions
    time("created"),
    time("seen"),
    time("expires"),
)
links = sa.Table(  # one-time sign-in links
    "links",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    owner("humans"),
    time("created"),
    time("expires"),
    time("used", nullable=True),
)
tokens = sa.Table(  # a human's tokens for REST and the command line
    "tokens",
    metadata,
    key(),
    owner("humans"),
    text("name"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    text("hint"),  # the last four characters
    time("created"),
    time("seen", nullable=True),
    time("expires", nullable=True),
    time("revoked", nullable=True),
)
agents = sa.Table(
    "agents",
    metadata,
    key(),
    owner("humans"),
    text("name"),
    time("created"),
    sa.UniqueConstraint("human", "name"),
    check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
)
endpoints = sa.Table(
    "endpoints",
    metadata,
    key(),
    sa.Column("slug", sa.Text, nullable=False, unique=True),
    text("name"),
    owner("humans"),
    owner("agents"),
    text("queues"),  # JSON arrays of names
    text("verbs"),
    text("targets"),  # slugs of endpoints of the same human
    sa.Column("webhook_ceiling", sa.Integer, nullable=False),
    text("state"),
    text("origin"),
    sa.Column("default_lease_ttl_seconds", sa.Integer, nullable=True),
    text("mcp_era", nullable=True),
    text("override", nullable=True),  # in or out, until `override_until` (null: the next boundary of the shift)
    time("override_until", nullable=True),
    text("shift", nullable=True),
    sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    # of the default lease alone: what agents read changes with it
    sa.Column("lease_revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    time("created"),
    time("expires", nullable=True),
    time("ended", nullable=True),
    one_of("state", ENDPOINT_STATES),
    one_of("origin", ("own", "friend")),
    one_of("mcp_era", ("handshake", "both")),
    one_of("override", ("in", "out")),
    check("name", f"length(name) BETWEEN 1 AND {bounds.NAME_CHARS}"),
    check("webhook_ceiling", f"webhook_ceiling BETWEEN 0 AND {bounds.WEBHOOKS_LIMIT}"),
    check(
        "default_lease",
        f"default_lease_ttl_seconds BETWEEN {bounds.LEASE_FLOOR_SECONDS} AND {bounds.LEASE_CAP_SECONDS}",
    ),
    check("default_lease_type", "typeof(default_lease_ttl_seconds) IN ('integer', 'null')").ddl_if(dialect="sqlite"),
    sa.Index("ix_endpoints_human", "human", "created"),
    partial("ix_endpoints_expires", "expires", where="state = 'active' AND expires IS NOT NULL"),
)  # fmt: skip
credentials = sa.Table(  # of endpoints; at most two are valid at a time
    "credentials",
    metadata,
    key(),
    owner("endpoints"),
    sa.Column("hash", sa.Text, nullable=False, unique=True),
    text("hint"),
    time("created"),
    time("seen", nullable=True),
    time("expires", nullable=True),  # set by a rotation: the end of the overlap
    sa.Index("ix_credentials_endpoint", "endpoint"),
)
todos = sa.Table(
    "todos",
    metadata,
    key(),
    owner("endpoints"),
    text("queue"),
    text("title"),
    text("body"),
    text("payload", nullable=True),
    text("result", nullable=True),
    text("state"),
    # True only for pending todos that claim_next may take: no blocker is left and their time has come.
    sa.Column("ready", sa.Boolean(create_constraint=False), nullable=False),
    time("order_ms"),
    count("priority"),
    time("not_before", nullable=True),
    count("blockers"),  # how many of those it depends on are not done
    # Others wait, or have waited, for this one: who completes it under its lock sees whether to look for them.
    sa.Column("needed", sa.Boolean(create_constraint=False), nullable=False, server_default=sa.text("false")),
    text("idempotency_key", nullable=True),
    text("content_hash"),
    count("attempts"),
    count("failures"),
    count("lapses"),
    count("failures_cap", bounds.CAP_DEFAULT),
    count("lapses_cap", bounds.CAP_DEFAULT),
    time("retry_at", nullable=True),
    text("claim", nullable=True),  # the open claim
    text("source"),
    text("source_id", nullable=True),
    text("reason", nullable=True),  # why it failed, died or was cancelled, for people
    time("created"),
    time("ended", nullable=True),
    sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("1")),
    one_of("state", TODO_STATES),
    one_of("source", TODO_SOURCES),
    check("ready", "NOT ready OR (state = 'pending' AND blockers = 0)"),
    check("claim", "(state = 'claimed') = (claim IS NOT NULL)"),
    check("ended", "state = 'failed' OR (state IN ('done', 'cancelled')) = (ended IS NOT NULL)"),
    check("retry", "(state = 'failed' AND ended IS NULL) = (retry_at IS NOT NULL)"),
    check("title", f"length(title) BETWEEN 1 AND {bounds.TITLE_CHARS}"),
    check("priority", f"priority BETWEEN -{bounds.PRIORITY_LIMIT} AND {bounds.PRIORITY_LIMIT}"),
    check("counts", "attempts >= 0 AND failures >= 0 AND lapses >= 0 AND blockers >= 0"),
    partial("ix_todos_ready", "endpoint", "queue", "order_ms", "id", where="ready"),
    partial("ix_todos_waiting", "not_before", where="state = 'pending' AND NOT ready AND blockers = 0"),
    partial("ix_todos_retry", "retry_at", where="retry_at IS NOT NULL"),
    partial("ix_todos_ended", "ended", where="ended IS NOT NULL"),
    partial("ix_todos_live", "endpoint", "id", where="ended IS NULL"),
    sa.Index("ix_todos_endpoint", "endpoint", "id"),
    partial("uq_todos_live_key", "endpoint", "idempotency_key",
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
    key(),
    sa.Column("todo", sa.Text, sa.ForeignKey("todos.id", ondelete="CASCADE"), nullable=False),
    owner("endpoints", nullable=True),  # the endpoint that holds it, or
    owner("humans", nullable=True),  # the human, on the Board
    text("worker", nullable=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("hash", sa.Text, nullable=True),  # of the lease token; Board claims have none
    text("secret", nullable=True),  # the id of the server's secret that made the token
    time("granted"),
    time("expires"),
    sa.Column("ttl_seconds", sa.Integer, nullable=False),
    text("ttl_source"),
    count("heartbeats"),
    time("heartbeat", nullable=True),
    time("ended", nullable=True),
    text("end", nullable=True),
    text("reason", nullable=True),
    text("late", nullable=True),  # JSON: a result or failure that came too late and was refused
    time("late_at", nullable=True),
    one_of("ttl_source", TTL_SOURCES),
    sa.CheckConstraint(f"\"end\" IN ({', '.join(repr(word) for word in CLAIM_ENDS)})", name="end"),
    check("ended", '(ended IS NULL) = ("end" IS NULL)'),
    check("holder", "(endpoint IS NULL) <> (human IS NULL)"),
    check("ttl", f"ttl_seconds BETWEEN 1 AND {bounds.LEASE_CAP_SECONDS}"),
    sa.UniqueConstraint("todo", "attempt"),
    # `expires` stands in no index, so that heartbeats stay cheap; the reaper reads this one, and it is small.
    partial("uq_claims_open", "todo", where="ended IS NULL", unique=True),
    partial("ix_claims_held", "endpoint", "worker", where="ended IS NULL"),
    partial("ix_claims_lapsed", "ended", where="\"end\" = 'lapsed'"),  # how many did lately is asked by /metrics
    postgresql_with={"fillfactor": "80"},
)  # fmt: skip
notes = sa.Table(
    "notes",
    metadata,
    key(),
    sa.Column("todo", sa.Text, sa.ForeignKey("todos.id", ondelete="CASCADE"), nullable=False),
    text("author"),  # human or endpoint
    text("author_id"),
    text("worker", nullable=True),
    text("text"),
    time("created"),
    sa.Index("ix_notes_todo", "todo", "id"),
)
requests = sa.Table(  # what a repeated call is answered with (B12a), and Idempotency-Key of REST
    "requests",
    metadata,
    sa.Column("owner", sa.Text, primary_key=True),  # an endpoint or a human
    sa.Column("verb", sa.Text, primary_key=True),
    sa.Column("request_id", sa.Text, primary_key=True),
    text("arguments"),  # their hash
    text("answer"),  # JSON: ids of claims or of a todo
    time("created"),
    sa.Index("ix_requests_created", "created"),
)
webhooks = sa.Table(  # their secrets are made of the server's, and stand nowhere
    "webhooks",
    metadata,
    key(),
    owner("endpoints"),
    text("name"),
    text("queue"),
    count("generation", 1),  # grows with each rotation
    text("secret"),  # the id of the server's secret
    time("created"),
    time("seen", nullable=True),
    time("deleted", nullable=True),
    sa.Index("ix_webhooks_endpoint", "endpoint"),
)
friendships = sa.Table(
    "friendships",
    metadata,
    key(),
    owner("humans", "requester"),
    owner("humans", "approver", nullable=True),  # null: nobody has that code, which the requester is not told
    text("queues"),
    text("verbs"),
    text("reason"),
    text("state"),
    owner("endpoints", nullable=True),
    time("created"),
    time("decided", nullable=True),
    time("collect_until", nullable=True),  # null: collected, or nothing to collect
    time("ended", nullable=True),
    one_of("state", ("requested", "approved", "declined", "ended")),
    sa.Index("ix_friendships_requester", "requester"),
    sa.Index("ix_friendships_approver", "approver"),
)
schedules = sa.Table(
    "schedules",
    metadata,
    key(),
    owner("humans"),
    owner("endpoints"),
    text("name"),
    text("definition"),  # JSON: expression, zone, title, body, payload, queue, priority, overlap, catch_up
    text("paused", nullable=True),  # the reason
    text("last_todo", nullable=True),  # the newest that it made, and for which slot: what `overlap` asks about
    time("last_slot", nullable=True),
    sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("1")),
    time("created"),
    time("removed", nullable=True),
    partial("uq_schedules_name", "human", "name", where="removed IS NULL", unique=True),
)  # fmt: skip
slots = sa.Table(  # what each slot of a schedule became (B49); outlives its todo
    "slots",
    metadata,
    sa.Column("schedule", sa.Text, sa.ForeignKey("schedules.id"), primary_key=True),
    sa.Column("slot", sa.BigInteger, primary_key=True),
    text("todo", nullable=True),
    text("outcome"),
    text("reason", nullable=True),
    time("created"),
    sa.Index("ix_slots_created", "created"),
)
audit = sa.Table(
    "audit",
    metadata,
    key(),
    owner("humans"),
    text("actor"),  # human or endpoint
    text("actor_id"),
    text("action"),
    text("subject"),
    text("subject_id"),
    text("summary"),
    time("created"),
    sa.Index("ix_audit_human", "human", "id"),
)
buckets = sa.Table(  # GCRA: the theoretical arrival time, in microseconds; one row per bucket
    "buckets",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    time("arrival"),
)
