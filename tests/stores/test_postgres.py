"""PostgreSQL 18, Debian's 15, and 18 through PgBouncer in transaction mode: the exam, plans, what is written."""

import asyncio
import json

import psycopg
import pytest
from postgres_hall import PostgresHall

from tenure.errors import ConfigError, StoreCorrupt, StoreError
from tenure.proof.conformance import QUESTIONS, NotAskedError, random_sequences
from tenure.stores.contract import Ask, Change, Mark, Outcome, Record
from tenure.stores.opening import store_from_url
from tenure.stores.postgres import PostgresStore

pytestmark = pytest.mark.servers

HIDDEN = "hunter2"
DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


@pytest.fixture(params=["18", "15", "pgbouncer"])
def hall(request):
    """Each server."""
    fixture = {"18": "postgres_url", "15": "postgres_15_url", "pgbouncer": "bouncer_url"}[request.param]
    one = PostgresHall(request.getfixturevalue(fixture))
    yield one
    one.clear()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_r40_question(hall, question, request):
    """Each question of the exam on each server; through a pooler the store says that it hears no hints."""
    try:
        await QUESTIONS[question](hall)
    except NotAskedError:
        assert (question, hall.url) == ("hints_reach_other_handles", request.getfixturevalue("bouncer_url"))


def test_r40_random_sequences(hall):
    """Random reads, changes and commands end as they do in memory."""
    random_sequences(hall, examples=25)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_r40_many_random_sequences(hall):
    """The same, many more."""
    random_sequences(hall, examples=2_000)
