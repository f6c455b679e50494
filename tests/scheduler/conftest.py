"""Jobs and clusters for the scheduler's tests."""

import asyncio

import pytest

from tenure.rules.instant import span
from tenure.rules.schedule import cron, every
from tenure.scheduler.jobs import define


class Log:
    """What handlers did, in turned time: (what, key, attempt, instance)."""

    def __init__(self):
        self.entries = []

    def add(self, what, run):
        self.entries.append((what, run.key, run.attempt, run.runner))

    def of(self, what):
        return [entry[1:] for entry in self.entries if entry[0] == what]


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def job(log):
    """Make a job: `job("tick", "10s", takes=7)` runs for 7 turned seconds; a string with spaces is cron."""

    def make(name="tick", when="60s", *, takes=0.0, handler=None, tz="UTC", **options):
        async def perform(run):
            log.add("begin", run)
            if takes:
                await asyncio.sleep(takes)
            log.add("end", run)

        options.setdefault("jitter", 0)
        schedule = None if when is None else cron(when, tz) if " " in when else every(span(when))
        return define(name, schedule, handler or perform, options, tiny_leases=True)

    return make


@pytest.fixture
def cluster(tenure_cluster):
    """Three instances, nine and a half seconds before the hour."""

    def make(jobs, n=3, **options):
        options.setdefault("start", "2026-01-01T00:59:50.500Z")
        return tenure_cluster(jobs, n, **options)

    return make
