"""Server-sent events: each says that a page may look different now, and the page asks for itself again.

A hint, never a fact: what is true is read when the page is asked for. Streams end with the session they began with:
at once where that was ended, by the ring which tells of it, and else at the next look at the clock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.notices import Ear
from tenure.board.refused import Refused
from tenure.doors.web.guard import refused_page, whose
from tenure.doors.web.sources import Source, Versions
from tenure.errors import TenureError
from tenure.rules.refusal import MISSING, Refusal
from tenure.scheduler.overview import versions

STREAMS: Final = 24  # of one human at a time
# A browser is told of changes at most this often, so that a busy board does not ask for itself all the time.
PAUSE_SECONDS: Final = 0.4
# A word on a quiet stream, which keeps proxies from cutting it and finds out who has hung up (case 59).
QUIET_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
CHANGED: Final = "event: changed\ndata: 1\n\n"
OVER: Final = "event: over\ndata: 1\n\n"
MANY: Final = Refusal("rate_limited", "Too many pages are open at once. Close some.", {"retry_after_seconds": 10})


class _Ear(Ear):
    """A human's, which rings when what they may see is not what they saw."""

    def __init__(self, human: Human) -> None:
        super().__init__()
        self.human = human
        self.seen: Versions | None = None

    def see(self, visible: Versions) -> None:
        if visible != self.seen:
            self.ring()
        self.seen = visible


class Watch:
    """Looks at a scheduler's store, as long as anybody wants to know, and rings when what they may see has changed."""

    def __init__(self, source: Source) -> None:
        self._source, self._ears = source, set[_Ear]()
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def ear(self, human: Human) -> Iterator[Ear]:
        """An ear of this human's, as long as the block lasts."""
        ear = _Ear(human)
        self._ears.add(ear)
        if self._task is None:
            self._task = asyncio.create_task(self._look(), name="tenure watch")
        try:
            yield ear
        finally:
            self._ears.discard(ear)
            if not self._ears and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look(self) -> None:
        seen: object = None
        while True:
            with contextlib.suppress(TenureError):
                found = await self._source.ask(versions)
                for ear in tuple(self._ears):
                    if found != seen or ear.seen is None:
                        ear.see(await self._source.visible(ear.human, found))
                seen = found
            await asyncio.sleep(LOOK_SECONDS)


class Live:
    """All streams of this server."""

    def __init__(self, board: Board, sources: dict[str, Source]) -> None:
        self._board = board
        self._watches = {key: Watch(source) for key, source in sources.items()}
        self._open: Counter[str] = Counter()
        self._closing = asyncio.Event()

    @property
    def streams(self) -> int:
        """How many are open."""
        return self._open.total()

    def close(self) -> None:
        """End every stream: the server stops."""
        self._closing.set()

    async def stream(self, request: Request) -> Response:
        """`/live/board`, or `/live/runs/{source}`."""
        human = await whose(request)
        if human is None:
            return Response(status_code=401)
        if self._open[human.id] >= STREAMS:
            return refused_page(request, MANY)
        key = request.path_params.get("source")
        if key is not None and key not in self._watches:
            raise Refused(MISSING)
        events = self._events(request, human, key)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _events(self, request: Request, human: Human, key: str | None) -> AsyncIterator[str]:
        self._open[human.id] += 1
        try:
            with contextlib.ExitStack() as opened:
                # On the board's ear the end of a session is heard, whatever else the stream tells of.
                board = opened.enter_context(self._board.notices.ear(("board", human.id)))
                ear = board if key is None else opened.enter_context(self._watches[key].ear(human))
                # Something may have changed since the page was made, or while the stream was cut.
                yield f"retry: 1000\n{CHANGED}"
                while not self._closing.is_set():
                    rung = await self._wait(ear, board)
                    if self._closing.is_set():
                        return
                    if await whose(request) is None:
                        yield OVER
                        return
                    yield CHANGED if rung else ": quiet\n\n"
                    await asyncio.sleep(PAUSE_SECONDS)
        except Refused:
            return  # the database can't tell whose stream it is: the page comes back, and is told so
        finally:
            self._open[human.id] -= 1

    async def _wait(self, ear: Ear, board: Ear) -> bool:
        """Whether the first rang, before the second did, the quiet has lasted too long, or the server stops."""
        ringing = asyncio.create_task(ear.wait(QUIET_SECONDS))
        others = [] if board is ear else [asyncio.create_task(board.wait())]
        closing = asyncio.create_task(self._closing.wait())
        done, waiting = await asyncio.wait((ringing, closing, *others), return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return ringing in done and ringing.result()
