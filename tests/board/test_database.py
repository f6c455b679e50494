"""Transactions: whole or not at all, run again when the database asks for it, and notices with the commit alone."""

import asyncio
import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from board_hall import open_hall

from tenure.board import buckets, tables, tokens
from tenure.board.board import Rate
from tenure.board.database import UNAVAILABLE, Database
from tenure.board.refused import Refused
from tenure.rules.refusal import MISSING

postgres_only = pytest.mark.parametrize("board_url", ["postgres"], indirect=True)


def put(tx, key):
    """A row that is easily seen."""
    tx.insert_new(tables.buckets, key=key, arrival=1)


def keys(board):
    return {row.key for row in board.rows(tables.buckets)}


def test_a_transaction_that_raises_leaves_nothing(board):
    """Neither rows nor notices; the refusal comes through as it is."""
    heard = []
    board.database.heard = heard.extend

    def case(tx):
        put(tx, "x")
        tx.notify("board", "x")
        raise Refused(MISSING)

    with pytest.raises(Refused) as refused:
        board.database.writing(case)
    assert refused.value.refusal is MISSING
    assert (keys(board), heard) == (set(), [])


def test_b15_the_clock_is_the_databases_and_tests_turn_it(board):
    """It moves on by what it is turned, within one transaction too."""

    def case(tx):
        before = tx.now()
        board.clock.turn(hours=1)
        return tx.now() - before

    assert 3_600_000 <= board.database.writing(case) < 3_660_000


@postgres_only
def test_b15_the_clock_is_read_after_the_lock_not_at_the_beginning(board):
    """`clock_timestamp()` moves within a transaction, `now()` would not."""

    def case(tx):
        first = tx.now()
        tx.execute(sa.text("SELECT pg_sleep(0.02)"))
        return tx.now() - first

    assert board.database.writing(case) >= 20


@postgres_only
def test_a_deadlock_is_run_again_from_the_beginning(board):
    """Two transactions that lock two rows crosswise both succeed; one of them ran twice or, if it was quick, more."""
    for key in ("a", "b"):
        board.database.writing(put, key)
    both, runs = threading.Barrier(2), []

    def crosswise(tx, first, second):
        runs.append(first)
        lock = sa.select(tables.buckets).with_for_update()
        tx.execute(lock.where(tables.buckets.c.key == first))
        if runs.count(first) == 1:
            both.wait(10)
        tx.execute(lock.where(tables.buckets.c.key == second))

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(board.database.writing, crosswise, *pair) for pair in ("ab", "ba")]:
            done.result(20)
    assert len(runs) > 2


@postgres_only
@pytest.mark.parametrize("way", ["writing", "reading"])
def test_an_idle_connection_that_has_died_is_replaced_without_a_word(board, way):
    """The server ended it between two calls: nothing was done yet, so the call is done on another."""
    board.database.writing(put, "before")
    board.database.writing(put, "again")
    other = open_hall(board.database.url)
    other.database.writing(
        lambda tx: tx.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND application_name = 'tenure board'"
            )
        )
    )
    other.database.shut()
    look = sa.select(tables.buckets.c.key)
    assert {key for (key,) in getattr(board.database, way)(lambda tx: tx.all(look))} == {"before", "again"}


@postgres_only
def test_a_connection_that_dies_in_the_middle_is_unavailable_and_is_not_run_again(board):
    """What was done is not known: the caller decides."""
    runs = []

    def case(tx):
        runs.append(1)
        put(tx, "x")
        tx.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(Refused) as refused:
        board.database.writing(case)
    assert refused.value.refusal is UNAVAILABLE
    assert (len(runs), keys(board)) == (1, set())


@postgres_only
def test_b16_a_server_that_vanishes_while_it_owes_an_answer_is_given_up_within_half_a_minute(board):
    """Nothing of ours is on its way then, so TCP alone would ask after it 75 s apart, with a thread that waits."""

    def quiet_seconds(tx):
        with socket.socket(fileno=os.dup(tx.connection.connection.driver_connection.fileno())) as wire:
            names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            idle, interval, count = (wire.getsockopt(socket.IPPROTO_TCP, name) for name in names)
            return idle + interval * count

    assert board.database.reading(quiet_seconds) <= 30


