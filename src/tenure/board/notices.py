"""Notices: how servers tell each other that something is worth looking at. Hints; the database says what is true.

On PostgreSQL they travel by NOTIFY inside the transaction that makes them true, and each server listens on one
connection of its own; on SQLite, which one server has, they are handed over in the process.
Kinds: `todo` (an endpoint has a ready todo), `endpoint` (an endpoint's settings were edited), `ended` (an endpoint was
revoked or has expired), `board` (a human's board looks different), `schedule` (a schedule was edited), `cancel` (a
waiting call was given up).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from tenure.board.database import CHANNEL, Database, Notice
from tenure.board.refused import Refused

log = logging.getLogger("tenure.board")
PAUSE_SECONDS: Final = 0.5
# A listening connection that doesn't answer for so long is dead: what it would have told is unknown (B25).
SILENCE_SECONDS: Final = 1.0
# It is asked for an answer so often: one whose words are swallowed on the way looks like one with nothing to say.
ASK_SECONDS: Final = 0.25
# What is told by almost every call is gathered for so long, and told once.
GATHER_SECONDS: Final = 0.2


class Ear:
    """One listener's ear: set when a notice for it came, and whenever notices may have been missed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for a ring, at most so long; True if there was one. Rings before the wait are not lost."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Notices:
    """Subscribers by kind and key. Everything here runs on the server's loop, but `hear`, which any thread may call."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ears: defaultdict[Notice, set[Ear]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gathered: set[Notice] = set()
        self._silence: asyncio.TimerHandle | None = None
        self.connected = False
        # The connection has been gone for a second: what was revoked meanwhile is not known. `on_deaf` is called then.
        self.deaf = False
        self.on_deaf: list[Callable[[], None]] = []

    async def open(self) -> None:
        """Begin to hear."""
        self._loop = asyncio.get_running_loop()
        if self._database.postgres:
            self._task = asyncio.create_task(self._listen(), name="tenure notices")
            self._teller = asyncio.create_task(self._tell(), name="tenure notices, gathered")
            self._database.gather = self._gathered.add
        else:
            self._database.heard = self.hear
            self.connected = True

    async def close(self) -> None:
        """Stop hearing."""
        self._database.gather = None
        for task in (self._task, self._teller):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if self._silence is not None:
            self._silence.cancel()

    @contextlib.contextmanager
    def ear(self, *notices: Notice) -> Iterator[Ear]:
        """An ear for these notices, as long as the block lasts."""
        ear = Ear()
        for notice in notices:
            self._ears[notice].add(ear)
        try:
            yield ear
        finally:
            for notice in notices:
                self._ears[notice].discard(ear)
                if not self._ears[notice]:
                    del self._ears[notice]

    def hear(self, notices: list[Notice]) -> None:
        """Ring for these notices; may be called by any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring, notices)

    def _ring(self, notices: list[Notice]) -> None:
        for notice in notices:
            for ear in tuple(self._ears.get(notice, ())):
                ear.ring()

    def ring_all(self) -> None:
        """Ring every ear: notices may have been missed."""
        for ears in tuple(self._ears.values()):
            for ear in tuple(ears):
                ear.ring()

    async def _tell(self) -> None:
        """Send what was gathered. A hint that can't be sent is dropped: what it told of will be told of again."""
        while True:
            await asyncio.sleep(GATHER_SECONDS)
            told = [self._gathered.pop() for _ in range(len(self._gathered))]
            if told:
                try:
                    await self._database.write(self._database.send, told)
                except Refused:
                    continue
                except Exception:  # whatever it was, what is told next is tried
                    log.exception("notices: what was gathered could not be told")

    async def _listen(self) -> None:
        self._doubt()
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
                if self.connected:
                    log.warning("notices: the connection was lost (%s); trying again", type(error).__name__)
            self.connected = False
            self._doubt()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen_once(self) -> None:
        connection = await self._connect()
        async with connection:
            await self._ask(connection, f"LISTEN {CHANNEL}")
            self.ring_all()
            while True:
                async for notify in connection.notifies(timeout=ASK_SECONDS):
                    kind, _, key = notify.payload.partition(":")
                    self._ring([(kind, key)])
                await self._ask(connection, "SELECT 1")

    async def _ask(self, connection: Any, question: str) -> None:
        """Ask for an answer within the silence."""
        self._doubt()
        # The driver, interrupted, asks the server to stop and waits 10 s for that; interrupted again, it lets go.
        async with asyncio.timeout(2 * SILENCE_SECONDS), asyncio.timeout(SILENCE_SECONDS):
            await connection.execute(question)
        self._trust()

    def _doubt(self) -> None:
        """Deaf, unless an answer comes within the silence. A clock of its own: to give a connection up takes longer."""
        if self._silence is None:
            self._silence = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._deafen)

    def _trust(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        self._silence, self.connected, self.deaf = None, True, False

    def _deafen(self) -> None:
        log.warning("notices: nothing can be heard; streams and waiting calls end until it can")
        self.connected, self.deaf = False, True
        for step in self.on_deaf:
            step()

    async def _connect(self) -> Any:
        import psycopg

        url = self._database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return await psycopg.AsyncConnection.connect(
            url, autocommit=True, connect_timeout=5, application_name="tenure board notices", tcp_user_timeout=2000
        )
