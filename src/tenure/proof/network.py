"""A store behind a network: what befalls the store, the ways to it, and the messages on them.

A call is a request and a reply, each a message that is late, lost or doubled, and overtakes others. Knows no rule.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeVar

from tenure.errors import StoreError, StoreUnavailable
from tenure.proof.turned import NODE, TurnedLoop, on_node
from tenure.stores.contract import Ask, Change, Mark, Reading, Record, Transaction, Verdict
from tenure.stores.memory import MemoryStore

T = TypeVar("T")
Work = Callable[[], Any]

# How long a message travels where nothing is the matter, in seconds, and what bad weather makes of that.
WAY: Final = (0.0003, 0.003)
STUCK: Final = 8.0


@dataclass
class Weather:
    """What happens to messages: shares that are lost, doubled, and late by up to `STUCK` seconds."""

    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0


CLEAR: Final = Weather()


class Site:
    """The store where it stands: its clock, and whether it is there.

    applied: hears of each change that was written, with what its sender noted of it; epoch: raised when all
    connections break, after which nothing that was sent before arrives.
    """

    def __init__(self, loop: TurnedLoop, start: int) -> None:
        self.loop, self._start = loop, start
        self.store = MemoryStore(self.now)
        self.skews: list[tuple[float, float]] = [
            (0.0, 0.0)
        ]  # since when (turned seconds) its clock is how far off (ms)
        self.epoch = 0
        self.outcomes: Counter[str] = Counter()
        self.down = self.stalled = False
        self.applied: Callable[[Change, Any, int], None] = lambda *_: None
        self._held_up: list[Work] = []

    def now(self) -> int:
        """The store's clock."""
        return int(self._start + self.loop.seconds * 1000 + self.skews[-1][1])

    def step(self, ms: float) -> None:
        """Its clock steps."""
        self.skews.append((self.loop.seconds, self.skews[-1][1] + ms))

    def shown(self, ms: int) -> float | None:
        """The turned second at which its clock first showed this; None where that was jumped over or is to come."""
        for (since, skew), (until, _) in pairwise([*self.skews, (self.loop.seconds, 0.0)]):
            second = (ms - self._start - skew) / 1000
            if since <= second <= until:
                return second
        return None

    def serve(self, work: Work) -> None:
        """Do it now, or when the store goes on."""
        if self.stalled:
            self._held_up.append(work)
        else:
            work()

    def stall(self) -> None:
        """It stops answering: what arrives is done when it goes on, SIGSTOP of a server."""
        self.stalled = True

    def go_on(self) -> None:
        """It wakes, and does all that arrived meanwhile."""
        self.stalled = False
        held_up, self._held_up = self._held_up, []
        for work in held_up:
            work()

    def fall(self) -> None:
        """It ends: every connection breaks, and none can be made."""
        self.down = True
        self.epoch += 1
        self._held_up = []

    def rise(self) -> None:
        """It is there again, with all that it had."""
        self.down = False

    def keep(self) -> Work:
        """What an asynchronous standby holds now; calling it makes that all there is, as a failover does."""
        shelves = self.store._shelves  # noqa: SLF001 - to lose what was acknowledged is no promise of the store
        kept = {name: copy(shelf) for name, shelf in shelves.items()}
        for shelf in kept.values():
            shelf.history, shelf.marks = dict(shelf.history), list(shelf.marks)

        def lose() -> None:
            shelves.clear()
            shelves.update(kept)

        return lose

    def commit(self, changes: Sequence[Change], notes: Sequence[Any]) -> Verdict:
        """Write, and tell what was written."""
        verdict = at_once(self.store.commit(changes))
        for change, note, outcome in zip(changes, notes, verdict.outcomes, strict=True):
            self.outcomes[outcome.value] += 1
            if outcome is outcome.DONE:
                self.applied(change, note, verdict.now)
        return verdict


