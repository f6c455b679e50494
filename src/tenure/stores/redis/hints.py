"""Hints: one connection that listens for as long as anybody watches. A lost hint is no error (R40)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection

from tenure.stores.redis.servers import Servers

# A connection whose other end has vanished tells nothing by itself: after so much silence it is asked.
_SILENCE_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 0.5

Heard = asyncio.Queue[frozenset[str] | None]


class Hints:
    """What was published on one channel, for all who watch; it listens again after any failure."""

    def __init__(self, servers: Servers, channel: str) -> None:
        self._servers, self._channel = servers, channel
        self._watchers: list[Heard] = []
        self._listener: asyncio.Task[None] | None = None

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """The names of each hint, until the store is closed."""
        heard: Heard = asyncio.Queue()
        self._watchers.append(heard)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        try:
            while (names := await heard.get()) is not None:
                yield names
        finally:
            if heard in self._watchers:
                self._watchers.remove(heard)

    async def close(self) -> None:
        """End the listener and all who watch."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        for heard in self._watchers:
            heard.put_nowait(None)

    async def _listen(self) -> None:
        while True:
            connection: AbstractConnection | None = None
            try:
                async with asyncio.timeout(self._servers.settings.timeout):
                    connection = await (await self._servers.node(None)).connected()
                    await connection.send_command("SUBSCRIBE", self._channel, check_health=False)
                while True:
                    self._tell(await self._next(connection))
            except Exception:  # noqa: BLE001, S110 - whatever ended it, nothing rests on hints; reads tell of a failure
                pass
            finally:
                if connection is not None:
                    await connection.disconnect(nowait=True)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _next(self, connection: AbstractConnection) -> Any:
        """The next message. Raises the driver's errors and TimeoutError for a connection that is dead."""
        while True:
            told = await connection.read_response(timeout=_SILENCE_SECONDS)
            if told is not None:
                return told
            async with asyncio.timeout(self._servers.settings.timeout):
                await connection.send_command("PING", check_health=False)
                return await connection.read_response(timeout=math.inf)

    def _tell(self, told: Any) -> None:
        if not isinstance(told, list) or told[0] != b"message":
            return
        try:
            names = frozenset(str(name) for name in json.loads(told[2]))
        except (ValueError, TypeError):
            return  # somebody else's message on our channel
        if names:
            for heard in self._watchers:
                heard.put_nowait(names)
