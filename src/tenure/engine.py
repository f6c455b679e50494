"""The thread and loop in which a scheduler lives, apart from every handler (R23)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Engine:
    """A daemon thread with an event loop of its own; made on first use, and again in a forked child (R45a)."""

    def __init__(self, name: str = "tenure-engine") -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._lock = threading.Lock()

    @property
    def mine(self) -> bool:
        """Whether it runs, in this very process."""
        return self._loop is not None and self._pid == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there; the future is a thread's, wrap it to await it."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and await its end here."""
        return await asyncio.wrap_future(self.submit(work))

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._pid != os.getpid():
            self._lock = threading.Lock()  # another thread of the parent may have held the old one at the fork
        with self._lock:
            if self.mine and self._loop is not None:
                return self._loop
            loop = self._loop = asyncio.new_event_loop()
            self._pid = os.getpid()
            threading.Thread(target=self._serve, args=(loop,), name=self._name, daemon=True).start()
            return loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            pending = asyncio.all_tasks(loop)
            for task in pending:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def close(self) -> None:
        """End the thread; a later use makes a new one."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is not None and self._pid == os.getpid():
                loop.call_soon_threadsafe(loop.stop)
