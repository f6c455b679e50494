import asyncio
import contextlib
import os
import re
import sqlite3
import stat
import threading
import time
from dataclasses import fields

import pytest

from tenure.errors import StoreCorrupt, StoreError, StoreTooOld
from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Record
from tenure.stores.sqlite import SqliteStore, connecting
from tenure.stores.sqlite.documents import read
from tenure.stores.sqlite.schema import CLOCK, SCHEMA, Statements, statements
from tenure.stores.sqlite.writer import HINT_MS

DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


def mark(slot, **said):
    return Mark(slot, slot, 1, "late", "", 1, "me", **said)


def traced(connection):
    """The statements that a connection runs from here on."""
    told = []
    connection.set_trace_callback(told.append)
    return told


# --- the file and its tables ------------------------------------------------------------------------------


async def test_r45_the_file_is_made_for_its_owner_alone(opened, tmp_path):
    """A new file can be read by its owner only, and so can its log; the mode of an old one stays."""
    before = os.umask(0)
    try:
        async with opened():
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("a.db*")}
    finally:
        os.umask(before)
    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}
    (tmp_path / "a.db").chmod(0o640)
    async with opened():
        assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o640


async def test_r45_wal_and_full(opened):
    """The write-ahead log is on, and each commit is on the disk when it is answered."""
    async with opened() as store:
        for connection in (store._reader, store._writer._connection):
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
            assert connection.execute("PRAGMA busy_timeout").fetchone() == (0,)


async def test_r45_normal_is_said(tmp_path):
    """synchronous=normal is used where it is asked for, and its loss is named."""
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db?synchronous=normal")
    (warning,) = await store.open()
    assert "power cut forgets" in warning
    assert store._writer._connection.execute("PRAGMA synchronous").fetchone() == (1,)
    await store.close()


async def test_an_operator_can_read_names(opened, tmp_path):
    """Tables and columns speak for themselves in SQLite's own shell."""
    async with opened() as store:
        record = Record("5", 5, "success", 6, 7, b"{}")
        await store.commit([Change("päivä", 0, b'{"v":1}', records=(record,), marks=(mark(9),))])
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        assert shell.execute("SELECT name, version, CAST(body AS TEXT) FROM tenure_documents").fetchall() == [
            ("päivä", 1, '{"v":1}')
        ]
        assert shell.execute("SELECT name, run, status, ended FROM tenure_history").fetchall() == [
            ("päivä", "5", "success", 6)
        ]
        assert shell.execute("SELECT name, slot, why, noted_by FROM tenure_marks").fetchall() == [
            ("päivä", 9, "late", "me")
        ]
        assert shell.execute("SELECT * FROM tenure_meta").fetchall() == [("schema", SCHEMA)]


