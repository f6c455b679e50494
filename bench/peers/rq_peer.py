"""RQ: its worker, and its cron scheduler beside it."""

import subprocess
import sys

import redis
import rq_peer as me
from adapter import URL, hang_in_thread, main, mark
from rq import Queue, Retry, SimpleWorker, Worker
from rq.cron import CronScheduler

server = redis.Redis.from_url(URL)


def hang():
    hang_in_thread()


def ticks():
    mark()


def put():
    Queue(connection=server).enqueue(me.hang, job_timeout=-1, retry=Retry(max=3))


def work():
    Worker(["default"], connection=server).work(logging_level="WARNING")


def quick():
    """The worker that does not fork for each job: the one that is less late."""
    SimpleWorker(["default"], connection=server).work(logging_level="WARNING")


def tick():
    subprocess.Popen([sys.executable, __file__, "quick"])
    scheduler = CronScheduler(server, logging_level="WARNING")
    scheduler.register(me.ticks, "default", interval=1)
    scheduler.start()


if __name__ == "__main__":
    main(put=put, work=work, quick=quick, tick=tick)
