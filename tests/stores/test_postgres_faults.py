"""What goes wrong with PostgreSQL, made for real: the store says it in a sentence, and goes on when it can."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import time

import psycopg
import pytest
from psycopg import errors
from sluggish import Sluggish

from tenure.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreTooOld, StoreUnavailable
from tenure.stores.contract import Ask, Change, Mark, Outcome
from tenure.stores.postgres import PostgresStore, connecting
from tenure.stores.postgres.connecting import Link
from tenure.stores.postgres.refusals import refusal

pytestmark = pytest.mark.servers

HIDDEN = "hunter2"
DONE, RACED = Outcome.DONE, Outcome.RACED


@pytest.fixture
async def opened():
    """Opens stores by URL, and closes them all."""
    stores = []

    async def open_one(url, **options):
        store = PostgresStore(url, **options)
        stores.append(store)
        await store.open()
        return store

    yield open_one
    for store in stores:
        await store.close()


def sentence(error):
    """The message, checked for what every message must be."""
    text = str(error)
    assert "\n" not in text
    assert HIDDEN not in text
    assert "fault of Tenure" not in text
    return text


async def change(store, name="a"):
    """One change of a document, read before."""
    version = (await store.read([Ask(name)])).found[0].version
    return (await store.commit([Change(name, version, b"x")])).outcomes[0]


async def recovered(store, within=10.0):
    """Until the store takes changes again."""
    async with asyncio.timeout(within):
        while True:
            try:
                return await change(store)
            except StoreUnavailable:
                await asyncio.sleep(0.05)


# --- connections that break -------------------------------------------------------------------------------


async def test_ended_backends_are_replaced(own_postgres, opened):
    """57P01: whoever ends all our connections stops nobody: the next read takes a new one, hints are heard again."""
    store = await opened(own_postgres.url, schema="ended")
    other = await opened(own_postgres.url, schema="ended")
    assert await change(store) is DONE
    heard = asyncio.create_task(anext(store.watch()))
    for _ in range(3):
        own_postgres.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tenure/%'"
        )
        assert await change(store) is DONE
    async with asyncio.timeout(10):
        while not heard.done():  # what is hinted while nobody listens is lost
            await other.commit([Change("b", (await other.read([Ask("b")])).found[0].version, b"x", hint=True)])
            await asyncio.sleep(0.1)
    assert await heard == {"b"}


async def test_a_commit_that_breaks_is_unknown(own_postgres, opened):
    """The connection ends while a commit waits: whether it was applied is not known, and the error says so."""
    store = await opened(own_postgres.url, schema="broken")
    await change(store)
    with psycopg.connect(own_postgres.url, options="-csearch_path=broken") as holder:
        holder.execute("LOCK TABLE tenure_documents IN ACCESS EXCLUSIVE MODE")
        waiting = asyncio.create_task(store.commit([Change("a", 1, b"y")]))
        await until_waits(own_postgres)
        own_postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        with pytest.raises(StoreUnavailable, match="not known") as told:
            await waiting
        holder.rollback()
    sentence(told.value)
    assert await change(store) is DONE


async def until_waits(server, event="wait_event_type = 'Lock'"):
    for _ in range(500):
        if await asyncio.to_thread(server.sql, f"SELECT 1 FROM pg_stat_activity WHERE {event}"):  # noqa: S608
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"nobody waits: {event}")


async def test_a_restart_is_survived(own_postgres, opened):
    """While the server is down calls fail at once, as unavailable; afterwards all goes on, nothing is lost."""
    store = await opened(own_postgres.url, schema="restarted")
    await change(store)
    await asyncio.to_thread(own_postgres.stop)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="can't be reached") as told:
        await change(store)
    assert time.monotonic() - began < 1
    sentence(told.value)
    await asyncio.to_thread(own_postgres.start)
    assert await recovered(store) is DONE
    assert (await store.read([Ask("a")])).found[0].version == 2


async def test_a_crash_is_survived(own_postgres, opened):
    """A backend killed by SIGKILL: the server throws everybody out and recovers by itself."""
    store = await opened(own_postgres.url, schema="crashed")
    await change(store)
    ((pid,),) = own_postgres.sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tenure/%' LIMIT 1")
    os.kill(pid, signal.SIGKILL)
    assert await recovered(store, 20) is DONE


async def test_starting_while_the_server_is_down(own_postgres):
    """open() says so and may be tried again; nothing is left open."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        store = PostgresStore(f"postgresql://me:{HIDDEN}@127.0.0.1:{nobody.getsockname()[1]}/db")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="Check that it runs") as told:
                await store.open()
        sentence(told.value)
    with pytest.raises(StoreError, match="not open"):
        await store.read([])


