"""claim_next on a board of a million todos, nine of ten dead, against one of a thousand; taken in turns."""

from __future__ import annotations

import time

import sqlalchemy as sa
from boards import KINDS, Hands, databases, deepen, opened
from rows import Row, p50, percentile

from tenure.board import claims
from tenure.board.shapes import Handback, Next


def measure(*, quick: bool) -> list[Row]:
    """On each database, the deep and the shallow one on the same server."""
    return [_row(kind, 20_000 if quick else 1_000_000, 100 if quick else 1_000) for kind in KINDS]


def _row(kind: str, depth: int, count: int) -> Row:
    with databases(kind, 2) as (first, second), opened(first) as one, opened(second) as other:
        shallow, deep = _turns([(one, 1_000), (other, depth)], count)
    ratio = percentile(deep, 0.99) / percentile(shallow, 0.99)
    detail = {"p50_ratio": p50(deep) / p50(shallow), "p99_ms": percentile(deep, 0.99) * 1e3}
    told = f"p99 {detail['p99_ms']:.2f} ms; the ratio of the medians is {detail['p50_ratio']:.2f}"
    return Row(
        f"claim_next among {depth:,} todos / among 1,000, p99: {kind}", ratio, "x", "<= 2", ratio <= 2, detail, told
    )


def _turns(boards: list[tuple[object, int]], count: int) -> list[list[float]]:
    workers = []
    for board, depth in boards:
        hands = Hands(board, board.vend())
        deepen(board, hands.worker.id, depth)
        if board.database.postgres:  # or the measurement would pay for the filling
            with board.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as plain:
                plain.execute(sa.text("SET statement_timeout = 0"))
                plain.execute(sa.text("VACUUM ANALYZE todos"))
                plain.execute(sa.text("CHECKPOINT"))
        workers.append((hands, hands.worker))
    taken: list[list[float]] = [[] for _ in boards]
    for number in range(count):
        for place in (0, 1) if number % 2 else (1, 0):
            hands, worker = workers[place]
            began = time.perf_counter()
            (granted,) = hands.board.write(claims.claim_next, worker, Next()).granted
            taken[place].append(time.perf_counter() - began)
            # Given back, so that a hundred ready ones are enough; it goes to the same place of the order again.
            back = Handback(granted.todo.summary.id, granted.lease.token.reveal())
            hands.board.write(claims.release, worker, [back])
    return taken
