"""What every request meets first: the host it names, an id, headers of caution, and what is counted and logged.

Must not know what a door does. Paths and queries are never logged, for a path may hold a sign-in link.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenure.doors.wire.refusals import BROKEN, PROBLEM, spelled_problem
from tenure.serve.metrics import Metrics
from tenure.serve.traces import span

log = logging.getLogger("tenure.board")
access = logging.getLogger("tenure.access")

Headers = tuple[tuple[bytes, bytes], ...]

# Set where a door has not set its own: nothing here is a page, and nothing may be kept by a cache.
CAUTION: Final[Headers] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
HTTPS_ALONE: Final = (b"strict-transport-security", b"max-age=31536000")
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Front:
    """An ASGI app before the doors. `doors`: by the first part of the path; `""` takes what no other does."""

    def __init__(
        self, doors: Mapping[str, ASGIApp], hosts: Collection[str], metrics: Metrics, *, secure: bool = False
    ) -> None:
        self._doors, self._metrics = doors, metrics
        self._caution = (*CAUTION, HTTPS_ALONE) if secure else CAUTION
        named = (f"[{host.strip('[]')}]" if ":" in host else host for host in hosts)  # IPv6 stands in brackets there
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK, *named))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        head = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        name = head if head in self._doors else ""
        answer = Answer(send, self._caution, secrets.token_hex(8))
        began = time.perf_counter()
        try:
            if not self._known(scope):
                await answer.problem(400, "invalid_argument", "This board is not known by that host name.")
                return
            with span(scope, name or "web", answer.request_id) as traced:
                await self._doors[name](scope, receive, answer)
                traced.set_attribute("http.response.status_code", answer.status)
        except Exception:
            log.exception("a request of door %r failed", name or "web", extra={"request_id": answer.request_id})
            if not answer.status:
                await answer.problem(500, "broken", BROKEN)
            elif not answer.whole:
                raise  # what was begun can't be taken back: the connection is closed
        finally:
            took = time.perf_counter() - began
            self._metrics.answered(name or "web", scope["method"], answer.status, took)
            if access.isEnabledFor(logging.INFO):
                self._tell(scope, name or "web", answer, took)

    def _known(self, scope: Scope) -> bool:
        """Whether the request names this board's host, once: a name that someone else points here is none."""
        named = [value for key, value in scope["headers"] if key == b"host"]
        if len(named) != 1:
            return False
        host, colon, port = named[0].decode("latin-1").lower().rpartition(":")
        if not colon or not port.isdecimal():
            host = f"{host}{colon}{port}"
        return host in self._hosts

    def _tell(self, scope: Scope, door: str, answer: Answer, took: float) -> None:
        told = {
            "request_id": answer.request_id,
            "door": door,
            "method": scope["method"],
            "status": answer.status,
            "milliseconds": round(took * 1000, 1),
        }
        access.info("request", extra=told)


class Answer:
    """The way back, on which the first part is given its headers."""

    def __init__(self, send: Send, caution: Headers, request_id: str) -> None:
        self._send, self._caution, self.request_id = send, caution, request_id
        self.status, self.whole = 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            named = {name.lower() for name, _ in headers}
            headers += [pair for pair in self._caution if pair[0] not in named]
            headers.append((b"x-request-id", self.request_id.encode()))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.whole = not message.get("more_body", False)
        await self._send(message)

    async def problem(self, status: int, code: str, detail: str) -> None:
        """Answer with a problem that no door gave."""
        body = json.dumps(spelled_problem(status, code, detail)).encode()
        headers = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body})
