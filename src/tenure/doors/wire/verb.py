"""A verb as every door for workers calls it: who asks is settled first, then what is asked, then the use case."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from tenure.board import claims
from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.wire import spelling
from tenure.doors.wire.arguments import Arguments, OfClaim
from tenure.doors.wire.refusals import fault, of_validation
from tenure.rules.endpoints import SELF
from tenure.rules.refusal import MISSING, Refusal

Spelled = dict[str, Any]
WorkerOf = Callable[[Tx], Worker]
Case = Callable[[Tx, Board, Worker, Any], Spelled | Refusal]
Many = Callable[[Tx, Board, Worker, Sequence[Any]], list[Spelled | Refusal]]
# Authenticates by itself, in as many transactions as it needs.
Waiting = Callable[[Board, WorkerOf, Any, Awaitable[object] | None], Awaitable[Spelled]]


class Batch(NamedTuple):
    """Many items of one verb, each readable or refused for itself, and what does them all at once."""

    many: Many
    items: Sequence[Arguments | Refusal]
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: what it may be told, what the answer looks like, and what answers, spelled, inside the transaction.

    item, many: where a batch is one statement. waiting: takes the calls that `waits` picks.
    """

    name: str
    arguments: type[Arguments]
    answer: Any
    case: Case
    item: type[Arguments] | None = None
    many: Many | None = None
    waiting: Waiting | None = None
    waits: Callable[[Any], bool] = lambda _: False
    writes: bool = True


Asked = TypeVar("Asked", bound=Arguments)


def read(model: type[Asked], raw: Any) -> Asked | Refusal:
    """The arguments, or what is wrong with them."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        return of_validation(error, model.model_fields)


def granted(worker: Worker, name: str) -> bool:
    """Whether the worker's endpoint has the verb."""
    return name in worker.endpoint.verbs or name in SELF


async def call(
    board: Board,
    verb: Verb,
    worker_of: WorkerOf,
    asked: Arguments | Batch | Refusal,
    gone: Awaitable[object] | None = None,
) -> Spelled:
    """Do what is asked, in one transaction if it need not wait. Raises Refused; who may not ask learns nothing else.

    worker_of: authenticates in the transaction. gone: done when nobody waits for the answer any more.
    """

    def entering(tx: Tx) -> Worker:
        worker = worker_of(tx)
        if not granted(worker, verb.name):
            raise Refused(MISSING)
        return worker

    if verb.waiting is not None and isinstance(asked, Arguments) and verb.waits(asked):
        return await verb.waiting(board, entering, asked, gone)
    run = board.database.write if verb.writes else board.database.read
    answer = await run(_perform, board, verb, entering, asked)
    if isinstance(answer, Refusal):  # committed: what came too late was kept
        raise Refused(answer)
    return answer


def _perform(
    tx: Tx, board: Board, verb: Verb, worker_of: WorkerOf, asked: Arguments | Batch | Refusal
) -> Spelled | Refusal:
    worker = worker_of(tx)
    if isinstance(asked, Refusal):
        raise Refused(asked)
    if isinstance(asked, Batch):
        return _batch(tx, board, worker, asked)
    return verb.case(tx, board, worker, asked)


def _batch(tx: Tx, board: Board, worker: Worker, batch: Batch) -> Spelled:
    """Each item's answer in its place, or its refusal beside the todo's id."""
    good = [item for item in batch.items if isinstance(item, Arguments)]
    answers = iter(batch.many(tx, board, worker, good) if good else ())
    told = []
    for item in batch.items:
        answer = item if isinstance(item, Refusal) else next(answers)
        if isinstance(answer, Refusal):
            answer = {"todo_id": getattr(item, "todo_id", None), "error": fault(answer)}
        told.append(answer)
    shown = [(item.todo_id, item.lease_token) for item in good if isinstance(item, OfClaim)]
    return _with_warnings(tx, board, worker, {"items": told}, worker_label=batch.worker, shown=shown)


def single(many: Many) -> Case:
    """The case that is a batch of one."""

    def case(tx: Tx, board: Board, worker: Worker, asked: Any) -> Spelled | Refusal:
        (answer,) = many(tx, board, worker, (asked,))
        return answer if isinstance(answer, Refusal) else warned(tx, board, worker, asked, answer)

    return case


def warned(tx: Tx, board: Board, worker: Worker, asked: Any, answer: Any, *, leases: Sequence[int] = ()) -> Spelled:
    """The answer, with what the worker who asked should know beside it (B18, B24)."""
    shown = [(asked.todo_id, asked.lease_token)] if isinstance(asked, OfClaim) else []
    return _with_warnings(tx, board, worker, answer, worker_label=asked.worker, shown=shown, leases=leases)


def _with_warnings(tx: Tx, board: Board, worker: Worker, answer: Spelled, **about: Any) -> Spelled:
    found = claims.warnings(tx, board, worker, **about)
    return {**answer, "warnings": [spelling.warned(one) for one in found]} if found else answer
