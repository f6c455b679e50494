"""Read, decide, commit, again: the one place that turns commands into changes of the store (R40, R40a).

A change that lost its race, or came after its deadline, is read and decided again. One whose outcome is not
known is *unresolved*: nothing more is decided on its document until the version has moved on or its deadline
has passed on the store's clock, so that nothing is ever sent twice blindly.

A decision must reach the store soon after the read that it rests on. A process that gets too little of its machine
to decide thousands in that time decides fewer at once, until it is quick enough again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from tenure.errors import StoreCorrupt, StoreError, StoreUnavailable
from tenure.rules import commands as c
from tenure.rules import job as documents
from tenure.rules.job import Past, run_id
from tenure.rules.runs import Decision, decide, keep_until
from tenure.scheduler.jobs import document
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Reading, Record, Store

T = TypeVar("T")
Settle = Callable[[int, "Answered"], None]
Tell = Callable[[Iterable[tuple[int, "Answered"]]], None]

# How many rounds of lost races one question takes before it is called a failure of the store. Each lost
# race is somebody else's success, so this is met only where a clock or a store is broken.
ROUNDS: Final = 200
# A round that took longer than this, in milliseconds, and came too late with something, was too much at once;
# twice as much as one that took less is not.
SLOW: Final = 500.0


@dataclass(frozen=True, slots=True)
class Order:
    """One command to one job."""

    job: str
    command: c.Command


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer, the version it left or found, the store's time, and the boot time at which the read was sent."""

    answer: c.Answer
    job: documents.Job
    version: int
    now: int
    sent: float
    ended: tuple[Past, ...] = ()
    """Runs that ended by this decision."""


@dataclass(frozen=True, slots=True)
class Page:
    """One job as read: the document, ended runs asked for, and what the store told beside."""

    job: documents.Job
    past: dict[str, Past]
    found: Found
    unreadable: str = ""
    """Why the document could not be read; then `job` is empty."""


