"""PostgreSQL 18, Debian's 15, and 18 through PgBouncer in transaction mode: the exam, plans, what is written."""

import asyncio
import json

import psycopg
import pytest
from postgres_hall import PostgresHall
from psycopg_pool import AsyncConnectionPool

from tenure.errors import ConfigError, StoreCorrupt, StoreError, StoreUnavailable
from tenure.proof.conformance import QUESTIONS, NotAskedError, random_sequences
from tenure.stores.contract import Ask, Change, Mark, Outcome, Record
from tenure.stores.opening import store_from_url
from tenure.stores.postgres import PostgresStore
from tenure.stores.postgres.connecting import Link

pytestmark = pytest.mark.servers

HIDDEN = "hunter2"
A_MARK = Mark(1, 1, 1, "late", "", 1, "me")
DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


@pytest.fixture(params=["18", "15", "pgbouncer"])
def hall(request):
    """Each server."""
    fixture = {"18": "postgres_url", "15": "postgres_15_url", "pgbouncer": "bouncer_url"}[request.param]
    one = PostgresHall(request.getfixturevalue(fixture))
    yield one
    one.clear()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_r40_question(hall, question, request):
    """Each question of the exam on each server; through a pooler the store says that it hears no hints."""
    try:
        await QUESTIONS[question](hall)
    except NotAskedError:
        assert (question, hall.url) == ("hints_reach_other_handles", request.getfixturevalue("bouncer_url"))


def test_r40_random_sequences(hall):
    """Random reads, changes and commands end as they do in memory."""
    random_sequences(hall, examples=25)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_r40_many_random_sequences(hall):
    """The same, many more."""
    random_sequences(hall, examples=2_000)


# --- what is written, and how it is found -----------------------------------------------------------------


@pytest.fixture
async def open_store(postgres_url, postgres_schema):
    """Opens stores on a schema of this test's own, and closes them all."""
    stores = []

    async def opened(**options):
        store = PostgresStore(postgres_url, **{"schema": postgres_schema, **options})
        stores.append(store)
        store.told = await store.open()
        return store

    yield opened
    for store in stores:
        await store.close()


def beside(url, schema, autocommit=True):
    """A connection of a test's own, on the tables of a schema."""
    return psycopg.connect(url, autocommit=autocommit, options=f"-csearch_path={schema}")


def counted(monkeypatch):
    """Counts the statements that links run."""
    sent = []
    rows = Link.rows

    async def counting(self, statement, parameters):
        sent.append(statement)
        return await rows(self, statement, parameters)

    monkeypatch.setattr(Link, "rows", counting)
    return sent


async def filled(store, count, **said):
    """So many documents, at version 1."""
    names = [f"job-{place:05d}" for place in range(count)]
    await store.commit([Change(name, 0, b"x" * 250, **said) for name in names])
    return names


async def test_r41_any_batch_is_two_statements(open_store, monkeypatch):
    """A thousand claims with their records and hints: one to read, one to commit; 5,000 heartbeats in one."""
    store = await open_store()
    names = await filled(store, 5_000)
    sent = counted(monkeypatch)
    reading = await store.read([Ask(name, ("1", "2")) for name in names[:1_000]])
    changes = [
        Change(name, 1, b"y", reading.now + 2_000, (Record("1", 1, "success", 2, 3, b"{}"),), forget=("0",), hint=True)
        for name in names[:1_000]
    ]
    assert (await store.commit(changes)).outcomes == (DONE,) * 1_000
    assert len(sent) == 2
    sent.clear()
    beats = [Change(name, 2 if at < 1_000 else 1, b"z" * 250, reading.now + 60_000) for at, name in enumerate(names)]
    assert (await store.commit(beats)).outcomes == (DONE,) * 5_000
    assert len(sent) == 1


async def test_r41_one_claim_is_two_small_statements(open_store, monkeypatch):
    """One name, no history to change: a look-up and an update by key; only a lost race asks why."""
    store = await open_store()
    await filled(store, 1)
    sent = counted(monkeypatch)
    reading = await store.read([Ask("job-00000", ("1",))])
    assert (await store.commit([Change("job-00000", 1, b"y", reading.now + 2_000)])).outcomes == (DONE,)
    assert len(sent) == 2
    assert (await store.commit([Change("job-00000", 1, b"y", reading.now + 2_000)])).outcomes == (RACED,)
    assert (await store.commit([Change("job-00000", 2, b"y", reading.now - 1)])).outcomes == (EXPIRED,)
    assert len(sent) == 6


