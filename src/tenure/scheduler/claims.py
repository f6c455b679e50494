"""Put claims of new runs to the store, and hand each answer on: won to the runner, held to the keeper (R20)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tenure.errors import StoreError
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.rules.job import Reason
from tenure.rules.runs import TOLERANCE
from tenure.scheduler.jobs import Job
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.ledger import Answered, Ledger, Order
from tenure.scheduler.runner import Runner
from tenure.scheduler.shared import Shared

LATE_TWICE: Final = 2
# How many wishes that wait are remembered as told of.
REMEMBERED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Wish:
    """One claim to be made: of a slot or of a manual request. `before`: the slot before, if known."""

    job: Job
    slot: int
    reason: Reason
    request: str = ""
    before: int | None = None


class Claims:
    """The claims of one instance."""

    def __init__(self, shared: Shared, ledger: Ledger, keeper: Keeper, runner: Runner, jobs: Mapping[str, Job]) -> None:
        self.shared, self.ledger, self.keeper, self.runner, self.jobs = shared, ledger, keeper, runner, jobs
        self.late: Counter[str] = Counter()
        self.paused: set[str] = set()
        self.under_way: set[tuple[str, int, str]] = set()
        self.asking = 0
        self.gave_up = False
        self.ups = 0
        self._told: set[tuple[str, str, str]] = set()

    async def make(self, wishes: list[Wish]) -> None:
        """Claim all of these in as few calls as possible, again and again until each is answered or hopeless."""
        fresh = [one for one in wishes if (one.job.name, one.slot, one.request) not in self.under_way]
        keys = {(one.job.name, one.slot, one.request) for one in fresh}
        self.under_way |= keys
        try:
            await self._make([(wish, self._claim(wish)) for wish in fresh])
        finally:
            self.under_way -= keys

    async def _make(self, claims: list[tuple[Wish, c.Claim]]) -> None:
        self.asking += 1
        claims = [(wish, claim) for wish, claim in claims if wish.job.name in self.jobs]  # dropped since?
        try:
            early = await self._until_answered(claims)
        finally:
            self.asking -= 1
        await self._once_more(early)

    async def _until_answered(self, claims: list[tuple[Wish, c.Claim]]) -> list[Wish]:
        """One question for all, again and again; returns those that came too early.

        While stopping only what may have won already is asked, by its token, so that it can be given back.
        """
        tries = 0
        while claims:
            if self.runner.stopping:
                claims = [(wish, claim) for wish, claim in claims if self.ledger.pending(wish.job.name)]
            try:
                answers = await self.ledger.ask([Order(wish.job.name, claim) for wish, claim in claims])
                early = [self.settle(wish, one) for (wish, _), one in zip(claims, answers, strict=True)]
                return [wish for wish in early if wish is not None]
            except StoreError as error:
                tries += 1
                claims = [(wish, claim) for wish, claim in claims if not self._given_up(wish, error)]
                await self._back_off(tries)
        return []

    async def _back_off(self, tries: int) -> None:
        """Wait before asking again, but not on once the store has answered somebody."""
        ups, end = self.ups, self.shared.clock.boot() + timers.backoff(tries, self.shared.chance.draw())
        while self.shared.clock.boot() < end and ups == self.ups:
            await self.shared.until(end)

    def _claim(self, wish: Wish) -> c.Claim:
        """The same claim, by the same token, is asked until it is answered (R40a)."""
        job, token, runner = wish.job, self.shared.chance.token(), self.shared.events.runner
        bound = job.bound_ms if wish.reason == "manual" else job.max_late_ms
        if wish.reason == "catch-up":
            bound = job.catch_up_ms
        return c.Claim(
            wish.slot, token, runner, job.lease_ms, job.max_attempts, bound, job.overlap, wish.reason, True,
            wish.request, wish.before,
        )  # fmt: skip

    def _given_up(self, wish: Wish, error: StoreError) -> bool:
        """R25: a slot is missed only once its bounds have passed, or a newer one is due."""
        job = wish.job
        if self.ledger.pending(job.name):
            return False  # it may have won: asked by the same token until that is known, or it would be an orphan
        if job.name not in self.jobs:
            return True  # it was dropped
        if wish.request:
            return True  # the wish stands in the store, and is seen again
        after = job.schedule.next(wish.slot) if job.schedule is not None else None
        now = self.shared.store_clock.now()
        if not timers.given_up(wish.slot, after.at_ms if after else None, now, job.max_late_ms, job.catch_up_ms):
            return False
        self.shared.emit("missed", job.name, wish.slot, wish.request, why=str(error))
        self.gave_up = True  # recorded as a missed range when the store is there again
        return True

    async def _once_more(self, early: list[Wish]) -> None:
        """R20: what was early is claimed once more at the time named, by the offset that the answer brought."""
        for at in sorted({wish.slot for wish in early}):
            if self.runner.stopping:
                return
            boot = self.shared.store_clock.boot_of(at)
            while self.shared.clock.boot() < boot:
                await self.shared.until(boot)
            await self._make([(wish, self._claim(wish)) for wish in early if wish.slot == at])

    def settle(self, wish: Wish, answered: Answered) -> Wish | None:
        """Hand one answer on. Returns the wish where it is to be claimed once more."""
        job, slot, request, answer = wish.job, wish.slot, wish.request, answered.answer
        if not isinstance(answer, c.Late):
            self.late.pop(job.name, None)
        if not isinstance(answer, c.Paused):
            self.paused.discard(job.name)
        match answer:
            case c.Won():
                self.keeper.tell_ended(job, answered)
                self.runner.start(job, slot, request, answered, answer)
            case c.Running():
                self.keeper.watch(job, slot, request, answer.until, of=answer.runner)
            case c.Overlaps():
                self._overlapped(wish, answer)
            case c.Early():
                return wish
            case c.Paused():
                self.paused.add(job.name)
                self._skip(wish, "paused")
            case c.Late():
                self._late(wish, answer)
            case c.Superseded():
                self._skip(wish, "superseded")
            case c.Ended() if answer.status == "interrupted":
                self.shared.emit("interrupted", job.name, slot, request)
            case _:
                pass  # ended, or gone: somebody else saw to it
        return None

    def _overlapped(self, wish: Wish, answer: c.Overlaps) -> None:
        job = wish.job
        self._skip(wish, "overlap", by=answer.runner)
        self.keeper.watch(job, answer.slot, answer.request, answer.until, of=answer.runner)
        gone_until = self.shared.store_clock.boot_of(wish.slot + job.max_late_ms + TOLERANCE)
        self.keeper.watch(job, wish.slot, wish.request, answer.until, gone_until)

    def _late(self, wish: Wish, answer: c.Late) -> None:
        self._skip(wish, "late", by_ms=answer.by_ms)
        self.late[wish.job.name] += 1
        if self.late[wish.job.name] == LATE_TWICE:
            self.shared.emit("clock", wish.job.name, wish.slot, why="late twice in a row: the clocks or the load")

    def _skip(self, wish: Wish, why: str, **detail: Any) -> None:
        """Tell that nothing runs. A wish that waits is asked for again and again, and told of once."""
        if wish.request:
            if (wish.job.name, wish.request, why) in self._told:
                return
            if len(self._told) > REMEMBERED:
                self._told.clear()
            self._told.add((wish.job.name, wish.request, why))
        self.shared.emit("skip", wish.job.name, wish.slot, wish.request, why=why, **detail)
