"""Hints: LISTEN on a connection of its own, made anew when it breaks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import psycopg

from tenure.errors import StoreError
from tenure.stores.postgres.connecting import Link, Server
from tenure.stores.postgres.documents import Hints, told_names

# How long a notification of our own is waited for where a pooler may swallow it.
_PROBE_SECONDS: Final = 1.0
# A connection whose other end stands still tells nothing by itself: after so much silence it is asked.
_SILENCE_SECONDS: Final = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Listener:
    """Hears what other processes changed; `told` hears of it on the loop. `seconds`: how long an answer may take."""

    def __init__(self, server: Server, hints: Hints, told: Callable[[frozenset[str]], None], seconds: float) -> None:
        self._server, self._hints, self._told, self._seconds = server, hints, told, seconds
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, direct: bool) -> str | None:
        """Begin to listen. Where that is impossible, the sentence to warn with.

        direct: the connection is one that the user gave for this. Raises StoreError.
        """
        link = await self._server.connect()
        try:
            if link.pooled and not (direct and await self._hears(link)):
                await self._server.dismiss(link)
                return (
                    f"{self._server.where} is reached through a pooler that passes on no notifications, so changes by "
                    f"other processes are seen a little later. Give the server's own address as ?direct_url=... too."
                )
            await self._listen(link)
        except psycopg.Error as error:
            await self._server.dismiss(link, broken=True)
            return f"{self._server.where} does not let Tenure listen for changes ({error}), so they are seen later."
        except BaseException:
            await self._server.dismiss(link, broken=True)
            raise
        self._link = link
        self._task = asyncio.create_task(self._run())
        return None

    async def _listen(self, link: Link) -> None:
        await link.execute(f'LISTEN "{self._hints.channel}"'.encode())

    async def _hears(self, link: Link) -> bool:
        """Whether a notification comes through. It is sent from elsewhere: even a pooler passes on one's own."""
        await self._listen(link)
        other = await self._server.connect()
        try:
            payload = f'["{self._hints.origin}", []]'
            await other.execute("SELECT pg_catalog.pg_notify(%s, %s)", (self._hints.channel, payload))
        finally:
            await self._server.dismiss(other)
        async for _ in link.notifies(timeout=_PROBE_SECONDS, stop_after=1):
            return True
        await link.execute("UNLISTEN *")
        return False

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(self._seconds):
                    if self._link is None:
                        self._link = await self._server.connect()
                    await self._listen(self._link)  # again after a silence: whether anybody is there
                pause = _FIRST_PAUSE
                async for notification in self._link.notifies(timeout=_SILENCE_SECONDS):
                    self._hear(notification.payload)
            except (psycopg.Error, StoreError, OSError):
                await self._hang_up()
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await self._server.dismiss(link, broken=True)

    def _hear(self, payload: str) -> None:
        with contextlib.suppress(ValueError, TypeError):  # anybody may notify; what is not ours is passed over
            origin, names = told_names(payload)
            if origin != self._hints.origin and names:
                self._told(names)

    async def stop(self) -> None:
        """Stop listening, and close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._hang_up()
