"""One job with no store between: ask the rules, keep what they decide, and hold every law on the way.

For tests that tell a story at given times. Time is an argument and may go anywhere.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.proof.chronicle import Chronicle
from tenure.proof.steps import Step
from tenure.rules import commands as c
from tenure.rules.instant import SECOND
from tenure.rules.job import EMPTY, Job, Mark, Past, Run, run_id
from tenure.rules.runs import Decision, decide, keep_until

LEASE: Final = 30 * SECOND


class OneJob:
    """A job's document, the history and the marks beside it.

    last: the decision made last; laws: whether they are asked (not where a story starts in its middle).
    """

    def __init__(self, job: Job = EMPTY, *, laws: bool = True) -> None:
        self.job = job
        self.history: dict[str, Past] = {}
        self.marks: list[Mark] = []
        self.last = Decision(job, c.Noted(changed=False))
        self._told = Chronicle(job) if laws else None

    def ask(self, command: c.Command, at: int) -> c.Answer:
        """Put a command to the rules at this time, and keep what they decide."""
        past = None
        if isinstance(command, c.Claim | c.Heartbeat | c.Finish | c.Release):
            past = self.history.get(run_id(command.slot, command.request))
        self.last = decide(self.job, command, at, past)
        if self._told is not None:
            self._told.take(Step.of(self.job, command, at, self.last, past, at=at))
        self.job = self.last.job
        self.history |= {one.id: one for one in self.last.ended}
        for run in self.last.forget:
            self.history.pop(run, None)
        self.marks += self.last.marks
        return self.last.answer

    def claim(self, slot: int, token: str, at: int, **options: Any) -> c.Answer:
        """Ask for a run; the runner is named after its token. `options` are fields of the claim."""
        return self.ask(claim(slot, token, **options), at)

    def takeover(self, slot: int, token: str, at: int, **options: Any) -> c.Answer:
        """Ask for the next attempt of a run that exists."""
        return self.ask(claim(slot, token, create=False, reason="takeover", **options), at)

    def beat(self, slot: int, token: str, at: int, request: str = "") -> c.Answer:
        """Say that the holder is alive."""
        return self.ask(c.Heartbeat(slot, token, request), at)

    def finish(self, slot: int, token: str, at: int, **options: Any) -> c.Answer:
        """Say that the handler has ended, with success where nothing else is said."""
        return self.ask(c.Finish(slot, token, **{"status": "success", **options}), at)

    def release(self, slot: int, token: str, at: int, *, counts: bool = False, request: str = "") -> c.Answer:
        """Give the run back: a hand-over, unless it counts."""
        return self.ask(c.Release(slot, token, counts, request), at)

    def prune(self, at: int, history: int = 0) -> c.Answer:
        """Forget the ended runs beyond `history`, as a store would name them."""
        past = sorted(self.history.values(), key=lambda one: (one.slot, one.id))
        beyond = past[: max(0, len(past) - history)]
        return self.ask(c.Prune(tuple(c.Head(one.id, one.slot, keep_until(one)) for one in beyond)), at)

    def run(self, slot: int, request: str = "") -> Run:
        """The unfinished run; there must be one."""
        run = self.job.find(slot, request)
        if run is None:
            raise LookupError(f"there is no unfinished run {run_id(slot, request)}")
        return run

    def past(self, slot: int, request: str = "") -> Past:
        """The ended run; there must be one."""
        return self.history[run_id(slot, request)]


def claim(slot: int, token: str, **options: Any) -> c.Claim:
    """A claim by the schedule with the defaults of the options, but those given."""
    given = {
        "runner": f"runner of {token}",
        "lease_ms": LEASE,
        "max_attempts": 3,
        "bound_ms": 60 * SECOND,
        "overlap": "skip",
        "reason": "manual" if options.get("request") else "schedule",
        "create": True,
    }
    return c.Claim(slot, token, **{**given, **options})