async def test_heartbeats_stay_hot(own_postgres):
    """Updates of documents touch no index: no index holds what they change, and pages keep room."""
    store = PostgresStore(own_postgres.url, schema="beating")
    await store.open()
    names = await filled(store, 200)
    versions = dict.fromkeys(names, 1)
    told = []
    for round_ in range(60):
        beating = names[round_ % 4 :: 4]  # of the jobs, those that run
        await store.commit([Change(name, versions[name], b"%d" % (round_ % 10) * 250) for name in beating])
        versions.update({name: versions[name] + 1 for name in beating})
        if round_ in (19, 59):
            await store.close()  # a session tells its figures at the latest when it ends
            told.append(await updates(own_postgres, 50 * (round_ + 1)))
            store = PostgresStore(own_postgres.url, schema="beating")
            await store.open()
    await store.close()
    print(f"{told[1] - told[0]} of 2,000 heartbeats were HOT; of the first 1,000, {told[0]}")
    assert (told[1] - told[0]) / 2_000 > 0.95


async def updates(server, count):
    """How many of so many updates were HOT, once the server has counted them all."""
    for _ in range(500):
        question = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'beating'"
        ((all_, hot),) = server.sql(question + " AND relname = 'tenure_documents'")
        if all_ == count:
            return hot
        await asyncio.sleep(0.01)
    raise AssertionError(f"{all_} updates, not {count}")


async def test_losing_changes_write_nothing(own_postgres):
    """Stale and late changes, alone and in batches, inserts included: not one byte of write-ahead log."""
    store = PostgresStore(own_postgres.url, schema="losing")
    await store.open()
    names = await filled(store, 50)
    late = (await store.read([])).now - 1
    record = Record("1", 1, "success", 2, 3, b"{}")
    losing = [
        [Change("job-00000", 7, b"stale")],
        [Change("job-00000", 1, b"late", late)],
        [Change(name, 7, b"stale", records=(record,), hint=True) for name in names],
        [Change(name, 1, b"late", late, (record,), (A_MARK,), hint=True) for name in names],
        [Change(name, 0, b"there is one") for name in names],
        [Change("new", 0, b"late", late), Change("none", 3, b"stale"), Change("job-00001", 7, None, delete=True)],
    ]
    for changes in losing:
        await store.commit(changes)  # the first time, a page may be tidied up
        written = []
        for _ in range(3):  # the server itself notes something now and then
            before = own_postgres.sql("SELECT pg_current_wal_insert_lsn()")
            verdict = await store.commit(changes)
            assert DONE not in verdict.outcomes
            after = own_postgres.sql("SELECT pg_current_wal_insert_lsn()")
            written.append(own_postgres.sql("SELECT %s::pg_lsn - %s::pg_lsn", after[0][0], before[0][0])[0][0])
        assert min(written) == 0, changes[0]
    await store.close()


async def test_a_long_history_is_never_read_through(open_store, postgres_url, postgres_schema):
    """Behind 200,000 records that no statistics know of, every read and every commit goes by the index."""
    store = await open_store()
    names = await filled(store, 100)
    await store.close()
    with beside(postgres_url, postgres_schema) as connection:
        connection.execute(
            "INSERT INTO tenure_history SELECT 'job-' || lpad((n % 100)::text, 5, '0'), n::text, n, 'success', n, n, "
            "'{}' FROM generate_series(1, 200000) n"
        )

        def scans():
            question = (
                "SELECT seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables WHERE relname = 'tenure_history'"
            )
            return connection.execute(question + " AND schemaname = %s", (postgres_schema,)).fetchone()

        *before, looked_up = scans()
        again = await open_store()
        for some in (names[:1], names):
            asks = [Ask(name, ("1", "77"), (1_000, 9), 10**15) for name in some]
            (found, *_) = (await again.read(asks)).found
            assert len(found.heads) == 500
            await again.read([Ask(name, ("77",)) for name in some])
            changes = [
                Change(name, found.version, b"z", records=(Record("300001", 300_001, "success", 1, 1, b"{}"),),
                       forget=tuple(str(place) for place in range(100)))
                for name, found in zip(some, (await again.read(asks)).found, strict=True)
            ]  # fmt: skip
            assert set((await again.commit(changes)).outcomes) == {DONE}
            await again.records(some[0], 0, 10**15, 20)
        await again.close()
        for _ in range(250):  # a session tells its figures when it ends
            if scans()[2] >= looked_up + 300:
                break
            await asyncio.sleep(0.02)
        *after, found_by_index = scans()
        assert (after, found_by_index >= looked_up + 300) == (before, True)


