"""SAQ on Redis: one worker with its cron jobs."""

import asyncio

from adapter import URL, hang, main, mark
from saq import CronJob, Queue, Worker


async def hangs(_):
    await hang()


async def ticks(_):
    mark()


async def put():
    queue = Queue.from_url(URL)
    await queue.connect()
    await queue.enqueue("hangs", retries=3)
    await queue.disconnect()


async def work(*crons):
    queue = Queue.from_url(URL)
    await queue.connect()
    await Worker(queue, [hangs, ticks], cron_jobs=list(crons)).start()


if __name__ == "__main__":
    main(
        put=lambda: asyncio.run(put()),
        work=lambda: asyncio.run(work()),
        tick=lambda: asyncio.run(work(CronJob(ticks, cron="* * * * * *"))),
    )
