"""Power cuts, without a block device: a file layer that forgets what was written and never synced.

SQLite runs in apsw, on whose file layer the test can build; the statements, pragmas and tables are the product's own.
At a random moment (between any two operations on the files, also within a commit) the power goes. Of what was
not synced, each sector of 512 bytes is on the disk or not, by chance: a disk may reorder, and tear a write.
Then the product's store opens what is left.
"""

import asyncio
import contextlib
import random
import sqlite3
from pathlib import Path

import apsw
import pytest

from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Mark, Outcome, Record
from tenure.stores.memory import MemoryStore
from tenure.stores.sqlite import SqliteStore
from tenure.stores.sqlite.documents import apply, hint
from tenure.stores.sqlite.schema import (
    BEGIN_WRITE,
    COMMIT,
    DURABILITY,
    LEAN,
    WRITE_AHEAD,
    prepare,
    statements,
)

SECTOR = 512
NAMES = ("a", "b", "c")
RUNS = tuple(str(slot) for slot in range(80))


class Disk:
    """What is safe on the disk, file by file, and what was written since the last sync.

    A deleted file may come back, until the folder is synced; SQLite does that with the first sync of a new log.
    At operation `cut_at` the power goes: what comes afterwards is written to a disk that nobody will see.
    """

    def __init__(self, cut_at):
        self.safe, self.pending, self.deleted = {}, {}, {}
        self.operations, self.cut_at = 0, cut_at
        self.at_the_cut = None

    def operation(self):
        """Count one."""
        self.operations += 1
        if self.operations == self.cut_at:
            self.cut()

    def cut(self):
        """Here the power goes, unless it has gone before."""
        if self.at_the_cut is None:
            pending = {path: list(writes) for path, writes in self.pending.items()}
            self.at_the_cut = dict(self.safe), pending, dict(self.deleted)

    def delete(self, path):
        """Forget a file, though not for sure."""
        self.deleted[path] = self.safe.pop(path, b""), self.pending.pop(path, [])

    def left(self, path, rng):
        """The file's bytes after the cut."""
        safe, pending, deleted = self.at_the_cut
        image, writes = safe.get(path, b""), pending.get(path, ())
        if path in deleted and rng.random() < 0.5:
            image, writes = deleted[path]
        image = bytearray(image)
        kept = rng.choice((0.0, 0.3, 0.7, 0.95))
        for offset, data in writes:
            if data is None:
                if rng.random() < kept:
                    del image[offset:]
                continue
            for begin in range(0, len(data), SECTOR):
                if rng.random() < kept:
                    _write(image, offset + begin, data[begin : begin + SECTOR])
        return bytes(image)


def _write(image, offset, data):
    image.extend(b"\0" * (offset - len(image)))
    image[offset : offset + len(data)] = data


def file_layer(name, disk):
    """A file layer of SQLite that writes as usual, but syncs only in the disk's books."""

    class File(apsw.VFSFile):
        def __init__(self, path, flags):
            self.path = path.filename() if isinstance(path, apsw.URIFilename) else path
            super().__init__("", path, flags)

        def xWrite(self, data, offset):  # noqa: N802 - SQLite's name
            disk.operation()
            disk.pending.setdefault(self.path, []).append((offset, bytes(data)))
            super().xWrite(data, offset)

        def xTruncate(self, size):  # noqa: N802 - SQLite's name
            disk.operation()
            disk.pending.setdefault(self.path, []).append((size, None))
            super().xTruncate(size)

        def xSync(self, flags):  # noqa: N802 - SQLite's name
            disk.operation()
            image = bytearray(disk.safe.get(self.path, b""))
            for offset, data in disk.pending.pop(self.path, ()):
                if data is None:
                    del image[offset:]
                else:
                    _write(image, offset, data)
            disk.safe[self.path] = bytes(image)
            if self.path.endswith("-wal"):
                disk.deleted.clear()

    class Layer(apsw.VFS):
        def __init__(self):
            super().__init__(name, "")

        def xOpen(self, path, flags):  # noqa: N802 - SQLite's name
            return File(path, flags)

        def xDelete(self, path, syncdir):  # noqa: N802 - SQLite's name
            disk.operation()
            disk.delete(path)
            super().xDelete(path, syncdir)

    return Layer()


def random_change(rng, memory, step):
    """A life of a job in one change: it begins, its runs end, old ones are forgotten."""
    name = rng.choice(NAMES)
    shelf = memory._shelves.get(name)
    version = shelf.version if shelf else 0
    if version > 3 and rng.random() < 0.05:
        return Change(name, version, None, delete=True)
    records = tuple(
        Record(run, int(run), "success", step, 0, rng.randbytes(rng.randrange(400)))
        for run in rng.sample(RUNS, rng.randrange(3))
    )
    marks = (Mark(step, step, 1, "late", "", step, "me", after=step - 1),) if rng.random() < 0.3 else ()
    forget = tuple(rng.sample(RUNS, 2)) if rng.random() < 0.2 else ()
    return Change(name, version, rng.randbytes(rng.randrange(600)), None, records, marks, forget, hint=True)


