"""The store in this process's memory: the plainest reading of the contract, and the exam's yardstick.

It forgets everything when the process ends; other processes can't see it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from tenure.errors import StoreError
from tenure.stores.contract import (
    Ask,
    Change,
    Found,
    Mark,
    Outcome,
    Reading,
    Record,
    Transaction,
    Verdict,
)

HEADS = 500


def machine_clock() -> int:
    """The machine's wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass
class _Shelf:
    """What is kept under one name."""

    version: int = 0
    body: bytes | None = None
    history: dict[str, Record] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)


class MemoryStore:
    """A store of dictionaries. `clock` gives the store's time in milliseconds; tests turn it."""

    timeout = 5.0
    pushes = True

    def __init__(self, clock: Callable[[], int] = machine_clock, url: str = "memory://") -> None:
        self.url = url
        self.clock = clock
        self._shelves: dict[str, _Shelf] = {}
        self._watchers: list[tuple[asyncio.AbstractEventLoop, asyncio.Queue[frozenset[str]]]] = []
        # Several schedulers of one process may share it, each from a thread of its own.
        self._lock = threading.Lock()

    async def open(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        pass

    async def read(self, asks: Sequence[Ask]) -> Reading:
        with self._lock:
            return Reading(self.clock(), tuple(self._found(ask) for ask in asks))

    def _found(self, ask: Ask) -> Found:
        shelf = self._shelves.get(ask.name)
        if shelf is None:
            return Found()
        past = {run: shelf.history[run].body for run in ask.runs if run in shelf.history}
        heads: tuple[tuple[str, int, int], ...] = ()
        marks_until = last = None
        if ask.beyond is not None:
            keep, keep_marks = ask.beyond
            oldest = sorted(shelf.history.values(), key=lambda record: (record.slot, record.run))
            heads = tuple((one.run, one.slot, one.keep) for one in oldest[: max(0, len(oldest) - keep)][:HEADS])
            beyond = sorted(shelf.marks, key=_place)[: max(0, len(shelf.marks) - keep_marks)]
            marks_until = max((mark.until for mark in beyond), default=None)
        if ask.before is not None:
            slots = [record.slot for record in shelf.history.values() if "#" not in record.run]
            marked = [
                min(mark.until, ask.before - 1) for mark in shelf.marks if not mark.request and mark.slot < ask.before
            ]
            last = max([*(slot for slot in slots if slot < ask.before), *marked], default=None)
        return Found(shelf.version, shelf.body, past, heads, marks_until, last)

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        with self._lock:
            now = self.clock()
            verdict = Verdict(now, tuple(self._apply(change, now) for change in changes))
        hinted = frozenset(
            change.name
            for change, outcome in zip(changes, verdict.outcomes, strict=True)
            if change.hint and outcome is Outcome.DONE
        )
        if hinted:
            for loop, queue in tuple(self._watchers):
                if not loop.is_closed():
                    loop.call_soon_threadsafe(queue.put_nowait, hinted)
        return verdict

    def _apply(self, change: Change, now: int) -> Outcome:
        shelf = self._shelves.get(change.name, _Shelf())
        if change.conditional:
            if shelf.version != change.version:
                return Outcome.RACED
            if change.deadline is not None and now > change.deadline:
                return Outcome.EXPIRED
        if change.delete:
            self._shelves.pop(change.name, None)
            return Outcome.DONE
        self._shelves[change.name] = shelf
        if change.body is not None:
            shelf.version, shelf.body = shelf.version + 1, change.body
            shelf.history.update({record.run: record for record in change.records})
            for run in change.forget:
                shelf.history.pop(run, None)
            if change.trim is not None:
                shelf.marks = [mark for mark in shelf.marks if mark.until > change.trim]
        for mark in change.marks:
            _insert(shelf.marks, mark)
        return Outcome.DONE

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        queue: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        watcher = (asyncio.get_running_loop(), queue)
        self._watchers.append(watcher)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(watcher)

    async def names(self, prefix: str) -> tuple[str, ...]:
        with self._lock:
            stored = [name for name, shelf in self._shelves.items() if shelf.body is not None]
        return tuple(sorted(name for name in stored if name.startswith(prefix)))

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        with self._lock:
            history = list(self._shelves.get(name, _Shelf()).history.values())
        chosen = [record for record in history if since <= record.slot <= until]
        return tuple(sorted(chosen, key=lambda record: (-record.slot, record.run))[:limit])

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        with self._lock:
            marks = list(self._shelves.get(name, _Shelf()).marks)
        chosen = [mark for mark in marks if mark.slot <= until and mark.until >= since]
        return tuple(sorted(chosen, key=_place, reverse=True)[:limit])

    async def begin(self, limit_seconds: float) -> Transaction:
        raise StoreError(
            "memory:// has no transactions of its own, so run.transaction() can't be used. "
            "Use a sqlite:// or postgresql:// store."
        )


def _place(mark: Mark) -> tuple[int, int, str]:
    return (mark.slot, mark.until, mark.request)


def _insert(marks: list[Mark], mark: Mark) -> None:
    """Insert-if-absent, merging with the neighbour that ends where this one begins."""
    for known in marks:
        if known.request == mark.request and known.slot <= mark.slot <= known.until:
            return
    neighbours = [
        place
        for place, known in enumerate(marks)
        if (known.why, known.whom, known.request, known.until) == (mark.why, mark.whom, mark.request, mark.after)
    ]
    if neighbours and not mark.request:
        place = max(neighbours, key=lambda place: marks[place].slot)
        known = marks[place]
        marks[place] = replace(known, until=mark.until, count=known.count + mark.count, at=mark.at)
        return
    marks.append(replace(mark, after=None))
