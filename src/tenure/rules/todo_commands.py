"""What may be asked of a todo, and what may be answered. Frozen values; nothing here decides.

`operator`: a human asks on the Board, without a token, about whatever claim is open.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from tenure.rules.todo import Claim, TtlSource


class Grant(NamedTuple):
    """A claim by an endpoint's worker (B1, B8). Its id and its token's hash were drawn outside."""

    id: str
    endpoint: str
    worker: str | None
    hash: str
    secret: str
    ttl_seconds: int
    ttl_source: TtlSource


class Take(NamedTuple):
    """A human takes it in hand on the Board (B1, B19)."""

    id: str
    human: str


class Heartbeat(NamedTuple):
    """The holder is alive (B11); source `call`: the value is the call's own."""

    ttl_seconds: int
    ttl_source: TtlSource


class Complete(NamedTuple):
    """It is done; `result` is JSON."""

    result: str | None = None
    operator: bool = False


class Fail(NamedTuple):
    """It did not work (B5); `jitter`, drawn outside, is 0 or more and below 1."""

    reason: str = ""
    jitter: float = 0.0
    operator: bool = False


class Release(NamedTuple):
    """The holder gives it back, and nothing is counted (B4)."""

    reason: str = ""
    operator: bool = False


class Lapse(NamedTuple):
    """The reaper has seen that the lease is over (B13, B14)."""


class Wake(NamedTuple):
    """The reaper has seen that its time has come: not-before, or the next retry (B3, B5)."""


class Unblock(NamedTuple):
    """So many of those it depends on are done now."""

    by: int = 1


class Cancel(NamedTuple):
    """A human, or `cancel_todo` by key, wants it no more (B1)."""

    reason: str = ""


class Retry(NamedTuple):
    """A human's "retry now" (B1)."""


class Move(NamedTuple):
    """A human puts it on another endpoint (B7b)."""

    endpoint: str
    queue: str


class EndpointEnds(NamedTuple):
    """Its endpoint is revoked or has expired (B25)."""

    how: Literal["revoked", "expired"]


Command = (
    Grant | Take | Heartbeat | Complete | Fail | Release | Lapse | Wake | Unblock | Cancel | Retry | Move | EndpointEnds
)


class Won(NamedTuple):
    """The claim that was granted, or the Board claim that was extended."""

    claim: Claim


class Renewed(NamedTuple):
    """The lease as it is now. `shortened`: the call's own value brought the expiry nearer; `revived`: it had lapsed."""

    claim: Claim
    extended: bool
    shortened: bool
    revived: bool


class Accepted(NamedTuple):
    """It took effect; `already`: it had, before."""

    already: bool = False


class Refused(NamedTuple):
    """Nothing changed, but for a late result kept on its claim. `reason` is a word that programs match (B13)."""

    reason: str


Answer = Won | Renewed | Accepted | Refused
