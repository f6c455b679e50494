import pytest
import redis
from redis import asyncio as redis_asyncio
from redis_server import KINDS, fresh_prefix, shared

from tenure.errors import LeaseLost
from tenure.recipes import guarded_set, guarded_set_blocking

pytestmark = pytest.mark.servers


def made(module, url, **options):
    """redis-py's own client for one of the run's servers."""
    if "cluster" in url:
        return module.RedisCluster.from_url(url.replace("redis+cluster", "redis").partition(",")[0], **options)
    return module.Redis.from_url(url, **options)


@pytest.mark.parametrize("decoded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_r38_guarded_set(kind, decoded):
    """A smaller fence than one that was seen writes nothing and hears that its lease is lost."""
    key = f"{fresh_prefix()}:report"
    client = made(redis_asyncio, shared(kind), decode_responses=decoded)
    try:
        await guarded_set(client, key, "first", 7)
        await guarded_set(client, key, "again", 7)
        with pytest.raises(LeaseLost, match=r"written with fence 7 .* fence 6"):
            await guarded_set(client, key, "late", 6)
        assert await client.hget(key, "value") in ("again", b"again")
        await guarded_set(client, key, b"\0\xff", 10)  # compared as numbers
        with pytest.raises(LeaseLost):
            await guarded_set(client, key, "late", 9)
        if not decoded:
            assert await client.hget(key, "value") == b"\0\xff"
    finally:
        await client.aclose()


def test_r38_guarded_set_blocking():
    """The same for plain functions."""
    key = f"{fresh_prefix()}:report"
    with made(redis, shared("valkey9")) as client:
        guarded_set_blocking(client, key, "new", 2)
        with pytest.raises(LeaseLost):
            guarded_set_blocking(client, key, "late", 1)
        assert client.hget(key, "value") == b"new"
