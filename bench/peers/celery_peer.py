"""Celery: a worker with its usual pool of processes, and beat in it."""

import os

from adapter import MARKS, URL, become, hang_in_thread, main, mark
from celery import Celery

app = Celery("bench", broker=URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    broker_connection_retry_on_startup=True,
    beat_schedule={"tick": {"task": "tick", "schedule": 1.0}} if "PEER_TICKS" in os.environ else {},
)
hang = app.task(name="hang")(hang_in_thread)


@app.task(name="tick")
def ticks():
    mark()


def work(*more):
    become("celery", "-A", "celery_peer", "worker", "-c", "2", "-l", "ERROR", *more)


def tick():
    os.environ["PEER_TICKS"] = "1"
    work("-B", "-s", f"{MARKS}.beat")


if __name__ == "__main__":
    main(put=hang.delay, work=work, tick=tick)
