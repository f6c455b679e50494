"""Procrastinate: one worker, which also puts the periodic tasks."""

import asyncio

import procrastinate
from adapter import URL, hang, main, mark

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))
hangs = app.task(name="hang", retry=3)(hang)


async def ticks(timestamp):  # noqa: ARG001 - given by this name
    mark()


async def opened(do):
    async with app.open_async():
        await do()


def tick():
    app.periodic(cron="* * * * * *")(app.task(name="tick")(ticks))
    asyncio.run(opened(app.run_worker_async))


if __name__ == "__main__":
    main(
        setup=lambda: asyncio.run(opened(app.schema_manager.apply_schema_async)),
        put=lambda: asyncio.run(opened(hangs.defer_async)),
        work=lambda: asyncio.run(opened(app.run_worker_async)),
        tick=tick,
    )
