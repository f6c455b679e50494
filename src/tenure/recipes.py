"""Recipes: small guarded writes for systems that have no transaction with Tenure's store.

A handler that was paused, or cut off, may go on after another instance has taken its run over. Tenure refuses it
(`LeaseLost`), but a write that is already on its way to another system is seen by that system alone. So hand over
`run.fence` with it: a number that is higher at every attempt of a job. Who has seen a higher one refuses.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.errors import LeaseLost

_GUARDED_SET: Final = """
local seen = redis.call('HGET', KEYS[1], 'fence')
if seen and tonumber(seen) > tonumber(ARGV[2]) then
  return seen
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', ARGV[2])
return 'ok'
"""


async def guarded_set(client: Any, key: str | bytes, value: str | bytes | float, fence: int) -> None:
    """Set a value in Redis or Valkey, unless a later attempt of the job has set it already.

        @app.cron("0 3 * * *")
        async def report(run):
            numbers = await compute()
            await guarded_set(client, "report:latest", numbers, run.fence)

    `client` is a `redis.asyncio` client, of one server or of a cluster. The key is a hash of two fields, so that
    value and fence are compared and written in one step and lie on one node: read it with
    `await client.hget(key, "value")`. One key belongs to one job, for each job counts its own fence. The same
    attempt may write as often as it likes.

    Raises LeaseLost where a higher fence was seen: nothing was written, and this attempt may no longer act. An
    answer that was lost may be asked again: the second write of the same value and fence changes nothing.

    The guard is as durable as that server: after a failover that lost writes it may have forgotten the highest
    fence. It is no transaction: that this write stands does not say that the run is recorded as a success.
    """
    _check(await client.eval(_GUARDED_SET, 1, key, value, int(fence)), key, fence)


def guarded_set_blocking(client: Any, key: str | bytes, value: str | bytes | float, fence: int) -> None:
    """As `guarded_set`, through a blocking `redis.Redis` client: for handlers that are plain functions."""
    _check(client.eval(_GUARDED_SET, 1, key, value, int(fence)), key, fence)


def _check(told: Any, key: str | bytes, fence: int) -> None:
    seen = told.decode() if isinstance(told, bytes) else str(told)
    if seen != "ok":
        raise LeaseLost(
            f"{key!r} was written with fence {seen} by a later attempt, so the write with fence {fence} was refused."
        )
