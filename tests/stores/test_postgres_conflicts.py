"""40001 and 40P01, as PostgreSQL itself gives them: what was rolled back for certain is sent again."""

import asyncio
import hashlib

import psycopg
import pytest
from psycopg import errors

from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Outcome
from tenure.stores.postgres import PostgresStore
from tenure.stores.postgres.connecting import Link

pytestmark = pytest.mark.servers

DONE, RACED = Outcome.DONE, Outcome.RACED
SERIALIZABLE = "-cdefault_transaction_isolation%3Dserializable"
INSERT = "INSERT INTO tenure_documents (name, version, body) VALUES (%s, 1, 'x')"


@pytest.fixture
async def open_in(own_postgres):
    """Opens stores in a schema of that server, with options of PostgreSQL for each session."""
    stores = []

    async def open_one(schema, options=""):
        told = f"?options={options}" if options else ""
        store = PostgresStore(own_postgres.url + told, schema=schema)
        stores.append(store)
        await store.open()
        return store

    yield open_one
    for store in stores:
        await store.close()


@pytest.fixture
def refused(monkeypatch):
    """The errors that the server has answered our statements with."""
    rows, told = Link.rows, []

    async def listening(link, statement, parameters):
        try:
            return await rows(link, statement, parameters)
        except psycopg.Error as error:
            told.append(type(error))
            raise

    monkeypatch.setattr(Link, "rows", listening)
    return told


def beside(server, schema):
    """A session of somebody else, that is in no hurry to look for deadlocks."""
    return psycopg.AsyncConnection.connect(server.url, options=f"-csearch_path={schema} -cdeadlock_timeout=60s")


async def until_waits(server, count):
    async with asyncio.timeout(10):
        while True:
            rows = await asyncio.to_thread(
                server.sql, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            )
            if rows == [(count,)]:
                return
            await asyncio.sleep(0.01)


async def test_r44_a_serialization_failure_is_sent_again(own_postgres, open_in, refused):
    """40001: somebody else makes the document while our statement waits for it; asked again, it lost its race."""
    store = await open_in("serial", SERIALIZABLE)
    async with await beside(own_postgres, "serial") as other:
        await other.execute(INSERT, ("a",))
        ours = asyncio.create_task(store.commit([Change("a", 0, b"ours"), Change("b", 0, b"ours")]))
        await until_waits(own_postgres, 1)
        await other.commit()
        assert (await ours).outcomes == (RACED, DONE)
    assert refused == [errors.SerializationFailure]


async def test_r44_serializable_rivals_all_come_through(own_postgres, open_in, refused):
    """Where every session is serializable, rivals for one document lose races, and none an answer."""
    one, other = [await open_in("rivals", SERIALIZABLE) for _ in range(2)]

    async def rival(store):
        done = 0
        while done < 60:
            version = (await store.read([Ask("a")])).found[0].version
            done += (await store.commit([Change("a", version, b"x")])).outcomes == (DONE,)

    await asyncio.gather(rival(one), rival(one), rival(other), rival(other))
    assert (await one.read([Ask("a")])).found[0].version == 240
    assert set(refused) <= {errors.SerializationFailure}


async def test_r44_a_deadlock_is_sent_again(own_postgres, open_in, refused):
    """40P01: two documents made in opposite order by somebody who heeds no order; ours is chosen, and goes again."""
    store = await open_in("locked")
    async with await beside(own_postgres, "locked") as other:
        await other.execute(INSERT, ("b",))
        ours = asyncio.create_task(store.commit([Change("a", 0, b"ours"), Change("b", 0, b"ours")]))
        await until_waits(own_postgres, 1)
        theirs = asyncio.create_task(other.execute(INSERT, ("a",)))
        await theirs
        await until_waits(own_postgres, 1)
        await other.commit()
        assert (await ours).outcomes == (RACED, RACED)
    assert refused == [errors.DeadlockDetected]


async def test_r39_a_transaction_where_sessions_are_serializable(own_postgres, open_in):
    """It sees one moment only: if the run was renewed meanwhile all is rolled back, and the error says so."""
    store = await open_in("serious", SERIALIZABLE)
    assert (await store.commit([Change("a", 0, b"x")])).outcomes == (DONE,)
    transaction = await store.begin(5)
    await transaction.connection.execute("SELECT 1 FROM serious.tenure_meta")
    assert (await store.commit([Change("a", 1, b"y")])).outcomes == (DONE,)
    with pytest.raises(StoreError, match="rolled back"):
        await transaction.read(Ask("a"))
    assert (await store.read([Ask("a")])).found[0].version == 2


async def test_tables_are_made_once_where_sessions_are_serializable(own_postgres, open_in):
    """Three that start together and wait for one lock: who has it later sees what was made before."""
    lock = int.from_bytes(hashlib.sha256(b"tenure begun.tenure_").digest()[:8], "big", signed=True)
    async with await beside(own_postgres, "public") as other:
        await other.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
        opening = [asyncio.create_task(open_in("begun", SERIALIZABLE)) for _ in range(3)]
        await until_waits(own_postgres, 3)
        await other.commit()
        stores = await asyncio.gather(*opening)
    assert (await stores[0].commit([Change("a", 0, b"x")])).outcomes == (DONE,)
    assert await stores[2].names("") == ("a",)
