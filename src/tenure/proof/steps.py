"""What the laws are asked of: one command that was answered, and what it left of the job.

Whoever records a history (the explorer, a simulator, a test with real servers) tells it in steps. Real stores
give the documents in the order of their versions; what is not known of a step is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tenure.rules import commands as c
from tenure.rules.job import Attempt, Job, Past, Run, run_id
from tenure.rules.runs import Decision


@dataclass(frozen=True, slots=True)
class Step:
    """One command that was answered, and what it left: two neighbouring documents of one job.

    before: the document that the change replaced; now: the store's time of the read that it was decided on;
    past: the ended run that the command spoke of, if the read found one; ended, forget: what the change put
    into the history and took out of it; at: the store's time when it was written, where it is known;
    deadline: the last store time at which it might be.
    """

    before: Job
    command: c.Command
    now: int
    answer: c.Answer
    after: Job
    ended: tuple[Past, ...] = ()
    forget: tuple[str, ...] = ()
    past: Past | None = None
    at: int | None = None
    deadline: int | None = None

    @classmethod
    def of(
        cls,
        before: Job,
        command: c.Command,
        now: int,
        decision: Decision,
        past: Past | None = None,
        *,
        at: int | None = None,
    ) -> Self:
        """The step that `decide` made of a command; `at`: when it was written, where it was."""
        job, answer, ended, _, forget, _, _, valid_ms = decision
        return cls(before, command, now, answer, job, ended, forget, past, at, now + valid_ms)

    @property
    def effective(self) -> bool:
        """Whether anything changed."""
        return bool(self.ended or self.forget) or self.after != self.before


class Breach(Exception):
    """A law that was broken: its number, what is wrong, and the step (None: time alone broke it)."""

    def __init__(self, law: str, sentence: str, step: Step | None) -> None:
        self.law, self.sentence, self.step = law, sentence, step
        super().__init__(f"{law}: {sentence}")


def won(step: Step) -> Attempt | None:
    """The attempt that this step began; None for all else, also for a claim that won before and asks again."""
    claim = step.command
    if not isinstance(claim, c.Claim) or not isinstance(step.answer, c.Won):
        return None
    before = step.before.find(claim.slot, claim.request)
    if before is not None and before.lease.held_by(claim.token):
        return None
    after = step.after.find(claim.slot, claim.request)
    if after is not None:
        return after.attempts[-1]
    ended = (past for past in step.ended if past.id == run_id(claim.slot, claim.request))
    return next((past.attempts[-1] for past in ended), None)


def counted(run: Run) -> int:
    """The attempts of a run that count against its maximum."""
    return len(run.attempts) - run.handed
