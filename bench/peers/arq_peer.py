"""arq: one worker with its cron jobs."""

import asyncio

from adapter import URL, hang, main, mark
from arq import create_pool, cron, func
from arq.connections import RedisSettings
from arq.worker import Worker

SERVER = RedisSettings.from_dsn(URL)


async def hangs(_):
    await hang()


async def ticks(_):
    mark()


async def put():
    pool = await create_pool(SERVER)
    await pool.enqueue_job("hang")
    await pool.aclose()


async def work(*crons):
    await Worker([func(hangs, name="hang")], cron_jobs=list(crons) or None, redis_settings=SERVER).async_run()


if __name__ == "__main__":
    main(
        put=lambda: asyncio.run(put()),
        work=lambda: asyncio.run(work()),
        tick=lambda: asyncio.run(work(cron(ticks, second=set(range(60))))),
    )