# --- servers that stand still -----------------------------------------------------------------------------


async def test_a_server_that_never_answers_is_given_up(own_postgres):
    """It accepts and is silent: open() ends within its time, and stops nothing else meanwhile."""
    async with Sluggish() as silent:
        store = PostgresStore(f"postgresql://tenure@127.0.0.1:{silent.port}/postgres", timeout=0.5)
        ticks = asyncio.create_task(ticking(0.6))
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="did not answer") as told:
            await store.open()
        assert time.monotonic() - began < 1
        sentence(told.value)
        assert await ticks > 40


async def ticking(seconds):
    """How often a loop that should tick each hundredth of a second did."""
    ticks, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.01)
        ticks += 1
    return ticks


async def test_a_server_that_stops_answering_is_given_up(own_postgres, opened):
    """Calls end within their time, also those of a hurry; once it answers again, so do we, at once."""
    async with Sluggish(own_postgres.port) as between:
        url = f"postgresql://tenure@127.0.0.1:{between.port}/postgres"
        store = await opened(url, schema="still", timeout=0.5)
        await change(store)
        between.still = True
        for call in (store.read([Ask("a")]), store.commit([Change("a", 1, b"x")]), store.begin(1.0)):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match="did not answer") as told:
                await call
            assert time.monotonic() - began < 0.8
            sentence(told.value)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await store.read([Ask("a")])
        between.still = False
        began = time.monotonic()
        assert await recovered(store) in (DONE, RACED)
        assert time.monotonic() - began < 0.5
        await store.close()


async def test_one_stuck_call_starves_nobody(own_postgres, opened):
    """While one commit waits for a lock on marks, and handlers hold all their transactions, heartbeats go on."""
    store = await opened(own_postgres.url, schema="stuck", transactions=2, timeout=1)
    await change(store)
    held = [await store.begin(5.0) for _ in range(2)]
    with psycopg.connect(own_postgres.url, options="-csearch_path=stuck") as holder:
        holder.execute("LOCK TABLE tenure_marks IN ACCESS EXCLUSIVE MODE")
        marking = Change("b", 0, None, marks=(Mark(1, 1, 1, "late", "", 1, "me"),))
        waiting = asyncio.create_task(store.commit([marking]))
        await until_waits(own_postgres)
        async with asyncio.timeout(1):
            for _ in range(5):
                assert await change(store) is DONE
        holder.rollback()
    assert (await waiting).outcomes == (DONE,)
    with pytest.raises(StoreBusy, match="transactions="):
        await store.begin(5.0)
    for one in held:
        await one.rollback()
    assert await (await store.begin(1.0)).commit(None)


async def test_r21_a_listener_whose_connection_went_dumb_hears_again(own_postgres, opened, monkeypatch):
    """What it should have heard was swallowed, and that connection stays dumb: another is made."""
    monkeypatch.setattr("tenure.stores.postgres.listening._SILENCE_SECONDS", 0.1)
    async with Sluggish(own_postgres.port) as between:
        url = f"postgresql://tenure@127.0.0.1:{between.port}/postgres"
        store, other = await opened(url, schema="dumb", timeout=0.5), await opened(own_postgres.url, schema="dumb")
        heard = asyncio.create_task(anext(store.watch()))
        between.still = True
        await other.commit([Change("swallowed", 0, b"x", hint=True)])
        await asyncio.sleep(1)
        between.still = False
        async with asyncio.timeout(10):
            for version in itertools.count():
                await other.commit([Change("loud", version, b"x", hint=True)])
                await asyncio.wait([heard], timeout=0.05)
                if heard.done():
                    break
        assert await heard == {"loud"}
        await store.close()


# --- commits that are not sure ----------------------------------------------------------------------------


