"""The user's own transaction (R39): its code has the connection, and not the transaction's end."""

import asyncio
import contextlib
import sqlite3
import threading
import time

import pytest

from tenure.errors import StoreBusy, StoreError, TransactionTooLong
from tenure.stores.contract import Ask, Change, Found, Outcome

DONE, RACED = Outcome.DONE, Outcome.RACED


@pytest.fixture
async def store(opened, tmp_path):
    """A store with a table of the user's in its file, and a document `a` at version 1."""
    async with opened() as store:
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
            shell.execute("CREATE TABLE mine (x INTEGER PRIMARY KEY)")
            shell.commit()
        await store.commit([Change("a", 0, b"1")])
        yield store


@pytest.fixture
def rows(tmp_path):
    """The user's rows as anybody sees them."""

    def look():
        with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
            return [row[0] for row in shell.execute("SELECT x FROM mine ORDER BY x")]

    return look


async def unlocked(store):
    """Wait until the file's write lock is free."""
    name = "unlocked"
    async with asyncio.timeout(10):
        version = (await store.read([Ask(name)])).found[0].version
        assert (await store.commit([Change(name, version, b"x")])).outcomes == (DONE,)


async def test_r39_after_the_limit_nothing_slips_in(store, rows):
    """At its limit a transaction is rolled back, and no later statement is committed by itself."""
    transaction = await store.begin(0.1)
    connection = transaction.connection
    cursor = connection.cursor()
    cursor.execute("INSERT INTO mine VALUES (1)")
    pending = connection.execute("SELECT x FROM mine")
    await unlocked(store)
    for late in (
        lambda: connection.execute("INSERT INTO mine VALUES (2)"),
        lambda: connection.executemany("INSERT INTO mine VALUES (?)", [(3,)]),
        lambda: cursor.execute("INSERT INTO mine VALUES (4)"),
        lambda: cursor.executemany("INSERT INTO mine VALUES (?)", [(5,)]),
        lambda: connection.cursor().execute("INSERT INTO mine VALUES (6)"),
        lambda: connection.blobopen("mine", "x", 1),
        cursor.fetchall,
        pending.fetchone,
        pending.fetchmany,
        lambda: next(pending),
    ):
        with pytest.raises((TransactionTooLong, sqlite3.ProgrammingError)):
            late()
    with pytest.raises(TransactionTooLong, match=r"limit of 0\.1 s.*none of its writes stand"):
        await transaction.commit(Change("a", 1, b"2"))
    with pytest.raises(TransactionTooLong):
        await transaction.read(Ask("a"))
    with pytest.raises(TransactionTooLong):
        await transaction.rollback()
    assert rows() == []
    assert (await store.read([Ask("a")])).found[0] == Found(1, b"1")


async def test_r39_a_running_statement_is_stopped(store, rows):
    """A statement that runs when the limit comes is stopped, and says why."""
    transaction = await store.begin(0.2)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO mine SELECT i FROM n"
    with pytest.raises(TransactionTooLong):
        await asyncio.to_thread(transaction.connection.execute, endless)
    await unlocked(store)
    assert rows() == []


async def test_r39_many_statements_that_pass_the_limit(store, rows):
    """executemany() that goes on past the limit ends in the same way: none of its rows stand."""
    transaction = await store.begin(0.1)
    gate = threading.Event()

    def numbers():
        for number in range(20):
            if number == 10:
                assert gate.wait(10)
            yield (number,)

    insert = "INSERT INTO mine VALUES (?)"
    running = asyncio.create_task(asyncio.to_thread(transaction.connection.executemany, insert, numbers()))
    async with asyncio.timeout(10):
        while transaction._over is None:  # noqa: ASYNC110 - its thread's doing
            await asyncio.sleep(0.01)
    gate.set()
    await asyncio.wait({running})
    await unlocked(store)
    assert rows() == []


async def test_r39_the_users_code_cannot_end_it(store, rows):
    """Neither a method nor a statement commits or rolls back before the block ends; savepoints work."""
    transaction = await store.begin(5.0)
    connection = transaction.connection
    connection.execute("INSERT INTO mine VALUES (1)")
    for early in (
        connection.commit,
        connection.rollback,
        connection.close,
        connection.__enter__,
        lambda: connection.execute("COMMIT"),
        lambda: connection.execute("  /* so */ end"),
        lambda: connection.execute("ROLLBACK"),
        lambda: connection.cursor().execute("BEGIN"),
    ):
        with pytest.raises(StoreError, match="commits and rolls back by itself"):
            early()
    with pytest.raises(StoreError, match="execute"):
        connection.executescript("INSERT INTO mine VALUES (2); COMMIT;")
    with pytest.raises(StoreError, match="execute"):
        connection.cursor().executescript("INSERT INTO mine VALUES (2)")
    connection.execute("SAVEPOINT s")
    connection.execute("INSERT INTO mine VALUES (3)")
    connection.execute("ROLLBACK TO s")
    connection.execute("RELEASE s")
    connection.execute("SAVEPOINT left_open")
    assert rows() == []
    assert await transaction.commit(Change("a", 1, b"2"))
    assert rows() == [1]
    with pytest.raises(StoreError, match="has ended"):
        connection.execute("INSERT INTO mine VALUES (4)")
    with pytest.raises(StoreError, match="has ended"):
        await transaction.commit(None)


