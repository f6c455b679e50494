"""Five thousand runs held by one instance: the calls of a round of heartbeats, over several rounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter

from claiming import Calls
from instances import only_slot
from rows import Row
from servers import STORES, store

from tenure import Event, Run, Tenure
from tenure.stores.opening import store_from_url

LEASE = 30.0
BEAT = LEASE / 6


def measure(*, quick: bool) -> list[Row]:
    """On each store, with the default lease and heartbeat."""
    runs, rounds = (500, 2) if quick else (5_000, 6)
    return [row for kind in STORES for row in _rows(kind, runs, rounds)]


def _rows(kind: str, runs: int, rounds: int) -> list[Row]:
    logging.getLogger("tenure").addHandler(logging.NullHandler())  # what goes wrong is counted; 5,000 lines say no more
    with store(kind) as url:
        calls, events, ended = asyncio.run(_held(url, runs, rounds))
    lapsed = runs - ended + sum(events[name] for name in ("unsure", "lost", "takeover", "interrupted"))
    who = f"{runs:,} runs held by one instance, {kind}"
    told = f"{rounds} rounds: {', '.join(map(str, calls))}"
    return [
        Row(f"{who}: calls of a round of heartbeats, most", max(calls), "", "<= 3", max(calls) <= 3, remark=told),
        Row(f"{who}: leases that lapsed or were in doubt", lapsed, "", "0", lapsed == 0),
    ]


async def _held(url: str, runs: int, rounds: int) -> tuple[list[int], Counter[str], int]:
    """Calls per round, events by name, and runs that ended in success at their first attempt."""
    going, enough, over, ended = 0, asyncio.Event(), asyncio.Event(), asyncio.Event()
    store_ = store_from_url(url)
    calls = Calls(store_)
    _, every = only_slot(15)
    app = Tenure(store_, lease=LEASE)
    events: Counter[str] = Counter()

    @app.on("*")
    def heard(event: Event) -> None:
        events[event.name] += 1
        if events["success"] == runs:
            ended.set()

    async def handler(run: Run) -> None:
        nonlocal going
        going += 1
        if going == runs:
            enough.set()
        await over.wait()
        run.check()

    for n in range(runs):
        app.every(every, name=f"job-{n:05}")(handler)
    async with app:
        await asyncio.wait_for(enough.wait(), 120)
        await asyncio.sleep(2)
        begin = time.time()
        await asyncio.sleep((rounds + 1) * BEAT)
        made = sorted(at for at in calls.made if at >= begin)
        over.set()
        with contextlib.suppress(TimeoutError):  # those that were lost never end here
            await asyncio.wait_for(ended.wait(), 60)
    return _rounds(made)[:rounds], events, events["success"]


def _rounds(made: list[float]) -> list[int]:
    """Calls are of one round that come within half a heartbeat of its first one."""
    rounds: list[int] = []
    first = 0.0
    for at in made:
        if at - first > BEAT / 2:
            first = at
            rounds.append(0)
        rounds[-1] += 1
    return rounds