async def test_f9_a_commit_without_its_standby_is_unknown(own_postgres, opened):
    """The wait for the standby is cancelled: PostgreSQL commits with a warning, and that is no success."""
    store = await opened(own_postgres.url + "?options=-csynchronous_commit%3Don", schema="lonely")
    await change(store)
    with own_postgres.set("synchronous_standby_names", "nobody"):
        for ask in (
            lambda: store.commit([Change("a", 1, b"y")]),
            lambda: finished(store, Change("a", 2, b"z")),
        ):
            waiting = asyncio.create_task(ask())
            await until_waits(own_postgres, "wait_event = 'SyncRep'")
            own_postgres.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            with pytest.raises(StoreUnavailable, match="standby") as told:
                await waiting
            sentence(told.value)
    assert (await store.read([Ask("a")])).found[0].version == 3
    assert await recovered(store) is DONE


async def finished(store, one):
    """A transaction of the user's that records its success."""
    transaction = await store.begin(1.0)
    await transaction.connection.execute("SELECT 1")
    await transaction.read(Ask(one.name))
    return await transaction.commit(one)


@pytest.mark.parametrize("error", [errors.SerializationFailure, errors.DeadlockDetected])
async def test_what_was_rolled_back_for_certain_is_sent_again(
    postgres_url, postgres_schema, opened, monkeypatch, error
):
    """40001 and 40P01: nothing was applied, so the same statement is sent once more; not without end."""
    store = await opened(postgres_url, schema=postgres_schema)
    await change(store)
    rows, failing = Link.rows, [1]

    async def fails(link, statement, parameters):
        if failing and "UPDATE" in statement:
            failing.pop()
            raise error("made up")
        return await rows(link, statement, parameters)

    monkeypatch.setattr(Link, "rows", fails)
    assert (await store.commit([Change("a", 1, b"y")])).outcomes == (DONE,)
    failing.extend(range(50))
    with pytest.raises(StoreUnavailable):
        await store.commit([Change("a", 2, b"y")])


async def test_a_deadlock_with_the_handlers_own_rows(own_postgres, opened):
    """40P01 in a transaction of the user's: all of it is rolled back, and the error says that it may be tried again."""
    store = await opened(own_postgres.url, schema="dead")
    await change(store)
    own_postgres.sql("CREATE TABLE IF NOT EXISTS dead.t (k int PRIMARY KEY, v int)")
    own_postgres.sql("INSERT INTO dead.t VALUES (1, 0), (2, 0)")
    first, second = await store.begin(5), await store.begin(5)
    await first.connection.execute("UPDATE dead.t SET v = 1 WHERE k = 1")
    await second.connection.execute("UPDATE dead.t SET v = 2 WHERE k = 2")
    results = await asyncio.gather(
        first.connection.execute("UPDATE dead.t SET v = 1 WHERE k = 2"),
        second.connection.execute("UPDATE dead.t SET v = 2 WHERE k = 1"),
        return_exceptions=True,
    )
    (victim,) = [one for one, told in zip((first, second), results, strict=True) if isinstance(told, Exception)]
    (winner,) = {first, second} - {victim}
    with pytest.raises(StoreError, match="all was rolled back"):
        await victim.read(Ask("a"))
    assert await winner.commit(None)


# --- servers that can't be written ------------------------------------------------------------------------


async def test_a_read_only_server_is_looked_past(own_postgres, opened):
    """25006, a standby or a demoted primary: unavailable, at connections old and new, until one can be written."""
    store = await opened(own_postgres.url, schema="readonly")
    await change(store)
    with own_postgres.set("default_transaction_read_only", "on"):
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="read-only at the moment") as told:
                await store.commit([Change("a", 1, b"y")])
            sentence(told.value)
    assert await recovered(store) is DONE