class Ledger:
    """Asks the rules on behalf of one instance.

    `stepped` hears of steps of the store's clock, `reached` whether the store answers.
    """

    def __init__(
        self,
        store: Store,
        clock: StoreClock,
        stepped: Callable[[float], None] = lambda _: None,
        reached: Callable[[StoreError | None], None] = lambda _: None,
    ) -> None:
        self.store, self.clock = store, clock
        self._stepped, self._reached = stepped, reached
        self._at_once = 1 << 30  # orders in one round
        self._unresolved: dict[str, tuple[int, int]] = {}
        self._answered = float("-inf")  # when the call was sent that the store answered last
        self._decoded: dict[str, tuple[bytes | None, documents.Job]] = {}

    async def pages(self, asks: Sequence[Ask], patience: float | None = None) -> tuple[int, list[Page]]:
        """Read jobs' documents, at the store's time that comes first in the answer."""
        _, reading = await self._read(asks, patience)
        return reading.now, [self._page(ask.name, found) for ask, found in zip(asks, reading.found, strict=True)]

    def _page(self, name: str, found: Found) -> Page:
        try:
            return self.page(name, found)
        except StoreCorrupt as error:
            return Page(documents.EMPTY, {}, found, str(error))

    async def ask(
        self, orders: Sequence[Order], patience: float | None = None, settle: Settle | None = None
    ) -> list[Answered]:
        """Put all the orders to the rules, in as few calls as races allow, and answer each in its place.

        patience: seconds that one call to the store may take, else the store's own timeout. settle: told each
        answer once it stands, with its place; others of the batch may take longer. Raises StoreError; the same
        orders may then be asked again.
        """
        answers: dict[int, Answered] = {}

        def tell(answered: Iterable[tuple[int, Answered]]) -> None:
            for place, one in answered:
                answers[place] = one
                if settle is not None:
                    settle(place, one)

        waiting = dict(enumerate(orders))
        lost = 0
        while waiting:
            if lost == ROUNDS:
                raise StoreUnavailable(
                    f"{len(waiting)} changes lost {lost} races in a row; is the store's clock stuck?"
                )
            before = len(waiting)
            await self._round(dict(islice(waiting.items(), self._at_once)), patience, tell)
            waiting = {place: order for place, order in waiting.items() if place not in answers}
            lost = 0 if len(waiting) < before else lost + 1
        return [answers[place] for place in range(len(orders))]

    async def ask_one(self, job: str, command: c.Command, patience: float | None = None) -> Answered:
        """Put one command to the rules."""
        return (await self.ask([Order(job, command)], patience))[0]

    async def _round(self, waiting: dict[int, Order], patience: float | None, tell: Tell) -> None:
        """One read, the decisions, one commit. What was raced, expired or is unresolved stays unanswered.

        What rests on the read alone is told before the commit, whose answer may come late or never. So is a refusal
        beside others' changes: only claims take a token from somebody, and no batch mixes those with what needs one.
        """
        by_job: defaultdict[str, list[tuple[int, c.Command]]] = defaultdict(list)
        for place, order in waiting.items():
            by_job[document(order.job)].append((place, order.command))
        asks = [Ask(name, _runs(commands)) for name, commands in by_job.items()]
        sent, reading = await self._read(asks, patience)
        stands: list[tuple[int, Answered]] = []
        changes: list[Change] = []
        changed: list[list[tuple[int, Answered]]] = []
        until_resolved: float | None = None
        for ask, found in zip(asks, reading.found, strict=True):
            due = self._resolves_at(ask.name, found.version, reading.now)
            if due is not None:
                until_resolved = due if until_resolved is None else min(until_resolved, due)
                continue
            try:
                change, decided = self._decide(ask.name, found, by_job[ask.name], reading.now, sent)
            except StoreCorrupt as error:  # one document that can't be read harms no other
                spoilt = Answered(c.Unreadable(str(error)), documents.EMPTY, found.version, reading.now, sent)
                stands += [(place, spoilt) for place, _ in by_job[ask.name]]
                continue
            if change is None:
                stands += decided
            else:
                changes.append(change)
                stands += [one for one in decided if isinstance(one[1].answer, c.Refused)]
                changed.append([one for one in decided if not isinstance(one[1].answer, c.Refused)])
        tell(stands)
        if changes:
            outcomes = await self._commit(changes, patience)
            for outcome, decided in zip(outcomes, changed, strict=True):
                if outcome is Outcome.DONE:
                    tell(decided)
            self._pace(len(waiting), self.clock.clock.boot() - sent, Outcome.EXPIRED in outcomes)
        elif until_resolved is not None and not stands:
            await asyncio.sleep(max(1.0, until_resolved - reading.now + 1) / 1000)

    def _pace(self, count: int, took: float, late: bool) -> None:
        """Half as many orders in the next round where these were too many to decide in time, else again more."""
        if late and took > SLOW:
            self._at_once = max(1, count // 2)
        elif took <= SLOW and count >= self._at_once:
            self._at_once *= 2

    def _decide(
        self, name: str, found: Found, commands: list[tuple[int, c.Command]], now: int, sent: float
    ) -> tuple[Change | None, list[tuple[int, Answered]]]:
        """All commands to one job, one after the other, as one change of its document."""
        page = self.page(name, found)
        job, past = page.job, dict(page.past)
        decisions: list[Decision] = []
        for _, command in commands:
            run = run_id(command.slot, command.request) if isinstance(command, _OF_RUNS) else ""
            decision = decide(job, command, now, past.get(run))
            decisions.append(decision)
            job = decision.job
            past.update({ended.id: ended for ended in decision.ended})
        body_changed = any(one.ended for one in decisions) or job is not page.job
        version = found.version + body_changed
        answered = [
            (place, Answered(one.answer, job, version, now, sent, one.ended))
            for (place, _), one in zip(commands, decisions, strict=True)
        ]
        if not body_changed and not any(one.marks for one in decisions):
            return None, answered
        return change_of(name, found.version, job if body_changed else None, now, decisions), answered

    async def _read(self, asks: Sequence[Ask], patience: float | None) -> tuple[float, Reading]:
        sent = self.clock.clock.boot()
        try:
            async with asyncio.timeout(patience or self.store.timeout):
                reading = await self.store.read(asks)
        except TimeoutError:
            raise self._failed(sent, StoreUnavailable("the store did not answer a read in time.")) from None
        except StoreError as error:
            raise self._failed(sent, error) from error
        self._heard(sent, reading.now)
        return sent, reading

    async def _commit(self, changes: list[Change], patience: float | None) -> tuple[Outcome, ...]:
        sent = self.clock.clock.boot()
        try:
            async with asyncio.timeout(patience or self.store.timeout):
                verdict = await self.store.commit(changes)
        except BaseException as error:  # a cancelled call's outcome is as unknown as a failed one's
            for change in changes:
                self.doubt(change)
            if isinstance(error, TimeoutError):
                raise self._failed(sent, StoreUnavailable("the store did not answer a commit in time.")) from None
            if isinstance(error, StoreError):
                raise self._failed(sent, error) from error
            raise
        self._heard(sent, verdict.now)
        return verdict.outcomes

    def doubt(self, change: Change) -> None:
        """This change may have been applied, or may be until its deadline."""
        if change.conditional and change.deadline is not None:
            sent = (change.version, change.deadline)  # of several the last that may still land
            self._unresolved[change.name] = max(sent, self._unresolved.get(change.name, sent))

    def pending(self, job: str) -> bool:
        """Whether a change of this job may have been applied, or may still be, and nobody has looked yet."""
        return document(job) in self._unresolved

    def _heard(self, sent: float, now: int) -> None:
        step = self.clock.observe(sent, self.clock.clock.boot(), now)
        if step:
            self._stepped(step)
        self._answered = max(self._answered, sent)
        self._reached(None)

    def _failed(self, sent: float, error: StoreError) -> StoreError:
        """Tell of it, unless the store has answered a call that was sent later."""
        if sent >= self._answered:
            self._reached(error)
        return error

    def _resolves_at(self, name: str, version: int, now: int) -> float | None:
        """The deadline of a change of unknown outcome that may still be applied; None where there is none."""
        if name not in self._unresolved:
            return None
        sent_on, deadline = self._unresolved[name]
        if version == sent_on and now <= deadline:
            return deadline
        del self._unresolved[name]
        return None

    def page(self, name: str, found: Found) -> Page:
        """What a store found, decoded."""
        known = self._decoded.get(name)
        # Compared by content, not by version: a store restored from a backup shows old versions again.
        if known is None or known[0] != found.body:
            known = (found.body, _decoded(name, documents.decode, found.body))
            self._decoded[name] = known
        past = {run: _decoded(name, documents.decode_past, body) for run, body in found.past.items()}
        return Page(known[1], past, found)


def _decoded(name: str, decode: Callable[[Any], T], body: bytes | None) -> T:
    try:
        return decode(body)
    except (ValueError, TypeError, LookupError) as error:
        raise StoreCorrupt(f"what the store holds as {name!r} can't be read: {error}. Nothing was changed.") from None


_OF_RUNS: Final = (c.Claim, c.Heartbeat, c.Finish, c.Release)


def _runs(commands: list[tuple[int, c.Command]]) -> tuple[str, ...]:
    """The ended runs to look up: for all commands that speak of a run."""
    runs = (run_id(one.slot, one.request) for _, one in commands if isinstance(one, _OF_RUNS))
    return tuple(dict.fromkeys(runs))


def change_of(name: str, version: int, job: documents.Job | None, now: int, decisions: list[Decision]) -> Change:
    """Decisions on one document as one change of it; job None: only marks are written."""
    ended = [past for one in decisions for past in one.ended]
    return Change(
        name=name,
        version=version,
        body=documents.encode(job) if job is not None else None,
        deadline=now + min(one.valid_ms for one in decisions),
        records=tuple(
            Record(past.id, past.slot, past.status, past.ended, keep_until(past), documents.encode_past(past))
            for past in ended
        ),
        marks=tuple(Mark(*mark) for one in decisions for mark in one.marks),
        forget=tuple(run for one in decisions for run in one.forget),
        trim=max((one.trim for one in decisions if one.trim is not None), default=None),
        hint=any(one.hint for one in decisions),
    )
