"""Buckets of calls (B43): one row per bucket, so that several servers agree.

Doors spend before they call a use case, in a transaction of its own, so that a call that is refused later is counted
all the same. Workers call far more often than humans, so each server takes their calls from the row in chunks.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import sqlalchemy as sa

from tenure.board import tables
from tenure.board.board import Board, Rate
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.rules import bucket
from tenure.rules.bucket import Taken
from tenure.rules.refusal import Refusal

Kind = Literal["writes", "reads", "worker", "own_settings", "sign_in_account", "sign_in_address"]
# So many calls of a worker are taken from the row at once: each server may allow so many beyond the burst.
CHUNK: Final = 50


async def spend(board: Board, kind: Kind, key: str, cost: int = 1) -> Taken:
    """Take a call from a bucket: a human's id, an endpoint's, a name's digest or an address. Raises Refused."""
    taken = await _spent(board, kind, key, cost)
    if not taken.allowed:
        raise Refused(refusal(taken))
    return taken


async def _spent(board: Board, kind: Kind, key: str, cost: int) -> Taken:
    rate: Rate = getattr(board.settings, kind)
    name = f"{kind}:{key}"
    if kind != "worker":
        return await board.database.write(take, board, name, rate, cost)
    while board.spare.get(name, 0) < cost:
        if name not in board.refills:  # one at a time: calls that come at once share it, and don't hoard
            board.refills[name] = asyncio.ensure_future(_refill(board, name, rate, cost))
        taken = await asyncio.shield(board.refills[name])
        if not taken.allowed:
            return taken
    board.spare[name] -= cost
    return Taken(True, board.spare[name], 0, 0)


async def _refill(board: Board, name: str, rate: Rate, cost: int) -> Taken:
    """Take a chunk from the row, or where there is none left as much as one call costs."""
    try:
        calls = max(cost, min(CHUNK, rate.burst // 4))
        taken = await board.database.write(take, board, name, rate, calls)
        if not taken.allowed:
            calls = cost
            taken = await board.database.write(take, board, name, rate, calls)
        if taken.allowed:
            board.spare[name] = board.spare.get(name, 0) + calls
        return taken
    finally:  # not a turn of the loop later: who found a refill that is over would ask it for ever
        board.refills.pop(name, None)


def refusal(taken: Taken) -> Refusal:
    """What is said to who must wait."""
    seconds = max(1, -(-taken.retry_after_ms // 1000))
    said = f"Too many calls. Wait {seconds} s, then go on more slowly."
    return Refusal("rate_limited", said, {"retry_after_seconds": seconds})


def take(tx: Tx, board: Board, key: str, rate: Rate, cost: int = 1) -> Taken:
    """Take `cost` from the bucket of this key."""
    table = tables.buckets
    look = tx.locked(sa.select(table.c.arrival).where(table.c.key == key))
    while (row := tx.one(look)) is None:
        tx.insert_new(table, key=key, arrival=0)
    taken = bucket.take(row.arrival, tx.now(), rate.per_second, rate.burst, cost)
    if taken.allowed:
        tx.execute(sa.update(table).where(table.c.key == key).values(arrival=taken.arrival_us))
    return taken


def prune(tx: Tx, board: Board) -> int:
    """Delete buckets that are full again; how many. For the reaper."""
    return tx.execute(sa.delete(tables.buckets).where(tables.buckets.c.arrival < tx.now() * 1000)).rowcount
