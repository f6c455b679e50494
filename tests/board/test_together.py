"""SQLite's writes that wait share a commit, and none of them notices the others."""

import asyncio
import threading

import pytest
import sqlalchemy as sa

from tenure.board import tables
from tenure.board.database import UNAVAILABLE, Database
from tenure.board.refused import Refused
from tenure.rules.refusal import invalid


@pytest.fixture
def database(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/b.db")
    database.writing(lambda tx: tables.buckets.create(tx.connection))
    database.commits = 0

    def count(_connection):
        database.commits += 1

    sa.event.listen(database.engine, "commit", count)
    yield database
    database.shut()


def put(tx, key, arrival=0, error=None):
    tx.execute(sa.insert(tables.buckets).values(key=key, arrival=arrival))
    tx.notify("todo", key)
    if error is not None:
        raise error
    return key


def keys(database):
    return sorted(row.key for row in database.reading(lambda tx: tx.all(sa.select(tables.buckets.c.key))))


async def busy(database, free):
    """A call that keeps the writer until it is freed; it has begun."""
    begun = threading.Event()

    def keep(tx):
        begun.set()
        return free.wait(20)

    first = asyncio.ensure_future(database.write(keep))
    await asyncio.sleep(0)
    await asyncio.to_thread(begun.wait, 20)
    return first


async def held(database, *calls):
    """Have these calls wait together: the writer is kept until all of them have come. Their outcomes."""
    free = threading.Event()
    first = await busy(database, free)
    others = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    assert len(database._together._waiting) == len(others)
    database.commits = 0
    free.set()
    await first
    return await asyncio.gather(*others, return_exceptions=True)


async def test_calls_that_wait_share_one_commit(database):
    """Ten calls that came while the writer was busy: one commit for all, each with its own answer."""
    told = await held(database, *(database.write(put, f"k{n}") for n in range(10)))
    assert told == [f"k{n}" for n in range(10)]
    assert database.commits == 2  # that of the call which kept the writer, and theirs
    assert keys(database) == [f"k{n}" for n in range(10)]


async def test_one_that_is_refused_leaves_the_others_as_they_are(database):
    """The refused call's writes and notices are gone; what stood before and after it in the batch stays."""
    heard = []
    database.heard = heard.extend
    refused = Refused(invalid("key", "is wrong."))
    calls = [database.write(put, "a"), database.write(put, "b", error=refused), database.write(put, "c")]
    told = await held(database, *calls)
    assert told == ["a", refused, "c"]
    assert keys(database) == ["a", "c"]
    assert heard == [("todo", "a"), ("todo", "c")]


async def test_a_rule_of_the_schema_is_broken_by_one_alone(database):
    """A second row with the same key: an error for who sent it, and for nobody else."""
    told = await held(database, database.write(put, "a"), database.write(put, "a"), database.write(put, "b"))
    assert isinstance(told[1], sa.exc.IntegrityError)
    assert (told[0], told[2], keys(database)) == ("a", "b", ["a", "b"])


async def test_a_commit_that_fails_is_told_to_all_of_them(database, monkeypatch):
    """The disk refuses the commit: every call of the batch hears that, and nothing of it stands."""

    def fail(_connection):
        raise sa.exc.OperationalError("COMMIT", None, Exception("disk I/O error"))

    free = threading.Event()
    first = await busy(database, free)
    others = [asyncio.ensure_future(database.write(put, f"k{n}")) for n in range(3)]
    await asyncio.sleep(0)
    assert len(database._together._waiting) == 3
    sa.event.listen(database.engine, "commit", fail, once=False)
    free.set()
    told = await asyncio.gather(first, *others, return_exceptions=True)
    sa.event.remove(database.engine, "commit", fail)
    assert all(isinstance(one, Refused) and one.refusal == UNAVAILABLE for one in told)
    assert keys(database) == []


async def test_a_call_that_was_cancelled_in_the_queue_is_not_begun(database):
    """Nobody waits for it any more: it writes nothing, and the others go on."""
    free = threading.Event()
    first = await busy(database, free)
    gone, kept = (asyncio.ensure_future(database.write(put, key)) for key in ("gone", "kept"))
    await asyncio.sleep(0)
    assert len(database._together._waiting) == 2
    gone.cancel()
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(first, kept)
    assert keys(database) == ["kept"]


async def test_after_the_end_every_write_is_refused_and_none_waits_for_ever(database):
    """The first that comes too late takes no turn that nobody would end."""
    database.shut()
    for key in ("a", "b"):
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(database.write(put, key), 10)
