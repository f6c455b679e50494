"""PGQueuer drains jobs that do nothing: prints how many it did in a second, from the first to the last."""

import asyncio
import sys
import time

import asyncpg
from adapter import URL
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def drain(count, batch):
    queries = Queries(AsyncpgDriver(await asyncpg.connect(URL)))
    await queries.install()
    for start in range(0, count, 1_000):
        size = min(1_000, count - start)
        await queries.enqueue(["nothing"] * size, [None] * size, [0] * size)
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))
    times = []

    @queuer.entrypoint("nothing")
    async def nothing(_):
        times.append(time.perf_counter())
        if len(times) >= count:
            queuer.shutdown.set()

    await queuer.run(batch_size=batch, max_concurrent_tasks=2 * batch)
    print((count - 1) / (times[-1] - times[0]))


if __name__ == "__main__":
    asyncio.run(drain(int(sys.argv[1]), int(sys.argv[2])))
