"""APScheduler 3 with a job store in PostgreSQL."""

import asyncio

import apscheduler3_peer as me
from adapter import URL, main, mark
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler


async def ticks():
    mark()


async def tick():
    url = URL.replace("postgresql://", "postgresql+psycopg2://")
    scheduler = AsyncIOScheduler(jobstores={"default": SQLAlchemyJobStore(url=url)}, timezone="UTC")
    scheduler.start()
    scheduler.add_job(me.ticks, "cron", second="*", id="tick", replace_existing=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(tick=lambda: asyncio.run(tick()))
