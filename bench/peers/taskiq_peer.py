"""taskiq on a Redis stream: its worker, and its scheduler beside it."""

import asyncio
import os
import subprocess
import sys

from adapter import URL, become, hang, main, mark
from taskiq import TaskiqScheduler
from taskiq.schedule_sources import LabelScheduleSource
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(URL)
scheduler = TaskiqScheduler(broker, [LabelScheduleSource(broker)])
hangs = broker.task(task_name="hang")(hang)


@broker.task(task_name="tick", schedule=[{"interval": 1}] if "PEER_TICKS" in os.environ else [])
async def ticks():
    mark()


async def put():
    await broker.startup()
    await hangs.kiq()
    await broker.shutdown()


def work():
    become("taskiq", "worker", "taskiq_peer:broker", "-w", "1", "--log-level", "ERROR", "--ack-type", "when_executed")


def tick():
    os.environ["PEER_TICKS"] = "1"
    subprocess.Popen([sys.executable, __file__, "work"])
    become("taskiq", "scheduler", "taskiq_peer:scheduler", "--log-level", "ERROR")


if __name__ == "__main__":
    main(put=lambda: asyncio.run(put()), work=work, tick=tick)
