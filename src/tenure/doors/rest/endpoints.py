"""`/api/v1/endpoints` and `/api/v1/agents`: what a human vends, edits in place and ends."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from tenure.board import access, agents, endpoints
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.doors.rest.answers import Json, etag
from tenure.doors.rest.gate import Gate, Who
from tenure.doors.wire import owned
from tenure.doors.wire.arguments import Arguments, Queues, Time
from tenure.rules import bounds, presence
from tenure.rules.endpoints import DEFAULT_VERBS, OVERLAP_LIMIT_SECONDS
from tenure.rules.instant import instant

router = APIRouter(prefix="/api/v1", tags=["endpoints"], route_class=Gate)

_LEASE = {
    "anyOf": [
        {"type": "integer", "minimum": bounds.LEASE_FLOOR_SECONDS, "maximum": bounds.LEASE_CAP_SECONDS},
        {"type": "null"},
    ]
}
# The rule is asked by the use case, after reach and state (B42); the schema tells of it all the same.
DefaultLease = Annotated[Any, Field(json_schema_extra=_LEASE, description="Null: the server default.")]


class Vend(Arguments):
    """A new endpoint. Its scope is fixed for life."""

    name: Annotated[str, Field(min_length=1, max_length=bounds.NAME_CHARS)]
    agent: Annotated[str | None, Field(min_length=1, max_length=bounds.NAME_CHARS)] = None
    queues: Queues | None = None
    verbs: Annotated[list[str] | None, Field(max_length=100, description="Default: all.")] = None
    targets: Annotated[list[str] | None, Field(max_length=bounds.TARGETS, description="Slugs that it may push to.")] = (
        None
    )
    webhook_ceiling: Annotated[int, Field(ge=0, le=bounds.WEBHOOKS_LIMIT)] = bounds.WEBHOOKS_DEFAULT
    default_lease_ttl_seconds: DefaultLease = None
    expires_at: Annotated[Time | None, Field(description="Default: valid until revoked.")] = None


class EditLease(Arguments):
    """The one thing that PATCH edits."""

    default_lease_ttl_seconds: DefaultLease


class Rename(Arguments):
    name: Annotated[str, Field(max_length=bounds.NAME_CHARS)]


class SetPresence(Arguments):
    """`for_seconds` null: until the next boundary of the shift."""

    presence: presence.Value | None
    for_seconds: Annotated[int | None, Field(ge=1, le=bounds.PRESENCE_LIMIT_SECONDS)] = None


class SetShift(Arguments):
    shift: Annotated[str | None, Field(description="Such as: TZ=Europe/Berlin Mon-Fri 09:00-18:00")]


class SetEra(Arguments):
    mcp_era: str | None


class Rotate(Arguments):
    overlap_seconds: Annotated[int, Field(ge=0, le=OVERLAP_LIMIT_SECONDS)] = 0


def _vended(tx: Tx, board: Board, one: endpoints.Vended) -> owned.Vended:
    return owned.vended(one.endpoint, one.credential.reveal(), tx.now(), board.settings.public_url)


def _again(tx: Tx, board: Board, human: Human, made: str) -> owned.Vended:
    return owned.vended(endpoints.get(tx, board, human, made), None, tx.now(), board.settings.public_url)


@router.post("/endpoints", status_code=201, response_model=owned.Vended)
async def vend(asked: Who, body: Vend) -> Response:
    """Vend an endpoint. Its credential is in this answer and nowhere else."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, owned.Vended]:
        one = endpoints.vend(
            tx,
            board,
            human,
            name=body.name,
            agent=body.agent,
            queues=body.queues or (),
            verbs=DEFAULT_VERBS if body.verbs is None else body.verbs,
            targets=body.targets or (),
            webhook_ceiling=body.webhook_ceiling,
            default_lease=body.default_lease_ttl_seconds,
            expires=None if body.expires_at is None else instant(body.expires_at, tx.now()),
        )
        return one.endpoint.id, _vended(tx, board, one)

    told, before = await asked.create(make, _again)
    return _one(told, told["endpoint"], 200 if before else 201)


@router.get("/endpoints", response_model=owned.Endpoints)
async def list_endpoints(asked: Who) -> Response:
    """All endpoints of yours, the newest first; ended ones too."""

    def case(tx: Tx, board: Board, human: Human) -> owned.Endpoints:
        now = tx.now()
        return {"endpoints": [owned.endpoint(one, now) for one in endpoints.list_all(tx, board, human)]}

    return Json(await asked.read(case))


