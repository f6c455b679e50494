"""One board's doors as one ASGI app, and what runs beside them while it is served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from tenure.board.board import Board
from tenure.board.reaper import Reaper
from tenure.bridge import Bridge
from tenure.doors.mcp import mcp_app
from tenure.doors.rest.app import rest_app
from tenure.doors.rest.hooks import HooksDoor
from tenure.doors.rest.work import WorkDoor
from tenure.doors.web.app import web_app
from tenure.doors.web.sources import Source
from tenure.serve.front import LOOPBACK, Front
from tenure.serve.health import PATHS, Health
from tenure.serve.metrics import Metrics

log = logging.getLogger("tenure.board")
AGAIN_SECONDS: Final = 1.0


class Site:
    """The doors of a board. Serve it inside `async with site.open():`, and `drain()` it before the end."""

    def __init__(
        self,
        board: Board,
        *,
        sources: Sequence[Source] = (),
        hosts: Collection[str] = (),
        metrics_token: str | None = None,
        bridge: Bridge | None = None,
    ) -> None:
        from importlib.metadata import version

        self.board, self.bridge, self.draining = board, bridge, False
        if bridge is not None:
            title = "Schedules of this board"
            own = Source("schedules", title, bridge.app, bridge.owned, bridge.steer, bridge.titles)
            sources = [own, *sources]
        public = urlsplit(board.settings.public_url)
        origins = [f"{public.scheme}://{public.netloc}"]
        if public.port is not None:  # this machine's own browser may call it by another of its names
            origins += [f"{public.scheme}://{name}:{public.port}" for name in LOOPBACK]
        self.metrics = Metrics()
        self.rest = rest_app(board, version("tenure"), origins)
        self.work, self.mcp, self.web = WorkDoor(board, origins), mcp_app(board, hosts), web_app(board, sources)
        health = Health(board, self.metrics, metrics_token, lambda: self.draining)
        doors: dict[str, ASGIApp] = {
            "api": self.rest,
            "work": self.work,
            "hooks": HooksDoor(board),
            "mcp": self.mcp,
            "": self.web,
            **dict.fromkeys(PATHS, health),
        }
        self._front = Front(doors, {public.hostname or "", *hosts}, self.metrics, secure=public.scheme == "https")
        self.metrics.gauge(
            "tenure_notices_connected", "1: this server hears what others change.", lambda: board.notices.connected
        )
        live = self.web.state.live
        self.metrics.gauge(
            "tenure_open_calls",
            "Calls that wait and streams that are open.",
            lambda: len(self.mcp.calls) + self.work.waiting + live.streams,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._front(scope, receive, send)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """What must run while requests are answered; the board is closed at the end."""
        await self.board.open()
        reaping = asyncio.create_task(_kept_up(Reaper(self.board).run), name="tenure reaper")
        try:
            async with self.mcp.open(), self._schedules():
                yield
        finally:
            self.drain()
            reaping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reaping
            await self.board.close()

    @contextlib.asynccontextmanager
    async def _schedules(self) -> AsyncIterator[None]:
        if self.bridge is None:
            yield
            return
        await self.bridge.start()
        try:
            yield
        finally:
            await self.bridge.stop()

    def drain(self) -> None:
        """End all streams and waiting calls, the latter with a clean "nothing"; requests under way go on."""
        if not self.draining:
            self.draining = True
            self.work.drain()
            self.mcp.drain()
            self.web.state.live.close()


async def _kept_up(run: Callable[[], Awaitable[None]]) -> None:
    """Run it for ever: what breaks it is a fault of ours, which is told, and must not end the server's upkeep."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("the reaper failed, and goes on in %s s", AGAIN_SECONDS)
        await asyncio.sleep(AGAIN_SECONDS)
