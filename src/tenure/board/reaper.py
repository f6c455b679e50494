"""The reaper: requeues what lapsed, wakes what is due, ends what expired, prunes what is old. Any number may run.

Every step is a hint put into effect: whatever it does late, the rules already count as done by the clock (B13, B24).
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.board.board import Board
from tenure.board.database import Tx


class Reaped(NamedTuple):
    """What one round did."""

    lapsed: int = 0
    retried: int = 0
    woken: int = 0
    expired: int = 0
    pruned: int = 0


def reap(tx: Tx, board: Board, limit: int = 500) -> Reaped:
    """One batch of each kind of what is due; call again at once while a kind comes up full."""
    raise NotImplementedError


def prune(tx: Tx, board: Board, limit: int = 500) -> int:
    """Delete a batch of what is kept no longer (B7, B12a, B49): todos with their claims, remembered requests, slots."""
    raise NotImplementedError


class Reaper:
    """The loop of a server: a round every `settings.reaper_seconds`, until it is stopped."""

    def __init__(self, board: Board) -> None:
        self.board = board

    async def run(self) -> None:
        """Reap until cancelled; an unreachable database is waited for."""
        raise NotImplementedError
