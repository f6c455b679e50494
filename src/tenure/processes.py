"""How an app runs: as a process of its own, with signals, or in a thread beside a sync host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

INTERRUPTED = 130


class App(Protocol):
    """What can be started and stopped: `Tenure`."""

    async def start(self, only: Iterable[str] | None = None) -> None: ...

    async def stop(self, timeout: Any = None) -> None: ...  # noqa: ASYNC109 - as Tenure.stop


# A launcher such as `uv run` or `timeout` hands on a signal that the terminal has sent us already: one, not two.
SAME_SIGNAL = 0.1


def run(
    app: App,
    only: Iterable[str] | None,
    stop_timeout: Any,
    begun: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Run until SIGTERM or SIGINT, then stop; a second signal ends at once (R28). `say` tells people of it."""
    return asyncio.run(_run(app, only, stop_timeout, begun, say))


async def _run(
    app: App, only: Iterable[str] | None, stop_timeout: Any, begun: Callable[[], None], say: Callable[[str], None]
) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    first = 0.0

    def told(number: int) -> None:
        nonlocal first
        if stopping.is_set() and loop.time() - first < SAME_SIGNAL:
            return
        if stopping.is_set():
            with contextlib.suppress(OSError):  # nobody reads it any more
                say("ended at once; leases run out by themselves")
                sys.stderr.flush()
            os._exit(INTERRUPTED if number == signal.SIGINT else 128 + number)
        first = loop.time()
        stopping.set()

    def from_handler(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(told, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, told, number)
        except NotImplementedError:  # Windows
            signal.signal(number, from_handler)
    await app.start(only)
    begun()
    await stopping.wait()
    with contextlib.suppress(OSError):
        say("stopping: running handlers are finished or handed over (once more to leave at once)")
    await app.stop(stop_timeout)
    return 0


class Running:
    """An app that runs in a thread: `stop()` it, or use it as a context manager. Its thread is a daemon."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="tenure-handlers", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(app.start(), self._loop).result()
        except BaseException:
            self._end()
            raise

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def stop(self, timeout: Any = None) -> None:
        """Stop the instance and end the thread."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._app.stop(timeout), self._loop).result()
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
