"""An event loop whose time is turned, not waited for: deterministic, with nodes that freeze, thaw and die.

Every callback belongs to the node in whose context it was scheduled. Within a node the order is asyncio's own;
between nodes a seed decides. Time moves only when nothing is ready, straight to the next timer.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

NODE: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("node", default="world")
# How many callbacks run before the loop looks whether it should stop.
SLICE: Final = 1_000

T = TypeVar("T")


class TurnedLoop(asyncio.BaseEventLoop):
    """`time()` is in seconds since the loop was made. Errors that nobody awaited gather in `errors`."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seconds = 0.0
        self.steps = 0
        self.errors: list[dict[str, Any]] = []
        self._random = random.Random(seed)  # noqa: S311 - a seed is to decide
        self._queues: dict[str, deque[Call]] = {}
        self._awake: list[str] = []
        self._timers: list[tuple[float, int, Call]] = []
        self._number = itertools.count()
        self._frozen: set[str] = set()
        self._dead: set[str] = set()
        self.set_exception_handler(lambda _, told: self.errors.append(told))

    # --- what asyncio asks of a loop --------------------------------------------------------------------

    def time(self) -> float:
        return self.seconds

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        call = Call(callback, args, context)
        self._push(call)
        return call

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        call = Call(callback, args, context)
        heapq.heappush(self._timers, (when, next(self._number), call))
        return call

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        call = Call(callback, args, context)
        heapq.heappush(self._timers, (self.seconds + max(0.0, delay), next(self._number), call))
        return call

    def _write_to_self(self) -> None:
        pass  # there is nobody to wake

    def _process_events(self, event_list: Any) -> None:
        pass  # there is no selector

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """No threads under turned time: the call is made at once."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is handed on to who awaits
            future.set_exception(error)
        return future

    def _push(self, call: Call) -> None:
        node = call.node
        queue = self._queues.get(node)
        if queue:
            queue.append(call)
        elif node not in self._dead:
            if queue is None:
                queue = self._queues[node] = deque()
            if node not in self._frozen:
                self._awake.append(node)
            queue.append(call)

    def _run_once(self) -> None:
        """Whole slices of calls, written for speed: a simulated hour is a million of them."""
        timers, awake, queues, draw = self._timers, self._awake, self._queues, self._random.random
        for _ in range(SLICE):
            while timers and timers[0][0] <= self.seconds:
                call = heapq.heappop(timers)[2]
                if not call.over:
                    self._push(call)
            if not awake:
                if not timers:
                    raise RuntimeError("nothing is ready and no timer is set: whatever is awaited never comes")
                self.seconds = timers[0][0]
                continue
            place = int(draw() * len(awake)) if len(awake) > 1 else 0
            queue = queues[awake[place]]
            call = queue.popleft()
            if not queue:
                awake[place] = awake[-1]
                awake.pop()
            if call.over:
                continue
            self.steps += 1
            run, callback, args = call.work
            try:
                run(callback, *args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as asyncio's handles do
                self.call_exception_handler({"message": f"in {callback!r}", "exception": error, "handle": call})
            if self._stopping:  # type: ignore[attr-defined]
                return

    # --- nodes ------------------------------------------------------------------------------------------

    def spawn(self, node: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that belongs to `node`; what it starts belongs to it too."""
        return self.create_task(work, context=on_node(node))

    def freeze(self, node: str) -> None:
        """Time goes on, the node does not: SIGSTOP, a stalled machine, a blocked loop."""
        self._frozen.add(node)
        if node in self._awake:
            self._awake.remove(node)

    def thaw(self, node: str) -> None:
        """All that fell due meanwhile runs at once, as after SIGCONT."""
        self._frozen.discard(node)
        if self._queues.get(node) and node not in self._dead and node not in self._awake:
            self._awake.append(node)

    def still(self, node: str) -> bool:
        """Whether it is frozen, or dead."""
        return node in self._frozen or node in self._dead

    def kill(self, node: str) -> None:
        """Nothing of the node runs any more: kill -9."""
        self.freeze(node)
        self._dead.add(node)
        self._queues.pop(node, None)

    def advance(self, seconds: float) -> None:
        """Turn the clock forward, running all that falls due."""
        self.run(asyncio.sleep(seconds))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run until `work` is done."""
        return self.run_until_complete(work)


class Call(asyncio.TimerHandle):
    """A handle that knows its node; asyncio's own take twice as long to make and to run."""

    __slots__ = ("node", "over", "work")

    def __init__(
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> None:
        if context is None:
            context = contextvars.copy_context()
        self.work: tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]] = (context.run, callback, args)
        self.node = context.get(NODE, "world")
        self.over = False

    def cancel(self) -> None:
        self.over = True
        self.work = (_nothing, _nothing, ())  # what it would have called is let go

    def cancelled(self) -> bool:
        return self.over

    def __repr__(self) -> str:
        return f"<Call of {self.node}>"


def _nothing(*_: Any) -> None:
    pass


def on_node(node: str) -> contextvars.Context:
    """A context whose callbacks belong to `node`."""
    context = contextvars.copy_context()
    context.run(NODE.set, node)
    return context
