"""One real instance for fault tests: tells each step of its handlers as a JSON line with the wall time.

    python fleet_worker.py URL NAME LEASE KIND [OPTIONS as JSON]

KIND is what the first attempt's handler does: `hold` loops until it is told to stop, and heeds check(); `deaf`
is a sync handler that never asks; `block` blocks its loop for BLOCK seconds; `short` returns at once; `exit` ends
its process; `booked` writes to the table `effect` and finishes in one transaction; `steps` has an effect every
10 ms, for ever, in every attempt. Later attempts of the others return at once. TENURE_FAILPOINT=N kills the process
at its N-th step: each read and each commit of the store has one right before and one right after it.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time

from tenure import LeaseLost, Run, Tenure
from tenure.stores.opening import store_from_url

URL, NAME, LEASE, KIND = sys.argv[1:5]
OPTIONS = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
BLOCK = float(OPTIONS.pop("block", 0))
TAKES = float(OPTIONS.pop("takes", 0))
EVERY = OPTIONS.pop("every", None)
STOP_TIMEOUT = OPTIONS.pop("stop_timeout", 10)
lock = threading.Lock()


def tell(what: str, **facts: object) -> None:
    with lock:
        print(json.dumps({"what": what, "at": time.time(), "name": NAME, "pid": os.getpid(), **facts}), flush=True)


class Failing:
    """A store that kills its process at a numbered step between two calls."""

    def __init__(self, store, step):
        self._store, self._step, self._count = store, step, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, asks):
        return await self._guarded(self._store.read(asks))

    async def commit(self, changes):
        return await self._guarded(self._store.commit(changes))

    async def _guarded(self, call):
        self._reach()
        answer = await call
        self._reach()
        return answer

    def _reach(self):
        if self._count == self._step:
            os.kill(os.getpid(), signal.SIGKILL)
        self._count += 1


def told(run: Run) -> dict[str, object]:
    return {"key": run.key, "attempt": run.attempt, "fence": run.fence, "reason": run.reason}


async def hold(run: Run) -> None:
    tell("begin", **told(run))
    try:
        if run.attempt == 1 or TAKES:
            end = time.monotonic() + (TAKES or 3600)
            while time.monotonic() < end:
                run.check()
                await asyncio.sleep(0.02)
        run.check()
        tell("effect", **told(run))
    except LeaseLost as error:
        tell("lease-lost", why=str(error), **told(run))
        raise
    except asyncio.CancelledError:
        tell("cancelled", **told(run))
        raise


def deaf(run: Run) -> None:
    tell("begin", **told(run))
    if run.attempt == 1:
        time.sleep(BLOCK)
    tell("effect", **told(run), held=run.held())


async def block(run: Run) -> None:
    tell("begin", **told(run))
    time.sleep(BLOCK)  # noqa: ASYNC251 - this is the fault
    tell("effect", **told(run))


async def steps(run: Run) -> None:
    """Effect after effect, each only after check()."""
    tell("begin", **told(run))
    while True:
        run.check()
        tell("effect", **told(run))
        await asyncio.sleep(0.01)


async def short(run: Run) -> None:
    tell("begin", **told(run))
    tell("effect", **told(run))


async def booked(run: Run) -> None:
    """An effect in the store's own database, and the run's success, in one transaction."""
    async with run.transaction(finish=True) as connection:
        if URL.startswith("sqlite"):
            connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
        else:
            await connection.execute("INSERT INTO effect VALUES (%s, %s)", (run.key, run.attempt))
        await asyncio.sleep(0.005)


async def leave(run: Run) -> None:
    tell("begin", **told(run))
    if run.attempt == 1:
        os._exit(1)
    tell("effect", **told(run))


store = store_from_url(URL)
if os.environ.get("TENURE_FAILPOINT"):
    store = Failing(store, int(os.environ["TENURE_FAILPOINT"]))
app = Tenure(store, name=NAME, lease=LEASE, stop_timeout=STOP_TIMEOUT, tiny_leases=True, **OPTIONS)
handler = {"hold": hold, "deaf": deaf, "block": block, "short": short, "exit": leave, "steps": steps, "booked": booked}[
    KIND
]
(app.every(EVERY, name="work") if EVERY else app.job(name="work"))(handler)
app.on("*", lambda event: tell("event", event=event.name, slot=event.slot, attempt=event.attempt, **event.detail))
sys.exit(app.run())