def view(reading, marks):
    """All that the changes wrote, comparable."""
    return [(one.version, one.body, dict(one.past)) for one in reading.found], marks


async def seen(store):
    reading = await store.read([Ask(name, RUNS) for name in NAMES])
    return view(reading, [await store.marks(name, 0, 10_000, 10_000) for name in NAMES])


def work(path, layer, disk, synchronous, rng):
    """Commit changes by the product's statements until the power goes.

    Gives the changes whose commits were acknowledged before, and the one that had begun.
    """
    sql = statements("tenure_")
    connection = apsw.Connection(str(path), vfs=layer)
    for pragma in (WRITE_AHEAD, *synchronous, LEAN):
        connection.execute(pragma).fetchall()
    connection.execute(BEGIN_WRITE)
    prepare(connection, "tenure_", str(path))
    connection.execute(COMMIT)
    memory = MemoryStore(clock=lambda: 0)
    acknowledged, begun = [], None
    for step in range(rng.randrange(5, 40)):
        if disk.at_the_cut:
            break
        begun = random_change(rng, memory, step)
        connection.execute(BEGIN_WRITE)
        applied = apply(connection, sql, [begun])
        assert applied.outcomes == [Outcome.DONE]
        hint(connection, sql, [begun.name], "test", applied.now)
        connection.execute(COMMIT)
        if not disk.at_the_cut:
            memory._apply(begun, 0)
            acknowledged.append(begun)
            begun = None
            if rng.random() < 0.1:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    disk.cut()
    connection.close()
    return acknowledged, begun


def cut(folder, synchronous, seed):
    """One power cut. Gives how many commits were acknowledged, whether all of them stand, and what failed."""
    rng = random.Random(seed)
    disk = Disk(cut_at=rng.randrange(1, 400))
    path = folder / f"{seed}.db"
    layer = file_layer(f"powercut-{seed}", disk)
    acknowledged, begun = work(path, f"powercut-{seed}", disk, synchronous, rng)
    after = folder / f"{seed}-after.db"
    for suffix in ("", "-wal", "-journal"):
        image = disk.left(f"{path}{suffix}", rng)
        if image:
            Path(f"{after}{suffix}").write_bytes(image)
    layer.unregister()
    try:
        stands = asyncio.run(_stands(after, acknowledged, begun))
        with contextlib.closing(sqlite3.connect(after)) as plain:
            told = plain.execute("PRAGMA integrity_check").fetchone()[0]
    except (StoreError, sqlite3.Error) as error:
        return len(acknowledged), False, repr(error)
    return len(acknowledged), stands, "" if told == "ok" else told


async def _stands(path, acknowledged, begun):
    """Whether the product's store finds what was acknowledged, with or without the commit that had begun."""
    memory = MemoryStore(clock=lambda: 0)
    await memory.commit(acknowledged)
    wanted = [await seen(memory)]
    if begun is not None:
        await memory.commit([begun])
        wanted.append(await seen(memory))
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    try:
        return await seen(store) in wanted
    finally:
        await store.close()


def cuts(folder, synchronous, rounds):
    """Many power cuts, as one table row."""
    place = folder / synchronous[0].rpartition(" ")[2]
    place.mkdir()
    told = [cut(place, synchronous, seed) for seed in range(rounds)]
    acknowledged = sum(count for count, _, _ in told)
    lost = sum(not stands for _, stands, _ in told)
    failed = [failure for _, _, failure in told if failure]
    print(f"{synchronous[0]}: {rounds} cuts, {acknowledged} acknowledged, {lost} lost some, {len(failed)} unreadable")
    return acknowledged, lost, failed


def test_f11_full_loses_nothing(tmp_path):
    """With synchronous=FULL every acknowledged commit outlives every power cut, and the file opens."""
    acknowledged, lost, failed = cuts(tmp_path, DURABILITY["full"], 100)
    assert acknowledged > 800
    assert (lost, failed) == (0, [])


def test_f11_normal_forgets_but_stays_whole(tmp_path):
    """With synchronous=NORMAL commits are forgotten, as its description says, and no file is damaged."""
    _, lost, failed = cuts(tmp_path, DURABILITY["normal"], 60)
    assert lost > 10
    assert failed == []


def test_f11_the_check_can_fail(tmp_path):
    """Without any sync the same cuts lose and damage: else the test would prove nothing."""
    _, lost, failed = cuts(tmp_path, ("PRAGMA synchronous = OFF",), 60)
    assert lost > 20
    assert failed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_f11_thousands_of_cuts(tmp_path):
    """The same with 5,000 cuts."""
    acknowledged, lost, failed = cuts(tmp_path, DURABILITY["full"], 5_000)
    assert acknowledged > 50_000
    assert (lost, failed) == (0, [])