async def test_of_several_servers_the_one_that_can_be_written(own_postgres, postgres_url, opened):
    """The URL names them all; the first is down."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        store = await opened(
            f"postgresql://tenure@127.0.0.1:{port},127.0.0.1:{own_postgres.port}/postgres", schema="two"
        )
        assert await change(store) is DONE


async def test_r44_of_several_servers_one_that_never_answers_is_passed(own_postgres, opened):
    """Its machine is gone, and nobody says so: the next server is tried within the time of the same call."""
    async with Sluggish() as silent:
        hosts = f"127.0.0.1:{silent.port},127.0.0.1:{own_postgres.port}"
        store = await opened(f"postgresql://tenure@{hosts}/postgres", schema="gone")
        assert await change(store) is DONE


async def test_r44_calls_too_short_for_a_server_that_hangs_try_another_first(own_postgres, opened):
    """Whoever ran out of time at the first server does not begin with it for ever."""
    async with Sluggish() as silent:
        hosts = f"127.0.0.1:{silent.port},127.0.0.1:{own_postgres.port}"
        store = PostgresStore(f"postgresql://tenure@{hosts}/postgres", schema="short", timeout=0.5)
        for _ in range(40):  # of two servers the right one is drawn first
            with contextlib.suppress(StoreUnavailable):
                await store.open()
                break
        assert await recovered(store) is DONE
        await store.close()


async def test_r44_an_older_timeline_is_refused(own_postgres, opened):
    """A primary that came back from before a failover is not listened to; it is looked for another."""
    store = await opened(own_postgres.url, schema="timelines")
    assert store._server.timeline.seen == 1
    store._server.timeline.seen = 2
    own_postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tenure/%'")
    with pytest.raises(StoreUnavailable, match="timeline 1, and timeline 2 was seen before") as told:
        await store.read([Ask("a")])
    sentence(told.value)
    store._server.timeline.seen = 1
    assert await change(store) is DONE


async def test_r44_a_pooler_may_change_servers(bouncer_url, postgres_schema, opened):
    """Behind a pooler each read looks at the timeline, for the connection to it stays."""
    store = await opened(bouncer_url, schema=postgres_schema)
    await change(store)
    store._server.timeline.seen = 2
    with pytest.raises(StoreUnavailable, match="timeline"):
        await store.read([Ask("a")])


async def test_r44_where_the_timeline_may_not_be_asked(own_postgres, opened):
    """A managed server forbids the functions: the store works without the watch."""
    own_postgres.sql("CREATE ROLE managed LOGIN")
    own_postgres.sql("CREATE SCHEMA managed AUTHORIZATION managed")
    own_postgres.sql("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn), pg_current_wal_lsn() FROM PUBLIC")
    try:
        url = own_postgres.url.replace("tenure@", "managed@")
        store = await opened(url)
        assert await change(store) is DONE
        assert store.url.endswith("/postgres")
        assert own_postgres.sql("SELECT count(*) FROM managed.tenure_documents") == [(1,)]
    finally:
        own_postgres.sql("GRANT EXECUTE ON FUNCTION pg_walfile_name(pg_lsn), pg_current_wal_lsn() TO PUBLIC")


async def test_r42_a_server_that_is_too_old(postgres_url, monkeypatch):
    """One sentence names both versions."""
    monkeypatch.setattr(connecting, "OLDEST", 990_000)
    with pytest.raises(StoreTooOld, match=r"PostgreSQL 13 or newer, and .* is 1"):
        await PostgresStore(postgres_url).open()


# --- refusals ---------------------------------------------------------------------------------------------


async def test_slots_used_up(own_postgres, opened):
    """Too many connections: unavailable, and as soon as there is room it goes on."""
    store = await opened(own_postgres.url, schema="slots", connections=1)
    await change(store)
    own_postgres.sql("CREATE ROLE crowd LOGIN")
    crowd = []
    with contextlib.suppress(psycopg.OperationalError):
        while len(crowd) < 20:
            crowd.append(psycopg.connect(own_postgres.url.replace("tenure@", "crowd@")))
    assert len(crowd) < 20
    url = own_postgres.url.replace("tenure@", "crowd@")
    with pytest.raises(StoreUnavailable, match="can't be reached") as told:
        await PostgresStore(url, schema="slots").open()
    sentence(told.value)
    assert await change(store) is DONE  # it holds its connections
    for one in crowd:
        one.close()


async def test_a_statement_timeout_of_the_servers(own_postgres, opened):
    """57014: busy, nothing was changed, and it is tried again."""
    store = await opened(own_postgres.url + "?options=-cstatement_timeout%3D100ms", schema="slow")
    await change(store)
    with psycopg.connect(own_postgres.url, options="-csearch_path=slow") as holder:
        holder.execute("LOCK TABLE tenure_documents IN ACCESS EXCLUSIVE MODE")
        for call in (store.read([Ask("a")]), store.commit([Change("a", 1, b"y")])):
            with pytest.raises(StoreBusy, match="nothing was changed") as told:
                await call
            sentence(told.value)
        holder.rollback()
    assert await change(store) is DONE


async def test_permission_denied(own_postgres, opened):
    """At the start and later: the table, and what to grant, are named."""
    await opened(own_postgres.url, schema="denied")
    own_postgres.sql("CREATE ROLE reader LOGIN")
    url = own_postgres.url.replace("tenure@", "reader@")
    with pytest.raises(StoreError, match="USAGE") as told:
        await PostgresStore(url, schema="denied").open()
    sentence(told.value)
    own_postgres.sql("GRANT USAGE ON SCHEMA denied TO reader")
    own_postgres.sql("GRANT SELECT ON ALL TABLES IN SCHEMA denied TO reader")
    with pytest.raises(StoreError, match=r"no INSERT, UPDATE, DELETE permission.*tenure_documents") as told:
        await PostgresStore(url, schema="denied").open()
    sentence(told.value)
    own_postgres.sql("GRANT ALL ON ALL TABLES IN SCHEMA denied TO reader")
    store = await opened(url, schema="denied")
    await change(store)
    own_postgres.sql("REVOKE UPDATE ON denied.tenure_documents FROM reader")
    with pytest.raises(StoreError, match=r"permission denied for table tenure_documents.*GRANT") as told:
        await change(store)
    sentence(told.value)
    assert not isinstance(told.value, StoreUnavailable)
    with pytest.raises(StoreError, match="permission denied for database"):
        await PostgresStore(url, schema="of_its_own").open()


async def test_wrong_password_and_missing_database(own_postgres):
    """Waiting does not help against these: no StoreUnavailable, and no password is shown."""
    own_postgres.sql("CREATE ROLE guarded LOGIN PASSWORD 'secret'")
    here = f"127.0.0.1:{own_postgres.port}"
    for url, words in (
        (f"postgresql://guarded:{HIDDEN}@{here}/postgres", "password authentication failed"),
        (f"postgresql://guarded@{here}/postgres?passfile=/dev/null", "no password supplied"),
        (f"postgresql://tenure:{HIDDEN}@{here}/nowhere", "does not exist"),
        (f"postgresql://nobody:{HIDDEN}@{here}/postgres", "does not exist"),
    ):
        with pytest.raises(StoreError, match=words) as told:
            await PostgresStore(url).open()
        assert not isinstance(told.value, StoreUnavailable)
        sentence(told.value)
    store = PostgresStore(f"postgresql://guarded:secret@{here}/postgres?schema=guarded")
    own_postgres.sql("CREATE SCHEMA guarded AUTHORIZATION guarded")
    await store.open()
    await store.close()


async def test_tables_that_are_gone(own_postgres, opened):
    """Somebody dropped one: nothing is made anew behind the operator's back."""
    store = await opened(own_postgres.url, schema="gone")
    await change(store)
    own_postgres.sql("DROP TABLE gone.tenure_documents")
    with pytest.raises(StoreCorrupt, match="tenure db upgrade") as told:
        await store.read([Ask("a")])
    sentence(told.value)