async def test_r42_prefixes_keep_stores_apart(opened, tmp_path):
    """Two prefixes in one file are two stores, beside whatever else is in it."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        shell.execute("CREATE TABLE documents (mine TEXT)")
        shell.execute("INSERT INTO documents VALUES ('stays')")
        shell.commit()
    async with opened(query="?prefix=one_") as one, opened(query="?prefix=two_") as two:
        await one.commit([Change("a", 0, b"1")])
        assert await two.names("") == ()
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        assert shell.execute("SELECT * FROM documents").fetchall() == [("stays",)]


async def test_closing_leaves_one_file_and_no_thread(opened, tmp_path):
    """After the last store is closed the log is back in the file, and no thread of ours is left."""
    async with opened(2) as (store, other):
        await store.commit([Change("a", 0, b"1")])
        await other.begin(5.0)
    assert [path.name for path in tmp_path.glob("a.db*")] == ["a.db"]
    async with asyncio.timeout(5):
        while any(thread.name.startswith("tenure-sqlite") for thread in threading.enumerate()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    with pytest.raises(StoreError, match="not open"):
        await store.read([Ask("a")])
    with pytest.raises(StoreError, match="not open"):
        await store.commit([])
    with pytest.raises(StoreError, match="not open"):
        await store.begin(1.0)
    with pytest.raises(StoreError, match="not open"):
        await anext(store.watch())


async def test_what_was_asked_before_closing_is_answered(opened):
    """close() finishes the commits that are under way, and ends every watch."""
    async with opened() as store:
        commits = [asyncio.create_task(store.commit([Change(f"{at}", 0, b"1")])) for at in range(20)]
        watch = asyncio.create_task(anext(store.watch(), None))
        await asyncio.sleep(0)
        await store.close()
        assert {verdict.outcomes for verdict in await asyncio.gather(*commits)} == {(DONE,)}
        async with asyncio.timeout(5):
            assert await watch is None


async def test_a_store_is_opened_once(opened):
    """A second open() of the same store is a mistake, and is said."""
    async with opened() as store:
        with pytest.raises(StoreError, match="open already"):
            await store.open()


async def test_a_relative_path_stays_where_it_was(monkeypatch, tmp_path):
    """The path is fixed when the store is made: a change of the working folder changes nothing."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("sqlite:///here.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    await store.close()
    assert (tmp_path / "here.db").exists()


# --- what is in the file already --------------------------------------------------------------------------


async def refused(opened, error, *words):
    """Opening fails with this error, whose sentence has these words."""
    with pytest.raises(error) as told:
        async with opened():
            pass
    for word in words:
        assert word in str(told.value)


async def test_a_newer_schema_is_refused(opened, tmp_path):
    """A file of a newer Tenure is left alone, with one sentence that says so."""
    async with opened():
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        shell.execute("UPDATE tenure_meta SET value = ?", (SCHEMA + 1,))
        shell.commit()
    await refused(opened, StoreError, "newer Tenure", "Upgrade", str(SCHEMA + 1))


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE tenure_marks",
        "DROP TABLE tenure_meta",
        "DELETE FROM tenure_meta",
    ],
)
async def test_tables_that_are_not_ours_are_refused(opened, tmp_path, statement):
    """Tables of these names that are not all of ours are neither used nor completed."""
    async with opened():
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        shell.execute(statement)
        shell.commit()
        before = shell.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    await refused(opened, StoreCorrupt, "not all of Tenure's", "?prefix=", "nothing was changed")
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        assert shell.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == before