async def test_r44_a_deadline_is_judged_once_the_lock_is_held(open_store, postgres_url, postgres_schema):
    """F10: a commit that waited for a lock on the table is judged by the clock of then, not of when it began."""
    store = await open_store()
    await filled(store, 3)
    with beside(postgres_url, postgres_schema, autocommit=False) as connection:
        connection.execute("LOCK TABLE tenure_documents IN ACCESS EXCLUSIVE MODE")
        now = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8").fetchone()[0]
        waiting = [
            asyncio.create_task(store.commit([Change("job-00000", 1, b"x", now + 200)])),
            asyncio.create_task(store.commit([Change("job-00001", 1, b"x", now + 200), Change("new", 0, b"x", now)])),
            asyncio.create_task(store.commit([Change("job-00002", 1, b"x", now + 60_000)])),
        ]
        done, _ = await asyncio.wait(waiting, timeout=0.4)
        assert not done
        connection.rollback()
    told = [(await one).outcomes for one in waiting]
    assert told == [(EXPIRED,), (EXPIRED, EXPIRED), (DONE,)]


async def test_r39_rows_that_others_hold_are_passed_over(open_store, postgres_url, postgres_schema):
    """A batch does not wait for a locked row: that one lost its race, and the others are done."""
    store = await open_store()
    names = await filled(store, 5)
    with beside(postgres_url, postgres_schema, autocommit=False) as connection:
        connection.execute("SELECT 1 FROM tenure_documents WHERE name = %s FOR UPDATE", (names[2],))
        async with asyncio.timeout(2):
            told = await store.commit([Change(name, 1, b"y") for name in names])
            alone = await store.commit([Change(names[2], 1, b"y")])
        connection.rollback()
    assert told.outcomes == (DONE, DONE, RACED, DONE, DONE)
    assert alone.outcomes == (RACED,)
    assert (await store.commit([Change(names[2], 1, b"y")])).outcomes == (DONE,)


async def test_batches_in_opposite_order_never_deadlock(open_store):
    """Two stores change and insert the same names, one from the front and one from the back."""
    stores = [await open_store(), await open_store()]
    for round_ in range(15):
        names = [f"{round_}-{place}" for place in range(100)]
        for version in (0, 1):
            mark = Mark(version + 1, version + 1, 1, "late", "", 1, "me", after=version or None)
            first = [Change(name, version, b"a", marks=(mark,)) for name in names]
            told = await asyncio.gather(stores[0].commit(first), stores[1].commit(first[::-1]))
            won = [told[0].outcomes[at] is DONE or told[1].outcomes[-1 - at] is DONE for at in range(100)]
            twice = [told[0].outcomes[at] is DONE and told[1].outcomes[-1 - at] is DONE for at in range(100)]
            assert not any(twice)
            for at in range(100):  # where each passed over the row that the other held, the next try wins
                if not won[at]:
                    assert (await stores[0].commit([first[at]])).outcomes == (DONE,)


async def test_marks_of_rivals_are_all_kept(open_store):
    """Marks that extend the same neighbour at the same time: each one is noted, none twice."""
    stores = [await open_store(), await open_store()]
    for round_ in range(20):
        name = f"job-{round_}"
        await stores[0].commit([Change(name, 0, None, marks=(A_MARK,))])
        rivals = [Mark(2, 2, 1, "late", "", 1, "me", after=1), Mark(3, 3, 1, "late", "", 1, "me", after=1)]
        await asyncio.gather(
            *(store.commit([Change(name, 0, None, marks=(one,))]) for store, one in zip(stores, rivals, strict=True))
        )
        told = await stores[0].marks(name, 0, 9, 9)
        covered = [slot for one in told for slot in range(one.slot, one.until + 1)]
        assert sorted(covered) == [1, 2, 3], told