async def test_an_encoding_that_holds_no_names(own_postgres):
    """A database in another encoding is refused at the start."""
    own_postgres.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="LATIN1, and Tenure needs UTF8") as told:
        await PostgresStore(own_postgres.url.replace("/postgres", "/latin")).open()
    sentence(told.value)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (errors.DiskFull("could not extend file"), StoreFull, "Free some space"),
        (errors.IoError("could not read block"), StoreUnavailable, "not known"),
        (errors.OutOfMemory("out of memory"), StoreUnavailable, "not known"),
        (errors.TooManyConnections("too many"), StoreUnavailable, "not known"),
        (errors.CannotConnectNow("starting up"), StoreUnavailable, "not known"),
        (errors.LockNotAvailable("lock timeout"), StoreBusy, "holds a lock"),
        (errors.DataCorrupted("invalid page"), StoreCorrupt, "Restore"),
        (errors.CharacterNotInRepertoire("invalid byte"), StoreError, "can't hold"),
        (psycopg.OperationalError("server closed the connection\n\tunexpectedly"), StoreUnavailable, "not known"),
    ],
)
def test_every_error_is_one_sentence(error, kind, words):
    """What can't be brought about here quickly: the code decides, and what the server said is told."""
    told = refusal(error, "postgresql://host/db")
    assert type(told) is kind
    assert words in sentence(told)
    assert str(error).split("\n")[0] in str(told)


