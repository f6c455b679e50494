"""One real instance of a measurement, in a process of its own: says at its end, in one line of JSON, what it saw.

    python worker.py URL '{"jobs": 1000, "every": "30s", "begin": 1700000000, "end": 1700000010}'

It runs from now until `end`, and tells of what happened from `begin` on: the starts of its handlers as (slot, ms
after it), its calls to the store, and the CPU that it took.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any

from claiming import Calls

from tenure import Run, Tenure
from tenure.stores.opening import store_from_url


async def lived(url: str, *, jobs: int, every: str, begin: float, end: float, takes: float = 0, **options: Any) -> None:
    """The whole life of the instance; each of its handlers takes so many seconds."""
    starts: list[tuple[int, float]] = []
    store = store_from_url(url)
    calls = Calls(store)
    app = Tenure(store, **options)

    async def handler(run: Run) -> None:
        starts.append((run.slot_ms, time.time() * 1e3 - run.slot_ms))
        await asyncio.sleep(takes)

    for n in range(jobs):
        app.every(every, name=f"job-{n:05}")(handler)
    async with app:
        ready = time.time()
        await asyncio.sleep(begin - time.time())
        before = _cpu()
        await asyncio.sleep(end - time.time())
        cpu = _cpu() - before
    told = [(slot, late) for slot, late in starts if begin * 1e3 <= slot < end * 1e3]
    print(json.dumps({"ready": ready, "starts": told, "calls": calls.made, "cpu": cpu}))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(lived(sys.argv[1], **json.loads(sys.argv[2])))
