"""`/api/v1/friends`: asking another human for an endpoint of theirs, and answering such requests (B39)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from tenure.board import friends
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.doors.rest.answers import Json
from tenure.doors.rest.endpoints import DefaultLease
from tenure.doors.rest.gate import Gate, Who
from tenure.doors.wire import owned
from tenure.doors.wire.arguments import Arguments, Queues, Reason, Time
from tenure.rules import bounds
from tenure.rules.instant import instant

router = APIRouter(prefix="/api/v1", tags=["friends"], route_class=Gate)

Verbs = Annotated[list[str], Field(max_length=100)]


class Ask(Arguments):
    """`code` is what the other shows in their settings."""

    code: Annotated[str, Field(min_length=1, max_length=100)]
    queues: Annotated[Queues, Field(min_length=1)]
    verbs: Verbs
    reason: Reason = ""


class Approve(Arguments):
    """Queues and verbs may be fewer than were asked for; the settings of the endpoint are yours."""

    agent: Annotated[str, Field(min_length=1, max_length=bounds.NAME_CHARS)]
    name: Annotated[str | None, Field(min_length=1, max_length=bounds.NAME_CHARS)] = None
    queues: Queues | None = None
    verbs: Verbs | None = None
    default_lease_ttl_seconds: DefaultLease = None
    expires_at: Time | None = None


@router.post("/friends", status_code=201, response_model=owned.Friendship)
async def ask(asked: Who, body: Ask) -> Response:
    """Ask for an endpoint. An unknown code is answered like a known one."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, owned.Friendship]:
        made = friends.request(tx, board, human, body.code, queues=body.queues, verbs=body.verbs, reason=body.reason)
        return made.id, owned.friendship(made)

    def again(tx: Tx, board: Board, human: Human, made: str) -> owned.Friendship:
        return owned.friendship(friends.get(tx, board, human, made))

    told, before = await asked.create(make, again)
    return Json(told, 200 if before else 201)


@router.get("/friends", response_model=owned.Friends)
async def list_friends(asked: Who) -> Response:
    """All that you asked for or were asked for, the newest first."""
    return Json({"friendships": [owned.friendship(one) for one in await asked.read(friends.list_all)]})


@router.get("/friends/{friendship_id}", response_model=owned.Friendship)
async def get_friend(asked: Who, friendship_id: str) -> Response:
    """One friendship, as your side sees it."""
    return Json(owned.friendship(await asked.read(friends.get, friendship_id)))


@router.post("/friends/{friendship_id}/approve", response_model=owned.Friendship)
async def approve(asked: Who, friendship_id: str, body: Approve) -> Response:
    """Vend the endpoint that was asked for, on an agent of yours."""

    def case(tx: Tx, board: Board, human: Human, ref: str) -> friends.Friendship:
        return friends.approve(
            tx,
            board,
            human,
            ref,
            agent=body.agent,
            name=body.name,
            queues=body.queues,
            verbs=body.verbs,
            default_lease=body.default_lease_ttl_seconds,
            expires=None if body.expires_at is None else instant(body.expires_at, tx.now()),
        )

    return await _step(asked, case, friendship_id)


@router.post("/friends/{friendship_id}/decline", response_model=owned.Friendship)
async def decline(asked: Who, friendship_id: str) -> Response:
    """Say no to a request."""
    return await _step(asked, friends.decline, friendship_id)


@router.post("/friends/{friendship_id}/collect", response_model=owned.Collected)
async def collect(asked: Who, friendship_id: str) -> Response:
    """Take the credential away, once, within 7 days of the approval. It is made in this moment."""
    found = await asked.write(friends.collect, friendship_id)
    return Json(owned.collected(found, asked.board.settings.public_url))


@router.post("/friends/{friendship_id}/allow-collect", response_model=owned.Friendship)
async def allow_collect(asked: Who, friendship_id: str) -> Response:
    """Let your friend collect once more: the credential before ends when they do."""
    return await _step(asked, friends.allow_collect, friendship_id)


@router.post("/friends/{friendship_id}/end", response_model=owned.Friendship)
async def end(asked: Who, friendship_id: str) -> Response:
    """End it, from either side; the endpoint is revoked with it."""
    return await _step(asked, friends.end, friendship_id)


async def _step(
    asked: Who, case: Callable[[Tx, Board, Human, str], friends.Friendship], friendship_id: str
) -> Response:
    told: Any = owned.friendship(await asked.write(case, friendship_id))
    return Json(told)
