"""`/api/v1/me`, `/tokens` and `/audit`: what a human is told of themselves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from tenure.board import audit, humans, tokens
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.rest.answers import Json
from tenure.doors.rest.gate import Gate, Who
from tenure.doors.wire import owned
from tenure.doors.wire.arguments import Arguments, Time
from tenure.rules import bounds
from tenure.rules.instant import instant
from tenure.rules.refusal import MISSING

router = APIRouter(prefix="/api/v1", tags=["people"], route_class=Gate)


class NewToken(Arguments):
    name: Annotated[str, Field(min_length=1, max_length=bounds.NAME_CHARS)]
    expires_at: Annotated[Time | None, Field(description="Default: valid until revoked.")] = None


@router.get("/me", response_model=owned.Me)
async def me(asked: Who) -> Response:
    """Who you are, and the friend code that others need to ask for your friendship."""
    code = await asked.read(humans.friend_code)
    return Json(owned.me(asked.human, code))


@router.post("/me/friend-code", response_model=owned.Me)
async def new_friend_code(asked: Who) -> Response:
    """Another friend code; the one before leads nowhere from now on."""
    code = await asked.write(humans.new_friend_code)
    return Json(owned.me(asked.human, code))


@router.get("/tokens", response_model=owned.Tokens)
async def list_tokens(asked: Who) -> Response:
    """Your valid tokens: their names and ends, never what they are."""
    return Json({"tokens": [owned.token(one) for one in await asked.read(tokens.list_all)]})


@router.post("/tokens", status_code=201, response_model=owned.NewToken)
async def create_token(asked: Who, body: NewToken) -> Response:
    """A new token, shown this once."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, owned.NewToken]:
        expires = None if body.expires_at is None else instant(body.expires_at, tx.now())
        made = tokens.create(tx, board, human, body.name, expires)
        return made.token.id, {"token": owned.token(made.token), "secret": made.secret.reveal()}

    def again(tx: Tx, board: Board, human: Human, made: str) -> owned.NewToken:
        for one in tokens.list_all(tx, board, human):
            if one.id == made:
                return {"token": owned.token(one), "secret": None}
        raise Refused(MISSING)  # it was revoked since

    told, before = await asked.create(make, again)
    return Json(told, 200 if before else 201)


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(asked: Who, token_id: str) -> Response:
    """End a token at once; it may be the one that asks."""
    await asked.write(tokens.revoke, token_id)
    return Response(status_code=204)


@router.get("/audit", response_model=owned.Audit)
async def list_audit(
    asked: Who,
    *,
    limit: Annotated[int, Query(ge=1, le=audit.LIMIT)] = 50,
    before: Annotated[str | None, Query(max_length=64, description="next_before of the page before.")] = None,
) -> Response:
    """Who did what, to what, and when; the newest first."""
    found = await asked.read(audit.list_page, before=before, limit=limit)
    return Json(
        {"entries": [owned.entry(one) for one in found], "next_before": found[-1].id if len(found) == limit else None}
    )
