"""`run.transaction()` on SQLite: the effect and the record of it happen both or neither (R39)."""

import asyncio
import sqlite3

import pytest

from tenure import LeaseLost, StoreError, TransactionTooLong
from tenure.rules import commands as c


@pytest.fixture
def effects(url, tmp_path):
    """A table of the user's own in the same file."""
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE effect (key TEXT, attempt INTEGER)")
    connection.commit()
    connection.close()

    def read():
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT key, attempt FROM effect").fetchall()
        connection.close()
        return rows

    return read


async def one_run(app, handler, event, ends=("success", "failed", "handed-over", "lost"), **options):
    """Run the handler once, triggered; returns the run as recorded."""
    done = asyncio.Event()
    app.job(name="work", **options)(handler)
    for name in ends:
        app.on(name, lambda _: done.set())
    async with app:
        app.trigger("work")
        async with asyncio.timeout(20):
            await done.wait()
        (run,) = await app.ask(lambda records: records.runs(["work"]))
        return run


async def test_r39_effect_and_record_in_one_transaction(app, effects, event):
    """finish=True: the success and its result are recorded with the effect."""

    async def work(run):
        async with run.transaction(finish=True, result={"rows": 1}) as connection:
            connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
            assert effects() == []

    run = await one_run(app, work, event)
    assert (run.status, run.result) == ("success", {"rows": 1})
    assert effects() == [(run.key, 1)]


async def test_r39_an_error_inside_rolls_back(app, effects, event):
    """The handler's error stands, its writes do not."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            connection.execute("INSERT INTO effect VALUES ('x', 1)")
            raise ValueError("changed my mind")

    run = await one_run(app, work, event)
    assert (run.status, run.error[0]) == ("failed", "ValueError")
    assert effects() == []


async def test_r39_a_sync_handler_uses_with(app, effects, event):
    """In its own thread; without finish, the handler's return ends the run."""

    def work(run):
        with run.transaction() as connection:
            connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
        return "written"

    run = await one_run(app, work, event)
    assert (run.status, run.result) == ("success", "written")
    assert effects() == [(run.key, 1)]


async def test_r39_a_run_that_changed_hands_writes_nothing(app, effects, event):
    """Another attempt was won meanwhile: LeaseLost, at the commit or before, and the effect is rolled back.

    A sync handler: an async one may be cancelled before it asks, where its instance sees the theft first.
    """
    told = []

    def work(run):
        if run.attempt > 1:
            return
        asyncio.run(steal(app, run))
        try:
            with run.transaction(finish=True) as connection:
                connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
        except LeaseLost as error:
            told.append(str(error))
            raise

    await one_run(app, work, event, ends=("lost",))
    assert effects() == []
    assert "another instance holds the run now" in told[0]


async def steal(app, run):
    """Release the run behind its handler's back, and win its next attempt under another name."""

    async def change(records):
        ask = records.ledger.ask_one
        await ask("work", c.Release(run.slot_ms, run.token, False, run.request))
        claim = c.Claim(run.slot_ms, "stolen" * 6, "thief", 2_000, 3, 0, "skip", "takeover", False, run.request)
        return (await ask("work", claim)).answer

    assert isinstance(await app.ask(change), c.Won)


async def test_r39_held_too_long_is_rolled_back_with_a_clear_error(app, effects, event):
    """A sixth of the smallest lease (2 s / 6): past it nothing stands, not even what is written afterwards."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            connection.execute("INSERT INTO effect VALUES ('early', 1)")
            await asyncio.sleep(0.8)
            connection.execute("INSERT INTO effect VALUES ('late', 1)")

    run = await one_run(app, work, event)
    assert (run.status, run.error[0]) == ("failed", TransactionTooLong.__name__)
    assert "333ms" in run.error[1]
    assert "nothing was written" in run.error[1]
    assert effects() == []


async def test_r39_the_memory_store_has_none_and_says_so(event):
    """One sentence: what, why, what to do."""
    from tenure import Tenure

    app = Tenure("memory://")
    told = []

    @app.job()
    async def work(run):
        try:
            async with run.transaction():
                pass
        except StoreError as error:
            told.append(str(error))

    done = asyncio.Event()
    app.on("success", lambda _: done.set())
    async with app:
        app.trigger("work")
        async with asyncio.timeout(10):
            await done.wait()
    assert "Use a sqlite:// or postgresql:// store" in told[0]


async def test_r39_what_is_recorded_stands_whatever_comes_after(app, effects, event):
    """The handler raises after its transaction was committed with finish: success, told once, never `lost`."""
    names = []

    async def work(run):
        async with run.transaction(finish=True) as connection:
            connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
        raise ValueError("too late to matter")

    app.on("*", lambda event: names.append(event.name))
    run = await one_run(app, work, event)
    assert run.status == "success"
    assert effects() == [(run.key, 1)]
    assert names.count("success") == 1
    assert not {"lost", "failed"} & set(names)


async def test_r39_a_handler_that_goes_on_after_its_recorded_end_is_left_in_peace(app, effects, event):
    """No lease is renewed any more, for there is none to lose: nobody doubts it, and nothing is cancelled."""
    said = []
    for name in ("unsure", "lost"):
        app.on(name, said.append)

    async def work(run):
        async with run.transaction(finish=True) as connection:
            connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
        await asyncio.sleep(1.5)
        said.append("all done")

    run = await one_run(app, work, event, lease=1)
    assert run.status == "success"
    assert said == ["all done"]


async def test_r15_a_result_that_cannot_be_kept_is_refused_at_once(app, effects, event):
    """Before anything is written."""

    async def work(run):
        async with run.transaction(finish=True, result={1, 2}):
            raise AssertionError

    run = await one_run(app, work, event)
    assert run.error[0] == "ConfigError"
    assert "is no JSON" in run.error[1]