# --- hints ------------------------------------------------------------------------------------------------


async def heard(store, wanted):
    async with asyncio.timeout(10):
        names = set()
        async for hinted in store.watch():
            names |= hinted
            if wanted <= names:
                break
        return names


async def test_hints_of_many_and_of_long_names(open_store):
    """A thousand names are told in several notifications; one too long for any is left out, and disturbs nothing."""
    store, other = await open_store(), await open_store()
    names = {f"job-{place}-{'ü' * 200}" for place in range(1_000)}
    listening = asyncio.create_task(heard(other, names))
    await asyncio.sleep(0.05)
    long = [Change("x" * 2_000 + str(place), 0, b"1", hint=True) for place in range(7)]
    verdict = await store.commit([*long, *(Change(name, 0, b"1", hint=True) for name in sorted(names))])
    assert set(verdict.outcomes) == {DONE}
    assert names <= await listening


async def test_a_listener_passes_over_what_is_not_ours(open_store, postgres_url):
    """Anybody may notify on the channel."""
    store, other = await open_store(), await open_store()
    listening = asyncio.create_task(heard(other, {"a"}))
    await asyncio.sleep(0.05)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for payload in ("", "{", "7", "[1]", '["x", 7]', json.dumps(["x", ["a", 3]])):
            connection.execute("SELECT pg_notify(%s, %s)", (store._open.hints.channel, payload))
    assert await listening == {"a", "3"}


async def test_a_pooler_is_noticed_and_a_direct_address_used(bouncer_url, postgres_url, postgres_schema):
    """Through PgBouncer no hint arrives: the store says so, unless it is told the server's own address."""
    pooled = PostgresStore(bouncer_url, schema=postgres_schema)
    (warning,) = [one for one in await pooled.open() if "pooler" in one]
    assert "?direct_url=" in warning
    assert not pooled.pushes
    direct = PostgresStore(bouncer_url, schema=postgres_schema, direct_url=postgres_url)
    assert not [one for one in await direct.open() if "pooler" in one]
    assert direct.pushes
    listening = asyncio.create_task(heard(direct, {"a"}))
    await asyncio.sleep(0.05)
    await pooled.commit([Change("a", 0, b"1", hint=True)])
    assert await listening == {"a"}
    wrong = PostgresStore(bouncer_url, schema=postgres_schema, direct_url=bouncer_url)
    assert [one for one in await wrong.open() if "pooler" in one]
    for store in (pooled, direct, wrong):
        await store.close()


async def test_r44_a_pooled_store_leaves_nothing_behind(own_bouncer_url, postgres_schema):
    """No prepared statement, no setting and no lock stays on the pooler's connections."""
    store = PostgresStore(own_bouncer_url, schema=postgres_schema)
    await store.open()
    names = await filled(store, 20)
    for version in range(1, 8):
        await asyncio.gather(*(store.commit([Change(name, version, b"x")]) for name in names))
        await store.read([Ask(name) for name in names])
    marks = tuple(Mark(slot, slot, 1, "late", "", 1, "me") for slot in (1, 3))
    await store.commit([Change("a", 0, b"1", marks=marks), Change("a", 1, b"2")])
    async with await psycopg.AsyncConnection.connect(own_bouncer_url, prepare_threshold=None) as connection:
        for question, wanted in (
            ("SELECT count(*) FROM pg_prepared_statements", 0),
            ("SELECT current_setting('idle_in_transaction_session_timeout')", "0"),
            ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", 0),
            ("SELECT count(*) FROM pg_listening_channels()", 0),
        ):
            assert (await (await connection.execute(question)).fetchone())[0] == wanted
    await store.close()


# --- tables -----------------------------------------------------------------------------------------------


