"""What a handler is given: its slot, its attempt, the fence, and whether it still holds the lease."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import math
from collections.abc import Coroutine, Mapping, MutableMapping
from datetime import datetime
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

from tenure.errors import ConfigError, LeaseLost
from tenure.rules.instant import aware, iso
from tenure.rules.job import Progress
from tenure.rules.lease import provable
from tenure.rules.schedule import Slot
from tenure.scheduler.jobs import Job
from tenure.scheduler.results import complaint
from tenure.scheduler.seams import Clock
from tenure.scheduler.signals import LoopSignal, ThreadSignal

Why = Literal["", "stop", "unsure", "lost", "timeout", "abandoned"]

# What a run was told to stop for, in the words of an error.
SENTENCES: dict[str, str] = {
    "stop": "this instance is stopping",
    "unsure": "the lease could not be renewed in time, so another instance may take the run over",
    "lost": "another instance holds the run now",
    "timeout": "the run has reached its timeout",
    "abandoned": "this instance has stopped and no longer renews the lease",
}
_WEIGHT: dict[str, int] = {"": 0, "stop": 1, "unsure": 1, "timeout": 2, "lost": 3, "abandoned": 3}
NOTE_LETTERS = 200


class Holding:
    """One attempt that this instance holds: the one object that keeper, runner and handler share.

    `sent` is written by the keeper's loop alone and read from any thread: the boot time at which the read was
    sent that the last accepted renewal rests on (R26).
    """

    def __init__(self, job: Job, slot: int, request: str, clock: Clock) -> None:
        self.job, self.slot, self.request, self.clock = job, slot, request, clock
        self.token, self.runner, self.reason = "", "", ""
        self.attempt = self.fence = 0
        self.sent = 0.0
        self.next_beat = 0.0
        self.why: Why = ""
        self.unsure = self.closing = self.recorded = self.over = self.began = False
        self.deadline: asyncio.TimerHandle | None = None
        self.settling: concurrent.futures.Future[Any] | None = None
        self.heard: asyncio.Future[Any] | None = None
        self.signal: ThreadSignal | LoopSignal = LoopSignal() if job.is_async else ThreadSignal()
        self.progress: Progress | None = None
        self.cancel: Any = lambda: None

    @property
    def key(self) -> tuple[str, int, str]:
        return self.job.name, self.slot, self.request

    def held(self) -> bool:
        """Computed at each call: true only while the lease can't have run out, by the clock that runs in sleep."""
        if self.job.lease_ms is None:
            return True
        if self.over or self.why in ("lost", "abandoned"):
            return False
        return self.clock.boot() - self.sent < provable(self.job.lease_ms)

    def abort(self, why: Why, cancel: bool = True) -> None:
        """Tell the handler to stop. The first reason stands; a timeout outweighs it, losing the run outweighs all."""
        if _WEIGHT[why] > _WEIGHT[self.why]:
            self.why = why
        self.signal.set()
        if cancel:
            self.cancel()


