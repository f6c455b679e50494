"""Ten idle instances, a hundred minutely jobs: calls a second by the servers' own statistics, and CPU."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from instances import Instances
from rows import Row
from servers import postgres, valkey

COUNT, JOBS = 10, 100
# What a client of Redis calls; what its scripts call inside is counted beside, and is none of these.
FROM_OUTSIDE = ("eval", "evalsha", "publish", "wait", "ping", "multi", "exec")


def measure(*, quick: bool) -> list[Row]:
    """Whole minutes, each with one run of each job."""
    minutes = 1 if quick else 2
    return [*_rows("PostgreSQL", _on_postgres, minutes), *_rows("Valkey", _on_valkey, minutes)]


@contextmanager
def _on_postgres() -> Iterator[tuple[str, Callable[[], float]]]:
    with postgres(shared_preload_libraries="pg_stat_statements") as server:
        server.sql("CREATE EXTENSION pg_stat_statements")
        counted = "SELECT sum(calls)::float8 FROM pg_stat_statements WHERE query NOT LIKE %s"
        yield server.url, lambda: server.sql(counted, "%pg_stat_statements%")[0][0]


@contextmanager
def _on_valkey() -> Iterator[tuple[str, Callable[[], float]]]:
    with valkey() as server:

        def calls() -> float:
            counted = server.info("commandstats")
            return sum(counted.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in FROM_OUTSIDE)

        yield server.url, calls


def _rows(kind: str, on: Callable[..., object], minutes: int) -> list[Row]:
    seconds = 60 * minutes
    with on() as (url, calls):
        begin = math.ceil(time.time()) + 20
        with Instances(COUNT, url, jobs=JOBS, every="60s", begin=begin, end=begin + seconds + 1) as all_:
            time.sleep(begin - time.time())
            before = calls()
            time.sleep(begin + seconds - time.time())
            rate = (calls() - before) / seconds
            told = all_.told()
    ran = sum(len(one.starts) for one in told)
    assert ran >= JOBS * minutes, f"{ran} runs, not {JOBS * minutes}"
    share = max(one.cpu for one in told) / seconds * 100
    who = f"{COUNT} instances, {JOBS} minutely jobs, {kind}"
    return [
        Row(f"{who}: calls a second, all together", rate, "/s", "< 60 /s", rate < 60, {"runs": ran}),
        Row(f"{who}: CPU of the busiest instance", share, "% of a core", "< 2 %", share < 2),
    ]
