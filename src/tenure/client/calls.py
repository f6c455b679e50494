"""One call of the board: how it is spelled, when it may be sent again, and what its answer means. No I/O.

Sent again are calls that change nothing or that the server knows again: reads, and calls that carry a lease token, a
`request_id` or an `Idempotency-Key`. A server that restarts, is busy or drops a connection is then met with patience.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from tenure.client.answers import Refused, Unreachable
from tenure.errors import ConfigError

# Verbs that the server can't know again: a note would stand twice, and the todo of a key may be another by then.
ONCE: Final = ("add_note", "cancel_todo")
# Answers that say "later": too many calls, and a server or its database that is not there at the moment.
LATER: Final = (429, 502, 503, 504)
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 30.0
TIMEOUT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `again`: it may be sent a second time without harm. `timeout_seconds`: for one answer."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    timeout_seconds: float = TIMEOUT_SECONDS


def get(path: str, **query: Any) -> Call:
    """A call that reads; absent parameters are left out."""
    return Call("GET", path, query={name: value for name, value in query.items() if value is not None}, again=True)


def send(method: str, path: str, body: Any = None) -> Call:
    """A call that writes once: it is sent a single time."""
    return Call(method, path, body)


def create(path: str, body: Any) -> Call:
    """A call that creates: its key lets the server know it again."""
    return Call("POST", path, body, headers={"Idempotency-Key": secrets.token_urlsafe(24)}, again=True)


def verb(name: str, arguments: Mapping[str, Any]) -> Call:
    """A worker's verb on `/work/v1`; absent arguments are left out."""
    body = {key: value for key, value in arguments.items() if value is not None}
    wait = body.get("wait_seconds", 0)
    if not isinstance(wait, (int, float)):
        raise ConfigError("wait_seconds", wait, "is no number of seconds; write 5.")
    again = name not in ONCE
    return Call("POST", f"/work/v1/{name}", body, again=again, timeout_seconds=TIMEOUT_SECONDS + wait)


def address(url: str) -> str:
    """A board's address as it was given. Raises ConfigError for what is none."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError("url", url, "is no address of a board.", f"Write http://{url.rpartition('://')[2]}")
    hint = "Write http://HOST:PORT"
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise ConfigError("url", url, f"is no address of a board: {error}.", hint) from None
    if not parts.host or (parts.port or 0) > 65_535:
        raise ConfigError("url", url, "is no address of a board: it has no such host or port.", hint)
    return url.rstrip("/")


def authorization(secret: str | None) -> dict[str, str]:
    """The header that a credential or token is sent in; none without. Raises ConfigError for what can't be one."""
    if secret and not (secret.isascii() and secret.isprintable()):
        why = "holds signs that no credential or token has."
        raise ConfigError("credential", "***", why, "Copy it whole, and nothing beside it.")
    return {"Authorization": f"Bearer {secret}"} if secret else {}


def request_id() -> str:
    """A random id by which the server knows a repeated claim or creation (B12a)."""
    return secrets.token_hex(16)


class Patience:
    """When to send a call again: pauses that double, with jitter, until the patience is used up."""

    def __init__(self, seconds: float) -> None:
        self.left_seconds = seconds
        self._pause = FIRST_PAUSE_SECONDS

    def pause(self, asked: str | None) -> float | None:
        """How many seconds to wait before the next try; None: no more. `asked`: the answer's Retry-After."""
        pause = self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the load, guards nothing
        self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
        if asked and asked.strip().isdecimal():
            pause = max(pause, float(asked))
        if pause > self.left_seconds:
            return None
        self.left_seconds -= pause
        return pause


def refusal(status: int, body: Any) -> Refused:
    """The server's refusal as an exception."""
    told = body if isinstance(body, dict) else {}
    detail = told.get("detail") or told.get("title") or f"The board answered with status {status}."
    return Refused(status, str(told.get("code") or ""), str(detail), told)


@dataclass(frozen=True, slots=True)
class Read:
    """An answer that was read: its JSON, or the refusal it is."""

    told: Any
    refused: Refused | None

    def asks_again(self, call: Call) -> bool:
        """Whether it says "later", and the call may be sent again: what was refused as one too many did nothing."""
        status = self.refused.status if self.refused is not None else 0
        return status == TOO_MANY or (status in LATER and call.again)

    def value(self) -> Any:
        """The JSON of the answer. Raises Refused."""
        if self.refused is not None:
            raise self.refused
        return self.told


def read(answer: httpx2.Response) -> Read:
    """What an answer says. Bodies that are no JSON come from a proxy, and are not shown."""
    told, status = None, answer.status_code
    if 300 <= status < 400:
        elsewhere = answer.headers.get("Location", "elsewhere")
        why = f"The board isn't here: the answer, with status {status}, sends to {elsewhere}. Use that board's address."
        return Read(None, Refused(status, "", why, {}))
    try:
        told = answer.json() if answer.content else None
    except ValueError:
        if status < 300:
            why = "What answers here is no board: it speaks no JSON. Check the address."
            return Read(None, Refused(status, "", why, {}))
    return Read(told, refusal(status, told) if status >= 400 else None)


def request_of(call: Call) -> dict[str, Any]:
    """The arguments of httpx2's `request`."""
    told: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": call.query or None,
        "headers": call.headers,
        "timeout": httpx2.Timeout(call.timeout_seconds, connect=min(CONNECT_SECONDS, call.timeout_seconds)),
    }
    return told if call.body is None else {**told, "json": call.body}


def sendable_again(call: Call, error: httpx2.TransportError) -> bool:
    """Whether the call may be sent again after this failure: always, if it can't have arrived."""
    return call.again or isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout))


def unreachable(url: str, error: BaseException) -> Unreachable:
    """What to say when no answer came."""
    return Unreachable(
        f"The board at {url} can't be reached ({type(error).__name__}). Is it running? Start it with: tenure board"
    )