@router.get("/endpoints/{ref}", response_model=owned.Endpoint)
async def get_endpoint(asked: Who, ref: str) -> Response:
    """One endpoint, by slug or id."""

    def case(tx: Tx, board: Board, human: Human) -> owned.Endpoint:
        return owned.endpoint(endpoints.get(tx, board, human, ref), tx.now())

    told = await asked.read(case)
    return _one(told, told)


@router.patch("/endpoints/{ref}", response_model=owned.Endpoint)
async def edit_lease(asked: Who, ref: str, body: EditLease) -> Response:
    """Set the default lease, or reset it with null. Nothing else can be edited here, and scope nowhere."""
    return await _edit(asked, endpoints.edit_lease, ref, body.default_lease_ttl_seconds)


@router.put("/endpoints/{ref}/name", response_model=owned.Endpoint)
async def rename(asked: Who, ref: str, body: Rename) -> Response:
    """Give it another name for people; the slug stays."""
    return await _edit(asked, endpoints.set_display_name, ref, body.name)


@router.put("/endpoints/{ref}/presence", response_model=owned.Endpoint)
async def set_presence(asked: Who, ref: str, body: SetPresence) -> Response:
    """Be in or out for a while, at most until the shift's next boundary; null ends that."""
    return await _edit(asked, endpoints.set_presence, ref, body.presence, body.for_seconds)


@router.put("/endpoints/{ref}/shift", response_model=owned.Endpoint)
async def set_shift(asked: Who, ref: str, body: SetShift) -> Response:
    """Give it a weekly shift, or with null none."""
    return await _edit(asked, endpoints.set_shift, ref, body.shift)


@router.put("/endpoints/{ref}/mcp-era", response_model=owned.Endpoint)
async def set_era(asked: Who, ref: str, body: SetEra) -> Response:
    """Which generations of MCP it speaks; null: as the server."""
    return await _edit(asked, endpoints.set_era, ref, body.mcp_era)


@router.post("/endpoints/{ref}/rotate", response_model=owned.Vended)
async def rotate(asked: Who, ref: str, body: Rotate) -> Response:
    """A new credential, shown this once. The one before stays valid for the overlap."""

    def case(tx: Tx, board: Board, human: Human) -> owned.Vended:
        endpoints.expect(tx, human, ref, asked.revisions)
        return _vended(tx, board, endpoints.rotate(tx, board, human, ref, body.overlap_seconds))

    told = await asked.write(case)
    return _one(told, told["endpoint"])


@router.get("/endpoints/{ref}/credentials", response_model=owned.Credentials)
async def list_credentials(asked: Who, ref: str) -> Response:
    """The credentials that are valid: when they were made and last used, never what they are."""
    found = await asked.read(endpoints.credentials, ref)
    return Json({"credentials": [owned.credential(one) for one in found]})


@router.post("/endpoints/{ref}/revoke", response_model=owned.Endpoint)
async def revoke(asked: Who, ref: str) -> Response:
    """End it at once, with its claims and todos. This can't be undone."""
    return await _edit(asked, endpoints.revoke, ref)


@router.get("/agents", response_model=owned.Agents)
async def list_agents(asked: Who) -> Response:
    """Your agents, by name; one is made with the first endpoint that names it."""
    return Json({"agents": [owned.agent(one) for one in await asked.read(agents.list_all)]})


async def _edit(asked: Who, case: Any, ref: str, *values: Any) -> Response:
    """Run an edit of what If-Match expects, and answer with the endpoint as it is then."""

    def edit(tx: Tx, board: Board, human: Human) -> owned.Endpoint:
        endpoints.expect(tx, human, ref, asked.revisions)
        edited: access.Endpoint = case(tx, board, human, ref, *values)
        return owned.endpoint(edited, tx.now())

    told = await asked.write(edit)
    return _one(told, told)


def _one(told: Any, endpoint: owned.Endpoint, status: int = 200) -> Response:
    headers = {"ETag": etag(endpoint["revision"])}
    if status == 201:
        headers["Location"] = f"/api/v1/endpoints/{endpoint['slug']}"
    return Json(told, status, headers)
