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
        self._queues: dict[str, deque[asyncio.Handle]] = {}
        self._awake: list[str] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
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
        handle = asyncio.Handle(callback, args, self, context)
        self._push(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._number), handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.seconds + max(0.0, delay), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # a cancelled timer is passed over when its time comes

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

    def _push(self, handle: asyncio.Handle) -> None:
        node = _node(handle)
        if node in self._dead:
            return
        queue = self._queues.setdefault(node, deque())
        if not queue and node not in self._frozen:
            self._awake.append(node)
        queue.append(handle)

    def _run_once(self) -> None:
        for _ in range(SLICE):
            while self._timers and self._timers[0][0] <= self.seconds:
                timer = heapq.heappop(self._timers)[2]
                if not timer.cancelled():
                    self._push(timer)
            if not self._awake:
                if not self._timers:
                    raise RuntimeError("nothing is ready and no timer is set: whatever is awaited never comes")
                self.seconds = self._timers[0][0]
                continue
            self._step()
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _step(self) -> None:
        place = int(self._random.random() * len(self._awake)) if len(self._awake) > 1 else 0
        queue = self._queues[self._awake[place]]
        handle = queue.popleft()
        if not queue:
            self._awake[place] = self._awake[-1]
            self._awake.pop()
        if not handle.cancelled():
            self.steps += 1
            handle._run()  # noqa: SLF001 - this is the loop

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


def on_node(node: str) -> contextvars.Context:
    """A context whose callbacks belong to `node`."""
    context = contextvars.copy_context()
    context.run(NODE.set, node)
    return context


def _node(handle: asyncio.Handle) -> str:
    return handle._context.get(NODE, "world")  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001
