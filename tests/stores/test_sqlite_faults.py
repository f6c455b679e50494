"""Each way in which a SQLite file can fail, made for real where this machine allows it."""

import asyncio
import contextlib
import os
import resource
import sqlite3
import time
from pathlib import Path

import pytest
from small_disk import can_mount, mounted, remount

from tenure.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreGone,
    StoreReadOnly,
    StoreUnavailable,
)
from tenure.stores.contract import Ask, Change, Found, Outcome
from tenure.stores.sqlite import SqliteStore
from tenure.stores.sqlite.refusals import refusal, uncertain

DONE, RACED = Outcome.DONE, Outcome.RACED


@pytest.fixture
def small(tmp_path):
    """A folder with a file system of 600 KiB of its own."""
    with mounted(tmp_path / "small", "600k") as folder:
        yield folder


def descriptors():
    """How many files this process has open."""
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.exists() else 40


async def one(store, name="a"):
    return (await store.read([Ask(name)])).found[0]


def shell(path):
    """Another program that has the file open, such as SQLite's own shell."""
    return contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False))


# --- locks ------------------------------------------------------------------------------------------------


async def test_r45_a_second_writer_waits_its_turn(opened, tmp_path):
    """While another program holds the write lock a commit waits, and reads go on; then it is done."""
    async with opened() as store:
        await store.commit([Change("a", 0, b"1")])
        with shell(tmp_path / "a.db") as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("UPDATE tenure_documents SET version = 2, body = x'32'")
            commit = asyncio.create_task(store.commit([Change("a", 1, b"mine"), Change("b", 0, b"mine")]))
            assert not (await asyncio.wait({commit}, timeout=0.1))[0]
            assert await one(store) == Found(1, b"1")
            other.execute("COMMIT")
            assert (await commit).outcomes == (RACED, DONE)
        assert await one(store) == Found(2, b"2")


async def test_r45_busy_all_the_time(opened, tmp_path):
    """Where others keep the lock for the whole time allowed, nothing is changed and StoreBusy says so."""
    async with opened(query="?timeout=2") as store:
        with shell(tmp_path / "a.db") as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            answers = await asyncio.gather(
                *(store.commit([Change(f"{at}", 0, b"1")]) for at in range(5)), return_exceptions=True
            )
            assert time.monotonic() - began > 1.5
            for answer in answers:
                assert isinstance(answer, StoreBusy)
                assert "locked by others" in str(answer)
                assert "nothing was changed" in str(answer)
            with pytest.raises(StoreBusy):
                await store.begin(1.0)
            other.execute("ROLLBACK")
        assert await store.names("") == ()
        assert (await store.commit([Change("0", 0, b"1")])).outcomes == (DONE,)


async def test_r45_busy_when_it_opens(tmp_path):
    """A lock that is held while a store opens is waited for, and then named."""
    with shell(tmp_path / "a.db") as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        store = SqliteStore(f"sqlite:///{tmp_path}/a.db?timeout=2")
        with pytest.raises(StoreBusy):
            await store.open()
        opening = asyncio.create_task(store.open())
        await asyncio.wait({opening}, timeout=0.05)
        other.execute("ROLLBACK")
        assert await opening == ()
        await store.commit([Change("a", 0, b"1")])
        await store.close()


async def test_r45_a_reader_that_never_ends_stops_nobody(opened, tmp_path):
    """A read transaction left open in a shell delays no commit; the log shrinks again afterwards."""
    async with opened() as store:
        with shell(tmp_path / "a.db") as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM tenure_documents").fetchall()
            for at in range(50):
                await store.commit([Change(f"{at}", 0, b"x" * 60_000)])
            assert other.execute("SELECT count(*) FROM tenure_documents").fetchone() == (0,)
        assert len(await store.names("")) == 50


