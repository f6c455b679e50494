"""A PostgreSQL primary and its standby: what a failover keeps, and what it does not."""

import asyncio
import contextlib
import signal

import pytest
from postgres_private import both, caught_up, until, wait_for_standby

from tenure.errors import StoreUnavailable
from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.postgres import PostgresStore

pytestmark = pytest.mark.servers

SLOT = 1_000
CLAIMS = [c.Claim(SLOT, f"token-{at}", f"node-{at}", 30_000, 3, 10**13, "skip", "schedule", True) for at in (1, 2)]


def ledger(store):
    return Ledger(store, StoreClock(SystemClock()))


async def failed_over(store):
    """Until the store has found the server that can be written."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(StoreUnavailable):
                return await store.read([])
            await asyncio.sleep(0.05)


async def test_r44_a_failover_that_lost_acknowledged_writes(pair):
    """The weaker promise of an asynchronous standby: a slot may run twice, and its record stays one."""
    primary, standby = pair
    store = PostgresStore(both(primary, standby))
    await store.open()
    try:
        assert (await ledger(store).ask_one("job", c.Pause())).answer is not None
        await ledger(store).ask_one("job", c.Resume())
        until(lambda: caught_up(primary))
        standby.stop()
        assert isinstance((await ledger(store).ask_one("job", CLAIMS[0])).answer, c.Won)
        await ledger(store).ask_one("job", c.Finish(SLOT, "token-1", "success"))
        assert len(await store.records("job:job", 0, 9_999, 9)) == 1
        primary.stop(signal.SIGQUIT)
        standby.start()
        standby.sql("SELECT pg_promote()")
        await failed_over(store)
        assert await store.records("job:job", 0, 9_999, 9) == ()  # acknowledged, and gone
        assert isinstance((await ledger(store).ask_one("job", CLAIMS[1])).answer, c.Won)  # a second time
        await ledger(store).ask_one("job", c.Finish(SLOT, "token-2", "success"))
        assert [record.run for record in await store.records("job:job", 0, 9_999, 9)] == [str(SLOT)]
    finally:
        await store.close()


async def test_r44_a_failover_to_a_synchronous_standby_loses_nothing(pair):
    """What was acknowledged is there, and the run that ended does not run again."""
    primary, standby = pair
    wait_for_standby(primary)
    store = PostgresStore(both(primary, standby))
    await store.open()
    try:
        assert isinstance((await ledger(store).ask_one("job", CLAIMS[0])).answer, c.Won)
        await ledger(store).ask_one("job", c.Finish(SLOT, "token-1", "success"))
        primary.stop(signal.SIGQUIT)
        standby.sql("SELECT pg_promote()")
        await failed_over(store)
        assert [record.run for record in await store.records("job:job", 0, 9_999, 9)] == [str(SLOT)]
        assert isinstance((await ledger(store).ask_one("job", CLAIMS[1])).answer, c.Ended)
    finally:
        await store.close()
