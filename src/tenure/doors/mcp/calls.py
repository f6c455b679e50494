"""The calls that are open on this server: waiting ones and streams. What ends them, and how many there may be.

A call ends when its client hangs up or cancels it, and when this server is asked to stop or has gone deaf. It must
not know what a call does, nor any rule.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.types import Message, Receive

from tenure.board.access import UNAUTHENTICATED, Worker, worker_by_credential
from tenure.board.board import Board
from tenure.board.database import Notice, Tx
from tenure.board.refused import Refused
from tenure.board.secrets import Secret, digest
from tenure.rules.refusal import Refusal

# So many streams and waiting calls one endpoint may have open on one server.
OPEN_LIMIT: Final = 200
TOO_MANY: Final = Refusal(
    "rate_limited",
    f"This endpoint has {OPEN_LIMIT} streams and waiting calls open. Close some, or try again in a moment.",
    {"retry_after_seconds": 5},
)
DEAF: Final = Refusal(
    "unavailable",
    "This server can't hear of changes at the moment, so it opens no stream. Try again in a moment.",
    {"retry_after_seconds": 2},
)


class Call:
    """One request of an endpoint: who sent it, and whether anyone still waits for its answer.

    `worker` is read before anything is answered, but for a tool that is called and answered at once: what the
    credential opens is read in the very transaction of the verb then; `denied` is what that came to, if it came to
    nothing, and `declined` that its endpoint speaks another generation of the protocol.
    """

    def __init__(self, board: Board, credential: str, slug: str, *, modern: bool) -> None:
        self._board, self._secret, self._slug, self.modern = board, Secret(credential), slug, modern
        self.key = digest(credential)
        self.endpoint_id = ""
        self.gone = asyncio.Event()
        self.denied: Refusal | None = None
        self.refused: Refusal | None = None  # before its tool was called, though it is the tool's result
        self.declined = False
        self.read = False  # whether what the credential opens was read at all
        self._worker: Worker | None = None

    @property
    def worker(self) -> Worker:
        """Who sent it, as read by `identify`."""
        if self._worker is None:
            raise Refused(UNAUTHENTICATED)
        return self._worker

    async def identify(self) -> Worker:
        """Read what the credential opens, if that was not done. Raises Refused."""
        if self._worker is None:
            self._worker = await self.again()
            self.endpoint_id = self._worker.id
        return self._worker

    async def again(self) -> Worker:
        """Read what the credential opens now. Raises Refused."""
        return await self._board.database.read(self.opens)

    def opens(self, tx: Tx) -> Worker:
        """The worker whose credential this is. Raises Refused."""
        self.read = True
        return worker_by_credential(tx, self._board, self._secret.reveal(), self._slug)

    def hearing(self, receive: Receive) -> Receive:
        """`receive`, by which the call learns that its client hung up."""

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
            return message

        return heard


class Calls:
    """The open calls of this server."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._open: set[Call] = set()
        self._each: Counter[str] = Counter()
        self.draining = False
        board.notices.on_deaf.append(self.end)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._open))

    @contextlib.contextmanager
    def opened(self, call: Call) -> Iterator[None]:
        """Count `call` as open and end it with the others. Raises Refused when its endpoint has too many."""
        endpoint = call.endpoint_id
        if self._each[endpoint] >= OPEN_LIMIT:
            raise Refused(TOO_MANY)
        if self.draining:
            call.gone.set()
        self._open.add(call)
        self._each[endpoint] += 1
        try:
            yield
        finally:
            self._open.discard(call)
            self._each[endpoint] -= 1
            if not self._each[endpoint]:
                del self._each[endpoint]

    @contextlib.asynccontextmanager
    async def cancellable(self, call: Call, session: str, request_id: object) -> AsyncIterator[None]:
        """While the block lasts, `cancel` with the same session and request id ends `call`, on whatever server."""
        with self._board.notices.ear(_notice(call, session, request_id)) as ear:

            async def told() -> None:
                await ear.wait()
                call.gone.set()

            task = asyncio.create_task(told())
            try:
                yield
            finally:
                task.cancel()

    async def cancel(self, call: Call, session: str, request_id: object) -> None:
        """End the waiting call of this endpoint, session and request id, here or on another server."""
        notice = _notice(call, session, request_id)
        self._board.notices.hear([notice])
        if self._board.database.postgres:
            await self._board.database.write(_tell, notice)

    def end(self) -> None:
        """End every open call: clients of streams come back, those that wait are told that there is nothing."""
        for call in self:
            call.gone.set()

    def drain(self) -> None:
        """End every open call, and each later one at once: this server stops."""
        self.draining = True
        self.end()


def _tell(tx: Tx, notice: Notice) -> None:
    tx.notify(*notice)


def _notice(call: Call, session: str, request_id: object) -> Notice:
    return "cancel", digest(f"{call.endpoint_id} {session} {request_id!r}")
