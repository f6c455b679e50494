"""Todos as humans and producers use them: made, listed, cancelled, retried, moved, and taken in hand on the Board.

A caller is a Human, a Worker (an endpoint's credential) or a Source (a webhook or schedule). All raise Refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tenure.board.access import Endpoint, Human, Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.shapes import Created, Detail, Ended, Filters, Granted, Lane, NewTodo, Note, Page, Source

Caller = Human | Worker | Source


def create(
    tx: Tx, board: Board, caller: Caller, target: Endpoint, new: NewTodo, request_id: str | None = None
) -> Created:
    """Put a todo on the endpoint; the live one of the same key and content is given instead of a second (B6).

    request_id: a worker's, for `create_todo` (B12a).
    """
    raise NotImplementedError


def create_many(tx: Tx, board: Board, caller: Caller, target: Endpoint, news: Sequence[NewTodo]) -> list[Created]:
    """Put todos on the endpoint, all or, with a refusal, none."""
    raise NotImplementedError


def target_of(tx: Tx, board: Board, worker: Worker, to: str | None) -> Endpoint:
    """Where a worker's `create_todo` goes: its own endpoint, or a target that its scope lists (B7a)."""
    raise NotImplementedError


def get(tx: Tx, board: Board, caller: Human | Worker, todo_id: str) -> Detail:
    """The todo, whole, with its claims and notes."""
    raise NotImplementedError


def list_page(
    tx: Tx,
    board: Board,
    caller: Human | Worker,
    filters: Filters = Filters(),  # noqa: B008 - a value
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Todos, newest first: all of a human's endpoints, or of the worker's own one (B33)."""
    raise NotImplementedError


def counts(tx: Tx, board: Board, human: Human) -> list[Lane]:
    """How many todos stand in which state, by endpoint: live ones, and those ended in the last day."""
    raise NotImplementedError


def cancel(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Detail:
    """Cancel a pending or failed todo; one that is claimed must be released first."""
    raise NotImplementedError


def cancel_by_key(tx: Tx, board: Board, worker: Worker, target: Endpoint, key: str, reason: str = "") -> Detail:
    """Cancel the live todo with this idempotency key (B1)."""
    raise NotImplementedError


def retry(tx: Tx, board: Board, human: Human, todo_id: str) -> Detail:
    """Make a failed or dead todo ready now; one more attempt where they were used up (B1)."""
    raise NotImplementedError


def move(tx: Tx, board: Board, human: Human, todo_id: str, target: Endpoint, queue: str | None = None) -> Detail:
    """Put an unclaimed todo on another endpoint of the human (B7b). queue None: the same, else its first."""
    raise NotImplementedError


def board_claim(tx: Tx, board: Board, human: Human, todo_id: str) -> Granted:
    """Take the todo in hand for 300 s; an open claim of a worker is closed as `taken_by_operator` (B1, B19)."""
    raise NotImplementedError


def board_extend(tx: Tx, board: Board, human: Human, todo_id: str) -> Granted:
    """Another 300 s from now on one's own Board claim."""
    raise NotImplementedError


def board_complete(tx: Tx, board: Board, human: Human, todo_id: str, result: Any = None) -> Ended:
    """Complete a claimed todo, whoever holds it."""
    raise NotImplementedError


def board_fail(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Ended:
    """Fail a claimed todo, whoever holds it."""
    raise NotImplementedError


def board_release(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Ended:
    """End the open claim, whoever holds it, and make the todo ready."""
    raise NotImplementedError


def add_note(
    tx: Tx, board: Board, caller: Human | Worker, todo_id: str, text: str, worker_label: str | None = None
) -> Note:
    """Add a note to a todo."""
    raise NotImplementedError


def end_endpoint(tx: Tx, board: Board, endpoint: Endpoint, reason: Literal["revoked", "expired"], now: int) -> None:
    """Close the endpoint's open claims and dead-letter its live todos (B25). The endpoint's row is locked already."""
    raise NotImplementedError
