"""The drain verbs: how an endpoint's workers take, keep and end claims. Each takes a batch; one is a batch of one.

These, and `waiting.py` around `claim_next`, are the only paths on which an endpoint takes or extends a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.shapes import (
    Beat,
    Checked,
    Claimed,
    Completion,
    Ended,
    Failing,
    Handback,
    Next,
    Renewed,
    Warned,
)
from tenure.rules.refusal import Refusal


def claim_next(tx: Tx, board: Board, worker: Worker, ask: Next) -> Claimed:
    """Claim up to `ask.max` ready todos in their order (B3). Raises Refused; nothing to do is an empty answer."""
    raise NotImplementedError


def claim(
    tx: Tx,
    board: Board,
    worker: Worker,
    todo_id: str,
    lease_ttl_seconds: object = None,
    worker_label: str | None = None,
    request_id: str | None = None,
) -> Claimed:
    """Claim this todo; one whose lease has lapsed is requeued and claimed at once (B13). Raises Refused."""
    raise NotImplementedError


def heartbeat(tx: Tx, board: Board, worker: Worker, beats: Sequence[Beat]) -> list[Renewed | Refusal]:
    """Extend the leases, each answered for itself (B11)."""
    raise NotImplementedError


def check_claim(tx: Tx, board: Board, worker: Worker, todo_id: str, lease_token: str) -> Checked | Refusal:
    """Is it still mine, and how long (B17)? One read; may run in `database.read`."""
    raise NotImplementedError


def complete(tx: Tx, board: Board, worker: Worker, items: Sequence[Completion]) -> list[Ended | Refusal]:
    """End the claims with their results. A refused result is kept on its claim (B13): commit the refusals too."""
    raise NotImplementedError


def fail(tx: Tx, board: Board, worker: Worker, items: Sequence[Failing]) -> list[Ended | Refusal]:
    """End the claims as failed; the todos are retried later, or are dead letters (B4, B5)."""
    raise NotImplementedError


def release(tx: Tx, board: Board, worker: Worker, items: Sequence[Handback]) -> list[Ended | Refusal]:
    """Give the todos back: ready at once, and nothing is counted (B4)."""
    raise NotImplementedError


def warnings(
    tx: Tx,
    board: Board,
    worker: Worker,
    *,
    worker_label: str | None = None,
    lease_tokens: Iterable[str] = (),
    leases: Iterable[int] = (),
) -> tuple[Warned, ...]:
    """What the worker with this label, or the holders of these tokens, should know beside an answer (B18, B24).

    `leases`: the expiries that the answer grants; one beyond the endpoint's end is warned of.
    """
    raise NotImplementedError
