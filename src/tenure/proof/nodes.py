"""What one node takes from a turned world: its clocks, its chance, and where its handlers run."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tenure.proof.turned import TurnedLoop, on_node
from tenure.scheduler.seams import Begun, Ended, Handler, Told, outcome, perform


class TurnedClock:
    """A node's own clocks: its wall clock is off by `skew_ms`, which does not move `boot`; both go at `rate`."""

    def __init__(self, loop: TurnedLoop, start: int, rate: float = 1.0) -> None:
        self._loop, self._start, self.skew_ms = loop, start, 0.0
        self._ms = 1000 * rate

    def boot(self) -> float:
        return self._loop.seconds * self._ms

    def wall(self) -> float:
        return self._start + self._loop.seconds * self._ms + self.skew_ms


class SeededChance:
    """Draws and tokens that a seed decides."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a seed is to decide

    def draw(self) -> float:
        return self._random.random()

    def token(self) -> str:
        return f"{self._random.getrandbits(128):032x}"


class TurnedStage:
    """Handlers on a node of their own, so that they can be blocked while leases are kept."""

    def __init__(self, loop: TurnedLoop, node: str) -> None:
        self._loop, self.node = loop, node

    alive = True

    def play(
        self, handler: Handler, arguments: tuple[Any, ...], is_async: bool, begun: Begun, told: Told
    ) -> Callable[[], None]:
        engine = on_node(self.node.removesuffix("/handlers"))

        async def play() -> Ended:
            self._loop.call_soon(begun, context=engine)
            return await perform(handler, arguments, is_async)

        task = self._loop.spawn(self.node, play())
        task.add_done_callback(lambda done: told(outcome(done)), context=engine)

        def cancel() -> None:
            # A sync handler can't be cancelled, and here it takes no time.
            if is_async:
                task.cancel()

        return cancel

    def ping(self, pong: Callable[[], None]) -> None:
        engine = on_node(self.node.removesuffix("/handlers"))
        self._loop.call_soon(lambda: self._loop.call_soon(pong, context=engine), context=on_node(self.node))

    def deliver(self, call: Callable[[], None]) -> None:
        call()

    def close(self) -> None:
        pass
