"""On start, on waking and after an outage: what is unfinished, what is due, what was missed (R29, R28a)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tenure.errors import StoreError
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.rules.job import run_id
from tenure.scheduler.claims import Claims, Wish
from tenure.scheduler.jobs import Job
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.ledger import Ledger, Order, Page
from tenure.scheduler.shared import NAP, Shared
from tenure.stores.contract import Ask


class CatchUp:
    """What an instance recovers, for all its jobs in one read."""

    def __init__(
        self,
        shared: Shared,
        ledger: Ledger,
        keeper: Keeper,
        claims: Claims,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.shared, self.ledger, self.keeper, self.claims, self._spawn = shared, ledger, keeper, claims, spawn
        self._one_at_a_time = asyncio.Lock()
        self._open: set[tuple[str, int]] = set()
        self._told: dict[str, int] = {}

    async def recover(self, jobs: Sequence[Job]) -> None:
        """R29 (1) and (2), and the ranges nobody spoke of (R36a). Raises StoreError; harmless to repeat."""
        async with self._one_at_a_time:  # the second sees what the first has recorded
            await self._recover_all(jobs)

    async def _recover_all(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        reckoned = int(self.shared.store_clock.now())
        latest = [_latest(job, reckoned) for job in jobs]
        asks = [
            Ask(job.document, (run_id(slot),) if slot is not None else (), before=slot)
            for job, slot in zip(jobs, latest, strict=True)
        ]
        now, pages = await self.ledger.pages(asks)
        missed: list[tuple[Job, int, int]] = []
        catch: list[Wish] = []
        for job, reckoned_slot, page in zip(jobs, latest, pages, strict=True):
            ahead = reckoned_slot is not None and reckoned_slot > now  # the estimate was ahead of the store
            slot = _latest(job, now) if ahead else reckoned_slot
            if page.unreadable:
                self.shared.warn(page.unreadable)
                continue
            found = self._recovery(job, slot, page, now)
            for run in found.watch:
                self.keeper.watch(job, run.slot, run.request, run.lease.until, of=run.lease.holder)
            for run in found.take:
                self.keeper.watch(job, run.slot, run.request, None, soon=True)
            if found.catch_up is not None:
                catch.append(Wish(job, found.catch_up, "catch-up"))
            if found.missed is not None:
                missed.append((job, *found.missed))
            if found.open is not None and (job.name, found.open) not in self._open:
                self._open.add((job.name, found.open))
                self._spawn(self._close(job, found.open))
        await self._tell(missed)
        draw = self.shared.chance.draw()
        batches: defaultdict[int, list[Wish]] = defaultdict(list)
        for wish in catch:
            batches[int(draw * wish.job.jitter_ms // timers.GRID)].append(wish)
        for wishes in batches.values():
            self._spawn(self._jittered(wishes, min(draw * one.job.jitter_ms for one in wishes)))

    def _recovery(self, job: Job, slot: int | None, page: Page, now: int) -> timers.Recovery:
        past = page.past.get(run_id(slot)) if slot is not None else None
        return timers.recovery(
            page.job,
            slot,
            past,
            page.found.last,
            now,
            schedule=job.schedule.identity if job.schedule is not None else "",
            catch_up_ms=job.catch_up_ms,
            max_late_ms=job.max_late_ms,
        )

    async def _tell(self, ranges: Sequence[tuple[Job, int, int]]) -> None:
        """Mark these ranges as missed. One whose first slot was marked by others meanwhile is left out whole, as a mark
        is (`Mark`): what lies behind theirs is marked anew.
        """
        while orders := [order for job, after, until in ranges for order in self._missed(job, after, until)]:
            await self.ledger.ask(orders)
            _, pages = await self.ledger.pages([Ask(job.document, before=until + 1) for job, _, until in ranges])
            ranges = [
                (job, page.found.last, until)
                for (job, after, until), page in zip(ranges, pages, strict=True)
                if page.found.last is not None and page.found.last > after
            ]

    def _missed(self, job: Job, after: int, until: int) -> list[Order]:
        """The range as a command, with its true first and last slot."""
        if job.schedule is None:
            return []
        first, last = job.schedule.next(after), job.schedule.previous(until)
        if first is None or last is None or first.at_ms > last.at_ms:
            return []
        count = job.schedule.count(after, until)
        if last.at_ms > self._told.get(job.name, -1):  # else it is told of by us: the next recovery finds it once more
            self._told[job.name] = last.at_ms
            self.shared.emit("missed", job.name, last.at_ms, first=first.at_ms, count=count, why="nobody was there")
        return [Order(job.name, c.Missed(first.at_ms, last.at_ms, count, self.shared.events.runner))]

    async def _close(self, job: Job, slot: int) -> None:
        """Once nobody may claim this slot any more, say that it was missed, if nobody did and nobody has said why."""
        after = job.schedule.next(slot) if job.schedule is not None else None
        following = after.at_ms if after is not None else None
        clock, tries = self.shared.store_clock, 0
        while not timers.given_up(slot, following, clock.now(), job.max_late_ms, job.catch_up_ms):
            await self.shared.until(self.shared.clock.boot() + NAP * 1000)
        while (job.name, slot) in self._open:
            try:
                _, (page,) = await self.ledger.pages([Ask(job.document, (run_id(slot),), before=slot + 1)])
                if not (page.past or page.job.find(slot, "") or slot in (page.job.newest, page.found.last)):
                    await self.ledger.ask(self._missed(job, slot - 1, slot))
                self._open.discard((job.name, slot))
            except StoreError:
                tries += 1
                await asyncio.sleep(timers.backoff(tries, self.shared.chance.draw()) / 1000)

    async def _jittered(self, wishes: list[Wish], wait_ms: float) -> None:
        """Wait the jobs' own jitter, then claim (R29): of several instances that start together one comes first."""
        await asyncio.sleep(wait_ms / 1000)
        await self.claims.make(wishes)


def _latest(job: Job, now: int) -> int | None:
    slot = job.schedule.previous(now) if job.schedule is not None else None
    return slot.at_ms if slot is not None else None
