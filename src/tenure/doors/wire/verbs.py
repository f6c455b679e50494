"""The catalogue of verbs: for each what it may be told, which use case it calls, and how the answer is spelled.

The door for agents (MCP) and the one for programs (`/work/v1`) both call verbs from here, so that words, scope, lease
and refusals are the same by either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from tenure.board import claims, shapes, todos, waiting
from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.wire import arguments as a
from tenure.doors.wire import outcomes, spelling
from tenure.doors.wire.verb import Spelled, Verb, WorkerOf, single, warned
from tenure.rules.instant import instant
from tenure.rules.refusal import Refusal

T = TypeVar("T")


# --- drain ------------------------------------------------------------------------------------------------


def _list_todos(tx: Tx, board: Board, worker: Worker, asked: a.ListTodos) -> Spelled:
    states = (asked.state,) if asked.state else ()
    filters = shapes.Filters(queue=asked.queue, states=states, claimed_by=asked.claimed_by, mine=asked.mine)
    page = todos.list_page(tx, board, worker, filters, asked.cursor, asked.limit)
    return warned(tx, board, worker, asked, spelling.brief_page(page))


def _get_todo(tx: Tx, board: Board, worker: Worker, asked: a.GetTodo) -> Spelled:
    todo = spelling.todo(todos.get(tx, board, worker, asked.todo_id))
    return warned(tx, board, worker, asked, {"todo": todo})


def _claim(tx: Tx, board: Board, worker: Worker, asked: a.Claim) -> Spelled:
    claimed = claims.claim(tx, board, worker, asked.todo_id, asked.lease_ttl_seconds, asked.worker, asked.request_id)
    return _claimed(tx, board, worker, claimed, asked)


def _claim_next(tx: Tx, board: Board, worker: Worker, asked: a.ClaimNext) -> Spelled:
    return _claimed(tx, board, worker, claims.claim_next(tx, board, worker, _next(asked)), asked)


async def _claim_next_waiting(
    board: Board, worker_of: WorkerOf, asked: a.ClaimNext, gone: Awaitable[object] | None
) -> Spelled:
    claimed = await waiting.wait_and_claim(board, worker_of, _next(asked), asked.wait_seconds, gone)
    if claimed.empty and board.notices.deaf:
        return {**outcomes.claimed(claimed)}  # the database can't be asked
    try:
        return await board.database.read(lambda tx: _claimed(tx, board, worker_of(tx), claimed, asked))
    except Refused:  # what was claimed is told, even if what else there is to tell can't be (B16)
        return {**outcomes.claimed(claimed)}


def _next(asked: a.ClaimNext) -> shapes.Next:
    return shapes.Next(tuple(asked.queues or ()), asked.max, asked.lease_ttl_seconds, asked.worker, asked.request_id)


def _claimed(tx: Tx, board: Board, worker: Worker, claimed: shapes.Claimed, asked: Any) -> Spelled:
    leases = [one.lease.expires for one in claimed.granted]
    return warned(tx, board, worker, asked, outcomes.claimed(claimed), leases=leases)


def _heartbeat(tx: Tx, board: Board, worker: Worker, items: Sequence[a.Beat]) -> list[Spelled | Refusal]:
    beats = [shapes.Beat(one.todo_id, one.lease_token, one.lease_ttl_seconds) for one in items]
    return _each(claims.heartbeat(tx, board, worker, beats), outcomes.renewed)


def _check_claim(tx: Tx, board: Board, worker: Worker, items: Sequence[a.CheckClaim]) -> list[Spelled | Refusal]:
    found = [claims.check_claim(tx, board, worker, one.todo_id, one.lease_token) for one in items]
    return _each(found, outcomes.checked)


def _complete(tx: Tx, board: Board, worker: Worker, items: Sequence[a.Completion]) -> list[Spelled | Refusal]:
    done = [shapes.Completion(one.todo_id, one.lease_token, one.result) for one in items]
    return _each(claims.complete(tx, board, worker, done), outcomes.ended)


def _fail(tx: Tx, board: Board, worker: Worker, items: Sequence[a.Failing]) -> list[Spelled | Refusal]:
    failed = [shapes.Failing(one.todo_id, one.lease_token, one.reason) for one in items]
    return _each(claims.fail(tx, board, worker, failed), outcomes.ended)


def _release(tx: Tx, board: Board, worker: Worker, items: Sequence[a.Handback]) -> list[Spelled | Refusal]:
    back = [shapes.Handback(one.todo_id, one.lease_token, one.reason) for one in items]
    return _each(claims.release(tx, board, worker, back), outcomes.ended)


def _each(answers: Sequence[T | Refusal], spell: Callable[[T], Mapping[str, Any]]) -> list[Spelled | Refusal]:
    return [one if isinstance(one, Refusal) else {**spell(one)} for one in answers]


def _add_note(tx: Tx, board: Board, worker: Worker, asked: a.AddNote) -> Spelled:
    note = todos.add_note(tx, board, worker, asked.todo_id, asked.text, asked.worker)
    return warned(tx, board, worker, asked, {"note": spelling.note(note)})


# --- produce ----------------------------------------------------------------------------------------------


def new_todo(asked: a.NewTodo, now: int) -> shapes.NewTodo:
    """The todo that is asked for; what `now` is in its times is the database's to say."""
    due = asked.not_before
    return shapes.NewTodo(
        title=asked.title,
        queue=asked.queue,
        body=asked.body,
        payload=asked.payload,
        priority=asked.priority,
        not_before=None if due is None else instant(due, now),
        depends_on=tuple(asked.depends_on),
        idempotency_key=asked.idempotency_key,
        failures_cap=asked.failures_cap,
        lapses_cap=asked.lapses_cap,
        relative=due if due is not None and due.strip().startswith("now") else None,
    )