async def test_names_that_no_store_can_hold(postgres_url, postgres_schema, opened):
    """Half a surrogate pair, a NUL, one that is too long for the index: refused in a sentence, nothing broken."""
    store = await opened(postgres_url, schema=postgres_schema)
    for name in ("a\ud800", "a\0b", "".join(map(chr, range(0x4E00, 0x4E00 + 9_000)))):
        with pytest.raises(StoreError) as told:
            await store.commit([Change(name, 0, b"x")])
        sentence(told.value)
    assert await change(store) is DONE


# --- processes --------------------------------------------------------------------------------------------


async def test_r45a_a_forked_child_leaves_the_connections_alone(postgres_url, postgres_schema, opened):
    """The child is told to open its own; its end takes nothing from the parent."""
    store = await opened(postgres_url, schema=postgres_schema)
    await change(store)
    answer, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                store.commit([]).send(None)
            except StoreError as error:
                os.write(told, str(error).encode())
            try:
                store.open().send(None)
            except StoreError as error:
                os.write(told, str(error).encode())
            del store
        finally:
            os._exit(0)
    os.close(told)
    await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.read(answer, 1_000).count(b"forked") == 2
    os.close(answer)
    assert await change(store) is DONE


async def test_a_process_that_stands_still_holds_nobody_up(postgres_url, postgres_schema, opened, monkeypatch):
    """Frozen between lock and COMMIT, a transaction loses its connection, and the row is free again."""
    monkeypatch.setattr("tenure.stores.postgres.transaction.IDLE", "200ms")
    store = await opened(postgres_url, schema=postgres_schema)
    await change(store)
    frozen = await store.begin(1.0)
    await frozen.read(Ask("a"))
    assert (await store.commit([Change("a", 1, b"y")])).outcomes == (RACED,)
    await asyncio.sleep(0.4)
    assert (await store.commit([Change("a", 1, b"y")])).outcomes == (DONE,)
    with pytest.raises(StoreUnavailable):
        await frozen.commit(Change("a", 1, b"z"))


# --- transactions -----------------------------------------------------------------------------------------


async def test_r39_the_end_of_a_transaction_is_ours(postgres_url, postgres_schema, opened):
    """commit(), rollback() and close() are refused; a COMMIT in SQL is noticed; savepoints are free to use."""
    store = await opened(postgres_url, schema=postgres_schema)
    await change(store)
    transaction = await store.begin(1.0)
    for end in (transaction.connection.commit, transaction.connection.rollback, transaction.connection.close):
        with pytest.raises(StoreError, match="ends its transaction itself"):
            await end()
    async with transaction.connection.transaction():
        await transaction.connection.execute("SELECT 1")
    await transaction.connection.execute("COMMIT")
    with pytest.raises(StoreError, match="handler's own"):
        await transaction.read(Ask("a"))
    sneaky = await store.begin(1.0)
    await sneaky.connection.execute("COMMIT")
    await sneaky.connection.execute("BEGIN")
    with pytest.raises(StoreError, match="handler's own"):
        await sneaky.read(Ask("a"))
    for _ in range(20):  # nothing of it stays behind on the connections
        assert await (await store.begin(1.0)).commit(None)


async def test_r39_heartbeats_go_on_beside_a_transaction(postgres_url, postgres_schema, opened):
    """However long it is open: the row is locked between its read and its commit only."""
    store = await opened(postgres_url, schema=postgres_schema)
    await change(store)
    transaction = await store.begin(0.1)
    await transaction.connection.execute("CREATE TEMPORARY TABLE t ()")
    for _ in range(5):
        assert await change(store) is DONE
    reading = await transaction.read(Ask("a"))
    assert (await store.commit([Change("a", 6, b"heartbeat")])).outcomes == (RACED,)
    assert await transaction.commit(Change("a", reading.found[0].version, b"done"))
    assert (await store.read([Ask("a")])).found[0].body == b"done"
    assert reading.now > 1_600_000_000_000
