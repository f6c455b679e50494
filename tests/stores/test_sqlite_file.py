"""The SQLite file itself: damaged, deleted, replaced, or where it must not be."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from tenure.errors import StoreCorrupt, StoreError, StoreGone
from tenure.stores.contract import Ask, Change, Found, Outcome
from tenure.stores.sqlite import SqliteStore, file
from tenure.stores.sqlite.file import mounted_as

DONE = Outcome.DONE


async def one(store, name="a"):
    return (await store.read([Ask(name)])).found[0]


def shell(path):
    """Another program that has the file open, such as SQLite's own shell."""
    return contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0))


# --- damage -----------------------------------------------------------------------------------------------


async def test_r45_no_database(tmp_path):
    """A file that is no database is refused, and left as it is."""
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database at all, really" * 200)
    with pytest.raises(StoreCorrupt, match=r"no SQLite database.*Nothing was repaired"):
        await SqliteStore(f"sqlite:///{path}").open()
    assert path.read_bytes() == b"not a database at all, really" * 200


async def test_r45_a_damaged_page(opened, tmp_path):
    """A page of noise is told as damage by whatever meets it; nothing is repaired."""
    async with opened() as store:
        await store.commit([Change(f"{at}", 0, b"x" * 500) for at in range(200)])
        page = store._reader.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tenure_documents'").fetchone()[0]
    with (tmp_path / "a.db").open("r+b") as damaged:
        damaged.seek((page - 1) * 4096)
        damaged.write(os.urandom(4096))
    async with opened() as store:
        with pytest.raises(StoreCorrupt, match=r"damaged.*restore a backup"):
            await store.read([Ask("5")])
        with pytest.raises(StoreCorrupt, match="damaged"):
            await store.commit([Change("5", 1, b"2")])
        assert await store.marks("5", 0, 9, 9) == ()


async def test_tables_that_are_dropped_are_missed(opened, tmp_path):
    """Tables that somebody dropped under the store are not made anew."""
    async with opened() as store:
        with shell(tmp_path / "a.db") as other:
            other.execute("DROP TABLE tenure_documents")
        for call in (store.read([Ask("a"), Ask("b")]), store.commit([Change("a", 0, b"1")])):
            with pytest.raises(StoreCorrupt, match="gone or changed"):
                await call


# --- the file under us ------------------------------------------------------------------------------------


def delete(path):
    path.unlink()


def delete_log(path):
    Path(f"{path}-wal").unlink()


def replace(path):
    shutil.copy(path, f"{path}.copy")
    Path(f"{path}.copy").replace(path)


def delete_and_make_anew(path):
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    with shell(path) as other:
        other.execute("CREATE TABLE t (x)")


@pytest.mark.parametrize("harm", [delete, delete_log, replace, delete_and_make_anew])
async def test_f13_a_file_that_went_is_noticed(harm, tmp_path):
    """Once the file or its log was deleted or replaced no write is called done, and no other file is read."""
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db")
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    transaction = await store.begin(5.0)
    transaction.connection.execute("CREATE TABLE mine (x)")
    harm(tmp_path / "a.db")
    with pytest.raises(StoreGone):
        await transaction.commit(Change("a", 1, b"2"))
    calls = [store.commit([Change("a", 1, b"2")]), store.begin(1.0)]
    if harm is not delete_log:  # a read does not look for the log, which writes alone need
        calls += [store.read([Ask("a")]), store.names("")]
    for call in calls:
        with pytest.raises(StoreGone, match=r"deleted or replaced.*Stop all that use it"):
            await call
    await store.close()


async def test_f13_gone_between_begin_and_commit(opened, tmp_path, monkeypatch):
    """A commit that reached a deleted file is not called done, however late it was deleted."""
    async with opened() as store:
        await store.commit([Change("a", 0, b"1")])
        end = store._writer._end

        def deleted_first(connection, wrote):
            (tmp_path / "a.db").rename(tmp_path / "moved.db")
            return end(connection, wrote)

        monkeypatch.setattr(store._writer, "_end", deleted_first)
        with pytest.raises(StoreGone):
            await store.commit([Change("a", 1, b"2")])


async def test_a_link_to_the_file_works(tmp_path):
    """A link that names the file is followed; turned elsewhere, the file counts as replaced."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "a.db")
    first = SqliteStore(f"sqlite:///{tmp_path}/real/a.db")
    await first.open()
    store = SqliteStore(f"sqlite:///{tmp_path}/link.db")
    await store.open()
    await store.commit([Change("a", 0, b"1")])
    assert await one(first) == Found(1, b"1")
    (tmp_path / "link.db").unlink()
    (tmp_path / "link.db").symlink_to(tmp_path / "real")
    with pytest.raises(StoreGone):
        await store.commit([Change("a", 1, b"2")])
    await first.close()
    await store.close()


# --- network file systems ---------------------------------------------------------------------------------

TABLE = """\
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
/dev/vdb /mnt/nfs/local ext4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
me@host: /home/me/remote fuse.sshfs rw 0 0
overlay /var/lib/x fuse.fuse-overlayfs rw 0 0
host /mnt/9 9p rw 0 0
tmpfs /over tmpfs rw 0 0
server:/b /over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a.db", "ext4"),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/nfs/a.db", "nfs4"),
        ("/mnt/nfsx/a.db", "ext4"),
        ("/mnt/nfs/local/a.db", "ext4"),
        ("/mnt/with space/a.db", "cifs"),
        ("/home/me/remote/deep/er/a.db", "fuse.sshfs"),
        ("/over/a.db", "nfs"),
        ("relative", ""),
    ],
)
def test_the_longest_mount_point_counts(path, kind):
    """The file system of a path is that of the longest mount point above it, the last one mounted there."""
    assert mounted_as(path, TABLE) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "fuse.sshfs", "fuse.s3fs", "fuse.unheard-of"]
)
async def test_r45_a_network_file_system_is_refused(kind, monkeypatch, tmp_path):
    """On a network file system the store is refused, unless it is asked for all the same; then it warns."""
    table = tmp_path / "mounts"
    table.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(file, "MOUNTS", table)
    with pytest.raises(StoreError, match=rf"network file system \({kind}\).*allow_network_fs=1"):
        await SqliteStore(f"sqlite:///{tmp_path}/a.db").open()
    assert not (tmp_path / "a.db").exists()
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db?allow_network_fs=1")
    (warning,) = await store.open()
    assert "this machine only" in warning
    await store.close()


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "tmpfs", "overlay", "zfs", "fuseblk", "fuse.fuse-overlayfs"])
async def test_r45_file_systems_of_this_machine_are_taken(kind, monkeypatch, tmp_path):
    """A file system of this machine is used without a word, and so is one of which nothing is known."""
    table = tmp_path / "mounts"
    table.write_text(f"x {tmp_path} {kind} rw 0 0\n")
    for mounts in (table, tmp_path / "missing"):
        monkeypatch.setattr(file, "MOUNTS", mounts)
        store = SqliteStore(f"sqlite:///{tmp_path}/a.db")
        assert await store.open() == ()
        await store.close()


async def test_two_threads_open_one_new_file(tmp_path):
    """Stores that open one new file at the same moment, from loops of their own, all find their tables."""
    answers = []

    def live(number):
        async def work():
            store = SqliteStore(f"sqlite:///{tmp_path}/a.db")
            await store.open()
            answers.append((await store.commit([Change(f"{number}", 0, b"1")])).outcomes)
            await store.close()

        asyncio.run(work())

    threads = [threading.Thread(target=live, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert answers == [(DONE,)] * 8
