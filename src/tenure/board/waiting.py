"""`claim_next` that waits: look, listen, look again (B32, B38). Claims nothing for a caller who has gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.shapes import Claimed, Next


async def wait_and_claim(
    board: Board,
    worker_of: Callable[[Tx], Worker],
    ask: Next,
    wait_seconds: float = 0,
    gone: Awaitable[object] | None = None,
) -> Claimed:
    """`claim_next`, at once or as soon as something is ready, for at most `wait_seconds`; then empty.

    worker_of: authenticates within each transaction; what it raises ends the wait, so that a revoked endpoint's call
    ends within a second. gone: done when the caller has hung up or the server drains; then nothing is claimed any
    more and the answer is empty. Raises Refused.
    """
    raise NotImplementedError
