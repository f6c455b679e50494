"""The keeper's judgement, and its checks where a hint comes while one is under way; the ledger is a stand-in."""

import asyncio
import types

from tenure.rules import commands as c
from tenure.rules.job import EMPTY
from tenure.rules.timers import GRID
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.ledger import Answered
from tenure.scheduler.run import Holding

SLOT, NOW, LEASE_END = 1_000, 2_000, 32_000


class Slow:
    """A ledger whose answer is on its way for a while: what it says was read before."""

    def __init__(self):
        self.asked, self.on_its_way = asyncio.Event(), asyncio.Event()

    async def ask(self, orders, patience=None, settle=None):
        self.asked.set()
        await self.on_its_way.wait()
        return [Answered(c.Running("another", 1, LEASE_END), EMPTY, 1, NOW, NOW) for _ in orders]


def test_r39_a_run_whose_success_is_recorded_is_not_doubted():
    """Its handler goes on while the store is away: there is no lease left that could run out unseen."""
    told = []
    shared = types.SimpleNamespace(
        clock=types.SimpleNamespace(boot=lambda: LEASE_END),
        chance=types.SimpleNamespace(draw=lambda: 0.5),
        emit=lambda name, *_, **__: told.append(name),
    )
    keeper = Keeper(shared, None)
    job = types.SimpleNamespace(name="work", heartbeat_ms=5_000, lease_ms=30_000, is_async=True, when_unsure="abort")
    recorded, open_still = (Holding(job, slot, "", shared.clock) for slot in (SLOT, SLOT + 1))
    for one in (recorded, open_still):
        one.sent = NOW
        keeper.hold(one)
    recorded.recorded = True
    keeper.judge()
    assert (recorded.why, open_still.why) == ("", "unsure")
    assert told == ["unsure"]
    assert list(keeper.holdings.values()) == [open_still]


async def test_r21_a_hint_that_comes_while_a_check_is_under_way_is_not_lost():
    """The check read before the change that the hint tells of: it is asked again at once, not at the lease's end."""
    shared = types.SimpleNamespace(
        clock=types.SimpleNamespace(boot=lambda: NOW),
        chance=types.SimpleNamespace(draw=lambda: 0.5, token=lambda: "token"),
        events=types.SimpleNamespace(runner="here"),
        store_clock=types.SimpleNamespace(boot_of=lambda at: at),
        emit=lambda *_, **__: None,
    )
    ledger = Slow()
    keeper = Keeper(shared, ledger)
    job = types.SimpleNamespace(
        name="work", document="job:work", heartbeat_ms=5_000, lease_ms=30_000, max_attempts=3, overlap="skip"
    )
    keeper.watch(job, SLOT, "", LEASE_END)
    (watch,) = keeper.watches.values()
    watch.asking = True  # as the loop of checks says before it asks
    looking = asyncio.create_task(keeper._look([watch]))
    await ledger.asked.wait()
    keeper.hint(frozenset({"job:work"}))
    ledger.on_its_way.set()
    await looking
    assert watch.look_at <= NOW + GRID
    await keeper._look([watch])  # nothing was hinted since
    assert watch.look_at > NOW + job.heartbeat_ms
