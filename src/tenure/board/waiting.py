"""`claim_next` that waits: look, listen, look again (B32, B38). Claims nothing for a caller who has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.claims import claim_next, hand_back
from tenure.board.database import Tx
from tenure.board.notices import SILENCE_SECONDS, Ear
from tenure.board.refused import Refused
from tenure.board.shapes import Claimed, Handback, Next
from tenure.rules import bounds, presence
from tenure.rules.refusal import invalid

# A notice is a hint: who waits looks again by itself, so that a lost one costs no more than this.
LOOK_SECONDS: Final = 5.0


class _Gone(Exception):
    """The caller hung up while its claim was being made."""


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
    if not 0 <= wait_seconds <= bounds.WAIT_SECONDS:
        raise Refused(invalid("wait_seconds", f"must be from 0 to {bounds.WAIT_SECONDS}."))
    call = _Call(board, worker_of, ask)
    gone_task = None if gone is None else asyncio.ensure_future(gone)
    if gone_task is not None:
        gone_task.add_done_callback(lambda _: call.leave())
    board.notices.on_deaf.append(call.leave)
    try:
        return await call.answer(asyncio.get_running_loop().time() + wait_seconds)
    except _Gone:
        return call.nothing
    finally:
        call.leave()  # a transaction that a cancelled call has left behind in its thread claims nothing
        board.notices.on_deaf.remove(call.leave)
        if gone_task is not None and gone_task is not gone:
            gone_task.cancel()


class _Call:
    """One waiting call: its looks, and whether anybody still waits for the answer."""

    def __init__(self, board: Board, worker_of: Callable[[Tx], Worker], ask: Next) -> None:
        self._board, self._worker_of, self._ask = board, worker_of, ask
        self._gone = asyncio.Event()
        self.endpoint_id = ""
        self.nothing = Claimed((), 0, None)

    def leave(self) -> None:
        """Nobody waits any more."""
        self._gone.set()

    async def answer(self, deadline: float) -> Claimed:
        """Look, then look again whenever something may be ready, and once more at the deadline."""
        loop = asyncio.get_running_loop()
        claimed = await self._look()
        if not claimed.empty or loop.time() >= deadline:
            return claimed
        if self._board.notices.deaf:  # then no wait outlasts the silence that ended those which had begun (B25)
            deadline = min(deadline, loop.time() + SILENCE_SECONDS)
        with self._board.notices.ear(("todo", self.endpoint_id), ("ended", self.endpoint_id)) as ear:
            ear.ring()  # something may have come between the first look and the ear
            while not self._gone.is_set():
                await self._wait(ear, min(deadline - loop.time(), LOOK_SECONDS))
                last = loop.time() >= deadline
                claimed = await self._look(woken=not last)
                if last or claimed.granted:
                    return claimed
        return self.nothing

    async def _wait(self, ear: Ear, seconds: float) -> None:
        """Until a ring, the end of the wait, or of the caller's interest."""
        tasks = [asyncio.ensure_future(ear.wait(max(0.0, seconds))), asyncio.ensure_future(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _look(self, *, woken: bool = False) -> Claimed:
        """Look; to its end also where the call is cancelled meanwhile: what was claimed then is given back."""
        look = asyncio.ensure_future(self._looked(woken=woken))
        look.add_done_callback(lambda done: done.cancelled() or done.exception())  # which nobody may be there to hear
        return await asyncio.shield(look)

    async def _looked(self, *, woken: bool) -> Claimed:
        claimed = await self._board.database.write(self._case, woken=woken)
        if self._gone.is_set() and not claimed.empty and self._ask.request_id is None:
            await self._board.database.write(self._hand_back, claimed)  # it was claimed in the very moment
            return self.nothing
        return claimed  # who sent a request id and has hung up can ask for it again; who is still there is told

    def _case(self, tx: Tx, *, woken: bool) -> Claimed:
        """Claim what is ready; while out, a wake-up claims nothing (B38), nor does a caller who has gone."""
        worker = self._worker_of(tx)
        here, now = worker.endpoint, tx.now()
        self.endpoint_id, self.nothing = worker.id, Claimed((), now, here.expires)
        if woken and presence.effective(here.override, here.override_until, here.shift, now).value == "out":
            return self.nothing
        claimed = claim_next(tx, self._board, worker, self._ask)
        if self._gone.is_set():
            raise _Gone
        return claimed

    def _hand_back(self, tx: Tx, claimed: Claimed) -> None:
        items = [
            Handback(one.todo.summary.id, one.lease.token.reveal(), "the caller had hung up")
            for one in claimed.granted
            if one.lease.token is not None
        ]
        hand_back(tx, self._worker_of(tx), items)
