"""`run.transaction()` where answers are lost, cancelled or can't be read; the store's transaction is a stand-in."""

import asyncio
import types

import pytest

from tenure.errors import StoreCorrupt, StoreUnavailable
from tenure.rules import commands as c
from tenure.scheduler.effects import Effects
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.run import Holding, RunTransaction
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change
from tenure.stores.memory import MemoryStore

SLOT = 1_000


class Clock:
    """The one clock of store and process."""

    at = 2_000.0

    def boot(self):
        return self.at

    wall = boot


class Undone:
    """A transaction that is rolled back, and whose answer to COMMIT is lost; `meanwhile` comes between."""

    connection = "theirs"

    def __init__(self, store, meanwhile=None):
        self.store, self.meanwhile, self.open = store, meanwhile, True

    async def read(self, ask):
        return await self.store.read([ask])

    async def commit(self, change):
        self.open = False
        await self.meanwhile()
        raise StoreUnavailable("the connection was lost.")

    async def rollback(self):
        self.open = False


class World:
    """A store with one run that was won, and what its instance has for a transaction of it."""

    def __init__(self):
        self.clock = Clock()
        self.store = MemoryStore(lambda: int(self.clock.at))
        self.ledger = Ledger(self.store, StoreClock(self.clock))
        self.told = []
        shared = types.SimpleNamespace(clock=self.clock, emit=lambda name, *_, **__: self.told.append(name))
        self.effects = Effects(shared, self.ledger)
        job = types.SimpleNamespace(name="work", document="job:work", lease_ms=30_000, is_async=True)
        self.holding = Holding(job, SLOT, "", self.clock)
        self.holding.token, self.holding.attempt, self.holding.sent = "first", 1, self.clock.at

    async def win(self, token):
        claim = c.Claim(SLOT, token, f"node of {token}", 30_000, 3, 60_000, "skip", "schedule", True)
        assert isinstance((await self.ledger.ask_one("work", claim)).answer, c.Won)


@pytest.fixture
async def world():
    """One run, won by the attempt whose transaction is to end."""
    world = World()
    await world.win("first")
    return world


async def test_r39_the_success_of_another_attempt_is_not_this_ones(world):
    """Rolled back, unanswered, and the run taken over and ended: that success says nothing of these writes."""

    async def taken_over():
        world.clock.at += 31_000
        await world.win("second")
        await world.ledger.ask_one("work", c.Finish(SLOT, "second", "success"))

    with pytest.raises(StoreUnavailable):
        await world.effects.settle(world.holding, Undone(world.store, taken_over), True, None)
    assert not world.holding.recorded


async def test_r39_a_success_that_was_recorded_stands_though_its_answer_was_lost(world):
    """The commit went through, and only its answer did not: read again, it is a success."""

    async def committed():
        await world.ledger.ask_one("work", c.Finish(SLOT, "first", "success"))

    await world.effects.settle(world.holding, Undone(world.store, committed), True, None)
    assert world.holding.recorded


async def test_r39_a_document_that_cannot_be_read_leaves_no_transaction_open(world):
    """The handler hears why, and the connection is given back."""
    version = (await world.store.read([Ask("job:work")])).found[0].version
    await world.store.commit([Change("job:work", version, b"{")])
    transaction = Undone(world.store)
    with pytest.raises(StoreCorrupt):
        await world.effects.settle(world.holding, transaction, False, None)
    assert not transaction.open


async def test_r39_a_handler_cancelled_as_its_transaction_begins_leaves_none_open():
    """It was begun already, and only nobody was told."""
    begun = asyncio.Event()
    transaction, undone = Undone(None), asyncio.Event()

    async def begin(_):
        begun.set()
        return transaction

    async def undo(_, one):
        await one.rollback()
        undone.set()

    loop = asyncio.get_running_loop()
    deeds = types.SimpleNamespace(
        begin=begin, undo=undo, on_engine=lambda work: asyncio.run_coroutine_threadsafe(work, loop)
    )

    async def handler():
        async with RunTransaction(None, deeds, False, None):
            raise AssertionError("it was cancelled before")

    handling = asyncio.create_task(handler())
    await begun.wait()
    await asyncio.sleep(0)
    handling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handling
    async with asyncio.timeout(1):
        await undone.wait()
    assert not transaction.open