async def test_another_text_encoding_is_refused(opened, tmp_path):
    """Names are compared byte by byte, in UTF-8."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        shell.execute("PRAGMA encoding = 'UTF-16'")
        shell.execute("CREATE TABLE t (x)")
    await refused(opened, StoreCorrupt, "UTF-16", "UTF-8")


async def test_an_old_library_is_refused(opened, monkeypatch):
    """A SQLite without STRICT tables is refused by version; one that tells no milliseconds too."""
    monkeypatch.setattr(connecting, "OLDEST", (9, 0, 0))
    await refused(opened, StoreTooOld, "9.0.0", sqlite3.sqlite_version)
    monkeypatch.undo()
    monkeypatch.setattr(connecting, "CLOCK", "SELECT unixepoch('no such modifier')")
    await refused(opened, StoreTooOld, "no time in milliseconds")


# --- the clock --------------------------------------------------------------------------------------------


async def test_r45_the_clock_is_the_machines_in_milliseconds(opened):
    """The store's time is the machine's, exact to the millisecond, however it is asked for."""
    async with opened() as store:
        for _ in range(200):
            before = time.time_ns() // 1_000_000
            told = (await store.read([])).now
            assert before <= told <= time.time_ns() // 1_000_000
        before = time.time_ns() // 1_000_000
        verdict = await store.commit([Change("a", 0, b"1")])
        assert before <= verdict.now <= time.time_ns() // 1_000_000
    with contextlib.closing(sqlite3.connect(":memory:")) as shell:
        whole = shell.execute(CLOCK.replace("'now'", "1784246399.999, 'unixepoch', 'subsec'")).fetchone()[0]
        exact = [
            shell.execute(CLOCK.replace("julianday('now')", f"julianday('2026-07-16 23:59:59.{ms:03d}')")).fetchone()[0]
            for ms in range(1000)
        ]
    assert whole in (None, 1784246399999)
    assert exact == list(range(1784246399000, 1784246400000))


# --- group commit, and who writes nothing -----------------------------------------------------------------


async def test_r45_commits_are_grouped(opened):
    """What is asked while a transaction runs goes into the next one together."""
    async with opened() as store:
        told = traced(store._writer._connection)
        answers = await asyncio.gather(*(store.commit([Change(f"{at}", 0, b"1")]) for at in range(200)))
        assert {answer.outcomes for answer in answers} == {(DONE,)}
        assert 1 <= told.count("BEGIN IMMEDIATE") <= 10


async def test_r41_a_thousand_changes_take_few_statements(opened):
    """A batch is written by set, not by row: another thread that computes would delay each single row."""
    async with opened() as store:
        names = [f"job-{at}" for at in range(1_000)]
        await store.commit([Change(name, 0, b"1") for name in names])
        told = traced(store._writer._connection)
        record = Record("5", 5, "success", 6, 7, b"{}")
        await store.commit(
            [Change(name, 1, b"2", records=(record,), marks=(mark(9),), forget=("4",), hint=True) for name in names]
        )
        assert len([line for line in told if not line.startswith("--")]) <= 12
        told = traced(store._reader)
        await store.read([Ask(name, ("5", "6"), (1, 1), 99) for name in names])
        assert len([line for line in told if not line.startswith("--")]) <= 8


async def test_losers_write_nothing(opened, tmp_path):
    """Raced, late and covered changes leave the log as it was, and wait for no disk."""
    async with opened() as store:
        await store.commit([Change("a", 0, b"1", marks=(mark(1),))])
        log = tmp_path / "a.db-wal"
        before = log.read_bytes()
        told = traced(store._writer._connection)
        late, covered = Change("a", 1, b"x", deadline=1), Change("a", 9, None, marks=(mark(1),))
        verdict = await store.commit([Change("a", 0, b"x"), late, covered, Change("a", 7, None, delete=True)])
        assert verdict.outcomes == (RACED, EXPIRED, DONE, RACED)
        assert log.read_bytes() == before
        assert told[-1] == "ROLLBACK"


async def test_a_value_that_does_not_fit_fails_its_own_call_only(opened):
    """What SQLite can't hold is an error for who asked, and for nobody else in the group."""
    async with opened() as store:
        gate = threading.Event()
        store._writer._connection.set_progress_handler(lambda: int(not gate.wait(10)), 1)
        first = asyncio.create_task(store.commit([Change("first", 0, b"1")]))
        await asyncio.sleep(0.05)
        record = Record("5", 1 << 70, "success", 6, 7, b"{}")
        bad = [
            asyncio.create_task(store.commit([Change("bad", 0, b"1", records=(record,))])),
            asyncio.create_task(store.commit([Change("bad\ud800", 0, b"1")])),
        ]
        good = [asyncio.create_task(store.commit([Change(f"good-{at}", 0, b"1")])) for at in range(5)]
        await asyncio.sleep(0)
        gate.set()
        assert (await first).outcomes == (DONE,)
        assert {(await task).outcomes for task in good} == {(DONE,)}
        for task in bad:
            with pytest.raises((StoreError, OverflowError, UnicodeEncodeError)):
                await task
        assert await store.names("bad") == ()


