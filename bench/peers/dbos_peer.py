"""DBOS: workflows on a queue, and a scheduled workflow. Each process is an executor of its own."""

import os
import threading

from adapter import URL, hang, main, mark
from dbos import DBOS


@DBOS.workflow()
async def hangs():
    await hang()


@DBOS.workflow()
async def ticks(_at, _context):
    mark()


def launched(*queues):
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL.replace("postgresql://", "postgresql+psycopg://"),
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": str(os.getpid()),
        }
    )
    DBOS.listen_queues(list(queues))
    DBOS.launch()
    DBOS.register_queue("queue")


def setup():
    launched()
    DBOS.destroy()


def put():
    launched()
    DBOS.enqueue_workflow("queue", hangs)
    DBOS.destroy()


def work():
    launched("queue")
    threading.Event().wait()


def tick():
    launched()
    DBOS.apply_schedules([{"schedule_name": "tick", "workflow_fn": ticks, "schedule": "* * * * * *"}])
    threading.Event().wait()


if __name__ == "__main__":
    main(setup=setup, put=put, work=work, tick=tick)