@pytest.mark.parametrize("way", ["writing", "reading"])
@pytest.mark.parametrize("url", ["postgresql://x:hunter2@127.0.0.1:9/nothing", "sqlite:////nowhere/at/all/board.db"])
def test_b16_a_database_that_is_not_there_is_unavailable_and_shows_nothing(url, way):
    """On PostgreSQL and on SQLite; the words of the driver, which may hold a password, are not in it."""
    database = Database(url)
    with pytest.raises(Refused) as refused:
        getattr(database, way)(lambda tx: tx.all(sa.text("SELECT 1")))
    assert refused.value.refusal is UNAVAILABLE
    assert "hunter2" not in str(refused.value)
    database.shut()


def test_case_b37_thirty_two_writers_and_no_lock_error_reaches_anybody(board, board_url):
    """They queue; on SQLite beside a second handle on the same file too."""
    other = open_hall(board_url, clock=board.clock)

    def write(number):
        server = (board, other)[number % 2]
        return server.write(buckets.take, "x", Rate(0.001, 1000)).allowed and server.write(
            tokens.create, server.alice, f"token {number}"
        )

    with ThreadPoolExecutor(32) as threads:
        assert all(threads.map(write, range(64)))
    other.database.shut()
    assert len(board.read(tokens.list_all, board.alice)) == 64


def test_b50_another_process_that_ends_leaves_the_log_to_a_server_whose_pool_grew(tmp_path):
    """Connections that are made later drop no lock of those before: what is committed afterwards is not lost."""
    file = tmp_path / "a.db"
    database = Database(f"sqlite:///{file}")
    try:
        database.writing(lambda tx: tx.execute(sa.text("CREATE TABLE t (x)")))
        with database.engine.connect(), database.engine.connect():  # two at once: one of them is new
            pass
        look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM t'); c.close()"
        subprocess.run([sys.executable, "-c", look, str(file)], check=True)
        assert file.with_name("a.db-wal").exists()
        database.writing(lambda tx: tx.execute(sa.text("INSERT INTO t VALUES (1)")))
        with contextlib.closing(sqlite3.connect(file)) as reader:
            assert reader.execute("SELECT x FROM t").fetchall() == [(1,)]
    finally:
        database.shut()


async def test_b30_a_notice_is_heard_with_the_commit_by_this_server_and_by_others(board, board_url):
    """Not before it; on PostgreSQL a second server hears it, on SQLite there is one server."""
    servers = [board, open_hall(board_url, clock=board.clock)] if board.database.postgres else [board]
    with contextlib.ExitStack() as listening:
        ears = [listening.enter_context(server.notices.ear(("board", "x"))) for server in servers]
        for server in servers:
            await server.open()
        if board.database.postgres:  # the ring of the beginning: something may have been missed
            assert [await ear.wait(10) for ear in ears] == [True, True]
        held, go = threading.Event(), threading.Event()

        def case(tx):
            tx.notify("board", "x")
            held.set()
            go.wait(10)

        writing = asyncio.ensure_future(board.database.write(case))
        await asyncio.to_thread(held.wait, 10)
        assert not any([await ear.wait(0.05) for ear in ears])
        go.set()
        await writing
        assert all([await ear.wait(10) for ear in ears])
    for server in servers:
        await server.notices.close()
    for server in servers[1:]:
        await asyncio.to_thread(server.database.shut)


@postgres_only
async def test_b25_a_server_whose_notices_are_gone_says_so_and_hears_again(board):
    """Its connection is ended by the server: it comes back, and rings every ear, for something may have been missed."""
    await board.open()
    with board.notices.ear(("ended", "x")) as ear:
        assert await ear.wait(10)
        await board.database.write(
            lambda tx: tx.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = 'tenure board notices'"
                )
            )
        )
        assert await ear.wait(10)
    await board.notices.close()
