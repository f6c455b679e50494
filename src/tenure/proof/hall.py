"""The hall in which stores sit their exam, and how a question is put.

A question is a coroutine over the hall; it fails by an exception, and its docstring is what it asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Record, Store

# How long a question waits for what must come, in seconds. It is met only where a store fails.
PATIENCE: Final = 10.0

# A slot later than any: what lies before it is all there is.
EVER: Final = 1 << 53


class Hall(Protocol):
    """What the author of a store provides."""

    transactions: bool
    """Whether the store has transactions for its user (R39); else the last two methods are never called."""

    async def fresh(self) -> Store:
        """A store, opened, in which nothing stands."""
        ...

    async def second(self, store: Store) -> Store:
        """Another handle on the same data, opened: what another process would hold."""
        ...

    async def write(self, connection: Any, row: str) -> None:
        """Insert `row` into a table of the user's own, through a transaction's connection."""
        ...

    async def rows(self, store: Store) -> frozenset[str]:
        """The rows of that table, as others see them."""
        ...


Question = Callable[[Hall], Awaitable[None]]

QUESTIONS: Final[dict[str, Question]] = {}
"""All questions by name, in the order in which they are put."""


def question(asked: Question) -> Question:
    """Register a question under its function's name."""
    QUESTIONS[asked.__name__] = asked
    return asked


class NotAskedError(Exception):
    """The question is none for this store; the message says why."""


@asynccontextmanager
async def one(hall: Hall) -> AsyncIterator[Store]:
    """A fresh store, closed afterwards."""
    store = await hall.fresh()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def two(hall: Hall) -> AsyncIterator[tuple[Store, Store]]:
    """A fresh store and a second handle on it, both closed afterwards."""
    async with one(hall) as store:
        other = await hall.second(store)
        try:
            yield store, other
        finally:
            await other.close()


def same(told: object, wanted: object, sentence: str) -> None:
    """Fail, with the sentence and both values, where what was told is not what was wanted."""
    if told != wanted:
        raise AssertionError(f"{sentence}\n  wanted: {wanted!r}\n  told:   {told!r}")


def hold(condition: object, sentence: str) -> None:
    """Fail with the sentence where the condition does not hold."""
    if not condition:
        raise AssertionError(sentence)


async def found(store: Store, name: str, **asked: Any) -> Found:
    """What stands under one name."""
    return (await store.read([Ask(name, **asked)])).found[0]


async def now(store: Store) -> int:
    """The store's time."""
    return (await store.read([])).now


async def done(store: Store, *changes: Change) -> None:
    """Commit, and fail unless all was done."""
    verdict = await store.commit(changes)
    same(verdict.outcomes, (Outcome.DONE,) * len(changes), "Each change should have been done.")


async def outcomes(store: Store, *changes: Change) -> tuple[Outcome, ...]:
    """What became of the changes."""
    return (await store.commit(changes)).outcomes


def record(run: str, slot: int, body: bytes = b"{}", keep: int = 0) -> Record:
    """A record of the history."""
    return Record(run, slot, "success", slot + 1, keep, body)


def mark(slot: int, until: int | None = None, **said: Any) -> Mark:
    """A mark at a slot, of a lateness that nobody in particular saw."""
    plain = {"count": 1, "why": "late", "whom": "", "at": slot + 7, "by": "somebody"}
    return Mark(slot, slot if until is None else until, **{**plain, **said})


def marking(name: str, *marks: Mark) -> Change:
    """A change that leaves the document as it is."""
    return Change(name, 0, None, marks=marks)


async def heard(store: Store, wanted: str, cause: Callable[[], Awaitable[None]]) -> set[str]:
    """All names that `watch` told until `wanted` was among them; `cause` is repeated, for a hint may be lost."""
    names: set[str] = set()
    arrived = asyncio.Event()

    async def listen() -> None:
        async for hinted in store.watch():
            names.update(hinted)
            if wanted in names:
                arrived.set()

    listener = asyncio.create_task(listen())
    try:
        async with asyncio.timeout(PATIENCE):
            while not arrived.is_set():
                await cause()
                await asyncio.wait({asyncio.create_task(arrived.wait())}, timeout=0.3)
    except TimeoutError:
        raise AssertionError(f"watch() told nothing of {wanted!r} within {PATIENCE:g} s, only {names}.") from None
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)
    return names
