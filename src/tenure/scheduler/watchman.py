"""Goes its round: sees wishes, pauses and orphans, hears hints, feels the pulse of the handlers' loop, prunes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from tenure.errors import StoreUnavailable
from tenure.rules import commands as c
from tenure.scheduler.catchup import CatchUp
from tenure.scheduler.claims import LATE_TWICE, Claims, Wish
from tenure.scheduler.jobs import Job
from tenure.scheduler.ledger import Order, Page
from tenure.scheduler.presence import Presence
from tenure.scheduler.run import Holding
from tenure.scheduler.shared import NAP, Alarm
from tenure.stores.contract import Ask

# Wishes and pauses are seen at least this often (R36, R37), old records pruned this often; milliseconds.
ROUND: Final = 5_000.0
PRUNE: Final = 60_000.0
COURTESY: Final = 1_000.0
MARKS_LEAST: Final = 1_000
MARKS_PER_RECORD: Final = 10


class Watchman:
    """What an instance must notice although nobody calls."""

    def __init__(
        self,
        *,
        jobs: Mapping[str, Job],
        started: asyncio.Event,
        claims: Claims,
        catchup: CatchUp,
        presence: Presence,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.jobs, self.started, self.claims, self.catchup, self.presence = jobs, started, claims, catchup, presence
        self.shared, self.ledger, self.keeper, self.runner = claims.shared, claims.ledger, claims.keeper, claims.runner
        self._spawn = spawn
        self.recovery_due = False
        self._paused: set[str] = set()
        self._round_due = Alarm()
        self._hinted: set[str] = set()
        self._prune_at = self.shared.clock.boot() + PRUNE * self.shared.chance.draw()
        self._stalled_since: float | None = None

    async def round(self) -> None:
        """Every five seconds, and at once for jobs that a hint names."""
        await self.started.wait()
        due = self.shared.clock.boot() + ROUND
        while True:
            await self.shared.until(due, self._round_due)
            boot = self.shared.clock.boot()
            names, self._hinted = self._hinted, set()
            jobs, whole = self.jobs, boot >= due
            if whole:
                due = boot + ROUND
                names = set(jobs)
            if self.recovery_due or self.claims.gave_up:
                await self.recover()
            if not names and not whole:
                continue
            try:
                if known := [jobs[name] for name in sorted(names) if name in jobs]:
                    await self._look(known)
                await self.presence.write()  # without jobs too: they may be given to it later
                if boot >= self._prune_at:
                    self._prune_at = boot + PRUNE
                    if jobs:
                        await self._prune()
                    await self.presence.sweep()
            except StoreUnavailable:
                pass  # told as store-down; the next round comes

    def recover_soon(self) -> None:
        """At once, before a newer slot is won and nobody asks any more what lay between."""
        self.recovery_due = True
        self._round_due.set()

    async def recover(self) -> None:
        """R28a: judge, and look at every job as on start; again on the next round if the store can't be reached."""
        self.recovery_due = self.claims.gave_up = False
        self.keeper.judge()
        try:
            await self.catchup.recover(list(self.jobs.values()))
        except StoreUnavailable:
            self.recovery_due = True

    async def _look(self, jobs: list[Job]) -> None:
        """Read the jobs' documents: wishes are claimed, a resume is caught up, orphans are watched."""
        now, pages = await self.ledger.pages([Ask(job.document) for job in jobs])
        wishes: list[Wish] = []
        resumed: list[Job] = []
        for job, page in zip(jobs, pages, strict=True):
            if page.unreadable:
                self.shared.warn(page.unreadable)
                continue
            if page.job.paused is not None:
                self._paused.add(job.name)
            elif job.name in self._paused or job.name in self.claims.paused:
                self._paused.discard(job.name)
                self.claims.paused.discard(job.name)
                resumed.append(job)
            wishes += [Wish(job, wish.at, "manual", wish.id) for wish in page.job.requests]
            self._adopt(job, page, now)
        if wishes:
            self._spawn(self.claims.make(wishes))
        if resumed:
            await self.catchup.recover(resumed)

    def _adopt(self, job: Job, page: Page, now: int) -> None:
        """Runs that nobody here looks after, whatever became of the answer that would have told of them."""
        keeper = self.keeper
        if not page.job.runs:
            return
        latest = job.schedule.previous(now) if job.schedule is not None else None
        for run in page.job.runs:
            key = (job.name, run.slot, run.request)
            # A run that ran out while a newer slot is due is left: the next one won ends it (R29). Not where the job
            # has become claim-only: no win ends another run then, but asking for what a lease left does (R46).
            superseded = not run.request and latest is not None and latest.at_ms > run.slot
            left = superseded and not run.lease.live(now) and job.lease_ms is not None
            if key not in keeper.holdings and key not in keeper.watches and not left:
                keeper.watch(job, run.slot, run.request, run.lease.until, of=run.lease.holder)

    async def _prune(self) -> None:
        """R11, R12: delete what lies beyond each job's limits."""
        jobs = list(self.jobs.values())
        asks = [
            Ask(job.document, beyond=(job.history, max(MARKS_LEAST, MARKS_PER_RECORD * job.history))) for job in jobs
        ]
        _, pages = await self.ledger.pages(asks)
        orders = [
            Order(job.name, c.Prune(tuple(c.Head(*head) for head in page.found.heads), page.found.marks_until))
            for job, page in zip(jobs, pages, strict=True)
            if page.found.heads or page.found.marks_until is not None
        ]
        if orders:
            await self.ledger.ask(orders)

    async def listen(self) -> None:
        """Hints wake backups and the round at once; the timers stay."""
        await self.started.wait()
        async for documents in self.ledger.store.watch():
            self.keeper.hint(documents)
            self._hinted |= {name.removeprefix("job:") for name in documents}
            self._round_due.set()

    async def pulse(self) -> None:
        """Notice having slept, and a handlers' loop that is blocked (R23, R28a)."""
        slept_over = min((job.heartbeat_ms for job in self.jobs.values()), default=5_000)
        while True:
            playing = self._async_runs()
            nap = min(NAP * 1000, min((one.job.heartbeat_ms for one in playing), default=2 * NAP * 1000) / 2)
            before = self.shared.clock.boot()
            await self.shared.until(before + nap)
            if self.shared.clock.boot() - before > nap + slept_over:
                self.keeper.judge()
                self.recover_soon()
            self.runner.forsake()
            if playing and self._stalled_since is None:
                self._ping(playing)

    def hampered_ms(self, job: Job) -> float:
        """How long to let others go first: while the handlers' loop here is blocked, what is won would only wait."""
        if not job.is_async or self._stalled_since is None or job.schedule is None:
            return 0.0
        if self.shared.clock.boot() - self._stalled_since <= job.heartbeat_ms:
            return 0.0
        return min(COURTESY, job.schedule.smallest_gap_ms() / 2, job.max_late_ms / 2)

    def _async_runs(self) -> list[Holding]:
        playing = (holding for holding, _ in self.runner.playing.values())
        return [one for one in playing if one.job.is_async]

    def _ping(self, playing: list[Holding]) -> None:
        sent = self._stalled_since = self.shared.clock.boot()

        def pong() -> None:
            self._stalled_since = None
            blocked = self.shared.clock.boot() - sent
            for one in playing:
                if blocked > one.job.heartbeat_ms:
                    self.shared.emit(
                        "stalled", one.job.name, one.slot, one.request, one.attempt, blocked_ms=round(blocked)
                    )

        self.shared.stage.ping(pong)

    def reasons(self) -> Iterable[str]:
        """What is wrong, one sentence each."""
        shared = self.shared
        boot = shared.clock.boot()
        if self._stalled_since is not None and boot - self._stalled_since > 2 * NAP * 1000:
            blocked = (boot - self._stalled_since) / 1000
            yield f"the handlers' loop is blocked since {blocked:.0f} s; leases are kept, but handlers don't move"
        if shared.store_clock.behind():
            yield "the store's clock went back; nothing repeats, and slots wait until it has caught up"
        for name, times in self.claims.late.items():
            if times >= LATE_TWICE:
                yield f"{name} was refused as late {times} times in a row"
        offset = abs(shared.store_clock.offset())
        tightest = min((job.max_late_ms for job in self.jobs.values()), default=60_000)
        if offset > max(tightest / 2, 1_000):
            yield f"this machine's clock is {offset / 1000:.1f} s from the store's; set it right"
        overdue = [one.key for one, _ in self.runner.playing.values() if one.why == "timeout"]
        for key in overdue:
            yield f"{key[0]} runs beyond its timeout and can't be stopped"