async def test_r45_a_disk_that_hangs_ends_the_call(tmp_path):
    """A commit that gets no answer ends within the timeout, and says that its outcome is not known."""
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db?timeout=0.3")
    await store.open()
    gate = threading.Event()
    store._writer._connection.set_progress_handler(lambda: int(not gate.wait(10)), 1)
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"within 0\.3 s.*not known"):
        await store.commit([Change("a", 0, b"1")])
    assert time.monotonic() - began < 3
    gate.set()
    await store.commit([Change("b", 0, b"1")])
    assert (await store.read([Ask("a")])).found[0] in (Found(), Found(1, b"1"))
    await store.close()


# --- plans ------------------------------------------------------------------------------------------------


def scans(connection, sql):
    """The tables of ours that a statement would read from end to end."""
    count = len(set(re.findall(r"\?\d", sql))) or sql.count("?")
    plan = connection.execute("EXPLAIN QUERY PLAN " + sql, ('[["a", 1, 2, 3, "a", "b", 7, 8, 9]]',) * count).fetchall()
    return [row[3] for row in plan if re.match(r"SCAN (?!w\b|json_each|\(subquery|subquery|CONSTANT)", row[3])]


async def test_every_statement_uses_an_index(opened, tmp_path):
    """No statement reads a table from end to end, whatever it holds and with stale statistics."""
    async with opened():
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
            "INSERT INTO tenure_history SELECT 'job', i, i, 'success', i, i, x'7b7d' FROM n"
        )
        for statistics in (False, True):
            if statistics:
                connection.execute("ANALYZE")
                connection.execute("DELETE FROM tenure_history WHERE slot > 10")
            sql = statements("tenure_")
            told = {
                field.name: scans(connection, getattr(sql, field.name))
                for field in fields(Statements)
                if field.name != "prefix"
            }
            wrong = {name: plan for name, plan in told.items() if plan and name not in ("sweep", "newest_hint")}
            assert wrong == {}


# --- hints ------------------------------------------------------------------------------------------------


async def first_hint(store, cause):
    """What a watch tells first after the cause."""
    watch = store.watch()
    waiting = asyncio.create_task(anext(watch))
    await asyncio.sleep(0.02)
    await cause()
    async with asyncio.timeout(5):
        names = await waiting
    await watch.aclose()
    return names


async def test_hints_of_others_come_from_the_table(opened):
    """Another process's hint is read when the file has changed; its own is not told twice."""
    async with opened(2) as (store, other):
        assert await first_hint(store, lambda: other.commit([Change("a", 0, b"1", hint=True)])) == {"a"}
        watch = store.watch()
        waiting = asyncio.create_task(anext(watch))
        await asyncio.sleep(0.02)
        await store.commit([Change("mine", 0, b"1", hint=True)])
        async with asyncio.timeout(5):
            assert await waiting == {"mine"}
            waiting = asyncio.create_task(anext(watch))
            await other.commit([Change("b", 0, b"1"), Change("c", 0, b"1", hint=True)])
            assert await waiting == {"c"}
        await watch.aclose()


async def test_old_hints_are_swept(opened):
    """Hints older than a minute are deleted by who writes one; the numbers go on."""
    async with opened(2) as (store, other):
        await store.commit([Change("a", 0, b"1", hint=True)])
        writer = store._writer
        writer._connection.execute("UPDATE tenure_hints SET at = at - ?", (HINT_MS + 1,))
        writer._swept = float("-inf")
        assert await first_hint(other, lambda: store.commit([Change("b", 0, b"1", hint=True)])) == {"b"}
        told = store._reader.execute("SELECT id, name FROM tenure_hints").fetchall()
        assert told == [(2, "b")]


async def test_a_read_costs_one_moment(opened):
    """Several names are read in one transaction, with the clock first."""
    async with opened() as store:
        told = traced(store._reader)
        await store.read([Ask("a"), Ask("b")])
        assert (told[0], told[1], told[-1]) == ("BEGIN", CLOCK, "COMMIT")
        with contextlib.closing(sqlite3.connect(":memory:")) as empty, pytest.raises(sqlite3.OperationalError):
            read(empty, statements("x"), [Ask("a")])