class Deeds(Protocol):
    """What a run may ask of its instance, from the handler's thread."""

    def on_engine(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Run a coroutine where the store is used; never call it from there."""
        ...

    async def begin(self, holding: Holding) -> Any:
        """Open a transaction for this attempt."""
        ...

    async def undo(self, holding: Holding, transaction: Any) -> None:
        """Roll it back; raises TransactionTooLong where its length had ended it."""
        ...

    async def settle(self, holding: Holding, transaction: Any, finish: bool, result: Any) -> None:
        """Commit it, if the run still has its token; raises LeaseLost or TransactionTooLong."""
        ...

    def put(self, key: str, fields: Mapping[str, Any]) -> str:
        """Put a todo on the application's board, once for the key; blocks."""
        ...


class Run:
    """One attempt of a run, as its handler sees it."""

    def __init__(self, holding: Holding, deeds: Deeds) -> None:
        self._holding, self._deeds = holding, deeds
        self._tz = holding.job.schedule.tz if holding.job.schedule else "UTC"
        self.job = holding.job.name
        """The job's name."""
        self.slot_ms = holding.slot
        """The slot in milliseconds since the epoch; of a manual run, when it was asked for."""
        self.attempt = holding.attempt
        """Which start of the run this is; 1 is the first."""
        self.reason = holding.reason
        """`schedule`, `catch-up`, `takeover` or `manual`."""
        self.token = holding.token
        """The random value of this attempt."""
        self.fence = holding.fence
        """A number per job that grows with every attempt, for outside systems that refuse a stale writer (R38)."""
        self.runner = holding.runner
        """The instance that runs it."""
        self.request = holding.request
        """The id of the wish for a manual run, else empty."""
        self._puts = 0
        self.log: logging.LoggerAdapter[logging.Logger] = _RunLog(
            logging.getLogger("tenure.run"),
            {
                "job": self.job,
                "slot": self.slot_ms,
                "attempt": self.attempt,
                "runner": self.runner,
                "token8": self.token[:8],
            },
        )

    @property
    def slot(self) -> datetime:
        """The slot as an aware datetime in the job's zone."""
        return self.slot_utc.astimezone(ZoneInfo(self._tz))

    @property
    def slot_utc(self) -> datetime:
        """The slot as an aware datetime in UTC."""
        return aware(self.slot_ms)

    @property
    def shifted(self) -> str:
        """`gap`, `overlap-first`, `overlap-second` where a clock change moved or doubled the slot, else "" (R34)."""
        meant = self._meant()
        return meant.shifted if meant else ""

    @property
    def local(self) -> str:
        """The local time that was meant, as ISO text without offset; empty for a manual run."""
        meant = self._meant()
        return meant.local if meant else ""

    def _meant(self) -> Slot | None:
        schedule = self._holding.job.schedule
        slot = schedule.previous(self.slot_ms) if schedule is not None and not self.request else None
        return slot if slot is not None and slot.at_ms == self.slot_ms else None

    @property
    def key(self) -> str:
        """A name for this run that is the same for every attempt: what to make effects idempotent by."""
        return run_key(self.job, self.slot_ms, self.request)

    @property
    def lost(self) -> Any:
        """The event that is set when this attempt should stop: true then; `wait()` is awaited in async handlers."""
        return self._holding.signal

    def held(self) -> bool:
        """Whether the lease is surely still this attempt's, by this instance's own reckoning (R26)."""
        return self._holding.held()

    def check(self) -> None:
        """Raise LeaseLost if this attempt should stop or can't be sure of its lease. Call it before each effect."""
        holding = self._holding
        if holding.signal.is_set():
            raise LeaseLost(f"{self.key}, attempt {self.attempt}: {SENTENCES.get(holding.why, 'it should stop')}.")
        if not holding.held():
            raise LeaseLost(f"{self.key}, attempt {self.attempt}: {SENTENCES['unsure']}.")

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far it is; shown with the run from the next heartbeat on. `note`: at most 200 characters.

        Raises ConfigError for what is no finite number.
        """
        text = str(note)[:NOTE_LETTERS].encode("utf-8", "replace").decode()
        least = None if total is None else _number("total", total)
        self._holding.progress = Progress(_number("done", done), least, text)

    async def put(self, title: str, **fields: Any) -> str:
        """Put a todo on the application's board; its id. Once per slot and call, however often the run is started.

        fields: those of the board's `create_todo`: `to` (an endpoint's slug; default: the credential's own), `queue`,
        `body`, `payload`, `priority`. The calls of a run are counted, so its handler makes them in the same order each
        time. For sync handlers there is `put_now`. Raises ConfigError without a board, and the client's errors.
        """
        key = self._next_put()  # here, not on a thread: of calls that are gathered each keeps its number
        return await asyncio.to_thread(self._deeds.put, key, {"title": title, **fields})

    def put_now(self, title: str, **fields: Any) -> str:
        """The same for sync handlers; blocks."""
        return self._deeds.put(self._next_put(), {"title": title, **fields})

    def _next_put(self) -> str:
        self._puts += 1
        return f"{self.key}#{self._puts}"

    def transaction(self, *, finish: bool = False, result: Any = None) -> RunTransaction:
        """A transaction of the store's database that commits only if the run still has its token (R39).

        `async with` in async handlers, `with` in sync ones; gives the driver's connection. With `finish` the
        run's success, and its result, are recorded in the same transaction: both or neither. Raises ConfigError
        for a result that is no JSON of at most 64 KiB.
        """
        if result is not None and (why := complaint(result)):
            raise ConfigError("result", result, why)
        return RunTransaction(self._holding, self._deeds, finish, result)

    def __repr__(self) -> str:
        return f"<Run {self.key} attempt {self.attempt}>"


class RunTransaction:
    """One use of `run.transaction()`."""

    def __init__(self, holding: Holding, deeds: Deeds, finish: bool, result: Any) -> None:
        self._holding, self._deeds, self._finish, self._result = holding, deeds, finish, result
        self._transaction: Any = None

    async def _begin(self) -> Any:
        self._transaction = await self._deeds.begin(self._holding)
        return self._transaction.connection

    async def _end(self, failed: bool) -> None:
        if failed:
            await self._deeds.undo(self._holding, self._transaction)
        else:
            await self._deeds.settle(self._holding, self._transaction, self._finish, self._result)

    def _ending(self, failed: bool) -> concurrent.futures.Future[Any]:
        """End it on the engine; the runner waits for that before it concludes, also if the handler was cancelled."""
        self._holding.settling = self._deeds.on_engine(self._end(failed))
        return self._holding.settling

    def _unwanted(self, begun: concurrent.futures.Future[Any]) -> None:
        """Whoever asked was cancelled meanwhile: what has begun all the same is undone."""
        if not begun.cancelled() and begun.exception() is None:
            with contextlib.suppress(LeaseLost):  # the instance has stopped, and has undone it
                self._deeds.on_engine(self._end(failed=True))

    async def __aenter__(self) -> Any:
        begun = self._deeds.on_engine(self._begin())
        try:
            return await asyncio.shield(asyncio.wrap_future(begun))
        except asyncio.CancelledError:
            begun.add_done_callback(self._unwanted)
            raise

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await asyncio.shield(asyncio.wrap_future(self._ending(kind is not None)))

    def __enter__(self) -> Any:
        return self._deeds.on_engine(self._begin()).result()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ending(kind is not None).result()


class _RunLog(logging.LoggerAdapter[logging.Logger]):
    """Every line of a handler carries which attempt it is of."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(name, value, "is no finite number; say how much is done, and of how much.")
    return value


def run_key(job: str, slot: int, request: str = "") -> str:
    """The name of a run among all jobs: `report@2026-12-01T01:30:00Z`, with `#` and the wish for a manual one."""
    return f"{job}@{iso(slot)}" + (f"#{request}" if request else "")
