"""Keep every lease that this instance holds, and look after every run that it is a backup of, in batches.

Two loops: `beat` renews and judges, `look` asks again for what others hold. Neither waits for the other, and
neither ever runs a handler (R23).
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tenure.errors import StoreError
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.rules.lease import unsure_after
from tenure.rules.timers import GRID
from tenure.scheduler.jobs import Job
from tenure.scheduler.ledger import Answered, Ledger, Order
from tenure.scheduler.run import Holding
from tenure.scheduler.shared import Alarm, Shared

FAR: Final = 3_600_000.0
Key = tuple[str, int, str]


@dataclass
class Watch:
    """A run that this instance is a backup of. `gone_until`: boot time until which it may not exist yet (R20)."""

    job: Job
    slot: int
    request: str
    look_at: float
    lease_end: float | None = None
    gone_until: float | None = None
    asking: bool = False
    hinted: bool = False  # while it was asked: what is answered may have been read before
    token: str = ""  # of the check that is not answered yet: asked again with it, a win is not lost (R40a)

    @property
    def key(self) -> Key:
        return self.job.name, self.slot, self.request


class Keeper:
    """The leases held and the runs watched by one instance."""

    def __init__(self, shared: Shared, ledger: Ledger) -> None:
        self.shared, self.ledger = shared, ledger
        self.holdings: dict[Key, Holding] = {}
        self.watches: dict[Key, Watch] = {}
        self.phase = shared.chance.draw()
        self.won: Callable[[Job, int, str, Answered, c.Won], None] = lambda *_: None
        self.troubled: Callable[[str, Exception], None] = lambda *_: None
        self._beat_due = Alarm()
        self._look_due = Alarm()
        self._beating: dict[int, asyncio.Task[None]] = {}  # by heartbeat length: none waits for another
        self._looking: set[asyncio.Task[None]] = set()
        self._failures: Counter[int] = Counter()
        self._quiet = False

    # --- the leases held --------------------------------------------------------------------------------

    def hold(self, holding: Holding) -> None:
        """Renew this attempt's lease from the next tick of its heartbeat on (R17)."""
        self.watches.pop(holding.key, None)
        forgotten = self.holdings.get(holding.key)
        if forgotten is not None:  # won anew, after a failover of the store that lost the win before
            self._lose(forgotten, holding.runner)
        self.holdings[holding.key] = holding
        holding.next_beat = timers.next_beat(self.shared.clock.boot(), holding.job.heartbeat_ms, self.phase)
        self._beat_due.set()

    def drop(self, holding: Holding) -> None:
        """Renew it no more."""
        if self.holdings.get(holding.key) is holding:
            del self.holdings[holding.key]

    async def beat(self) -> None:
        """The loop of heartbeats and of judging oneself; it never waits for the store."""
        while True:
            due = min((self._due(one) for one in self.holdings.values()), default=self.shared.clock.boot() + FAR)
            await self.shared.until(due, self._beat_due)
            self.judge()
            boot = self.shared.clock.boot()
            ready: defaultdict[int, list[Holding]] = defaultdict(list)
            for one in self.holdings.values():
                if one.next_beat <= boot and not self._busy(one):
                    ready[one.job.heartbeat_ms].append(one)
            for length, due_now in ready.items():
                self._beating[length] = asyncio.create_task(self._beat(length, due_now))

    def _busy(self, holding: Holding) -> bool:
        """Whether a tick of its heartbeat length is under way."""
        beating = self._beating.get(holding.job.heartbeat_ms)
        return beating is not None and not beating.done()

    def _due(self, holding: Holding) -> float:
        """When this run needs attention next: its heartbeat, unless one is under way, or its doubt."""
        beat = FAR + self.shared.clock.boot() if self._busy(holding) else holding.next_beat
        lease_ms = holding.job.lease_ms
        if holding.unsure or lease_ms is None:
            return beat
        return min(beat, holding.sent + unsure_after(lease_ms, holding.job.heartbeat_ms))

    def judge(self) -> None:
        """Each runner's own judgement, first thing on every turn and on waking (R26, R28a)."""
        boot = self.shared.clock.boot()
        for holding in tuple(self.holdings.values()):
            job = holding.job
            if holding.recorded:
                self.drop(holding)  # its success stands: there is no lease to renew, nor to doubt
                continue
            if holding.unsure or job.lease_ms is None:
                continue
            if timers.judge(boot, holding.sent, job.lease_ms, job.heartbeat_ms) == "unsure":
                holding.unsure = True
                silent = round(boot - holding.sent)
                self.shared.emit("unsure", job.name, holding.slot, holding.request, holding.attempt, silent_ms=silent)
                if job.when_unsure == "abort":
                    holding.abort("unsure")

    async def _beat(self, length: int, ready: list[Holding]) -> None:
        """All heartbeats of a tick in one read and one commit (R17); each answer counts as soon as it is there."""
        orders = [Order(one.job.name, c.Heartbeat(one.slot, one.token, one.request, one.progress)) for one in ready]
        boot = self.shared.clock.boot()
        doubt = min(one.sent + unsure_after(one.job.lease_ms or length, length) for one in ready)
        # A call may take half of what is left until the doubt: a slow store is waited for, a silent one asked again.
        patience = max(length, (doubt - boot) / 2, 50.0) / 1000

        def settle(place: int, answered: Answered) -> None:
            holding = ready[place]
            holding.next_beat = timers.next_beat(self.shared.clock.boot(), length, self.phase)
            self._beaten(holding, answered)

        try:
            await self.ledger.ask(orders, patience, settle)
            self._failures[length] = 0
        except Exception as error:  # noqa: BLE001 - leases are kept whatever goes wrong with one tick
            self._trouble("heartbeats", error)
            self._failures[length] += 1
            wait = timers.backoff(self._failures[length], self.shared.chance.draw(), 1_000)
            for one in ready:
                one.next_beat = self.shared.clock.boot() + min(wait, length)
        self._beat_due.set()

    def _beaten(self, holding: Holding, answered: Answered) -> None:
        match answered.answer:
            case c.Renewed():
                holding.sent = answered.sent
                holding.unsure = False
            case c.Refused() as refused if not holding.closing and not holding.over:
                self._lose(holding, refused.runner or refused.status)
            case _:
                pass  # blocked by another run: no renewal, and the next judgement says so

    def _lose(self, holding: Holding, to: str) -> None:
        """The attempt is over, by no doing of ours: its handler is told, and nothing more is written of it (R24)."""
        self.drop(holding)
        if holding.why != "lost":
            holding.abort("lost")
            self.shared.emit("lost", holding.job.name, holding.slot, holding.request, holding.attempt, to=to)

    def tell_ended(self, job: Job, answered: Answered) -> None:
        """Runs that the winner's claim interrupted (R6)."""
        for past in answered.ended:
            if past.status == "interrupted":
                self.forget((job.name, past.slot, past.request))
                self.shared.emit("interrupted", job.name, past.slot, past.request, len(past.attempts))

    def _trouble(self, what: str, error: Exception) -> None:
        """A store that fails is told elsewhere; anything else is a fault of ours, and is told here."""
        if not isinstance(error, StoreError):
            self.troubled(f"the keeper's {what}", error)

    # --- the runs watched -------------------------------------------------------------------------------

    def watch(
        self,
        job: Job,
        slot: int,
        request: str,
        until: int | None,
        gone_until: float | None = None,
        *,
        soon: bool = False,
        of: str = "",
    ) -> None:
        """Become, or stay, a backup of this run. until: its lease end, store time; of: its runner; where known."""
        if self._quiet or (job.name, slot, request) in self.holdings:
            return
        key = (job.name, slot, request)
        known = self.watches.get(key)
        if known is None:
            known = self.watches[key] = Watch(job, slot, request, 0.0)
            if gone_until is None:
                detail: dict[str, Any] = {"of": of} if of else {}
                self.shared.emit("backup", job.name, slot, request, **detail)
        known.lease_end = None if until is None else self.shared.store_clock.boot_of(until)
        known.gone_until = gone_until
        self._set_look(known, soon=soon)

    def forget(self, key: Key) -> None:
        """This run needs no backup any more."""
        self.watches.pop(key, None)

    def hint(self, jobs: frozenset[str]) -> None:
        """Somebody changed these jobs' documents: look at once; the timers stay (R21)."""
        for watch in self.watches.values():
            if watch.job.document in jobs:
                watch.hinted = watch.asking
                self._set_look(watch, soon=True)

    @property
    def asking(self) -> int:
        """How many checks are not answered yet: each may still win."""
        return sum(1 for one in self.watches.values() if one.token) + len(self._looking)

    def quiet(self) -> None:
        """No more takeovers: the instance is stopping (R27)."""
        self._quiet = True
        self.watches = {key: one for key, one in self.watches.items() if one.token}
        for one in self.watches.values():
            self._set_look(one, soon=True)

    def _set_look(self, watch: Watch, *, soon: bool = False) -> None:
        boot, chance = self.shared.clock.boot(), self.shared.chance
        if soon:
            watch.look_at = boot + chance.draw() * GRID
        else:
            watch.look_at = timers.next_look(
                boot, watch.lease_end, watch.job.heartbeat_ms, chance.draw(), chance.draw()
            )
        self._look_due.set()

    async def look(self) -> None:
        """The loop of backups: all checks of one grid point in one call (R21)."""
        while True:
            idle = [one.look_at for one in self.watches.values() if not one.asking]
            await self.shared.until(min(idle, default=self.shared.clock.boot() + FAR), self._look_due)
            boot = self.shared.clock.boot()
            due = [one for one in self.watches.values() if not one.asking and one.look_at <= boot]
            if due:
                for one in due:
                    one.asking = True
                task = asyncio.create_task(self._look(due))
                self._looking.add(task)
                task.add_done_callback(self._looking.discard)

    async def _look(self, due: list[Watch]) -> None:
        chance, runner = self.shared.chance, self.shared.events.runner
        for one in due:
            one.token = one.token or chance.token()
        orders = [Order(one.job.name, takeover(one.job, one.slot, one.request, one.token, runner)) for one in due]
        patience = min(one.job.heartbeat_ms for one in due) / 1000
        try:
            answers = await self.ledger.ask(orders, max(patience, 0.25))
            for one, answered in zip(due, answers, strict=True):
                self._looked(one, answered)
        except Exception as error:  # noqa: BLE001 - the next check comes whatever goes wrong with one
            self._trouble("checks", error)
            for one in due:
                one.lease_end = None  # what was known of it is old: wait a heartbeat, never spin
                self._set_look(one)
        finally:
            for one in due:
                if one.hinted:
                    self._set_look(one, soon=True)
                one.asking = one.hinted = False
            self._look_due.set()

    def _looked(self, watch: Watch, answered: Answered) -> None:
        job = watch.job
        watch.token = ""
        answer = answered.answer
        match answer:
            case c.Won():
                self.forget(watch.key)
                self.tell_ended(job, answered)
                self.won(job, watch.slot, watch.request, answered, answer)
            case _ if self._quiet:
                self.forget(watch.key)
            case _ if watch.key not in self.watches:
                pass
            case c.Running():
                self.watch(job, watch.slot, watch.request, answer.until)
            case c.Overlaps():
                # Its own lease is over, but another run of the job is alive: look again, at that one too.
                self.watch(job, watch.slot, watch.request, answer.until, watch.gone_until)
                self.watch(job, answer.slot, answer.request, answer.until, of=answer.runner)
            case c.Gone():
                if watch.gone_until is None or answered.sent >= watch.gone_until:
                    self.forget(watch.key)
                else:
                    watch.lease_end = None
                    self._set_look(watch)
            case c.Ended():
                self.forget(watch.key)
                if answer.status == "interrupted":
                    self.shared.emit("interrupted", job.name, watch.slot, watch.request)
            case _:
                watch.lease_end = None
                self._set_look(watch)  # spent, or a document that can't be read: later


def takeover(job: Job, slot: int, request: str, token: str, runner: str) -> c.Claim:
    """A claim of a run that exists: the next attempt, or none."""
    return c.Claim(slot, token, runner, job.lease_ms, job.max_attempts, 0, job.overlap, "takeover", False, request)
