"""The board for asyncio programs."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import httpx2

from tenure.client import calls
from tenure.client.verbs import Verbs
from tenure.client.work import Task, Work

__all__ = ["AsyncBoard", "Work"]


class AsyncBoard(Verbs):
    """A board at `url`, asked with an endpoint's `credential` (to work) or a human's `token` (REST).

    Use it as an async context manager, or close it. Raises Refused for what the board refuses, and Unreachable when
    no answer came for `patience_seconds`; until then calls that can be known again are sent again.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        *,
        credential: str | None = None,
        token: str | None = None,
        worker: str | None = None,
        patience_seconds: float = calls.PATIENCE_SECONDS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.url, self.worker, self.patience_seconds = calls.address(url), worker, patience_seconds
        self._held: set[Task] = set()
        self.answered = False  # by the board itself, since this was last set
        headers = calls.authorization(credential or token)
        self._http = httpx2.AsyncClient(base_url=self.url, headers=headers, transport=transport, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. What a loop was left with is told first: it is told of its end later than we are."""
        try:
            for task in tuple(self._held):
                await task.left_behind()
        finally:
            await self._http.aclose()

    async def ask(self, call: calls.Call, patience_seconds: float | None = None) -> Any:
        """Send a call, again where that is harmless; returns the answer's JSON, None for an empty one."""
        patience = calls.Patience(self.patience_seconds if patience_seconds is None else patience_seconds)
        while True:
            try:
                answer = await self._http.request(**calls.request_of(call))
            except httpx2.TransportError as error:
                pause = patience.pause(None) if calls.sendable_again(call, error) else None
                if pause is None:
                    raise calls.unreachable(self.url, error) from error
            else:
                read = calls.read(answer)
                pause = patience.pause(answer.headers.get("Retry-After")) if read.asks_again(call) else None
                if pause is None:
                    self.answered |= answer.status_code not in calls.LATER
                    return read.value()
            await asyncio.sleep(pause)

    def work(self, *queues: str, max_todos: int | None = None, idle_seconds: float | None = None) -> Work:
        """Todos of these queues (all of the endpoint's without any), one after the other, for `async for`.

        `max_todos`: end after so many; `idle_seconds`: end when there was nothing to do for so long. Claims are renewed
        while the body runs. See `Work` for how a todo ends.
        """
        return Work(self, queues, max_todos, idle_seconds, self._held)
