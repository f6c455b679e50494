"""One process that runs a scheduler: it starts and stops the offices, and says how it is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tenure.errors import StoreError, StoreUnavailable
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.scheduler.catchup import CatchUp
from tenure.scheduler.claims import Claims
from tenure.scheduler.clockwork import Clockwork
from tenure.scheduler.effects import Effects
from tenure.scheduler.events import Events
from tenure.scheduler.jobs import Job
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.lane import Lane
from tenure.scheduler.ledger import Ledger, Order
from tenure.scheduler.onestore import OneStore
from tenure.scheduler.presence import Presence, default_name
from tenure.scheduler.results import short
from tenure.scheduler.runner import Runner
from tenure.scheduler.seams import Chance, Clock, Stage, SystemChance, SystemClock
from tenure.scheduler.shared import NAP, Alarm, Shared
from tenure.scheduler.watchman import Watchman

log = logging.getLogger("tenure")

# How long a restarted task keeps health() red, in milliseconds.
REMEMBERED: Final = 300_000.0
CLOCK_TOLD: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class Health:
    """How an instance is. `reasons`: one sentence for each thing that is wrong; none where ok."""

    ok: bool
    reasons: tuple[str, ...]
    store_offset_ms: float
    turned_seconds_ago: float


class Instance:
    """Everything here runs on the loop that calls `start`; handlers run on the stage."""

    def __init__(
        self,
        jobs: Iterable[Job],
        store: OneStore,
        stage: Stage,
        *,
        name: str | None = None,
        version: str = "",
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        chance = chance or SystemChance()
        self.jobs = {job.name: job for job in jobs}
        self.name = name or default_name(chance.token())
        self.events = Events(self.name, stage.deliver)
        self.shared = Shared(clock or SystemClock(), chance, stage, self.events)
        self._one_store = store
        self.ledger = Ledger(store.store(), self.shared.store_clock, self._stepped, self._reached)
        self.keeper = Keeper(self.shared, self.ledger)
        self.effects = Effects(self.shared, self.ledger)
        self.runner = Runner(self.shared, self.keeper, Lane(self.ledger), self.effects)
        self.claims = Claims(self.shared, self.ledger, self.keeper, self.runner, self.jobs)
        self.catchup = CatchUp(self.shared, self.ledger, self.keeper, self.claims, self.spawn)
        self.presence = Presence(self.shared, self.ledger, version, self._facts)
        self.keeper.won = self.runner.start
        self.keeper.troubled = self._troubled
        self.runner.changed = self._run_over
        self.runner.deserted = self._deserted
        self._left = False
        self.started = asyncio.Event()
        self.settled = asyncio.Event()
        self.watchman = Watchman(
            jobs=self.jobs,
            started=self.started,
            claims=self.claims,
            catchup=self.catchup,
            presence=self.presence,
            spawn=self.spawn,
        )
        self.clockwork = Clockwork(self.shared, self.claims, self.jobs.values(), self.watchman, self.spawn)
        self.refused: StoreError | None = None
        self._run_ended = Alarm()
        self._tasks: list[asyncio.Task[None]] = []
        self.spawned: set[asyncio.Task[None]] = set()
        self._faults: dict[str, tuple[float, str]] = {}
        self._down: tuple[float, StoreError] | None = None
        self._clock_told = 0.0
        self.stopped = False

    # --- start and stop ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. Returns at once; a store that can't be reached yet is tried again, visible in `health()`.

        `settled` is set once it has `started`, or has failed to for the first time; `refused` holds an error
        of the store that won't get better by waiting.
        """
        self.effects.loop = asyncio.get_running_loop()
        offices: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "keeper's heartbeats": self.keeper.beat,
            "keeper's checks": self.keeper.look,
            "watchman's round": self.watchman.round,
            "watchman's pulse": self.watchman.pulse,
            "watchman's ear": self.watchman.listen,
            "clockwork": self._work,
        }
        self._tasks = [asyncio.create_task(self._supervise(name, make)) for name, make in offices.items()]

    async def _work(self) -> None:
        if self.started.is_set():  # it died and is restarted: what it may have lost is looked for
            self.clockwork.set_out()
            self.watchman.recover_soon()
        await self._set_out()
        await self.clockwork.turn()

    def _deserted(self) -> None:
        """The loop that handlers run on was closed without stop(): claim nothing more, so that others may."""
        if not self._left:
            self._left = True
            self.keeper.quiet()
            self.shared.warn(
                "the loop that handlers run on was closed without stop(); nothing is started here any more"
            )

    async def _set_out(self) -> None:
        """Register, recover, and only then begin with the slots (R29, R29a)."""
        tries = 0
        while not self.started.is_set():
            try:
                _, warnings = await self._one_store.opened()
                for sentence in warnings:
                    self.shared.warn(sentence)
                known = dict(self.jobs)
                await self._register(list(known.values()))
                self.clockwork.set_out()
                await self.catchup.recover(list(known.values()))
                while late := [job for job in self.jobs.values() if known.get(job.name) is not job]:  # put meanwhile
                    await self._register(late, known=tuple(known))
                    known |= {job.name: job for job in late}
                    await self.catchup.recover(late)
                self.started.set()
                await self.presence.write(now=True)  # after the start, or its first page would say that it has not
                self.settled.set()
            except StoreError as error:
                first = not self.settled.is_set()
                self.settled.set()
                if first and not isinstance(error, StoreUnavailable):
                    self.refused = error  # who starts us raises it: it is told once
                    raise
                self._reached(error)
                if not isinstance(error, StoreUnavailable):
                    raise
                tries += 1
                await asyncio.sleep(timers.backoff(tries, self.shared.chance.draw()) / 1000)

    async def put_job(self, job: Job) -> None:
        """Run this job from now on, in place of the one of its name; what runs already runs on.

        Raises StoreError where it can't be registered; then nothing has changed.
        """
        if self.started.is_set():
            await self._register([job], known=tuple(self.jobs))
        self.jobs[job.name] = job
        self.clockwork.put(job)
        if self.started.is_set():
            try:
                await self.catchup.recover([job])
            except StoreUnavailable:
                self.watchman.recover_soon()

    async def drop_job(self, name: str) -> None:
        """Start no more runs of a job here; what runs already runs on, and is looked after."""
        self.jobs.pop(name, None)
        self.clockwork.drop(name)

    async def _register(self, jobs: Sequence[Job], *, known: Collection[str] = ()) -> None:
        """R29a. `known`: the names that have a definition here; those are changed on purpose, which is no drift."""
        orders = [Order(job.name, c.Register(*_definition(job), job.bound_ms, job.name in known)) for job in jobs]
        for job, answered in zip(jobs, await self.ledger.ask(orders), strict=True):
            if isinstance(answered.answer, c.Registered) and answered.answer.drift and job.name not in known:
                self.shared.emit("drift", job.name, why="the options differ from those another instance told")

    async def stop(self, timeout: float = 20.0) -> None:  # noqa: ASYNC109 - it bounds the handlers, not this call
        """No new claims; running handlers are handed over, finished or left (R27). Ends within timeout + 2 s."""
        deadline = self.shared.clock.boot() + timeout * 1000
        self.runner.stopping = True
        self.keeper.quiet()
        for task in self._tasks:
            if not task.get_name().startswith("keeper's"):
                task.cancel()
        for holding, _ in tuple(self.runner.playing.values()):
            # One that only waits for a thread is withdrawn and handed over at once.
            holding.abort("stop", cancel=not holding.began and not holding.job.is_async and bool(holding.job.lease_ms))
        # Claims under way may still win; what they win is given back unrun.
        await self._until_quiet(deadline - 1000, lambda: not (self.runner.playing or self._asking()))
        for holding, _ in tuple(self.runner.playing.values()):
            holding.cancel()
        await self._until_quiet(deadline, lambda: not self.runner.playing)
        for holding, task in tuple(self.runner.playing.values()):
            holding.abort("abandoned", cancel=False)
            self.keeper.drop(holding)
            self.shared.emit("abandoned", holding.job.name, holding.slot, holding.request, holding.attempt)
            task.cancel()
        await self._end_tasks()
        self.stopped = True

    def _asking(self) -> int:
        return self.claims.asking + self.keeper.asking

    async def _until_quiet(self, boot: float, quiet: Callable[[], bool]) -> None:
        while not quiet() and self.shared.clock.boot() < boot:
            await self.shared.until(min(boot, self.shared.clock.boot() + 100), self._run_ended)

    async def _end_tasks(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self.presence.remove()
        except TimeoutError:
            pass
        ending = [*self._tasks, *self.spawned]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self.shared.stage.close()

    def _run_over(self) -> None:
        self._run_ended.set()

    # --- tasks ------------------------------------------------------------------------------------------

    async def _supervise(self, name: str, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """An inner task that dies is restarted, and `health()` says so (R28a)."""
        task = asyncio.current_task()
        if task is not None:
            task.set_name(name)
        tries = 0
        while True:
            try:
                await make()
                return
            except Exception as error:  # noqa: BLE001 - whatever it died of, it is told and restarted
                tries += 1
                if error is not self.refused and not isinstance(error, StoreUnavailable):  # that is told as store-down
                    self._troubled(name, error)
                await asyncio.sleep(timers.backoff(tries, self.shared.chance.draw()) / 1000)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task that ends by itself; what goes wrong in it is told, never swallowed."""
        task = asyncio.create_task(work)
        self.spawned.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.spawned.discard(task)
        self._run_ended.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._troubled("a claim", error)

    def _troubled(self, name: str, error: BaseException) -> None:
        """A fault of ours is logged whole; told in a sentence, and health() says so for a while."""
        if not isinstance(error, StoreError):
            log.error("%s of %s died and is restarted", name, self.name, exc_info=error)
        self._faults[name] = (self.shared.clock.boot(), short(error))
        self.shared.warn(f"{name} died and was restarted: {short(error)}")

    # --- what is told -----------------------------------------------------------------------------------

    def _stepped(self, step: float) -> None:
        if abs(step) < CLOCK_TOLD:
            return
        way = "forward" if step > 0 else "back"
        self.shared.emit("clock", why=f"the store's clock stepped {way}", by_ms=round(step))
        self.watchman.recover_soon()
        if self.started.is_set():
            self.clockwork.set_out()

    def _reached(self, error: StoreError | None) -> None:
        """The store answered, or did not: tell the change, and recover after an outage."""
        boot = self.shared.clock.boot()
        if error is None:
            if self._down is not None:
                since, _ = self._down
                self._down = None
                self.claims.ups += 1
                self.shared.emit("store-up", down_ms=round(boot - since))
                if boot - since > min((job.heartbeat_ms for job in self.jobs.values()), default=5_000):
                    self.watchman.recover_soon()
            self._tell_offset()
        elif self._down is None:
            self._down = (boot, error)
            self.shared.emit("store-down", why=str(error))

    def _tell_offset(self) -> None:
        offset = self.shared.store_clock.offset()
        if abs(offset - self._clock_told) > max(CLOCK_TOLD, abs(self._clock_told)):  # told again when it has doubled
            self._clock_told = offset
            self.shared.emit("clock", why="this machine's clock differs from the store's", by_ms=round(offset))

    def _facts(self) -> dict[str, Any]:
        health = self.health()
        return {
            "offset_ms": round(health.store_offset_ms),
            "jobs": sorted(self.jobs),
            "running": [list(holding.key) for holding, _ in self.runner.playing.values()],
            "backups": len(self.keeper.watches),
            "ok": health.ok,
            "reasons": list(health.reasons),
        }

    def health(self) -> Health:
        """Whether this instance does its work, and what is wrong if not."""
        boot = self.shared.clock.boot()
        reasons = []
        if self._down is not None:
            reasons.append(f"the store can't be reached since {(boot - self._down[0]) / 1000:.0f} s: {self._down[1]}")
        if self._left:
            reasons.append("the loop that handlers run on was closed; call stop() before its end")
        elif self.runner.stopping:
            reasons.append("it is stopping")
        if not self.started.is_set() and self._tasks:
            reasons.append("it has not started yet: the jobs are not registered in the store")
        for name, (at, error) in self._faults.items():
            if boot - at < REMEMBERED:
                reasons.append(f"{name} died {(boot - at) / 1000:.0f} s ago and was restarted: {error}")
        turned = boot - self.clockwork.turned_at
        if self.started.is_set() and not self.runner.stopping and turned > 2 * NAP * 1000 + 500:
            reasons.append(f"the loop that starts runs has not turned for {turned / 1000:.0f} s")
        reasons += self.watchman.reasons()
        offset = self.shared.store_clock.offset()
        return Health(not reasons, tuple(reasons), offset, turned / 1000)


def _definition(job: Job) -> tuple[str, str, str]:
    schedule = job.schedule.identity if job.schedule is not None else ""
    return schedule, job.fingerprint(), json.dumps(job.told(), separators=(",", ":"), sort_keys=True)
