"""How a handler is told to stop, whichever thread or loop it runs on. Knows no run."""

from __future__ import annotations

import asyncio
import threading


class Signal:
    """Set once, when a run should stop. For a sync handler `wait` blocks its thread; an async one awaits `wait`."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[bool]]] = []

    def is_set(self) -> bool:
        """Whether the run should stop; from any thread."""
        return self._set.is_set()

    __bool__ = is_set  # whoever writes `if run.lost:` means just that

    def set(self) -> None:
        """Tell everybody; from any thread, any number of times."""
        with self._lock:
            self._set.set()
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda one=future: one.done() or one.set_result(True))  # type: ignore[misc]

    async def within(self, seconds: float) -> bool:
        """Wait until it is set, at most so long; whether it is."""
        try:
            async with asyncio.timeout(seconds):
                return await self._turned()
        except TimeoutError:
            return False

    async def _turned(self) -> bool:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._set.is_set():
                return True
            future: asyncio.Future[bool] = loop.create_future()
            self._waiting.append((loop, future))
        try:
            return await future
        finally:
            with self._lock:
                if (loop, future) in self._waiting:
                    self._waiting.remove((loop, future))


class ThreadSignal(Signal):
    """The signal of a sync handler."""

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until the run should stop, at most `timeout` seconds; whether it should."""
        return self._set.wait(timeout)


class LoopSignal(Signal):
    """The signal of an async handler."""

    async def wait(self) -> bool:
        """Wait until the run should stop."""
        return await self._turned()
