"""`/livez`, `/readyz` and `/metrics`: what looks after the server is told of it, and nothing of what it serves."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.readings import Readings, readings
from tenure.board.refused import Refused
from tenure.doors.rest import answers, reading
from tenure.rules.refusal import MISSING, Refusal
from tenure.serve.metrics import CONTENT_TYPE, Metrics

PATHS: Final = ("livez", "readyz", "metrics")
READY_SECONDS: Final = 2.0


class Health:
    """The three paths. Without a token for them, metrics are nothing that is here."""

    def __init__(self, board: Board, metrics: Metrics, token: str | None, draining: Callable[[], bool]) -> None:
        self._board, self._metrics, self._token, self._draining = board, metrics, token, draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as error:
            response = answers.refused(error.refusal)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path.removeprefix("/")
        if path not in PATHS:
            raise Refused(MISSING)
        if request.method not in ("GET", "HEAD"):
            return answers.unrouted(405, "This is asked by GET.", "method_not_allowed", {"Allow": "GET, HEAD"})
        if path == "livez":
            return Response("alive\n", media_type="text/plain")
        if path == "readyz":
            await self._ready()
            return Response("ready\n", media_type="text/plain")
        if self._token is None:
            raise Refused(MISSING)
        if not hmac.compare_digest(reading.bearer(request).encode(), self._token.encode()):
            raise Refused(Refusal("unauthenticated", "This needs the token of TENURE_METRICS_TOKEN."))
        self._metrics.looked(await self._read())
        return Response(self._metrics.told(), media_type=CONTENT_TYPE)

    async def _read(self) -> Readings | None:
        """The database's readings; None while it does not answer, for then the server's own are wanted all the more."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                return await self._board.database.read(readings)
        except (Refused, TimeoutError):
            return None

    async def _ready(self) -> None:
        """Raises Refused while this server should be sent no requests."""
        if self._draining():
            raise Refused(_not("This server is about to stop."))
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._board.database.read(Tx.now)
        except TimeoutError:
            raise Refused(_not("The board's database did not answer in time.")) from None
        if not self._board.notices.connected:
            raise Refused(_not("This server can't hear what other servers change."))


def _not(why: str) -> Refusal:
    return Refusal("unavailable", why, {"retry_after_seconds": 2})
