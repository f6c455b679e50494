"""`/api/v1/endpoints/{ref}/webhooks`: what lets other programs put todos on an endpoint."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from tenure.board import webhooks
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.rest.answers import Json
from tenure.doors.rest.gate import Gate, Who
from tenure.doors.wire import owned
from tenure.doors.wire.arguments import Arguments, Queue
from tenure.rules import bounds
from tenure.rules.refusal import MISSING

router = APIRouter(prefix="/api/v1", tags=["webhooks"], route_class=Gate)


class NewWebhook(Arguments):
    name: Annotated[str, Field(min_length=1, max_length=bounds.NAME_CHARS)]
    queue: Annotated[Queue | None, Field(description="Default: the first queue of the endpoint.")] = None


@router.get("/endpoints/{ref}/webhooks", response_model=owned.Webhooks)
async def list_webhooks(asked: Who, ref: str) -> Response:
    """The webhooks of an endpoint, never their secrets."""
    found = await asked.read(webhooks.list_all, ref)
    return Json({"webhooks": [owned.webhook(one, asked.board.settings.public_url) for one in found]})


@router.post("/endpoints/{ref}/webhooks", status_code=201, response_model=owned.NewWebhook)
async def create_webhook(asked: Who, ref: str, body: NewWebhook) -> Response:
    """A new webhook. Its signing secret is in this answer and nowhere else."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, owned.NewWebhook]:
        made = webhooks.create(tx, board, human, name=body.name, queue=body.queue, ref=ref)
        return made.webhook.id, _made(made, board)

    def again(tx: Tx, board: Board, human: Human, webhook_id: str) -> owned.NewWebhook:
        for one in webhooks.list_all(tx, board, human, ref):
            if one.id == webhook_id:
                return {"webhook": owned.webhook(one, board.settings.public_url), "secret": None}
        raise Refused(MISSING)  # it was deleted since

    told, before = await asked.create(make, again)
    return Json(told, 200 if before else 201)


@router.post("/endpoints/{ref}/webhooks/{webhook_id}/rotate", response_model=owned.NewWebhook)
async def rotate_webhook(asked: Who, ref: str, webhook_id: str) -> Response:
    """Another secret, shown this once; what is signed with the one before is refused from now on."""
    return Json(_made(await asked.write(webhooks.rotate, webhook_id, ref), asked.board))


@router.delete("/endpoints/{ref}/webhooks/{webhook_id}", status_code=204)
async def delete_webhook(asked: Who, ref: str, webhook_id: str) -> Response:
    """End a webhook: its deliveries are refused from now on."""
    await asked.write(webhooks.delete, webhook_id, ref)
    return Response(status_code=204)


def _made(made: webhooks.Made, board: Board) -> owned.NewWebhook:
    return {
        "webhook": owned.webhook(made.webhook, board.settings.public_url),
        "secret": made.secret.reveal(),
    }
