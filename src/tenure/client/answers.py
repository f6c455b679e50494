"""What the client gives back: todos, leases, and errors that say what happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tenure.errors import LeaseLost, TenureError

__all__ = ["BoardError", "Held", "Lease", "LeaseLost", "Refused", "Unreachable", "held_of"]


class BoardError(TenureError):
    """The root of what the client raises."""


class Refused(BoardError):
    """The board refused: `code` for programs, the message for people, `details` as the server sent them."""

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status, self.code, self.details = status, code, dict(details)

    @property
    def reason(self) -> str:
        """Why a lease token no longer counts: `lapsed`, `taken`, `finished`, …; empty for other refusals."""
        return str(self.details.get("reason", ""))


class Unreachable(BoardError):
    """No answer came, or only answers that say "later", for as long as there was patience."""


class Lease(NamedTuple):
    """What was granted. `source` says whose the length is; `expires` and `server_time` are by the server's clock."""

    token: str
    ttl_seconds: int
    source: str
    expires: datetime
    server_time: datetime

    @property
    def left_seconds(self) -> float:
        """How long the lease had still to run when the server answered."""
        return (self.expires - self.server_time).total_seconds()


class Held(NamedTuple):
    """A todo that was claimed. Title, body and payload are data, whoever wrote them. `raw`: the answer as it came."""

    id: str
    title: str
    body: str
    payload: Any
    queue: str
    attempt: int
    lease: Lease
    raw: Mapping[str, Any]


def held_of(answer: Mapping[str, Any], place: int = 0) -> Held:
    """One of the claims that `claim` and `claim_next` answer."""
    claim = answer["claims"][place]
    todo = claim["todo"]
    granted = Lease(
        claim["lease_token"],
        claim["lease_ttl_seconds"],
        claim["lease_ttl_source"],
        datetime.fromisoformat(claim["lease_expires_at"]),
        datetime.fromisoformat(answer["server_time"]),
    )
    return Held(
        todo["id"],
        todo["title"],
        todo["body"],
        todo["payload"],
        todo["queue"],
        claim["attempt"],
        granted,
        claim,
    )
