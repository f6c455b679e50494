"""Small worlds to be explored whole: who may ask what, at which instants; and the store that they share.

The store here is the contract's: a clock and a compare-and-set with deadlines, over documents that the real
rules write. Everything is interned to small numbers, and every question is put to the rules once: they are
pure. What no rule reads is blurred, so that documents that behave alike are one (a test holds that it is so).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from tenure.proof.branches import branch
from tenure.proof.chronicle import Chronicle
from tenure.proof.laws import check
from tenure.proof.steps import Step
from tenure.rules import commands as c
from tenure.rules.instant import SECOND
from tenure.rules.job import EMPTY, Attempt, Job, Past, Run, run_id
from tenure.rules.lease import VALIDITY, Lease
from tenure.rules.runs import Decision, decide, keep_until

Decide = Callable[[Job, c.Command, int, Past | None], Decision]
Ending = Literal["success", "failed", "handed-over", "unsure"]
Value = TypeVar("Value", bound=Hashable)

LEASE: Final = 60 * SECOND


@dataclass(frozen=True)
class World:
    """What is asked in a small world. Times are milliseconds.

    instants: the moments that the store's clock shows, in order; claims: what an idle instance may ask, each
    without token; others: commands to the job itself; wins: how many attempts may be won in all; endings: how
    a handler may end; pruning: whether ended runs are forgotten as soon as the rules allow (`history=0`).
    """

    name: str
    instants: tuple[int, ...]
    claims: tuple[c.Claim, ...]
    others: tuple[c.Command, ...] = ()
    wins: int = 4
    endings: tuple[Ending, ...] = ("success", "handed-over", "unsure")
    pruning: bool = False
    steps_back: bool = False
    instances: int = 2
    start: Job = EMPTY


def claim(
    slot: int,
    *,
    lease_ms: int | None = LEASE,
    max_attempts: int = 2,
    bound_ms: int = 30 * SECOND,
    overlap: Literal["skip", "allow"] = "skip",
    request: str = "",
) -> c.Claim:
    """A claim without a token: what an instance would ask of this slot, or of a wish made at `slot`."""
    reason: Literal["manual", "schedule"] = "manual" if request else "schedule"
    return c.Claim(slot, "", "", lease_ms, max_attempts, bound_ms, overlap, reason, True, request)


class Table(Generic[Value]):
    """Values by small numbers."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def number(self, value: Value) -> int:
        """The number of this value, a new one where it is new."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class Sent(NamedTuple):
    """A decision on its way to the store, and the document it was decided on."""

    base: Job
    command: c.Command
    now: int
    decision: Decision
    past: Past | None

    @property
    def deadline(self) -> int:
        return self.now + self.decision.valid_ms


@dataclass
class Kept:
    """What the store holds of the job at one time, with what was told of it so far."""

    job: Job
    history: dict[str, Past]
    told: Chronicle
    tokens: tuple[tuple[int, str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        runs: tuple[Run | Past, ...] = (*self.job.runs, *self.history.values())
        self.tokens = tuple((run.slot, run.request, one.token) for run in runs for one in run.attempts)


class ModelStore:
    """The one document, its history, and the questions put to the rules about it, each once.

    versions, deadlines: whether a commit is held against them; off, the store is at fault.
    """

    def __init__(
        self,
        world: World,
        rule: Decide = decide,
        *,
        versions: bool = True,
        deadlines: bool = True,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.world, self.rule, self.without = world, rule, without
        self.versions, self.deadlines = versions, deadlines
        self.kept: list[Kept] = []
        self.sent: Table[Sent] = Table()
        self.reached: dict[str, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._asked: dict[tuple[int, int, c.Command], tuple[c.Answer, int]] = {}
        self._landed: dict[tuple[int, int, int], int] = {}
        self._settled: dict[tuple[int, int], int] = {}

    def start(self) -> int:
        """The number of what the store holds in the beginning."""
        return self._keep(self.world.start, {}, Chronicle(self.world.start), self.world.instants[0])

    def ask(self, kept: int, now: int, command: c.Command) -> tuple[c.Answer, int]:
        """What the rules say of a command at `now`: the answer, and the decision to send, -1 if there is none."""
        key = (kept, now, command)
        if key not in self._asked:
            self._asked[key] = self._ask(self.kept[kept], now, command)
        return self._asked[key]

    def _ask(self, kept: Kept, now: int, command: c.Command) -> tuple[c.Answer, int]:
        past = None
        if isinstance(command, c.Claim | c.Heartbeat | c.Finish | c.Release):
            past = kept.history.get(run_id(command.slot, command.request))
        decision = self.rule(kept.job, command, now, past)
        step = Step.of(kept.job, command, now, decision, past)
        self._reach(branch(step))
        if decision.job is not kept.job or decision.ended:
            return decision.answer, self.sent.number(Sent(kept.job, command, now, decision, past))
        check(step, self.without)  # nothing will be written, so this is all that happens
        return decision.answer, -1

    def lands(self, sent: int, now: int, *, fresh: bool) -> bool:
        """Whether the store would write this at `now`. fresh: nothing was written since it was decided."""
        if not fresh and self.versions:
            self._reach("store: raced")
            return False
        if self.deadlines and now > self.sent.values[sent].deadline:
            self._reach("store: expired")
            return False
        return True

    def land(self, kept: int, sent: int, at: int) -> int:
        """Write a decision. Raises Breach if a law is broken by it."""
        key = (kept, sent, at)
        if key not in self._landed:
            self._landed[key] = self._land(self.kept[kept], self.sent.values[sent], at)
        return self._landed[key]

    def step(self, kept: int, sent: int, at: int) -> Step:
        """What it would be to write this decision now."""
        return self._step(self.kept[kept], self.sent.values[sent], at)

    def _step(self, kept: Kept, sent: Sent, at: int) -> Step:
        # As it was read: at a later instant what it says may be blurred more.
        before = sent.base if self.versions else kept.job
        return Step.of(before, sent.command, sent.now, sent.decision, sent.past, at=at)

    def _land(self, kept: Kept, sent: Sent, at: int) -> int:
        step = self._step(kept, sent, at)
        told = kept.told.copy()
        told.job = step.before
        told.take(step, self.without)
        history = kept.history | {past.id: past for past in step.ended}
        for run in step.forget:
            history.pop(run, None)
        return self._keep(step.after, history, told, at)

    def settle(self, kept: int, now: int) -> int:
        """The same at a later instant: a lease that has run out is like any other that has. Raises Breach."""
        key = (kept, now)
        if key not in self._settled:
            one = self.kept[kept]
            one.told.rest(now, self.without)
            self._settled[key] = self._keep(one.job, one.history, one.told, now)
        return self._settled[key]

    def _keep(self, job: Job, history: dict[str, Past], told: Chronicle, now: int) -> int:
        # What has run out may come to life again where the clock may go back.
        job = blurred(job, self.world.instants, self.world.instants[0] if self.world.steps_back else now)
        past = {run: blurred_past(history[run], ages=self.world.pruning) for run in sorted(history)}
        key = (job, tuple(past.values()), told.key())
        number = self._numbers.setdefault(key, len(self.kept))
        if number == len(self.kept):
            told = told.copy()
            told.job = job
            self.kept.append(Kept(job, past, told))
        return number

    def prune(self, kept: int) -> c.Prune:
        """To forget all that has ended: what an instance asks where `history` is 0."""
        past = sorted(self.kept[kept].history.values(), key=lambda one: (one.slot, one.id))
        return c.Prune(tuple(c.Head(one.id, one.slot, keep_until(one)) for one in past))

    def _reach(self, what: str) -> None:
        self.reached[what] = self.reached.get(what, 0) + 1


def blurred(job: Job, instants: tuple[int, ...], now: int) -> Job:
    """The document without what no rule reads; a lease ends at the first instant that sees it ended."""
    runs = []
    for run in job.runs:
        token, holder, until, released = run.lease
        if released or until <= now - VALIDITY:  # no decision still on its way saw it live
            until = 0
        else:
            place = bisect_left(instants, until)
            until = instants[place] if place < len(instants) else instants[-1] + 1
        runs.append(run._replace(lease=Lease(token, holder, until, released), attempts=_blurred_attempts(run.attempts)))
    return job._replace(runs=tuple(runs), paused=None if job.paused is None else 0)


def blurred_past(past: Past, *, ages: bool) -> Past:
    """An ended run without what no rule reads; when it ended matters only where runs are forgotten."""
    return past._replace(ended=past.ended if ages else 0, attempts=_blurred_attempts(past.attempts))


def _blurred_attempts(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(one.number, one.token, "", "", one.fence, 0, 0, 0, None if one.ended is None else 0, None)
        for one in attempts
    )
