"""`run.transaction()` on PostgreSQL: the effect and the record of it happen both or neither (R39)."""

import asyncio
import contextlib

import psycopg
import pytest

from tenure import LeaseLost, StoreError, Tenure
from tenure.rules import commands as c

pytestmark = pytest.mark.servers


@pytest.fixture
def app(postgres_url, postgres_schema):
    """An app without jitter; whatever a test leaves open is closed."""
    one = Tenure(f"{postgres_url}?schema={postgres_schema}", jitter=0, lease="2s", stop_timeout=5)
    yield one
    one.close()


@pytest.fixture
def effects(postgres_url, postgres_schema):
    """A table of the user's own in the same database."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}")
        connection.execute(f"CREATE TABLE {postgres_schema}.effect (key text UNIQUE, attempt int)")

    def read():
        with psycopg.connect(postgres_url, options=f"-csearch_path={postgres_schema}") as connection:
            return connection.execute("SELECT key, attempt FROM effect").fetchall()

    read.insert = f"INSERT INTO {postgres_schema}.effect VALUES (%s, %s)"  # noqa: S608 - a schema of our own
    return read


async def one_run(app, handler, ends=("success", "failed", "handed-over", "lost")):
    """Run the handler once, triggered; returns the run as recorded."""
    done = asyncio.Event()
    app.job(name="work")(handler)
    for name in ends:
        app.on(name, lambda _: done.set())
    async with app:
        app.trigger("work")
        async with asyncio.timeout(20):
            await done.wait()
        (run,) = await app.ask(lambda records: records.runs(["work"]))
        return run


async def test_r39_effect_and_record_in_one_transaction(app, effects):
    """finish=True: the success and its result are recorded with the effect."""

    async def work(run):
        async with run.transaction(finish=True, result={"rows": 1}) as connection:
            assert isinstance(connection, psycopg.AsyncConnection)
            await connection.execute(effects.insert, (run.key, run.attempt))
            assert effects() == []

    run = await one_run(app, work)
    assert (run.status, run.result) == ("success", {"rows": 1})
    assert effects() == [(run.key, 1)]


async def test_r39_an_error_inside_rolls_back(app, effects):
    """The handler's error stands, its writes do not."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            await connection.execute(effects.insert, ("x", 1))
            raise ValueError("changed my mind")

    run = await one_run(app, work)
    assert (run.status, run.error[0]) == ("failed", "ValueError")
    assert effects() == []


async def test_r39_a_sync_handler_uses_with(app, effects):
    """In its own thread it gets psycopg's sync connection; without finish, the handler's return ends the run."""

    def work(run):
        with run.transaction() as connection:
            assert isinstance(connection, psycopg.Connection)
            connection.row_factory = psycopg.rows.dict_row
            assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}
            with connection.cursor() as cursor, connection.transaction():
                cursor.execute(effects.insert, (run.key, run.attempt))
        return "written"

    run = await one_run(app, work)
    assert (run.status, run.result) == ("success", "written")
    assert effects() == [(run.key, 1)]


async def test_r39_a_run_that_changed_hands_writes_nothing(app, effects):
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
                connection.execute(effects.insert, (run.key, run.attempt))
        except LeaseLost as error:
            told.append(str(error))
            raise

    await one_run(app, work, ends=("lost",))
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


async def test_r39_longer_than_its_lease(app, effects):
    """It holds up nobody, so it may last: heartbeats go on, and the run is still ours at the end."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            await connection.execute(effects.insert, (run.key, run.attempt))
            await asyncio.sleep(2.5)

    run = await one_run(app, work)
    assert run.status == "success"
    assert effects() == [(run.key, 1)]


async def test_r39_a_failed_statement_commits_nothing(app, effects):
    """A handler that swallows the error of a statement is told that nothing of it can be committed."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            await connection.execute(effects.insert, (run.key, 1))
            with contextlib.suppress(psycopg.errors.UniqueViolation):
                await connection.execute(effects.insert, (run.key, 2))

    run = await one_run(app, work)
    assert (run.status, run.error[0]) == ("failed", StoreError.__name__)
    assert "all was rolled back" in run.error[1]
    assert effects() == []


async def test_r39_a_connection_that_breaks_writes_nothing(app, effects, postgres_url):
    """The server ends the transaction's connection: neither the effect nor the success stands."""

    async def work(run):
        async with run.transaction(finish=True) as connection:
            await connection.execute(effects.insert, (run.key, run.attempt))
            pid = connection.info.backend_pid
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 1000)", (pid,))

    run = await one_run(app, work)
    assert run.status == "failed"
    assert effects() == []
