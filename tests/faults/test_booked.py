"""`run.transaction(finish=True)` under kill -9 at random instants: the effect and the record of it agree (R39)."""

import random
import sqlite3
import time

import pytest
from fleet import Fleet

pytestmark = [pytest.mark.timeout(180)]


@pytest.fixture
def sqlite_table(tmp_path):
    """(the store's URL, how to read the effects) on a SQLite file."""
    path = tmp_path / "booked.db"

    def ask(sql):
        connection = sqlite3.connect(path)
        with connection:
            rows = connection.execute(sql).fetchall()
        connection.close()
        return rows

    ask("CREATE TABLE effect (key TEXT, attempt INTEGER)")
    return f"sqlite:///{path}", lambda: ask("SELECT key, attempt FROM effect")


@pytest.fixture
def postgres_table(postgres_url):
    """The same in a schema of its own on PostgreSQL, which is on the search path of the store's connections."""
    import psycopg

    schema = f"booked_{random.getrandbits(40):x}"
    path = f"options=-csearch_path%3D{schema}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.effect (key TEXT, attempt INTEGER)")

        def read():
            return connection.execute(f"SELECT key, attempt FROM {schema}.effect").fetchall()  # noqa: S608

        yield f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema={schema}&{path}", read
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


def agree(table, kills):
    """Three instances, twenty slots a second; one is killed at a random moment, again and again."""
    url, read = table
    chance = random.Random(kills)
    with Fleet(url, lease="1s", kind="booked", every=0.05, overlap="allow", history=1_000_000, jitter=0) as fleet:
        names = [fleet.start() for _ in range(3)]
        fleet.registered(3)
        for _ in range(kills):
            fleet.news("begin")
            time.sleep(chance.uniform(0.05, 0.3))
            name = names.pop(chance.randrange(3))
            fleet.kill(name)
            names.append(fleet.start())
        fleet.news("end")
        for name in names:
            fleet.kill(name)
        recorded = {(run.key, run.attempts[-1].number) for run in fleet.runs() if run.status == "success"}
    effects = read()
    assert len(effects) == len(set(effects)) > kills
    assert set(effects) == recorded


def test_r39_effect_and_record_agree_on_sqlite(sqlite_table):
    """Both or neither, ten deaths."""
    agree(sqlite_table, 10)


@pytest.mark.servers
def test_r39_effect_and_record_agree_on_postgres(postgres_table):
    """The same."""
    agree(postgres_table, 10)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_r39_effect_and_record_agree_on_sqlite_five_hundred_times(sqlite_table):
    """Both or neither."""
    agree(sqlite_table, 500)


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.timeout(3000)
def test_r39_effect_and_record_agree_on_postgres_five_hundred_times(postgres_table):
    """The same."""
    agree(postgres_table, 500)