async def test_tables_are_made_once_by_many_at_once(postgres_url, postgres_schema):
    """Five processes that start together: one makes the tables, the others find them."""
    stores = [PostgresStore(postgres_url, schema=postgres_schema) for _ in range(5)]
    await asyncio.gather(*(store.open() for store in stores))
    await stores[0].commit([Change("a", 0, b"1")])
    assert await stores[4].names("") == ("a",)
    for store in stores:
        await store.close()


async def test_plan_upgrade_check(postgres_url, postgres_schema):
    """An operator sees what is to come, applies it, and checks it; open() may be told to leave tables alone."""
    store = PostgresStore(postgres_url, schema=postgres_schema, prefix="jobs_")
    (planned,) = await store.plan()
    assert (planned.number, planned.name) == (1, "tables")
    assert f'CREATE TABLE "{postgres_schema}".jobs_documents' in planned.sql
    assert "lacks migration 1" in (await store.check())[0]
    careful = PostgresStore(postgres_url, schema=postgres_schema, prefix="jobs_", upgrade=False)
    with pytest.raises(StoreError, match="tenure db upgrade"):
        await careful.open()
    assert await store.upgrade() == (planned,)
    assert (await store.upgrade(), await store.plan(), await store.check()) == ((), (), ())
    await careful.open()
    await careful.close()
    with beside(postgres_url, postgres_schema) as connection:
        connection.execute("UPDATE jobs_meta SET value = 'x' WHERE key = 'migration 1'")
        assert "applied from another text" in (await store.check())[0]
        connection.execute("INSERT INTO jobs_meta VALUES ('migration 2', 'x')")
        with pytest.raises(StoreError, match="newer Tenure"):
            await store.open()
        connection.execute("DROP TABLE jobs_marks")
        assert "lacks jobs_marks" in " ".join(await store.check())
        connection.execute("DROP TABLE jobs_meta")
        with pytest.raises(StoreCorrupt, match="not Tenure's"):
            await store.open()


async def test_prefixes_and_schemas_keep_stores_apart(open_store):
    """Two prefixes in one schema share nothing, not even hints; an operator may query the history's columns."""
    store, other = await open_store(), await open_store(prefix="other_")
    await store.commit([Change("a", 0, b"1", records=(Record("5", 5, "success", 6, 7, b"{}"),), hint=True)])
    assert await other.names("") == ()
    assert store._open.hints.channel != other._open.hints.channel


async def test_a_schema_of_any_name(postgres_url):
    """Names are quoted; the search path leads nowhere else."""
    name = "Te-nure.x 'y"
    store = PostgresStore(postgres_url, schema=name)
    try:
        await store.open()
        await store.commit([Change("a", 0, b"1"), Change("b", 0, b"1", marks=(A_MARK,))])
        assert await store.names("") == ("a", "b")
        assert await store.check() == ()
    finally:
        await store.close()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


# --- connections of a user's ------------------------------------------------------------------------------


async def test_a_pool_of_the_users(postgres_url, postgres_schema):
    """It may live on the application's loop; handlers that use it up starve no heartbeat."""
    async with AsyncConnectionPool(postgres_url, min_size=4, max_size=5, timeout=5) as pool:
        loop = asyncio.get_running_loop()

        async def elsewhere():
            store = PostgresStore(pool=pool, schema=postgres_schema, timeout=2)
            await store.open()
            taken = [await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pool.getconn(), loop)) for _ in "ab"]
            assert (await store.commit([Change("a", 0, b"1")])).outcomes == (DONE,)
            assert (await store.read([Ask("a")])).found[0].version == 1
            for one in taken:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pool.putconn(one), loop))
            transaction = await store.begin(1)
            await transaction.connection.execute("SELECT 1")
            assert await transaction.commit(None)
            await store.close()

        await asyncio.to_thread(asyncio.run, elsewhere())
        async with pool.connection() as connection:  # given back as it was
            assert not connection.autocommit
            await connection.execute("SELECT 1")


async def test_a_pool_that_is_not_open_yet(postgres_url, postgres_schema):
    """The store opens it on its own loop, and closes it."""
    pool = AsyncConnectionPool(postgres_url, min_size=0, max_size=5, open=False)
    store = PostgresStore(pool=pool, schema=postgres_schema)
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    await store.close()
    assert pool.closed