class Link:
    """One instance's way to the store, and the store as it is seen from there.

    noted: asked of each change when it is sent; goes with it. flying: calls that are not answered yet.
    """

    pushes = True
    timeout = 5.0

    def __init__(self, site: Site, node: str, seed: str) -> None:
        self.url = site.store.url
        self._site, self._loop = site, site.loop
        self._random = random.Random(seed)  # noqa: S311 - a seed is to decide
        self._home, self._away = on_node(node), on_node(NODE.get())
        self.weather = CLEAR
        self.cut_out = self.cut_in = False
        self.noted: Callable[[Change], Any] = lambda _: None
        self.flying = self.most_flying = 0

    # --- the store --------------------------------------------------------------------------------------

    async def open(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        pass

    async def read(self, asks: Sequence[Ask]) -> Reading:
        return await self._call(lambda: at_once(self._site.store.read(asks)))

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        notes = [self.noted(change) for change in changes]
        return await self._call(lambda: self._site.commit(changes, notes))

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        epoch = self._site.epoch
        async for hint in self._site.store.watch():
            if epoch != self._site.epoch:
                raise StoreUnavailable("the connection that hints come by was cut.")
            if not (self.cut_in or self._happens(self.weather.lost)):
                await asyncio.sleep(self._way())
                yield hint

    async def names(self, prefix: str) -> tuple[str, ...]:
        return await self._call(lambda: at_once(self._site.store.names(prefix)))

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        return await self._call(lambda: at_once(self._site.store.records(name, since, until, limit)))

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        return await self._call(lambda: at_once(self._site.store.marks(name, since, until, limit)))

    async def begin(self, limit_seconds: float) -> Transaction:
        return await self._site.store.begin(limit_seconds)

    # --- the messages -----------------------------------------------------------------------------------

    async def _call(self, work: Callable[[], T]) -> T:
        """One request and its reply; StoreUnavailable where none came within the timeout."""
        answer: asyncio.Future[T] = self._loop.create_future()
        give_up = self._loop.call_later(self.timeout, _fail, answer, "the store did not answer in time.")
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        try:
            self._send(work, answer)
            return await answer
        finally:
            self.flying -= 1
            give_up.cancel()

    def _send(self, work: Callable[[], T], answer: asyncio.Future[T]) -> None:
        """The request leaves: once, twice, or for nowhere."""
        epoch = self._site.epoch
        if not (self.cut_out or self._happens(self.weather.lost)):
            self._loop.call_later(self._way(), self._arrives, work, answer, epoch, context=self._away)
        if self._happens(self.weather.doubled):
            self._loop.call_later(self._way() + STUCK / 4, self._arrives, work, None, epoch, context=self._away)

    def _arrives(self, work: Callable[[], T], answer: asyncio.Future[T] | None, epoch: int) -> None:
        if self.cut_out:
            return
        if self._site.down or epoch != self._site.epoch:
            if answer is not None:
                self._reply(_fail, answer, "the connection to the store was refused.")
            return
        self._site.serve(lambda: self._done(work, answer))

    def _done(self, work: Callable[[], T], answer: asyncio.Future[T] | None) -> None:
        """The store does it; the reply of a copy is for nobody."""
        epoch = self._site.epoch
        try:
            told = work()
        except StoreError as error:
            if answer is not None:
                self._reply(_fail, answer, str(error))
            return
        if answer is not None:
            self._reply(self._heard, answer, told, epoch)

    def _reply(self, tell: Callable[..., None], *arguments: Any) -> None:
        if not (self.cut_in or self._happens(self.weather.lost)):
            self._loop.call_later(self._way(), tell, *arguments, context=self._home)

    def _heard(self, answer: asyncio.Future[T], told: T, epoch: int) -> None:
        if epoch != self._site.epoch:
            _fail(answer, "the connection was cut before the answer came.")
        elif not self.cut_in and not answer.done():
            answer.set_result(told)

    def _way(self) -> float:
        low, high = WAY
        way = low + (high - low) * self._random.random()
        return way + STUCK * self._random.random() if self._happens(self.weather.late) else way

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share


def _fail(answer: asyncio.Future[Any], why: str) -> None:
    if not answer.done():
        answer.set_exception(StoreUnavailable(why))


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that waits for nothing returns."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("the store in memory waited for something")
