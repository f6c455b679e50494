"""What happened, told to callbacks, the log and the counters; an error in a listener stops nothing."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.errors import ConfigError
from tenure.rules.instant import iso

NAMES: Final = (
    "won",
    "started",
    "success",
    "failed",
    "skip",
    "backup",
    "takeover",
    "lost",
    "unsure",
    "overdue",
    "drift",
    "handed-over",
    "interrupted",
    "abandoned",
    "missed",
    "stalled",
    "clock",
    "store-down",
    "store-up",
    "retry",
    "warning",
)
_WARNINGS: Final = frozenset(NAMES) - {
    "won",
    "started",
    "success",
    "skip",
    "backup",
    "takeover",
    "handed-over",
    "store-up",
    "retry",
}
# The most events that a reader of `Tenure.events()` may be behind; the oldest are dropped.
BEHIND: Final = 1_000
_QUIET: Final = frozenset(("won", "backup"))

log = logging.getLogger("tenure")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `at` is the store's time in milliseconds; slot None where it is of no run."""

    name: str
    at: int
    runner: str
    job: str = ""
    slot: int | None = None
    request: str = ""
    attempt: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """One line for people."""
        words = [self.name]
        if self.job:
            words.append(self.job)
        if self.slot is not None:
            words.append(iso(self.slot))
        if self.attempt:
            words.append(f"attempt {self.attempt}")
        words += [f"{key}={value}" for key, value in self.detail.items()]
        return " ".join(words)


Listener = Callable[[Event], Any]


def check_event(name: str) -> None:
    """Refuse the name of an event that there is not. Raises ConfigError."""
    if name not in ("*", *NAMES):
        raise ConfigError("event", name, f"is no event. There are: {', '.join(NAMES)}.")


def check_listener(listener: object) -> None:
    """Refuse a listener that could hear nothing. Raises ConfigError."""
    if not callable(listener):
        raise ConfigError("listener", listener, "can't be called; give a function that takes the event.")
    called = getattr(listener, "__call__", None)  # noqa: B004 - an object with an async __call__ is async too
    if any(is_async(one) for one in (listener, called) for is_async in _NOT_PLAIN):
        why = "is async or a generator, and a listener is only called."
        raise ConfigError("listener", getattr(listener, "__name__", listener), why, "Read app.events() in a task.")


_NOT_PLAIN: Final = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)


class Stream:
    """Events for a reader on the loop that makes this; one that is `BEHIND` behind loses the oldest."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._over = False

    def hear(self, event: Event | None) -> None:
        """Put an event, from any thread; None: it was the last one."""
        with contextlib.suppress(RuntimeError):  # the reader's loop is closed
            self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: Event | None) -> None:
        if self._over:
            return
        if self._queue.qsize() >= BEHIND:
            self._queue.get_nowait()
        self._over = event is None
        self._queue.put_nowait(event)

    async def read(self) -> AsyncIterator[Event]:
        while (event := await self._queue.get()) is not None:
            yield event


class Listeners:
    """Whoever hears an app's events, in each of its instances; `current` gives the events of the one that runs."""

    def __init__(self, current: Callable[[], Events | None]) -> None:
        self._current = current
        self._listed: list[tuple[str, Listener]] = []
        self._streams: set[Stream] = set()

    def join(self, events: Events) -> None:
        """A new instance tells them all."""
        for name, listener in self._listed:
            events.on(name, listener)

    def on(self, name: str, listener: Any) -> Any:
        """Add one; `...`: a decorator that does."""
        check_event(name)

        def add(one: Listener) -> Listener:
            check_listener(one)
            self.listen(name, one)
            return one

        return add if listener is ... else add(listener)

    def listen(self, name: str, listener: Listener) -> Callable[[], None]:
        """Hear from now on, in every instance; returns how to stop."""
        self._listed.append((name, listener))
        current = self._current()
        stop = current.on(name, listener) if current is not None else lambda: None

        def end() -> None:
            self._listed.remove((name, listener))
            stop()

        return end

    async def stream(self, name: str) -> AsyncIterator[Event]:
        """Events from now on, until `end`."""
        check_event(name)
        stream = Stream()
        self._streams.add(stream)
        end = self.listen(name, stream.hear)
        try:
            async for event in stream.read():
                yield event
        finally:
            end()
            self._streams.discard(stream)

    def end(self) -> None:
        """The instance has stopped: whoever reads a stream comes to its end."""
        for stream in tuple(self._streams):
            stream.hear(None)


class Events:
    """Tells every listener of every event, in order. `deliver` runs a call where the user's code lives."""

    def __init__(self, runner: str, deliver: Callable[[Callable[[], None]], None]) -> None:
        self.runner = runner
        self.counts: Counter[tuple[str, str]] = Counter()
        self.recent: deque[Event] = deque(maxlen=200)
        self._deliver = deliver
        self._listeners: list[tuple[str, Listener]] = []
        self._paused: set[str] = set()

    def on(self, name: str, listener: Listener) -> Callable[[], None]:
        """Hear events of this name, or of all by `*`. Returns how to stop."""
        entry = (name, listener)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry) if entry in self._listeners else None

    def emit(self, event: Event) -> None:
        """Tell it: to the log at once, to the listeners where they live."""
        self.counts[event.job, event.name] += 1
        self.recent.append(event)
        level = logging.WARNING if event.name in _WARNINGS else logging.INFO
        if event.name in _QUIET or self._paused_still(event):
            level = logging.DEBUG
        if log.isEnabledFor(level):
            run = {"job": event.job, "slot": event.slot, "attempt": event.attempt, "runner": event.runner}
            more = {"request": event.request, "store_time": event.at, "detail": dict(event.detail)}
            log.log(level, "%s", event.line(), extra={"event": event.name, **run, **more})
        for name, listener in tuple(self._listeners):
            if name in ("*", event.name):
                self._deliver(lambda listener=listener: _hear(listener, event))  # type: ignore[misc]

    def _paused_still(self, event: Event) -> bool:
        """Whether this is one more slot of a pause that the log has told of."""
        paused = event.name == "skip" and event.detail.get("why") == "paused"
        told = event.job in self._paused
        (self._paused.add if paused else self._paused.discard)(event.job)
        return paused and told


def _hear(listener: Listener, event: Event) -> None:
    try:
        listener(event)
    except Exception:
        log.exception("a listener of %r raised; the run goes on", event.name)
