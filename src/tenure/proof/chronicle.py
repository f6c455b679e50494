"""The laws of a whole history: what must hold over all steps of one job, whatever was pruned meanwhile.

A `Chronicle` hears every step of a job in the order of its versions, from the empty document on, and keeps
what the document itself may forget. It checks the laws of one step on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Self

from tenure.proof.laws import check
from tenure.proof.steps import Breach, Step, won
from tenure.rules import commands as c
from tenure.rules.job import EMPTY, Job, Overlap, run_id


class Told(NamedTuple):
    """What was told of one run: attempts won, those handed over by stop(), and its end."""

    won: int = 0
    handed: int = 0
    ended: str = ""


class Chronicle:
    """All that was told of one job.

    runs: by name; tokens: every one that ever won; wishes: that were run; newest: the newest slot won for the
    first time; fence: of the last win; mode: overlap mode of the last one that took a lease; job: the last document.
    """

    def __init__(self, job: Job = EMPTY) -> None:
        self.job = job
        self.runs: dict[str, Told] = {}
        self.tokens: set[str] = set()
        self.wishes: set[str] = set()
        self.newest: int | None = None
        self.fence = 0
        self.mode: Overlap = "skip"

    def copy(self) -> Self:
        """Another one that has heard the same."""
        other = type(self)(self.job)
        other.runs, other.tokens, other.wishes = dict(self.runs), set(self.tokens), set(self.wishes)
        other.newest, other.fence, other.mode = self.newest, self.fence, self.mode
        return other

    def key(self) -> tuple[object, ...]:
        """All of it but the document as one value, so that equal pasts can be told."""
        return (
            frozenset(self.runs.items()),
            frozenset(self.tokens),
            frozenset(self.wishes),
            self.newest,
            self.fence,
            self.mode,
        )

    def take(self, step: Step, without: frozenset[str] = frozenset()) -> None:
        """Hear the next step. Raises Breach, and keeps nothing of the step, where a law is broken."""
        check(step, without)
        if not step.effective:
            return
        for name, law in HISTORY_LAWS.items():
            if name not in without and (sentence := law(self, step)) is not None:
                raise Breach(name, sentence, step)
        self._keep(step)

    def rest(self, now: int, without: frozenset[str] = frozenset()) -> None:
        """Time has passed, and nothing else. Raises Breach where a law of every instant is broken."""
        sentence = _one_live_lease(self.job, self.mode, now)
        if sentence is not None and "I1" not in without:
            raise Breach("I1", sentence, None)

    def _keep(self, step: Step) -> None:
        self.job = step.after
        command, attempt = step.command, won(step)
        if isinstance(command, c.Claim) and attempt is not None:
            run = run_id(command.slot, command.request)
            told = self.runs.get(run, Told())
            self.runs[run] = told._replace(won=told.won + 1)
            self.tokens.add(attempt.token)
            self.wishes |= {command.request} - {""}
            self.fence = attempt.fence
            if command.lease_ms is not None:  # claim-only takes no lease, and asks for no other (R46)
                self.mode = command.overlap
            if not command.request and (self.newest is None or self.newest < command.slot):
                self.newest = command.slot
        elif isinstance(command, c.Release) and step.answer == c.Released() and not command.counts:
            run = run_id(command.slot, command.request)
            told = self.runs.get(run, Told())
            self.runs[run] = told._replace(handed=told.handed + 1)
        for past in step.ended:
            self.runs[past.id] = self.runs.get(past.id, Told())._replace(ended=past.status)


HistoryLaw = Callable[[Chronicle, Step], str | None]


def _one_live_lease(job: Job, mode: Overlap, now: int) -> str | None:
    if mode == "allow" or len(job.runs) < 2:
        return None
    live = [run.id for run in job.runs if run.lease.live(now)]
    return f"{len(live)} leases are live at once: runs {', '.join(live)}" if len(live) > 1 else None


def i1(told: Chronicle, step: Step) -> str | None:
    """I1. Under skip there is at most one live lease: from a win by skip until one by allow."""
    mode = told.mode
    if isinstance(step.command, c.Claim) and step.command.lease_ms is not None and won(step):
        mode = step.command.overlap
    return _one_live_lease(step.after, mode, step.now if step.at is None else step.at)


def i2_over_time(told: Chronicle, step: Step) -> str | None:
    """I2. The attempts won of a run are 1, 2, 3, ..., each by a new token, with fences that grow."""
    attempt = won(step)
    if attempt is None or not isinstance(step.command, c.Claim):
        return None
    run = run_id(step.command.slot, step.command.request)
    before = told.runs.get(run, Told()).won
    if attempt.number != before + 1:
        return f"attempt {attempt.number} of run {run} was won after {before} attempts"
    if attempt.token in told.tokens:
        return f"attempt {attempt.number} of run {run} was won by a token that had won before"
    if attempt.fence <= told.fence:
        return f"attempt {attempt.number} of run {run} has fence {attempt.fence} after {told.fence}"
    return None


def i3_over_time(told: Chronicle, step: Step) -> str | None:
    """I3. After its end nothing changes a run."""
    again = [past.id for past in step.ended] + [run.id for run in step.after.runs]
    for run in again:
        ended = told.runs.get(run, Told()).ended
        if ended:
            return f"run {run} had ended as {ended}, and was changed by a {type(step.command).__name__.lower()}"
    return None


def i4_over_time(told: Chronicle, step: Step) -> str | None:
    """I4, S13. No slot is started for the first time twice, whatever was pruned."""
    attempt = won(step)
    if attempt is None or attempt.number > 1 or not isinstance(step.command, c.Claim):
        return None
    run = run_id(step.command.slot, step.command.request)
    return f"run {run} was started for the first time once more" if told.runs.get(run, Told()).won else None


def i5(told: Chronicle, step: Step) -> str | None:
    """I5. Under skip, slots are won for the first time in the order of the slots."""
    claim, attempt = step.command, won(step)
    if not isinstance(claim, c.Claim) or attempt is None or attempt.number > 1:
        return None
    if claim.request or claim.overlap == "allow" or claim.lease_ms is None:
        return None
    if told.newest is not None and claim.slot <= told.newest:
        return f"slot {claim.slot} was first won after slot {told.newest}"
    return None


def i6(told: Chronicle, step: Step) -> str | None:
    """I6. Attempts that count, by the hand-overs that were told and not by the document, stay within bounds."""
    claim, attempt = step.command, won(step)
    if not isinstance(claim, c.Claim) or attempt is None:
        return None
    run = told.runs.get(run_id(claim.slot, claim.request), Told())
    count = run.won + 1 - run.handed
    if count > claim.max_attempts:
        return f"attempt {attempt.number} was won, the {count}. that counts, of at most {claim.max_attempts}"
    return None


def s16(told: Chronicle, step: Step) -> str | None:
    """S16. Each change stands on the document that the change before it left."""
    return None if step.before == told.job else "a change was made that the history does not tell of"


def r36(told: Chronicle, step: Step) -> str | None:
    """R36. A wish is run once, however often it was told."""
    attempt = won(step)
    if attempt is None or attempt.number > 1 or not isinstance(step.command, c.Claim):
        return None
    wish = step.command.request
    return f"the wish {wish} was run a second time" if wish and wish in told.wishes else None


HISTORY_LAWS: Final[Mapping[str, HistoryLaw]] = {
    "I1": i1, "I4": i4_over_time, "I3": i3_over_time, "I2": i2_over_time, "I5": i5, "I6": i6, "R36": r36, "S16": s16,
}  # fmt: skip


def check_history(steps: Iterable[Step], start: Job = EMPTY) -> Chronicle:
    """Ask all laws of a recorded history of one job, in the order of its versions. Raises Breach."""
    told = Chronicle(start)
    for step in steps:
        told.take(step)
    return told