def _create_todo(tx: Tx, board: Board, worker: Worker, asked: a.CreateTodo) -> Spelled:
    target = todos.target_of(tx, board, worker, asked.to)
    created = todos.create(tx, board, worker, target, new_todo(asked, tx.now()), asked.request_id)
    return warned(tx, board, worker, asked, outcomes.created(created))


def _cancel_todo(tx: Tx, board: Board, worker: Worker, asked: a.CancelTodo) -> Spelled:
    todo = todos.cancel_by_key(tx, board, worker, asked.idempotency_key, asked.reason)
    return warned(tx, board, worker, asked, {"todo": spelling.todo(todo)})


_ALL: Final = (
    Verb("list_todos", a.ListTodos, spelling.BriefPage, _list_todos, writes=False),
    Verb("get_todo", a.GetTodo, outcomes.OneTodo, _get_todo, writes=False),
    Verb("claim", a.Claim, outcomes.Claimed, _claim),
    Verb(
        "claim_next", a.ClaimNext, outcomes.Claimed, _claim_next,
        waiting=_claim_next_waiting, waits=lambda asked: asked.wait_seconds > 0,
    ),
    Verb("heartbeat", a.Heartbeat, outcomes.Renewed, single(_heartbeat), item=a.Beat, many=_heartbeat),
    Verb("check_claim", a.CheckClaim, outcomes.Checked, single(_check_claim), writes=False),
    Verb("complete", a.Complete, outcomes.Ended, single(_complete), item=a.Completion, many=_complete),
    Verb("fail", a.Fail, outcomes.Ended, single(_fail), item=a.Failing, many=_fail),
    Verb("release", a.Release, outcomes.Ended, single(_release), item=a.Handback, many=_release),
    Verb("add_note", a.AddNote, outcomes.OneNote, _add_note),
    Verb("create_todo", a.CreateTodo, outcomes.Created, _create_todo),
    Verb("cancel_todo", a.CancelTodo, outcomes.OneTodo, _cancel_todo),
)  # fmt: skip
VERBS: Final[Mapping[str, Verb]] = {verb.name: verb for verb in _ALL}
