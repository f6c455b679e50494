"""`/api/v1/todos`: a human's todos, over all endpoints of theirs. No route here claims (B41)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from tenure.board import endpoints, shapes, todos
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.doors.rest.answers import Json
from tenure.doors.rest.gate import Gate, Who, large
from tenure.doors.wire import outcomes, spelling
from tenure.doors.wire.arguments import Arguments, NewTodo, Queue, Reason, State
from tenure.doors.wire.arguments import Json as JsonValue
from tenure.doors.wire.verbs import new_todo
from tenure.rules import bounds
from tenure.rules.todo import Origin

router = APIRouter(prefix="/api/v1", tags=["todos"], route_class=Gate)


class WithReason(Arguments):
    reason: Reason = ""


class Move(Arguments):
    """To another endpoint of yours; queue null: the same, else its first."""

    to: Annotated[str, Field(min_length=1, max_length=200, description="Slug or id.")]
    queue: Queue | None = None


class Complete(Arguments):
    result: JsonValue = None


class AddNote(Arguments):
    text: Annotated[str, Field(min_length=1, description=f"At most {bounds.NOTE_BYTES // 1024} KiB.")]


@router.post("/endpoints/{ref}/todos", status_code=201, response_model=outcomes.Created)
@large
async def create_todo(asked: Who, ref: str, body: NewTodo) -> Response:
    """Put a todo on an endpoint of yours. The live one of the same key and content is given instead of a second."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, outcomes.Created]:
        target = endpoints.get(tx, board, human, ref)
        created = todos.create(tx, board, human, target, new_todo(body, tx.now()))
        return created.todo.summary.id, outcomes.created(created)

    def again(tx: Tx, board: Board, human: Human, made: str) -> outcomes.Created:
        return {"todo": spelling.todo(todos.get(tx, board, human, made)), "existing": True}

    told, _ = await asked.create(make, again)
    status = 200 if told["existing"] else 201
    return Json(told, status, {"Location": f"/api/v1/todos/{told['todo']['id']}"} if status == 201 else None)


@router.get("/todos", response_model=spelling.Page)
async def list_todos(
    asked: Who,
    *,
    endpoint: Annotated[str | None, Query(max_length=200, description="Slug or id.")] = None,
    queue: Annotated[str | None, Query(max_length=bounds.QUEUE_CHARS)] = None,
    state: Annotated[State | None, Query()] = None,
    claimed_by: Annotated[str | None, Query(max_length=bounds.WORKER_CHARS)] = None,
    source: Annotated[Origin | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=bounds.LIST_LIMIT)] = bounds.LIST_DEFAULT,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Your todos, the newest first, over all endpoints or one."""

    def case(tx: Tx, board: Board, human: Human) -> spelling.Page:
        filters = shapes.Filters(
            endpoint_id=None if endpoint is None else endpoints.get(tx, board, human, endpoint).id,
            queue=queue,
            states=(state,) if state else (),
            claimed_by=claimed_by,
            source=source,
        )
        return spelling.page(todos.list_page(tx, board, human, filters, cursor, limit))

    return Json(await asked.read(case))


@router.get("/todos/{todo_id}", response_model=outcomes.OneTodo)
async def get_todo(asked: Who, todo_id: str) -> Response:
    """One todo, whole: its claims, what came too late, and its notes."""
    return _one(await asked.read(todos.get, todo_id))


@router.post("/todos/{todo_id}/cancel", response_model=outcomes.OneTodo)
async def cancel(asked: Who, todo_id: str, body: WithReason) -> Response:
    """Cancel a pending or failed todo."""
    return _one(await asked.write(todos.cancel, todo_id, body.reason))


@router.post("/todos/{todo_id}/retry", response_model=outcomes.OneTodo)
async def retry(asked: Who, todo_id: str) -> Response:
    """Make a failed or dead todo ready now; one more attempt where they were used up."""
    return _one(await asked.write(todos.retry, todo_id))


@router.post("/todos/{todo_id}/move", response_model=outcomes.OneTodo)
async def move(asked: Who, todo_id: str, body: Move) -> Response:
    """Put an unclaimed todo on another endpoint of yours."""

    def case(tx: Tx, board: Board, human: Human) -> shapes.Detail:
        target = endpoints.get(tx, board, human, body.to)
        moved: shapes.Detail = todos.move(tx, board, human, todo_id, target, body.queue)
        return moved

    return _one(await asked.write(case))


@router.post("/todos/{todo_id}/release", response_model=outcomes.Ended)
async def release(asked: Who, todo_id: str, body: WithReason) -> Response:
    """End the open claim, whoever holds it, and make the todo ready."""
    return _ended(await asked.write(todos.board_release, todo_id, body.reason))


@router.post("/todos/{todo_id}/complete", response_model=outcomes.Ended)
@large
async def complete(asked: Who, todo_id: str, body: Complete) -> Response:
    """Complete a claimed todo, whoever holds it."""
    return _ended(await asked.write(todos.board_complete, todo_id, body.result))


@router.post("/todos/{todo_id}/fail", response_model=outcomes.Ended)
async def fail(asked: Who, todo_id: str, body: WithReason) -> Response:
    """Fail a claimed todo, whoever holds it."""
    return _ended(await asked.write(todos.board_fail, todo_id, body.reason))


@router.post("/todos/{todo_id}/notes", status_code=201, response_model=outcomes.OneNote)
async def add_note(asked: Who, todo_id: str, body: AddNote) -> Response:
    """Add a note to a todo."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, shapes.Note]:
        note = todos.add_note(tx, board, human, todo_id, body.text)
        return note.id, note

    def again(tx: Tx, board: Board, human: Human, made: str) -> shapes.Note:
        return next(note for note in todos.get(tx, board, human, todo_id).notes if note.id == made)

    note, before = await asked.create(make, again)
    return Json({"note": spelling.note(note)}, 200 if before else 201)


def _one(todo: shapes.Detail) -> Response:
    return Json({"todo": spelling.todo(todo)})


def _ended(ended: Any) -> Response:
    return Json(outcomes.ended(ended))
