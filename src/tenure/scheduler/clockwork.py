"""Sleep to the next slot by the store's clock, wait the jitter, claim. One loop for all jobs."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from tenure.rules import timers
from tenure.rules.runs import TOLERANCE
from tenure.rules.timers import GRID
from tenure.scheduler.claims import Claims, Wish
from tenure.scheduler.jobs import Job
from tenure.scheduler.shared import Alarm, Shared
from tenure.scheduler.watchman import Watchman


class Clockwork:
    """The slots of one instance's jobs; what was slept over is the watchman's to recover (R28a)."""

    def __init__(
        self,
        shared: Shared,
        claims: Claims,
        jobs: Iterable[Job],
        watchman: Watchman,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.shared, self.claims, self._watchman, self._spawn = shared, claims, watchman, spawn
        self.jobs = {job.name: job for job in jobs if job.schedule is not None}
        self.turned_at = shared.clock.boot()
        self._heap: list[tuple[int, int, Job]] = []
        self._before: dict[str, int] = {}
        self._changed = Alarm()
        self._places = itertools.count()  # jobs that are due together keep their order
        self._sleepy_ms = self._sleepy()

    def _sleepy(self) -> int:
        """Later than this after its slot, a turn of the loop counts as having slept."""
        return min([5_000, *(job.heartbeat_ms for job in self.jobs.values())])

    def set_out(self) -> None:
        """Begin at the slots after now."""
        now = int(self.shared.store_clock.now())
        self._heap = []
        for job in self.jobs.values():
            self._push(job, now)
        self._changed.set()

    def put(self, job: Job) -> None:
        """Begin with a job, or go on with its new definition, at its slots after now; the others stay as they are.

        A slot that is due already and was not seen to yet is claimed as it was defined then.
        """
        now = int(self.shared.store_clock.now())
        due = [one for one in self._heap if one[2].name == job.name and one[0] <= now]
        self.drop(job.name)
        for one in due:
            heapq.heappush(self._heap, one)
        if job.schedule is not None:
            self.jobs[job.name] = job
            self._sleepy_ms = self._sleepy()
            self._push(job, now)
        self._changed.set()

    def drop(self, name: str) -> None:
        """Start no more slots of a job."""
        self.jobs.pop(name, None)
        self._before.pop(name, None)
        self._heap = [one for one in self._heap if one[2].name != name]
        heapq.heapify(self._heap)

    def _push(self, job: Job, after: int) -> None:
        slot = job.schedule.next(after) if job.schedule is not None else None
        if slot is not None:
            heapq.heappush(self._heap, (slot.at_ms, next(self._places), job))

    async def turn(self) -> None:
        """The loop."""
        while True:
            self.turned_at = self.shared.clock.boot()
            due = self.shared.store_clock.boot_of(self._heap[0][0]) if self._heap else self.turned_at + 60_000
            if due > self.turned_at:
                await self.shared.until(due, self._changed)
                continue
            now = self.shared.store_clock.now()
            slept = now - self._heap[0][0] > self._sleepy_ms
            if self._claim_due(now) or slept:
                await self._watchman.recover()

    def _claim_due(self, now: float) -> bool:
        """Start the claims of what is due: one draw per instant, claims of 50 ms in one call (R19).

        Never one by one through what was slept over: of several slots of a job only the latest is claimed, and
        one that is too late for an ordinary claim is left to catch-up. Returns whether any slot was passed over.
        """
        passed_over = False
        batches: defaultdict[int, list[tuple[float, Wish]]] = defaultdict(list)
        draws: dict[int, float] = {}
        while self._heap and self._heap[0][0] <= now:
            due, place, job = self._heap[0]
            current = self.jobs.get(job.name) is job  # else it was defined anew: its next slots are those of that
            after = job.schedule.next(int(now)) if job.schedule is not None and current else None
            slot = self._latest(job, due, now)
            if after is not None:
                heapq.heapreplace(self._heap, (after.at_ms, place, job))
            else:
                heapq.heappop(self._heap)
            passed_over |= slot != due
            if now - slot > job.max_late_ms + TOLERANCE:
                passed_over = True
                continue
            draw = draws.setdefault(slot, self.shared.chance.draw())
            at = timers.claim_at(slot, job.jitter_ms, draw) + self._watchman.hampered_ms(job)
            before = self._before.get(job.name) if slot == due else None
            batches[int(at // GRID)].append((at, Wish(job, slot, "schedule", before=before)))
            self._before[job.name] = slot
        for wishes in batches.values():
            self._spawn(self._claim(min(at for at, _ in wishes), [wish for _, wish in wishes]))
        return passed_over

    def _latest(self, job: Job, due: int, now: float) -> int:
        if job.schedule is None or now - due < job.schedule.smallest_gap_ms():
            return due
        latest = job.schedule.previous(int(now))
        return max(due, latest.at_ms) if latest is not None else due

    async def _claim(self, at: float, wishes: list[Wish]) -> None:
        boot = self.shared.store_clock.boot_of(max(at, *(one.slot for one in wishes), 0))
        while self.shared.clock.boot() < boot:
            await self.shared.until(boot)
        await self.claims.make(wishes)
