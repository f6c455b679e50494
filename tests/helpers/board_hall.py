"""Boards for tests, on SQLite and on PostgreSQL: each test its own, copied from a template that is made once.

A plugin of the suite. Every board knows Alice, Bob (Alice's friend) and Charlie (nobody), and a clock that is turned.
"""

import itertools
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg
import pytest

SECRET = "the-secret-of-a-server-that-only-tests-know"  # noqa: S105
NAMES = ("alice", "bob", "charlie")
_numbers = itertools.count()


class Clock:
    """What is added to the database's clock."""

    def __init__(self):
        self.offset = 0

    def turn(self, *, seconds=0, minutes=0, hours=0, days=0):
        """Turn it forward; or back, by less than nothing."""
        self.offset += round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))


def _board_type():
    from tenure.board.board import Board

    @dataclass(frozen=True)
    class HallBoard(Board):
        """A board whose use cases are called without a loop: `board.write(endpoints.vend, board.alice, name="x")`."""

        clock: Clock = field(default_factory=Clock)
        people: dict = field(default_factory=dict)

        alice = property(lambda self: self.people["alice"])
        bob = property(lambda self: self.people["bob"])
        charlie = property(lambda self: self.people["charlie"])

        def write(self, case, *args, **kwargs):
            return self.database.writing(case, self, *args, **kwargs)

        def read(self, case, *args, **kwargs):
            return self.database.reading(case, self, *args, **kwargs)

        def vend(self, human=None, name="reviewer", **scope):
            """An endpoint, Alice's if nobody is named, and its credential."""
            from tenure.board import endpoints

            return self.write(endpoints.vend, human or self.alice, name=name, **scope)

        def worker(self, vended):
            """Whoever uses the credential that was vended."""
            from tenure.board import access

            return self.read(access.worker_by_credential, vended.credential.reveal())

        def refused(self, case, *args, **kwargs):
            """What the use case refuses; it must."""
            from tenure.board.refused import Refused

            with pytest.raises(Refused) as refused:
                self.write(case, *args, **kwargs)
            return refused.value.refusal

        def rows(self, statement, **parameters):
            """The rows of a SELECT, or of a table, as they stand in the database."""
            import sqlalchemy as sa

            if isinstance(statement, sa.Table):
                statement = sa.select(statement)
            elif isinstance(statement, str):
                statement = sa.text(statement)
            return self.database.reading(lambda tx: tx.all(statement, parameters or None))

    return HallBoard


def open_hall(url, settings=None, clock=None):
    """A board on a database that `found` has filled; another server of it, if it is given the same `clock`."""
    import sqlalchemy as sa

    from tenure.board import tables
    from tenure.board.access import Human
    from tenure.board.board import BoardSettings
    from tenure.board.database import Database
    from tenure.board.secrets import ring_of

    clock = clock or Clock()
    database = Database(url, lambda: clock.offset)
    board = _board_type()(database, ring_of(SECRET), settings or BoardSettings(), clock)
    for row in board.rows(sa.select(tables.humans.c.id, tables.humans.c.name)):
        board.people[row.name] = Human(row.id, row.name, "token")
    return board


def found(url):
    """Make the tables, and Alice, Bob and Charlie."""
    from tenure.board import humans
    from tenure.board.board import Board
    from tenure.board.database import Database
    from tenure.board.secrets import ring_of
    from tenure.board.upgrade import upgrade

    database = Database(url)
    upgrade(database)
    board = Board(database, ring_of(SECRET))
    for name in NAMES:
        database.writing(humans.add, board, name)
    database.shut()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    """A SQLite file with the tables and the three."""
    path = tmp_path_factory.mktemp("board") / "template.db"
    found(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_board_url(postgres_url):
    """The URL of a database of this worker's own with the tables and the three, for one test after the other."""
    with own_database(postgres_url) as url:
        found(url)
        _keep(url)
        yield url


@contextmanager
def own_database(server):
    """An empty database on this PostgreSQL for as long as the block lasts; its URL."""
    name = f"board_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _keep(url):
    """Put aside what is in the tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA kept")
        for name in _tables():
            connection.execute(f"CREATE TABLE kept.{name} AS TABLE {name}")


def _restore(url):
    """Have the tables hold what was put aside: to delete a test's few rows costs less than a new database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        large = "SELECT count(*) FROM pg_class WHERE relname = ANY(%s) AND pg_relation_size(oid) > 1 << 20"
        if connection.execute(large, (_tables(),)).fetchone()[0]:
            connection.execute(f"TRUNCATE {', '.join(_tables())}")
        clear = (f"DELETE FROM {name}" for name in reversed(_tables()))  # noqa: S608 - names of ours
        fill = (f"INSERT INTO {name} SELECT * FROM kept.{name}" for name in _tables())  # noqa: S608 - names of ours
        connection.execute(";".join((*clear, *fill)))


def _tables():
    """The names of the board's tables, what is referred to first."""
    from tenure.board.tables import metadata

    return [table.name for table in metadata.sorted_tables]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def empty_url(request, tmp_path):
    """The URL of an empty database of this test's own, on either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.db"
        return
    with own_database(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def board_url(request, tmp_path):
    """The URL of a database that this test has for itself, with the tables and the three, on either kind."""
    if request.param == "sqlite":
        path = tmp_path / "board.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    url = request.getfixturevalue("postgres_board_url")
    yield url
    _restore(url)


@pytest.fixture
def board(board_url):
    """A board of this test's own, with Alice, Bob and Charlie and a clock to turn; on SQLite and on PostgreSQL."""
    board = open_hall(board_url)
    yield board
    board.database.shut()


class BobsPass(NamedTuple):
    """What Bob holds as Alice's friend: the friendship as he sees it, and the credential of the endpoint."""

    friendship: object
    credential: object


@pytest.fixture
def bobs_pass(board):
    """Bob is Alice's friend: he may drain and fill her queue `review`, and has collected the credential."""
    from tenure.board import friends, humans

    code = board.read(humans.friend_code, board.alice)
    asked = board.write(
        friends.request, board.bob, code, queues=["review"], verbs=["claim_next", "complete", "create_todo"]
    )
    board.write(friends.approve, board.alice, asked.id, agent="friends")
    return BobsPass(*board.write(friends.collect, board.bob, asked.id))
