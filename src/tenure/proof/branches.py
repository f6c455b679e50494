"""Names for the branches of the rules, so that a search can say which it met, and a test that it met them all."""

from __future__ import annotations

from typing import Final

from tenure.proof.steps import Step, counted, won
from tenure.rules import commands as c
from tenure.rules.job import Run

_HOLDERS: Final = {"Heartbeat": "heartbeat", "Finish": "finish", "Release": "release"}


def branch(step: Step) -> str:
    """The branch of the rules that answered this step, in words."""
    match step.command:
        case c.Claim() as claim:
            return _of_claim(step, claim, step.before.find(claim.slot, claim.request))
        case c.Heartbeat() | c.Finish() | c.Release() as command:
            return _of_holder(step, command, step.before.find(command.slot, command.request))
        case _:
            pass
    told = type(step.command).__name__.lower()
    return f"{told}: {'done' if step.effective else 'nothing to do'}"


def _of_claim(step: Step, claim: c.Claim, run: Run | None) -> str:
    match step.answer:
        case c.Won():
            return _of_won(step, claim, run)
        case c.Overlaps():
            if run is None:
                return "R7 overlap, new run"
            return "R7 overlap, won before" if run.lease.token == claim.token else "R7 overlap, takeover"
        case c.Ended():
            return _of_ended(step, claim, run)
        case c.Late() if step.effective:
            return "R8 late, wish dropped"
        case _:
            pass
    return {
        c.Running: "R2 running", c.Late: "R8 late", c.Superseded: "R9 superseded", c.Gone: "gone",
        c.Early: "early", c.Paused: "R37 paused", c.Spent: "R40a spent",
    }[type(step.answer)]  # fmt: skip


def _of_won(step: Step, claim: c.Claim, run: Run | None) -> str:
    attempt = won(step)
    if attempt is None:
        if claim.lease_ms is None:
            return "R46 claimed before"
        return "R40a won before, lease renewed" if step.effective else "R40a won before"
    if claim.lease_ms is None:
        return "R46 claimed"
    if run is not None:
        return "R3 next attempt, released" if run.lease.released else "R3 next attempt, expired"
    if claim.request:
        return "R1 won, manual"
    return "R6 won, dead runs interrupted" if step.ended else "R1 won"


def _of_ended(step: Step, claim: c.Claim, run: Run | None) -> str:
    if step.past is not None:
        return "R10 ended"
    if run is not None:
        if claim.lease_ms is None:
            return "R46 left by a lease"
        return "R4 used up" if counted(run) >= claim.max_attempts else "R5 newer run won"
    if claim.request:
        return "R36 no such wish"
    floor = step.before.floor
    return "R11 forgotten, floor" if floor is not None and claim.slot <= floor else "R11 forgotten, newest"


def _of_holder(step: Step, command: c.Heartbeat | c.Finish | c.Release, run: Run | None) -> str:
    name = _HOLDERS[type(command).__name__]
    late = run is not None and not run.lease.live(step.now)
    match step.answer:
        case c.Renewed():
            return "R13 renewed after expiry" if late else "R13 renewed"
        case c.Blocked():
            return "R7 heartbeat blocked"
        case c.Finished(_, already):
            if already:
                return "R15 finished before"
            return "R15 finished after expiry" if late else "R15 finished"
        case c.Released(already):
            if already:
                return "R16 released before"
            return "R16 given back" if isinstance(command, c.Release) and command.counts else "R16 handed over"
        case c.Refused(status):
            ended = status not in ("running", "released", "unknown")
            return f"R14 {name} refused, {'ended' if ended else status}"
        case _:
            return f"{name}: {step.answer}"
