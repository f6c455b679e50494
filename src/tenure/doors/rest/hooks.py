"""`POST /hooks/{id}`: deliveries from other programs, signed after Standard Webhooks (B38a)."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenure.board import webhooks
from tenure.board.board import Board
from tenure.board.refused import Refused
from tenure.doors.rest import answers, reading
from tenure.rules.refusal import MISSING

PREFIX: Final = "/hooks/"
BODY_BYTES: Final = 256 * 1024


class HooksDoor:
    """The ASGI app of `/hooks`."""

    def __init__(self, board: Board) -> None:
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as error:
            response = answers.refused(error.refusal)
        except reading.Gone:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        webhook_id = request.url.path.removeprefix(PREFIX)
        if "/" in webhook_id:
            raise Refused(MISSING)
        if request.method != "POST":
            detail = "A delivery is sent by POST."
            return answers.unrouted(405, detail, "method_not_allowed", {"Allow": "POST"})
        raw = await reading.body(request, BODY_BYTES)
        headers = dict(request.headers)
        told = await self._board.database.write(webhooks.deliver, self._board, webhook_id, headers, raw)
        return answers.Json({"todo_id": told.todo_id, "existing": told.existing}, 200 if told.existing else 201)