async def test_r39_what_sqlite_rolled_back_stays_so(store, rows):
    """Where SQLite itself rolled back, no later statement runs and the change of ours does not stand."""
    transaction = await store.begin(5.0)
    connection = transaction.connection
    connection.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("INSERT OR ROLLBACK INTO mine VALUES (1)")
    with pytest.raises(StoreError, match="rolled the transaction back"):
        connection.execute("INSERT INTO mine VALUES (2)")
    with pytest.raises(StoreError, match="rolled the transaction back"):
        await transaction.commit(Change("a", 1, b"2"))
    await transaction.rollback()
    assert rows() == []
    assert (await store.read([Ask("a")])).found[0].version == 1
    transaction = await store.begin(5.0)
    with contextlib.suppress(sqlite3.IntegrityError):
        transaction.connection.execute("INSERT OR ROLLBACK INTO mine VALUES (1), (1)")
    with pytest.raises(StoreError, match="rolled the transaction back"):
        await transaction.commit(Change("a", 1, b"2"))


async def test_r39_errors_of_the_users_statements_are_the_drivers(store, rows):
    """A statement that fails raises the driver's own error, and the transaction goes on."""
    transaction = await store.begin(5.0)
    transaction.connection.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError):
        transaction.connection.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        transaction.connection.execute("SELECT * FROM nowhere")
    assert await transaction.commit(Change("a", 1, b"2"))
    assert rows() == [1]


async def test_r39_the_drivers_features_work(store, rows):
    """Rows, factories, cursors and fetching are as the driver has them, and disturb nothing of ours."""
    transaction = await store.begin(5.0)
    connection = transaction.connection
    connection.row_factory = sqlite3.Row
    connection.executemany("INSERT INTO mine VALUES (?)", [(1,), (2,), (3,)])
    cursor = connection.execute("SELECT x FROM mine ORDER BY x")
    assert cursor.fetchone()["x"] == 1
    assert [row["x"] for row in cursor.fetchmany(1)] == [2]
    assert [row["x"] for row in cursor] == [3]
    assert connection.execute("UPDATE mine SET x = x + 10").rowcount == 3
    assert [tuple(row) for row in connection.execute("SELECT x FROM mine WHERE x > ?", (12,)).fetchall()] == [(13,)]
    named = connection.execute("SELECT :a AS a", {"a": 7})
    assert named.fetchone()["a"] == 7
    half_read = connection.execute("SELECT x FROM mine")
    half_read.fetchone()
    assert (await transaction.read(Ask("a"))).found[0] == Found(1, b"1")
    assert await transaction.commit(Change("a", 1, b"2", hint=True))
    assert rows() == [11, 12, 13]


async def test_r39_from_another_thread(store, rows):
    """The connection may be used in the handler's thread, as a sync handler does."""
    transaction = await store.begin(5.0)

    def handler():
        for number in range(50):
            transaction.connection.execute("INSERT INTO mine VALUES (?)", (number,))

    await asyncio.to_thread(handler)
    assert await transaction.commit(Change("a", 1, b"2"))
    assert rows() == list(range(50))


async def test_r39_heartbeats_wait_for_its_end_only(store):
    """Commits of this and other processes wait while it holds the lock, and go through right after."""
    transaction = await store.begin(5.0)
    commit = asyncio.create_task(store.commit([Change("b", 0, b"1")]))
    assert not (await asyncio.wait({commit}, timeout=0.1))[0]
    assert (await store.read([Ask("a")])).found[0].version == 1
    await transaction.rollback()
    assert (await commit).outcomes == (DONE,)


async def test_r39_hints_of_a_transaction_are_told(opened):
    """A change that is committed in a transaction hints as any other."""
    async with opened(2) as (store, other):
        watches = [handle.watch() for handle in (store, other)]
        waiting = [asyncio.create_task(anext(watch)) for watch in watches]
        await asyncio.sleep(0.02)
        transaction = await store.begin(5.0)
        assert await transaction.commit(Change("a", 0, b"1", hint=True))
        async with asyncio.timeout(5):
            assert [await one for one in waiting] == [{"a"}, {"a"}]
        for watch in watches:
            await watch.aclose()


async def test_r39_who_stops_waiting_leaves_no_lock(store, tmp_path):
    """begin() that is cancelled while it waits, or just as it has the lock, leaves none behind."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.begin(60.0))
        await asyncio.sleep(0.05)
        waiting.cancel()
        shell.execute("ROLLBACK")
    await unlocked(store)
    for delay in range(10):
        waiting = asyncio.create_task(store.begin(60.0))
        await asyncio.sleep(delay / 5000)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await waiting).rollback()
    await unlocked(store)


async def test_r39_closing_the_store_rolls_back(opened, rows):
    """What is open when the store is closed does not stand."""
    async with opened() as store:
        transaction = await store.begin(60.0)
        transaction.connection.execute("CREATE TABLE mine (x)")
        transaction.connection.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(StoreError):
        transaction.connection.execute("INSERT INTO mine VALUES (2)")
    with pytest.raises(StoreError):
        await transaction.commit(None)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        rows()


async def test_r39_one_after_the_other(store, rows):
    """Transactions that are begun together come one after the other, each as long as it may."""

    async def effect(number):
        transaction = await store.begin(5.0)
        transaction.connection.execute("INSERT INTO mine VALUES (?)", (number,))
        return await transaction.commit(None)

    assert await asyncio.gather(*(effect(number) for number in range(10))) == [True] * 10
    assert rows() == list(range(10))


async def test_r39_a_lock_that_is_not_had(opened):
    """begin() waits for the lock as long as the store's timeout, and not longer."""
    async with opened(2, query="?timeout=2") as (store, other):
        transaction = await other.begin(60.0)
        began = time.monotonic()
        with pytest.raises(StoreBusy):
            await store.begin(1.0)
        assert time.monotonic() - began > 1.5
        await transaction.rollback()
        await (await store.begin(1.0)).rollback()