# --- space and permissions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pages", *(["tmpfs"] if can_mount() else [])])
async def test_r45_a_full_disk(kind, request, tmp_path):
    """A full disk refuses writes with one sentence, goes on reading, and loses nothing; freed, it writes again."""
    folder = request.getfixturevalue("small") if kind == "tmpfs" else tmp_path
    store = SqliteStore(f"sqlite:///{folder}/a.db")
    await store.open()
    if kind == "pages":
        store._writer._connection.execute("PRAGMA max_page_count = 60").fetchall()
    written = []
    with pytest.raises(StoreFull) as told:  # noqa: PT012 - it fills up at some step or other
        for at in range(100):
            await store.commit([Change(f"{at}", 0, b"x" * 30_000)])
            written.append(f"{at}")
    assert "No space" in str(told.value)
    assert "nothing was changed" in str(told.value)
    assert len(written) > 2
    assert set(await store.names("")) == set(written)
    assert await one(store, written[-1]) == Found(1, b"x" * 30_000)
    if kind == "pages":
        store._writer._connection.execute("PRAGMA max_page_count = 100000").fetchall()
    else:
        remount(folder, "size=60m")
    await store.commit([Change("after", 0, b"x" * 30_000)])
    assert set(await store.names("")) == {*written, "after"}
    assert store._reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    await store.close()


async def test_r45_a_connection_that_may_not_write(opened):
    """What can be read and not written is told apart from what fails."""
    async with opened() as store:
        await store.commit([Change("a", 0, b"1")])
        store._writer._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreReadOnly, match="write permission"):
            await store.commit([Change("a", 1, b"2")])
        assert await one(store) == Found(1, b"1")


READ_ONLY = ["mode"] if os.geteuid() != 0 else ["remount"] if can_mount() else []


@pytest.mark.parametrize("kind", READ_ONLY)
async def test_r45_a_file_that_can_only_be_read(kind, request, tmp_path):
    """A read-only file or file system is refused at start; one that becomes so refuses writes and loses nothing."""
    folder = request.getfixturevalue("small") if kind == "remount" else tmp_path

    def lock(locked):
        if kind == "remount":
            remount(folder, "ro" if locked else "rw")
        else:
            for path in (*folder.glob("a.db*"), folder):
                path.chmod(0o500 if locked else 0o700)

    store = SqliteStore(f"sqlite:///{folder}/a.db")
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    await store.close()
    lock(True)
    for name in ("a.db", "new.db"):
        with pytest.raises(StoreReadOnly) as told:
            await SqliteStore(f"sqlite:///{folder}/{name}").open()
        assert "permission" in str(told.value)
    lock(False)
    await store.open()
    assert await one(store) == Found(1, b"1")
    await store.close()


async def test_r45_a_missing_folder_and_a_folder(tmp_path):
    """The folder is not made for anybody, and a folder is no file."""
    with pytest.raises(StoreError, match=r"folder .*/no doesn't exist. Make it first"):
        await SqliteStore(f"sqlite:///{tmp_path}/no/a.db").open()
    assert not (tmp_path / "no").exists()
    (tmp_path / "d.db").mkdir()
    with pytest.raises(StoreError, match=r"is a folder. Name a file in it"):
        await SqliteStore(f"sqlite:///{tmp_path}/d.db").open()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="doesn't exist"):
        await SqliteStore(f"sqlite:///{tmp_path}/file/a.db").open()


async def test_r45_no_more_descriptors(tmp_path):
    """Where no more files can be opened, that is one sentence, and it goes well once there are some again."""
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors(), hard))
    try:
        with pytest.raises(StoreUnavailable, match="open files"):
            await store.open()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    await store.close()


# --- errors of the disk -----------------------------------------------------------------------------------


