"""What a worker should know beside an answer: leases of its own that near their end, and its endpoint's end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.secrets import digest
from tenure.board.shapes import Warned
from tenure.board.todo_rows import among, listed
from tenure.rules.bounds import WARN_LIMIT_SECONDS, WARN_SHARE
from tenure.rules.endpoints import ENDING_MS
from tenure.rules.instant import SECOND

_OPEN = "SELECT todo, expires, ttl_seconds, worker, ended FROM claims WHERE endpoint = :endpoint AND "


def warnings(
    tx: Tx,
    board: Board,
    worker: Worker,
    *,
    worker_label: str | None = None,
    shown: Sequence[tuple[str, str]] = (),
    leases: Iterable[int] = (),
) -> tuple[Warned, ...]:
    """What the worker of this label, or who holds the claims shown, should know beside an answer (B18, B24).

    shown: ids of todos, each with the lease token of a claim, open or not. leases: the expiries that the answer
    grants; one beyond the endpoint's end is warned of.
    """
    held = _held(tx, worker, worker_label, shown)
    ends = worker.endpoint.expires
    if not held and ends is None:
        return ()
    now = tx.now()
    found = [_ending(todo, expires, now) for todo, expires, ttl in held if _near(expires - now, ttl)]
    if ends is not None:
        left = max(0, ends - now) // SECOND
        if ends - now <= ENDING_MS:
            told = (
                f"This endpoint and its credential end in {left} s. Tell your human, and end or release what you hold."
            )
            found.append(Warned("endpoint_ending", told, None, left))
        if any(lease > ends for lease in leases):
            told = f"This lease reaches beyond the end of this endpoint, which is in {left} s: the claim ends then."
            found.append(Warned("lease_beyond_endpoint", told, None, left))
    return tuple(found)


def _held(tx: Tx, worker: Worker, label: str | None, shown: Sequence[tuple[str, str]]) -> set[tuple[str, int, int]]:
    """The open claims of that worker: todo, expiry and ttl. Claims without a label are only known by their tokens."""
    rows: list[Any] = []
    labels = {label} - {None}
    if shown:
        select = f"{_OPEN}{among(tx, 'todo', 'todos')} AND {among(tx, 'hash', 'hashes')}"
        todos, hashes = [todo for todo, _ in shown], [digest(token) for _, token in shown]
        values = {"endpoint": worker.id, "todos": listed(tx, todos), "hashes": listed(tx, hashes)}
        rows = tx.all(sa.text(select), values)
        labels |= {row.worker for row in rows} - {None}
    if labels:
        select = f"{_OPEN}ended IS NULL AND {among(tx, 'worker', 'labels')}"
        rows += tx.all(sa.text(select), {"endpoint": worker.id, "labels": listed(tx, sorted(map(str, labels)))})
    return {(row.todo, row.expires, row.ttl_seconds) for row in rows if row.ended is None}


def _near(left_ms: int, ttl_seconds: int) -> bool:
    """In the last fifth of the lease, at most its last minute."""
    return left_ms <= min(ttl_seconds * SECOND // WARN_SHARE, WARN_LIMIT_SECONDS * SECOND)


def _ending(todo: str, expires: int, now: int) -> Warned:
    left = max(0, expires - now) // SECOND
    how = f"ends in {left} s" if expires > now else "has lapsed"
    return Warned(
        "lease_ending", f"The lease of {todo} {how}. Send a heartbeat to keep it, or end or release it.", todo, left
    )
