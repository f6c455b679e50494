"""The HTTP protocol with limits: no request line, header or body takes memory or time without end.

uvicorn bounds none of these by itself. What is too large is answered and the connection closed; what is too slow is
closed. Must not know what is asked for.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tenure.doors.wire.refusals import PROBLEM, spelled_problem

URL_BYTES: Final = 8 * 1024
HEADER_BYTES: Final = 16 * 1024
HEADERS: Final = 100
HEADER_SECONDS: Final = 10
BODY_SECONDS: Final = 30
CONNECTIONS: Final = 2_000
RETRY_SECONDS: Final = 2


class Protocol(HttpToolsProtocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _in_headers = True
    _fed = 0  # bytes since the last that were a body's

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; it keeps an unfinished header to itself, so that what was fed is counted here.

        What frames a body counts too, such as headers behind its chunks.
        """
        self._fed += len(data)
        if self._timer is None and self.cycle.response_complete:
            self._arm(HEADER_SECONDS)  # for empty lines too, which begin no request: they end the wait for one
        super().data_received(data)
        if self._fed > URL_BYTES + HEADER_BYTES and not self.transport.is_closing():
            if self._in_headers:
                self._refuse(431, "The request's line and headers are too large.")
            else:
                self.transport.close()  # an answer may be under way

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers, self._fed = True, 0
        self._arm(HEADER_SECONDS)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._arm(BODY_SECONDS)
        app = self.app
        size = sum(len(name) + len(value) for name, value in self.headers)
        if len(self.url) > URL_BYTES:
            self.app = Refusing(414, f"The request's address is longer than {URL_BYTES} bytes.")
        elif size > HEADER_BYTES or len(self.headers) > HEADERS:
            self.app = Refusing(431, f"The request has more than {HEADERS} headers or {HEADER_BYTES} bytes of them.")
        elif len(self.connections) > CONNECTIONS:
            self.app = Refusing(503, "This server has too many connections; try again in a moment.", "unavailable")
        try:
            super().on_headers_complete()
        finally:
            self.app = app

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._disarm()
        self._in_headers, self._fed = True, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "This is no HTTP/1.1 request that can be read in just one way.")

    def _refuse(self, status: int, detail: str) -> None:
        """Answer without a request that could be handled, and hang up."""
        body = _body(status, detail)
        head = (
            STATUS_LINE[status],
            b"content-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (PROBLEM.encode(), len(body)),
        )
        self.transport.write(b"".join((*head, body)))
        self.transport.close()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Refusing:
    """An application that refuses whatever it is asked, and closes the connection."""

    def __init__(self, status: int, detail: str, code: str = "invalid_argument") -> None:
        self._status, self._body = status, _body(status, detail, code)

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        headers = [
            (b"content-type", PROBLEM.encode()),
            (b"content-length", str(len(self._body)).encode()),
            (b"connection", b"close"),
            *([(b"retry-after", b"%d" % RETRY_SECONDS)] if self._status == 503 else []),
        ]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body, "more_body": False})


def _body(status: int, detail: str, code: str = "invalid_argument") -> bytes:
    problem: dict[str, Any] = spelled_problem(status, code, detail)
    return json.dumps(problem).encode()
