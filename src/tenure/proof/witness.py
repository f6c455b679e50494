"""Sees and hears all that happens in a simulated world, holds it against the laws, and keeps the history.

Every decision of every instance passes here, and every change that the store wrote; so do the events, and where
handlers begin and end. The first breach stops the world. What a whole history must satisfy stands in `conduct.py`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tenure.proof.branches import branch
from tenure.proof.chronicle import Chronicle
from tenure.proof.laws import check
from tenure.proof.replaced import replaced
from tenure.proof.smallworld import Decide
from tenure.proof.steps import Breach, Step, won
from tenure.proof.turned import NODE, TurnedLoop
from tenure.rules import commands as c
from tenure.rules import job as documents
from tenure.rules.job import Past, run_id
from tenure.rules.runs import Decision, decide
from tenure.scheduler import ledger
from tenure.scheduler.events import Event
from tenure.scheduler.run import Run
from tenure.stores.contract import Change

Key = tuple[str, int, str]  # job, slot, request


class Line(NamedTuple):
    """One thing that happened: when (turned seconds), where, what, and to which attempt."""

    at: float
    node: str
    what: str
    job: str = ""
    slot: int | None = None
    request: str = ""
    attempt: int = 0
    told: str = ""


@dataclass
class Tenancy:
    """One attempt, from its win to its end, as the store and the handler's own world saw it.

    Times are turned seconds, but those named `_ms`, which are the store's. until_ms: the lease end as last told;
    begun, left: its handler, tried `tries` times; deaf: it heeds nothing; over: when the store ended or released it,
    or gave the run to the next attempt; refused: whether its last heartbeat was; lost: when its runner heard of that.
    """

    key: Key
    number: int
    token: str
    runner: str
    reason: str
    lease_ms: int | None
    won: float
    won_ms: int
    renewed: float
    until_ms: int
    tries: int = 0
    begun: float | None = None
    left: float | None = None
    over: float | None = None
    how: str = ""
    deaf: bool = False
    refused: bool = False
    lost: float | None = None
    run: Run | None = None


@dataclass
class Witness:
    """One per world.

    exclusive: jobs whose every definition takes leases and forbids overlaps; without: laws that are not asked;
    frozen, stiff: whether an instance stands still, and whether it did lately; patient: jobs that go on in doubt;
    now: the store's clock; pruned: what the history was told to forget.
    """

    loop: TurnedLoop
    without: frozenset[str] = frozenset()
    exclusive: frozenset[str] = frozenset()
    rule: Decide = decide
    lines: list[Line] = field(default_factory=list)
    tenancies: dict[str, Tenancy] = field(default_factory=dict)  # by token
    ends: dict[Key, tuple[float, str]] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)
    breach: Breach | None = None
    doubtful_until: float = 0.0  # a clock that stepped, or writes that were lost, excuse what I9 forbids
    frozen: Callable[[str], bool] = lambda _: False
    stiff: Callable[[str], bool] = lambda _: False
    patient: frozenset[str] = frozenset()
    now: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        self.told: dict[str, Chronicle] = {}
        self.last: dict[Key, Tenancy] = {}
        self.pruned: set[tuple[str, str]] = set()
        self._asked: list[Step] = []
        self._sent: list[tuple[Change, tuple[Step, ...]]] = []
        self._digest = hashlib.sha256()

    # --- the rules, as the ledgers ask them -------------------------------------------------------------

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Stand between the ledgers and the rules until the end of the block."""
        change_of = ledger.change_of

        def changed(name: str, version: int, job: documents.Job | None, now: int, decisions: list[Decision]) -> Change:
            change = change_of(name, version, job, now, decisions)
            self._sent.append((change, tuple(self._asked[-len(decisions) :])))
            return change

        with replaced(ledger, "decide", self._decide), replaced(ledger, "change_of", changed):
            yield

    def _decide(self, job: documents.Job, command: c.Command, now: int, past: Past | None = None) -> Decision:
        decision = self.rule(job, command, now, past)
        step = Step.of(job, command, now, decision, past)
        self._asked.append(step)
        self.reached[branch(step)] += 1
        if not step.effective:
            self._hold(lambda: check(step, self.without))
        if isinstance(command, c.Finish | c.Release | c.Heartbeat):
            self._asked_by_holder(command, decision.answer)
        return decision

    def _asked_by_holder(self, command: c.Finish | c.Release | c.Heartbeat, answer: c.Answer) -> None:
        tenancy = self.tenancies.get(command.token)
        if tenancy is None:
            return
        if isinstance(command, c.Heartbeat):
            tenancy.refused = isinstance(answer, c.Refused)
        elif tenancy.lost is not None:
            self.broken("S21", f"attempt {tenancy.number} of {name_of(tenancy.key)} was lost, and its end is sent")

    def noted(self, change: Change) -> tuple[Step, ...]:
        """The decisions that this change was made of. They were made just now, by whoever sends it."""
        found = next((steps for sent, steps in self._sent if sent is change), ())
        self._sent = [pair for pair in self._sent if pair[0] is not change]
        self._asked.clear()
        return found

    # --- the store --------------------------------------------------------------------------------------

    def applied(self, change: Change, steps: Sequence[Step], now: int) -> None:
        """A change was written: the laws are asked of each step of it."""
        if not change.name.startswith("job:"):
            return
        if change.body is not None:
            self._digest.update(change.body)
        told = self.told.setdefault(change.name, Chronicle())
        name = change.name.removeprefix("job:")
        for step in steps:
            if not step.effective:
                continue
            self._hold(lambda step=step: told.take(replace(step, at=now), self.without))  # type: ignore[misc]
            self._follow(name, step, now)
        if change.body is not None and not steps:
            self.broken("S16", f"the document of {name} was changed by no decision")

    def _follow(self, job: str, step: Step, now: int) -> None:
        """What the step means for the tenancies of its job."""
        command, attempt = step.command, won(step)
        if isinstance(command, c.Claim) and attempt is not None:
            key = (job, command.slot, command.request)
            before = self.last.get(key)
            if before is not None and before.over is None:
                before.over, before.how = self.loop.seconds, "taken over"
            run = step.after.find(command.slot, command.request)
            until = run.lease.until if run is not None else now
            self.last[key] = self.tenancies[attempt.token] = Tenancy(
                key, attempt.number, attempt.token, attempt.runner, attempt.reason, command.lease_ms,
                self.loop.seconds, now, self.loop.seconds, until,
            )  # fmt: skip
            self.line("store", "win", job, command.slot, command.request, attempt.number, attempt.runner)
        elif isinstance(command, c.Heartbeat | c.Claim) and isinstance(step.answer, c.Renewed | c.Won):
            tenancy = self.tenancies[command.token]
            run = step.after.find(command.slot, command.request)
            tenancy.renewed = self.loop.seconds
            tenancy.until_ms = run.lease.until if run is not None else now
        elif isinstance(command, c.Release) and isinstance(step.answer, c.Released):
            tenancy = self.tenancies[command.token]
            tenancy.over, tenancy.how = self.loop.seconds, "unsure" if command.counts else "handed over"
        self.pruned |= {(job, run) for run in step.forget}
        for past in step.ended:
            key = (job, past.slot, past.request)
            self.ends[key] = (self.loop.seconds, past.status)
            if key in self.last and self.last[key].over is None:
                self.last[key].over, self.last[key].how = self.loop.seconds, past.status
            self.line("store", past.status, job, past.slot, past.request, len(past.attempts))

    def keep(self) -> Callable[[], None]:
        """All that was told so far; calling it forgets what was told since, as the store did."""
        told = {name: one.copy() for name, one in self.told.items()}
        tokens, ends = set(self.tenancies), dict(self.ends)

        def lose() -> None:
            self.told, self.ends = told, ends
            for token in [one for one in self.tenancies if one not in tokens]:
                tenancy = self.tenancies[token]
                tenancy.over, tenancy.how = self.loop.seconds, "forgotten"
            self.last = {one.key: one for one in self.tenancies.values() if one.token in tokens}

        return lose

    # --- the instances ----------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """An event of an instance, when it is told."""
        told = " ".join(f"{name}={value}" for name, value in event.detail.items())
        self.line(event.runner, event.name, event.job, event.slot, event.request, event.attempt, told)
        if event.name not in ("lost", "retry"):
            return
        key = (event.job, event.slot or 0, event.request)
        of = [one for one in self.tenancies.values() if (one.key, one.number) == (key, event.attempt)]
        mine = [one for one in of if one.runner == event.runner and one.lost is None]
        if event.name == "lost" and mine:  # a store that forgets may have given the same attempt twice
            min(mine, key=lambda one: one.over is None).lost = self.loop.seconds
        elif event.name == "retry" and mine:
            again = max(mine, key=lambda one: one.left or 0.0)
            again.begun = again.left = None  # it will begin once more

    def begins(self, run: Run, *, deaf: bool = False) -> None:
        """A handler begins (S20)."""
        node = NODE.get()
        self.line(node, "begin", run.job, run.slot_ms, run.request, run.attempt)
        tenancy = self.tenancies.get(run.token)
        if tenancy is None or tenancy.begun is not None or tenancy.runner != run.runner:
            self.broken("S20", f"{run.key}, attempt {run.attempt}, began at {run.runner} without a win of its own")
            return
        tenancy.begun, tenancy.run, tenancy.tries, tenancy.deaf = self.loop.seconds, run, tenancy.tries + 1, deaf
        self.looks(run)

    def looks(self, run: Run) -> None:
        """A handler is at work: was it told in time (S21), does it believe too long (R26), and is it alone (I9)?"""
        tenancy, told = self.tenancies[run.token], run.lost.is_set()
        if tenancy.refused and not told:
            self.broken("S21", f"a heartbeat of {run.key}, attempt {run.attempt}, was refused, and it was not told")
        if not run.held():
            if not (told or run.job in self.patient or self.stiff(run.runner)):
                self.broken("S21", f"{run.key}, attempt {run.attempt}, does not hold any more and was not told to stop")
            return
        if self.loop.seconds < self.doubtful_until or tenancy.lease_ms is None:
            return
        if self.now() >= tenancy.until_ms:
            self.broken("R26", f"{run.key}, attempt {run.attempt}, believes to hold a lease that has run out")
        if run.job not in self.exclusive:
            return
        for other in self.working(run.job):
            if other.run is not None and other.run is not run and other.run.held():
                self.broken("I9", f"{run.key} at {run.runner} and {other.run.key} at {other.runner} both hold")

    def working(self, job: str | None = None) -> list[Tenancy]:
        """The attempts whose handlers are at work, on nodes that are not frozen or dead."""
        return [
            one
            for one in self.tenancies.values()
            if one.begun is not None and one.left is None and job in (None, one.key[0]) and not self.frozen(one.runner)
        ]

    def leaves(self, run: Run) -> None:
        """A handler has ended."""
        tenancy = self.tenancies.get(run.token)
        if tenancy is not None:
            tenancy.left = self.loop.seconds
        self.line(NODE.get(), "end", run.job, run.slot_ms, run.request, run.attempt)

    # --- the history ------------------------------------------------------------------------------------

    def line(self, node: str, what: str, *rest: Any) -> None:
        """Keep a line of the history."""
        line = Line(round(self.loop.seconds, 6), node, what, *rest)
        self.lines.append(line)
        self._digest.update(repr(tuple(line)).encode())

    def digest(self) -> str:
        """Equal for equal histories: of every line, and of every document that was written."""
        return self._digest.hexdigest()[:16]

    def broken(self, law: str, sentence: str, step: Step | None = None) -> None:
        """A law is broken: the first is kept, and the world stops."""
        if self.breach is None and law not in self.without:
            self.breach = Breach(law, sentence, step)
            self.loop.stop()

    def _hold(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except Breach as breach:
            self.broken(breach.law, str(breach).partition(": ")[2], breach.step)


def name_of(key: Key) -> str:
    """A run in words."""
    return f"{key[0]} {run_id(key[1], key[2])}"
