import asyncio
import contextlib
import os
import sqlite3
import stat
import threading
import time

import pytest

from tenure.errors import StoreCorrupt, StoreError, StoreTooOld
from tenure.stores.contract import Ask, Change, Mark, Outcome, Record
from tenure.stores.sqlite import SqliteStore, connecting
from tenure.stores.sqlite.schema import CLOCK, SCHEMA

DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


def mark(slot, **said):
    return Mark(slot, slot, 1, "late", "", 1, "me", **said)


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
