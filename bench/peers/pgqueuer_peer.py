"""PGQueuer on asyncpg: one process that works and schedules."""

import asyncio

import asyncpg
from adapter import URL, hang, main, mark
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def driver():
    return AsyncpgDriver(await asyncpg.connect(URL))


async def setup():
    await Queries(await driver()).install()


async def put():
    await Queries(await driver()).enqueue("hang", None)


async def work(ticking=False):
    queuer = PgQueuer(await driver())

    @queuer.entrypoint("hang")
    async def hangs(_):
        await hang()

    if ticking:

        @queuer.schedule("tick", "* * * * * *")
        async def ticks(_):
            mark()

    await queuer.run()


if __name__ == "__main__":
    main(
        setup=lambda: asyncio.run(setup()),
        put=lambda: asyncio.run(put()),
        work=lambda: asyncio.run(work()),
        tick=lambda: asyncio.run(work(ticking=True)),
    )
