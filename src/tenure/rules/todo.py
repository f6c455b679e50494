"""One todo and its claims as the rules see them: small values. Contents (title, body, payload) are not their business.

Every time is in whole milliseconds on the database's clock.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["pending", "claimed", "done", "failed", "cancelled"]
Origin = Literal["human", "schedule", "webhook", "endpoint"]
End = Literal[
    "completed", "failed", "released", "lapsed", "revoked", "expired", "released_by_operator", "taken_by_operator",
    "completed_by_operator", "failed_by_operator",
]  # fmt: skip
# By the clock and the counts, for people: see `todos.shown`.
Shown = Literal["pending", "waiting", "blocked", "claimed", "lapsed", "retrying", "dead", "done", "cancelled"]
TtlSource = Literal["call", "endpoint", "server", "board"]


class Claim(NamedTuple):
    """One attempt at a todo: who holds it (an endpoint, or a human on the Board), until when, and how it ended."""

    id: str
    todo: str
    endpoint: str | None
    human: str | None
    worker: str | None
    attempt: int
    hash: str | None
    secret: str | None
    granted: int
    expires: int
    ttl_seconds: int
    ttl_source: TtlSource
    heartbeats: int = 0
    heartbeat: int | None = None
    ended: int | None = None
    end: End | None = None
    reason: str | None = None
    late: str | None = None
    late_at: int | None = None

    def lapsed(self, now: int) -> bool:
        """A lease whose last millisecond is over counts as lapsed at once (B13)."""
        return now >= self.expires


class Todo(NamedTuple):
    """One piece of work. `claim`: the id of its open claim; `result` None: as it was."""

    id: str
    endpoint: str
    queue: str
    state: State
    ready: bool
    order_ms: int
    priority: int
    not_before: int | None
    blockers: int
    attempts: int
    failures: int
    lapses: int
    failures_cap: int
    lapses_cap: int
    retry_at: int | None
    claim: str | None
    reason: str | None
    ended: int | None
    needed: bool
    """Others wait, or have waited, for it to be done."""
    version: int = 1
    result: str | None = None