async def test_r45_an_error_of_the_disk_is_unknown_and_gets_over(tmp_path):
    """A write that fails leaves the outcome unknown; the connection is opened anew and goes on."""
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db")
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    before = store._writer._connection
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / "a.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8_192, hard))  # Python ignores the signal: write() fails
    try:
        with pytest.raises(StoreUnavailable) as told:
            await store.commit([Change("big", 0, b"x" * 60_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not isinstance(told.value, StoreFull)
    assert "could not be committed to" in str(told.value)
    assert (await store.commit([Change("a", 1, b"2")])).outcomes == (DONE,)
    assert store._writer._connection is not before
    assert await one(store) == Found(2, b"2")
    assert await one(store, "big") in (Found(), Found(1, b"x" * 60_000))
    await store.close()


class FailsToSync(sqlite3.Connection):
    """A connection whose COMMIT fails as after an fsync that failed: applied or not, nobody knows."""

    applied = True

    def execute(self, sql, *parameters):
        if sql != "COMMIT":
            return super().execute(sql, *parameters)
        super().execute("COMMIT" if self.applied else "ROLLBACK")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR_FSYNC, "SQLITE_IOERR_FSYNC"
        raise error


@pytest.mark.parametrize("applied", [True, False])
async def test_r40a_a_failed_fsync_is_unknown(opened, tmp_path, applied):
    """After a failed fsync the answer is `unknown`, and the connection that failed is used no more."""
    async with opened() as store:
        await store.commit([Change("a", 0, b"1")])
        store._writer._connection.close()
        failing = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False, factory=FailsToSync)
        failing.applied = applied
        store._writer._connection = failing
        with pytest.raises(StoreUnavailable, match=r"SQLITE_IOERR_FSYNC.*not known"):
            await store.commit([Change("a", 1, b"2")])
        wanted = Found(2, b"2") if applied else Found(1, b"1")
        assert await one(store) == wanted
        assert (await store.commit([Change("a", wanted.version, b"3")])).outcomes == (DONE,)


def failure(name):
    error = sqlite3.OperationalError("told by SQLite")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    return error


@pytest.mark.parametrize(
    ("name", "wanted", "at_commit"),
    [
        ("SQLITE_BUSY", StoreBusy, StoreBusy),
        ("SQLITE_BUSY_SNAPSHOT", StoreBusy, StoreBusy),
        ("SQLITE_BUSY_RECOVERY", StoreBusy, StoreBusy),
        ("SQLITE_LOCKED", StoreBusy, StoreBusy),
        ("SQLITE_PROTOCOL", StoreBusy, StoreBusy),
        ("SQLITE_FULL", StoreFull, StoreFull),
        ("SQLITE_READONLY", StoreReadOnly, StoreReadOnly),
        ("SQLITE_READONLY_DIRECTORY", StoreReadOnly, StoreReadOnly),
        ("SQLITE_READONLY_DBMOVED", StoreGone, StoreGone),
        ("SQLITE_PERM", StoreReadOnly, StoreReadOnly),
        ("SQLITE_CORRUPT", StoreCorrupt, StoreCorrupt),
        ("SQLITE_CORRUPT_INDEX", StoreCorrupt, StoreCorrupt),
        ("SQLITE_NOTADB", StoreCorrupt, StoreCorrupt),
        ("SQLITE_CANTOPEN", StoreUnavailable, StoreUnavailable),
        ("SQLITE_IOERR_WRITE", StoreUnavailable, StoreUnavailable),
        ("SQLITE_IOERR_FSYNC", StoreUnavailable, StoreUnavailable),
        ("SQLITE_IOERR_SHORT_READ", StoreUnavailable, StoreUnavailable),
        ("SQLITE_NOMEM", StoreUnavailable, StoreUnavailable),
        ("SQLITE_INTERRUPT", StoreUnavailable, StoreUnavailable),
        ("SQLITE_MISUSE", StoreError, StoreUnavailable),
    ],
)
def test_every_error_has_its_class_and_sentence(name, wanted, at_commit):
    """Each code of SQLite's becomes one error of ours: what, why, what to do."""
    for told, kind in (
        (refusal(failure(name), "/x/a.db", 1.0), wanted),
        (uncertain(failure(name), "/x/a.db"), at_commit),
    ):
        assert type(told) is kind
        assert "/x/a.db" in str(told)
        assert kind is StoreGone or name in str(told)
        assert len(str(told)) < 400
