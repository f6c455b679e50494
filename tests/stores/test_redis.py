import asyncio

import pytest
from redis_server import KINDS, fresh_prefix, shared, with_options

from tenure.proof.conformance import QUESTIONS, NotAskedError, random_sequences
from tenure.stores.contract import Verdict
from tenure.stores.redis import RedisStore

pytestmark = pytest.mark.servers


class Unhurried(RedisStore):
    """A store that lets deadlines of the very millisecond pass before it commits.

    The yardstick judges a whole commit by one reading of the clock, and each node of a cluster reads its own.
    """

    async def commit(self, changes) -> Verdict:
        await asyncio.sleep(0.01)
        return await super().commit(changes)


class RedisHall:
    """A prefix of its own for each store, on a server that the whole run shares."""

    transactions = False

    def __init__(self, url, made=RedisStore):
        self.url, self.made = url, made

    async def fresh(self):
        return await self.opened(fresh_prefix())

    async def second(self, store):
        return await self.opened(store._settings.prefix)

    async def opened(self, prefix):
        store = self.made(with_options(self.url, prefix=prefix))
        await store.open()
        return store


@pytest.fixture(params=KINDS)
def hall(request):
    return RedisHall(shared(request.param))


@pytest.mark.parametrize("question", QUESTIONS)
async def test_r40_question(hall, question):
    """Each question of the exam on each server, and on a cluster."""
    try:
        await QUESTIONS[question](hall)
    except NotAskedError:
        assert not hall.transactions


@pytest.mark.parametrize("kind", KINDS)
def test_r40_random_sequences(kind):
    """Random reads, changes and commands end as they do in memory."""
    random_sequences(RedisHall(shared(kind), Unhurried if kind == "cluster" else RedisStore), examples=25)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_r40_many_random_sequences(kind):
    """The same, many more."""
    random_sequences(RedisHall(shared(kind), Unhurried if kind == "cluster" else RedisStore), examples=1_000)