async def test_a_connection_factory_of_the_users(postgres_url, postgres_schema):
    """Called whenever the store wants another connection."""
    made = []

    async def connect():
        made.append(await psycopg.AsyncConnection.connect(postgres_url, application_name="mine"))
        return made[-1]

    store = PostgresStore(connect=connect, schema=postgres_schema)
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    transaction = await store.begin(1)
    row = await (await transaction.connection.execute("SHOW application_name")).fetchone()
    assert row == ("mine",)
    await transaction.rollback()
    await store.close()
    assert all(one.closed for one in made)


async def test_a_connection_factory_that_fails_is_a_store_that_cannot_be_reached(postgres_url, postgres_schema):
    """Whatever it raises: a start says so and may be tried again, and so may a call of an open store."""
    failing = [True]

    async def connect():
        if failing[0]:
            raise RuntimeError("the vault is sealed")
        return await psycopg.AsyncConnection.connect(postgres_url)

    store = PostgresStore(connect=connect, schema=postgres_schema)
    with pytest.raises(StoreUnavailable, match="the vault is sealed"):
        await store.open()
    failing[0] = False
    await store.open()
    failing[0] = True
    with pytest.raises(StoreUnavailable, match="the vault is sealed"):
        await store.read([Ask("a")])
    failing[0] = False
    assert (await store.read([Ask("a")])).found[0].version == 0
    await store.close()


# --- URLs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://me:{HIDDEN}@host:5433/db", "postgresql://me@host:5433/db"),
        (f"postgres://host/db?password={HIDDEN}&user=me", "postgresql://me@host/db"),
        (f"postgresql+psycopg://me:{HIDDEN}@a:1,b:2/db?prefix=x_&schema=s", "postgresql://me@a:1,b:2/db?prefix=x_&schema=s"),
        (f"postgresql://h/db?direct_url=postgresql%3A%2F%2Fme%3A{HIDDEN}%40h2%2Fdb", "postgresql://h/db"),
        ("postgresql:///db?host=/var/run/postgresql", "postgresql://%2Fvar%2Frun%2Fpostgresql/db"),
    ],
)  # fmt: skip
def test_r42_urls(url, shown):
    """What is shown is a URL that holds nothing secret."""
    store = store_from_url(url)
    assert store.url == shown
    assert HIDDEN not in repr(store._settings)


def test_r42_options():
    """Ours are read from the URL, those given beside it win, the rest is libpq's."""
    told = store_from_url(
        "postgresql://h/db?prefix=jobs_&timeout=2s&prepare=5&connections=7&upgrade=no&sslmode=require", timeout=3
    )._settings
    assert (told.prefix, told.timeout, told.prepare, told.connections, told.upgrade) == ("jobs_", 3.0, 5, 7, False)
    assert told.server["sslmode"] == "require"
    assert told.server["target_session_attrs"] == "read-write"
    assert told.server["application_name"].startswith("tenure/")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://h/db?prefix=1x", ["prefix", "'1x'"]),
        ("postgresql://h/db?prefix=Big", ["prefix"]),
        ("postgresql://h/db?schema=pg_x", ["schema"]),
        ("postgresql://h/db?timeout=0.01", ["timeout", "0.1 to 60"]),
        ("postgresql://h/db?timeout=soon", ["timeout", "soon"]),
        ("postgresql://h/db?upgrade=maybe", ["upgrade", "1 or 0"]),
        ("postgresql://h/db?connections=0", ["connections", "from 1 to 100"]),
        ("postgresql://h/db?prepare=many", ["prepare"]),
        ("postgresql://h/db?prefx=x_", ["prefx", "Did you mean prefix?"]),
        ("postgresql://h/db?zzz=1", ["zzz", "schema"]),
        (f"postgresql://me:{HIDDEN}@h:port/db?sslmode", ["postgresql://user:password@host"]),
        (f"postgresql://h/db?direct_url=mysql://me:{HIDDEN}@h", ["direct_url"]),
    ],
)
def test_r42_refused_urls(url, words):
    """One sentence or two, without a password."""
    with pytest.raises(ConfigError) as told:
        store_from_url(url)
    for word in words:
        assert word in str(told.value)
    assert HIDDEN not in str(told.value)
