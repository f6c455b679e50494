"""Store operation n fails, for every n and in every way, on the store in memory and on SQLite: the laws hold.

Two instances' ledgers tell one story of a run that is won, renewed, handed over, taken over and finished, and of a
slot that is skipped. Whoever's call fails asks again, as an instance does (R40a).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tenure.errors import StoreUnavailable
from tenure.proof import planted
from tenure.proof.chronicle import Chronicle
from tenure.proof.smallworld import Decide
from tenure.proof.steps import Step
from tenure.proof.witness import Witness
from tenure.rules import commands as c
from tenure.rules.lease import VALIDITY
from tenure.rules.runs import decide
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Reading, Verdict
from tenure.stores.memory import MemoryStore
from tenure.stores.sqlite import SqliteStore

LEASE = 60_000
# How a call fails: nothing was done; it was done and the answer lost; no answer comes; cut off, and it arrives later.
WAYS = ("before", "after", "timeout", "cut")


class Failing:
    """A store whose n-th call fails, counted over all who use it; its clock is turned by `clock`, not waited for."""

    pushes = False

    def __init__(self, store: Any, calls: list[int], clock: list[int], fails: int, way: str) -> None:
        self._store, self._calls, self._clock, self._fails, self._way = store, calls, clock, fails, way
        self.url = store.url
        self.noted: Callable[[Change], Any] = lambda _: None
        self.applied: Callable[[Change, Any, int], None] = lambda *_: None
        self._cut: list[Callable[[], Awaitable[Any]]] = []

    @property
    def timeout(self) -> float:
        """Short for the one call that is never answered."""
        return 0.02 if self._way == "timeout" and self._calls[0] + 1 == self._fails else 30.0

    async def read(self, asks: Sequence[Ask]) -> Reading:
        return await self._call(lambda: self._seen(asks))

    async def _seen(self, asks: Sequence[Ask]) -> Reading:
        reading = await self._store.read(asks)
        return replace(reading, now=reading.now + self._clock[0])

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        notes = [self.noted(change) for change in changes]
        return await self._call(lambda: self._written(changes, notes))

    async def _written(self, changes: Sequence[Change], notes: Sequence[Any]) -> Verdict:
        own = [
            change if change.deadline is None else replace(change, deadline=change.deadline - self._clock[0])
            for change in changes
        ]
        verdict = await self._store.commit(own)
        for change, note, outcome in zip(changes, notes, verdict.outcomes, strict=True):
            if outcome is outcome.DONE:
                self.applied(change, note, verdict.now + self._clock[0])
        return replace(verdict, now=verdict.now + self._clock[0])

    async def _call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        self._calls[0] += 1
        if self._cut:
            await self._cut.pop()()  # what was cut off arrives just before the next call
        if self._calls[0] != self._fails:
            return await work()
        match self._way:
            case "after":
                await work()
            case "cut":
                self._cut.append(work)
            case "timeout":
                self._clock[0] += VALIDITY + 1
                await asyncio.sleep(3_600)
            case _:
                self._clock[0] += VALIDITY + 1  # nothing of it can land any more
        raise StoreUnavailable(f"call {self._fails} fails: {self._way}.")


async def until_answered(ledger: Ledger, command: c.Command) -> c.Answer:
    """Ask by the same token until it is answered."""
    while True:
        try:
            return (await ledger.ask_one("report", command)).answer
        except StoreUnavailable:
            pass


def claim(slot: int, token: str, *, create: bool = True) -> c.Claim:
    reason = "schedule" if create else "takeover"
    return c.Claim(slot, token, token[0], LEASE, 3, 60_000, "skip", reason, create)


async def story(store: Any, fails: int, way: str, rule: Decide = decide) -> tuple[Witness, int]:
    """A wins and hands over, B takes over and its lease runs out, A takes over and finishes; the next slot is late."""
    witness = Witness(_Seconds(), rule=rule)  # type: ignore[arg-type]
    witness.line = lambda *_: None  # type: ignore[method-assign]
    witness.broken = _raise  # type: ignore[method-assign, assignment]
    calls, clock = [0], [0]
    ways = [Failing(store, calls, clock, fails, way) for _ in "AB"]
    for one in ways:
        one.noted, one.applied = witness.noted, witness.applied
    a, b = (Ledger(one, StoreClock(SystemClock())) for one in ways)  # type: ignore[arg-type]
    slot = (await store.read([])).now - 5_000
    with witness.watching():
        told = [
            await until_answered(a, c.Register("every 1m", "f", "{}", 60_000)),
            await until_answered(a, claim(slot, "A1")),
            await until_answered(b, claim(slot, "B1")),
            await until_answered(a, c.Heartbeat(slot, "A1")),
            await until_answered(b, claim(slot + 1_000, "B2")),
            await until_answered(a, c.Release(slot, "A1", counts=False)),
            await until_answered(b, claim(slot, "B3", create=False)),
        ]
        clock[0] += LEASE + 1
        told += [
            await until_answered(a, claim(slot, "A2", create=False)),
            await until_answered(b, c.Heartbeat(slot, "B3")),
            await until_answered(a, c.Finish(slot, "A2", "success")),
            await until_answered(b, c.Finish(slot, "B3", "failed")),
        ]
    assert [type(answer) for answer in told] == [
        c.Registered, c.Won, c.Running, c.Renewed, c.Overlaps, c.Released, c.Won,
        c.Won, c.Refused, c.Finished, c.Refused,
    ], told  # fmt: skip
    page = Ledger(store, StoreClock(SystemClock())).page("job:report", (await store.read([Ask("job:report")])).found[0])
    assert page.job == witness.told["job:report"].job
    (record,) = await store.records("job:report", 0, 1 << 53, 9)
    assert record.status == "success"
    return witness, calls[0]


class _Seconds:
    seconds = 0.0


def _raise(law: str, sentence: str, step: Step | None = None) -> None:
    raise AssertionError(f"{law}: {sentence}")


@pytest.fixture(params=["memory", "sqlite"])
def fresh(request, tmp_path):  # type: ignore[no-untyped-def]
    """Makes a store in which nothing stands."""
    made = iter(range(10_000))

    async def make() -> Any:
        if request.param == "memory":
            return MemoryStore()
        store = SqliteStore(f"sqlite:///{tmp_path}/{next(made)}.db?synchronous=normal")
        await store.open()
        return store

    return make


@pytest.mark.parametrize("way", WAYS)
async def test_r40a_store_operation_n_fails_for_every_n(fresh, way: str) -> None:  # type: ignore[no-untyped-def]
    """Each call of the story in turn; and the last n lies beyond its end."""

    async def told(fails: int) -> int:
        store = await fresh()
        try:
            return (await story(store, fails, way))[1]
        finally:
            await store.close()

    calls = await told(0)
    assert calls >= 18
    for fails in range(1, calls + 1):
        assert calls <= await told(fails) <= calls + 4


def test_the_story_is_held_against_the_laws() -> None:
    """A chronicle heard it: it is not empty."""
    witness, _ = asyncio.run(story(MemoryStore(), 0, ""))
    told = witness.told["job:report"]
    assert isinstance(told, Chronicle)
    assert [one.won for one in told.runs.values()] == [3]
    assert told.fence == 3


@pytest.mark.parametrize("rule", [planted.won_claim_forgotten, planted.finish_forgotten])
def test_a_rule_that_forgets_what_it_answered_is_found(rule: Decide) -> None:
    """Some n whose answer is lost shows it: the story is sharp."""
    calls = asyncio.run(story(MemoryStore(), 0, ""))[1]
    broken = []
    for fails in range(1, calls + 1):
        try:
            asyncio.run(story(MemoryStore(), fails, "after", rule))
        except AssertionError as error:
            broken.append(str(error))
    assert broken
