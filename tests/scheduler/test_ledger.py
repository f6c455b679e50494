"""The ledger, where the process that asks gets too little of its machine, or the store's answer is lost."""

import pytest

from tenure.errors import StoreUnavailable
from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger, Order
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Change
from tenure.stores.memory import MemoryStore

SLOT = 1_000_000
LATE = 10**9
RUNS = 1_000


class Clock:
    """The one clock of store and process; `weight` milliseconds pass for each document that is read and decided."""

    def __init__(self):
        self.at, self.weight = 2_000_000.0, 0.0

    def boot(self):
        return self.at

    wall = boot


class Heavy(MemoryStore):
    """A store whose readings are so much work for this process."""

    def __init__(self, clock):
        super().__init__(lambda: int(clock.at))
        self.turned, self.read_at_once = clock, []

    async def read(self, asks):
        reading = await super().read(asks)
        self.turned.at += len(asks) * self.turned.weight
        self.read_at_once.append(len(asks))
        return reading


def claims(attempt):
    return [
        Order(f"job-{n}", c.Claim(SLOT + attempt, f"{attempt}-{n}", "here", 30_000, 3, LATE, "allow", "schedule", True))
        for n in range(RUNS)
    ]


async def test_r40_a_starved_process_decides_fewer_at_once():
    """A thousand decisions that take ten times as long as they are good for: all are made, a part at a time."""
    clock = Clock()
    store = Heavy(clock)
    ledger = Ledger(store, StoreClock(clock))
    clock.weight = 20.0
    answered = await ledger.ask(claims(0))
    assert all(isinstance(one.answer, c.Won) for one in answered)
    assert store.read_at_once[:5] == [1_000, 500, 250, 125, 62]
    assert len(store.read_at_once) == 4 + 17  # none of the small parts was late
    store.read_at_once.clear()
    clock.weight = 0.0
    await ledger.ask(claims(1))
    assert store.read_at_once == [62, 124, 248, 496, 70]  # it is soon as quick as it was
    await ledger.ask(claims(2))
    store.read_at_once.clear()
    await ledger.ask(claims(3))
    assert store.read_at_once == [1_000]


async def test_r40_what_is_late_for_another_reason_is_not_split():
    """A store that calls changes expired that were decided in no time: its clock went on, the work was not too much."""
    clock = Clock()
    store = Heavy(clock)
    ledger = Ledger(store, StoreClock(clock))
    commit, again = store.commit, []

    async def stepping(changes):
        if not again:
            again.append(len(changes))
            store.clock = lambda: int(clock.at) + 60_000
        return await commit(changes)

    store.commit = stepping
    answered = await ledger.ask(claims(0))
    assert all(isinstance(one.answer, c.Won) for one in answered)
    assert store.read_at_once == [1_000, 1_000]


@pytest.mark.parametrize("mine", [(0, 1), (1, 0)])
@pytest.mark.parametrize("job", ["same", "other"])
async def test_r24_a_refusal_waits_for_no_write_of_others(mine, job):
    """A run that is lost and one that is held in one tick of heartbeats: the refusal is told by the read alone."""
    clock = Clock()
    store = MemoryStore(lambda: int(clock.at))
    ledger = Ledger(store, StoreClock(clock))
    told = []

    async def silent(changes):
        told.append("sent")
        raise StoreUnavailable("its answer was lost")

    claim = c.Claim(SLOT, "held", "here", 30_000, 3, LATE, "skip", "schedule", True)
    assert isinstance((await ledger.ask_one(job, claim)).answer, c.Won)
    orders = [Order("same", c.Heartbeat(SLOT - 1, "lost")), Order(job, c.Heartbeat(SLOT, "held"))]
    store.commit = silent
    with pytest.raises(StoreUnavailable):
        await ledger.ask([orders[n] for n in mine], settle=lambda place, one: told.append((mine[place], one.answer)))
    assert told == [(0, c.Refused("unknown")), "sent"]


async def test_r40a_of_two_unknown_changes_the_one_that_may_land_longer_is_waited_for():
    """Both rest on the same version: while either may still be applied the job's fate is open."""
    clock = Clock()
    ledger = Ledger(MemoryStore(lambda: int(clock.at)), StoreClock(clock))
    now = int(clock.at)
    ledger.doubt(Change("job:a", 0, b"x", now + 2_000))
    ledger.doubt(Change("job:a", 0, b"y", now + 100))
    clock.at += 200
    assert ledger._resolves_at("job:a", 0, int(clock.at)) == now + 2_000
    assert ledger.pending("a")
    assert ledger._resolves_at("job:a", 1, int(clock.at)) is None
    assert not ledger.pending("a")
