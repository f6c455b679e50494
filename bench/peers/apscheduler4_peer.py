"""APScheduler 4, an alpha, with data store and event broker in PostgreSQL."""

import asyncio

from adapter import URL, hang, main, mark
from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.ext.asyncio import create_async_engine


async def ticks():
    mark()


def scheduler():
    engine = create_async_engine(URL.replace("postgresql://", "postgresql+asyncpg://"))
    return AsyncScheduler(SQLAlchemyDataStore(engine), AsyncpgEventBroker.from_async_sqla_engine(engine))


async def with_task(then):
    async with scheduler() as one:
        await one.configure_task("hang", func=hang, job_executor="async")
        await then(one)


async def nothing(_):
    pass


async def put(one):
    await one.add_job("hang")


async def work(one):
    await one.run_until_stopped()


async def tick(one):
    await one.add_schedule(ticks, CronTrigger(second="*", timezone="UTC"), id="tick", conflict_policy="replace")
    await one.run_until_stopped()


if __name__ == "__main__":
    main(**{name: lambda do=do: asyncio.run(with_task(do))
            for name, do in {"setup": nothing, "put": put, "work": work, "tick": tick}.items()})  # fmt: skip
