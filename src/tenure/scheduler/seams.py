"""What an instance takes from the world, each replaceable: its clocks, its chance, and where handlers run.

Production gives the machine's; tests and simulations give turned clocks, seeds and their own loop.
"""

from __future__ import annotations

import asyncio
import queue
import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Handler = Callable[..., Any]


class Clock(Protocol):
    """An instance's own clocks, in milliseconds."""

    def boot(self) -> float:
        """Since some moment of the past, never stepping, running during suspend where the system has such a clock."""
        ...

    def wall(self) -> float:
        """Since the Unix epoch, as this machine believes."""
        ...


class SystemClock:
    """The machine's clocks: CLOCK_BOOTTIME on Linux, since `monotonic` stops during suspend there."""

    _boottime = getattr(time, "CLOCK_BOOTTIME", None)

    def boot(self) -> float:
        if self._boottime is None:
            return time.monotonic() * 1000
        return time.clock_gettime(self._boottime) * 1000

    def wall(self) -> float:
        return time.time() * 1000


class Chance(Protocol):
    """Random draws, and secrets nobody can guess."""

    def draw(self) -> float:
        """0 <= draw < 1."""
        ...

    def token(self) -> str:
        """A new token of at least 128 bits."""
        ...


class SystemChance:
    """Seeded by the system; tokens by its secure source."""

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311 - jitter is no secret; tokens are drawn by secrets

    def draw(self) -> float:
        return self._random.random()

    def token(self) -> str:
        return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a handler ended: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


Told = Callable[[Ended], None]
Begun = Callable[[], None]


class Stage(Protocol):
    """Where handlers run: never where leases are kept (R23)."""

    @property
    def alive(self) -> bool:
        """Whether handlers can still be started: the user's loop may have been closed."""
        ...

    def play(
        self, handler: Handler, arguments: tuple[Any, ...], is_async: bool, begun: Begun, told: Told
    ) -> Callable[[], None]:
        """Start a handler. Returns how to cancel it.

        On the calling loop `begun` is called when it really runs, then `told`, once, when it has ended.
        """
        ...

    def ping(self, pong: Callable[[], None]) -> None:
        """Have `pong` called on the calling loop once the handlers' loop has turned."""
        ...

    def deliver(self, call: Callable[[], None]) -> None:
        """Run a listener's call where the user's code lives."""
        ...

    def close(self) -> None:
        """No more handlers will be started."""
        ...


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: Any) -> None:
    """Call on another thread's loop, if that is still open: what an abandoned handler says is not heard."""
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


async def perform(handler: Handler, arguments: tuple[Any, ...], is_async: bool) -> Ended:
    """Run a handler to its end, whatever that is: nothing it raises reaches the loop it runs on."""
    try:
        value = handler(*arguments)
        return Ended(await value if is_async else value)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome, SystemExit too
        return Ended(error=error)


def outcome(task: asyncio.Task[Ended]) -> Ended:
    """How a task of `perform` ended; one that was cancelled before it began has performed nothing."""
    return Ended(error=asyncio.CancelledError("the handler was cancelled")) if task.cancelled() else task.result()


_WITHDRAWN: Final = asyncio.CancelledError("the handler was withdrawn before it began")


class Waiting:
    """A sync handler that waits for a thread: it begins, or is withdrawn, whichever comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = True

    def _decide(self) -> bool:
        with self._lock:
            decided, self._open = self._open, False
        return decided

    begin = withdraw = _decide


class LoopStage:
    """Async handlers as tasks of the user's loop, sync ones in daemon threads (R31)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int = 64) -> None:
        self._loop = loop
        self._threads = Threads(threads)

    @property
    def alive(self) -> bool:
        return not self._loop.is_closed()

    def play(
        self, handler: Handler, arguments: tuple[Any, ...], is_async: bool, begun: Begun, told: Told
    ) -> Callable[[], None]:
        engine = asyncio.get_running_loop()
        if not is_async:
            waiting = Waiting()
            self._threads.submit(lambda: self._in_thread(engine, waiting, handler, arguments, begun, told))
            return lambda: told(Ended(error=_WITHDRAWN)) if waiting.withdraw() else None
        tasks: list[asyncio.Task[Ended]] = []

        def begin() -> None:
            _tell(engine, begun)
            task = self._loop.create_task(perform(handler, arguments, True))
            tasks.append(task)
            task.add_done_callback(lambda done: _tell(engine, told, outcome(done)))

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        _tell(self._loop, begin)
        return lambda: _tell(self._loop, cancel)

    @staticmethod
    def _in_thread(  # noqa: PLR0917 - one thing each
        engine: asyncio.AbstractEventLoop,
        waiting: Waiting,
        handler: Handler,
        arguments: tuple[Any, ...],
        begun: Begun,
        told: Told,
    ) -> None:
        if not waiting.begin():
            return
        _tell(engine, begun)
        try:
            ended = Ended(handler(*arguments))
        except BaseException as error:  # noqa: BLE001 - as in `perform`
            ended = Ended(error=error)
        _tell(engine, told, ended)

    def ping(self, pong: Callable[[], None]) -> None:
        engine = asyncio.get_running_loop()
        _tell(self._loop, lambda: _tell(engine, pong))

    def deliver(self, call: Callable[[], None]) -> None:
        _tell(self._loop, call)

    def close(self) -> None:
        self._threads.close()


@dataclass
class Threads:
    """At most `most` daemon threads, made when needed. Not an executor: those keep a process from ending
    while a handler that was abandoned still runs."""

    most: int
    _work: queue.SimpleQueue[Callable[[], None] | None] = field(default_factory=queue.SimpleQueue)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _made: int = 0
    _free: int = 0

    def submit(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._made < self.most:
                self._made += 1
                self._free += 1
                threading.Thread(target=self._serve, name=f"tenure-handler-{self._made}", daemon=True).start()
        self._work.put(call)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call()
            with self._lock:
                self._free += 1

    def close(self) -> None:
        for _ in range(self._made):
            self._work.put(None)
