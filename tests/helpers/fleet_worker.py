"""One real instance for fault tests: tells what it decides and what its handlers do, a JSON line each.

    python fleet_worker.py URL NAME LEASE KIND [OPTIONS as JSON]

The lines are its record: appended to its output as things happen, with the wall time and the time since boot, and what
a killed process has told stays told. A handler tells `begin`, each `effect` with when it asked whether it still
held, and `end` with how.

KIND is what the first attempt's handler does; later attempts return at once, where nothing else is said:

hold    loops until it is told to stop, and heeds check(); with TAKES every attempt does, for so many seconds
deaf    is a sync handler that never asks, for BLOCK seconds; later attempts for TAKES
block   blocks its loop for BLOCK seconds
short   returns at once
exit    ends its process
bulky   takes TAKES seconds and returns 60 KB
booked  writes to the table `effect` and finishes in one transaction
greedy  keeps a transaction open for BLOCK seconds
steps   has an effect every 10 ms, for ever, in every attempt

TENURE_FAILPOINT=N kills the process at its N-th step: each read and each commit of the store has one right before and
one right after it. TENURE_ROLLBACKS=N fails the next N commits once a handler has begun.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

from recording import clocks, recording

from tenure import Run, StoreUnavailable, Tenure
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
        print(json.dumps({"what": what, "name": NAME, "pid": os.getpid(), **clocks(), **facts}), flush=True)


class Between:
    """Stands between an instance and its store."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)


class Failing(Between):
    """Kills its process at a numbered step between two calls."""

    def __init__(self, store, step):
        super().__init__(store)
        self._step, self._count = step, 0

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


class RollingBack(Between):
    """Rolls commits back, so many, once a handler has begun."""

    def __init__(self, store, times):
        super().__init__(store)
        self._times = times

    async def commit(self, changes):
        if begun.is_set() and self._times:
            self._times -= 1
            raise StoreUnavailable("the pooler's server has rolled the commit back.")
        return await self._store.commit(changes)


begun = threading.Event()


def told(run: Run) -> dict[str, object]:
    names = ("key", "slot_ms", "attempt", "fence", "token", "reason")
    return {name: getattr(run, name) for name in names}


@contextlib.contextmanager
def life(run: Run) -> Iterator[None]:
    """A handler from its begin to its end."""
    tell("begin", **told(run))
    begun.set()
    try:
        yield
    except BaseException as error:
        tell("end", how=type(error).__name__, why=str(error), **told(run))
        raise
    tell("end", how="returned", **told(run))


def effect(run: Run, *, check: bool = False) -> None:
    """What a handler does to the world; `since` is when it asked, so that a pause afterwards excuses nothing."""
    since = clocks()["boot"]
    if check:
        run.check()
    tell("effect", since=since, held=run.held(), **told(run))


async def hold(run: Run) -> None:
    with life(run):
        if run.attempt == 1 or TAKES:
            end = time.monotonic() + (TAKES or 3600)
            while time.monotonic() < end:
                run.check()
                await asyncio.sleep(0.02)
        effect(run, check=True)


def deaf(run: Run) -> None:
    with life(run):
        time.sleep(BLOCK if run.attempt == 1 else TAKES)
        effect(run)


async def block(run: Run) -> None:
    with life(run):
        time.sleep(BLOCK)  # noqa: ASYNC251 - this is the fault
        effect(run)


async def steps(run: Run) -> None:
    with life(run):
        while True:
            effect(run, check=True)
            await asyncio.sleep(0.01)


async def short(run: Run) -> None:
    with life(run):
        effect(run)


async def booked(run: Run) -> None:
    """An effect in the store's own database, and the run's success, in one transaction."""
    with life(run):
        async with run.transaction(finish=True) as connection:
            if URL.startswith("sqlite"):
                connection.execute("INSERT INTO effect VALUES (?, ?)", (run.key, run.attempt))
            else:
                await connection.execute("INSERT INTO effect VALUES (%s, %s)", (run.key, run.attempt))
            await asyncio.sleep(0.005)


async def greedy(run: Run) -> None:
    with life(run):
        async with run.transaction() as connection:
            await connection.execute("SELECT 1")
            await asyncio.sleep(BLOCK)
        effect(run)


async def bulky(run: Run) -> str:
    with life(run):
        await asyncio.sleep(TAKES)
        effect(run)
        return os.urandom(30_000).hex()


async def leave(run: Run) -> None:
    with life(run):
        if run.attempt == 1:
            os._exit(1)
        effect(run)


HANDLERS = {
    "hold": hold, "deaf": deaf, "block": block, "short": short, "exit": leave, "steps": steps, "booked": booked,
    "greedy": greedy, "bulky": bulky,
}  # fmt: skip

store = store_from_url(URL)
if os.environ.get("TENURE_FAILPOINT"):
    store = Failing(store, int(os.environ["TENURE_FAILPOINT"]))
if os.environ.get("TENURE_ROLLBACKS"):
    store = RollingBack(store, int(os.environ["TENURE_ROLLBACKS"]))
app = Tenure(store, name=NAME, lease=LEASE, stop_timeout=STOP_TIMEOUT, tiny_leases=True, **OPTIONS)
(app.every(EVERY, name="work") if EVERY else app.job(name="work"))(HANDLERS[KIND])
app.on("*", lambda event: tell("event", event=event.name, slot=event.slot, attempt=event.attempt, **event.detail))
with recording(tell):
    sys.exit(app.run())
