"""How the SQLite store works: in groups, by sets, through indexes; and what it tells others."""

import asyncio
import contextlib
import re
import sqlite3
import threading
import time
from dataclasses import fields

import pytest

from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Record
from tenure.stores.sqlite import SqliteStore
from tenure.stores.sqlite.documents import read
from tenure.stores.sqlite.schema import CLOCK, Statements, statements
from tenure.stores.sqlite.writer import HINT_MS

DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


def mark(slot, **said):
    return Mark(slot, slot, 1, "late", "", 1, "me", **said)


def traced(connection):
    """The statements that a connection runs from here on."""
    told = []
    connection.set_trace_callback(told.append)
    return told


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
    store = SqliteStore(f"sqlite:///{tmp_path}/a.db?timeout=1")
    await store.open()
    gate = threading.Event()
    store._writer._connection.set_progress_handler(lambda: int(not gate.wait(10)), 1)
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"within 1 s.*not known"):
        await store.commit([Change("a", 0, b"1")])
    assert time.monotonic() - began < 9
    gate.set()
    await store.commit([Change("b", 0, b"1")])
    assert (await store.read([Ask("a")])).found[0] in (Found(), Found(1, b"1"))
    await store.close()


async def test_the_writer_outlives_what_nobody_thought_of(opened, monkeypatch):
    """Any exception in the writer's thread is told to who asked, and the thread serves the next."""
    async with opened() as store:
        with monkeypatch.context() as planted:
            planted.setattr(store._writer, "_lock", lambda calls, alone: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await store.commit([Change("a", 0, b"1")])
        assert (await store.commit([Change("a", 0, b"1")])).outcomes == (DONE,)


# --- plans ------------------------------------------------------------------------------------------------


def scans(connection, sql):
    """The tables of ours that a statement would read from end to end."""
    count = sql.count("?")
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
