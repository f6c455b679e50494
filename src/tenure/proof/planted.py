"""Faults to plant, each breaking one rule or one promise of the store: laws that don't catch them are blunt.

A fault wraps the real rules: it alters what they are asked, or what they answer, and leaves the rest alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tenure.proof import worlds
from tenure.proof.smallworld import Decide, World
from tenure.rules import commands as c
from tenure.rules.job import Job, Past, Run
from tenure.rules.runs import Decision, decide


@dataclass(frozen=True)
class Fault:
    """One fault: the world that shows it, the law that must catch it, and those that must not be asked for that.

    A fault that a narrow law catches at once is planted a second time without that law, to see that what the
    narrow law guards is caught too when it breaks.
    """

    name: str
    law: str
    world: World
    rule: Decide = decide
    versions: bool = True
    deadlines: bool = True
    without: frozenset[str] = frozenset()


def _lapsed(job: Job, chosen: Callable[[Run], bool], now: int) -> Job:
    """The job as if the leases of the chosen runs had run out."""
    runs = (
        run._replace(lease=run.lease._replace(until=min(run.lease.until, now))) if chosen(run) else run
        for run in job.runs
    )
    return job._replace(runs=tuple(runs))


def _patched(job: Job, run: Run) -> Job:
    runs = (run if (one.slot, one.request) == (run.slot, run.request) else one for one in job.runs)
    return job._replace(runs=tuple(runs))


def late_ignored(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A slot may be started however late (R8)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Late):
        return decide(job, replace(command, bound_ms=now - command.slot), now, past)
    return decision


def early_ignored(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A slot may be started before its time."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Early):
        return decide(job, command, command.slot, past)
    return decision


def live_run_interrupted(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A new slot ends what is running (R6, R7)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Overlaps) and decision.marks:
        return decide(_lapsed(job, lambda run: run.slot < command.slot, now), command, now, past)
    return decision


def live_run_taken_over(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A takeover does not ask whether the holder is alive (R2)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Running):
        return decide(_lapsed(job, lambda run: run.slot == command.slot, now), command, now, past)
    return decision


def released_lease_renewed(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A heartbeat that comes after the release renews the lease (R16)."""
    if isinstance(command, c.Heartbeat):
        run = job.find(command.slot, command.request)
        if run is not None and run.lease.released:
            job = _patched(job, run._replace(lease=run.lease._replace(released=False)))
    return decide(job, command, now, past)


def state_forgotten(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """Pruning asks for no age, and keeps no floor (R11)."""
    if not isinstance(command, c.Prune) or not command.heads:
        return decide(job, command, now, past)
    return Decision(job._replace(), c.Noted(True), forget=tuple(head.run for head in command.heads))


def spent_token_wins(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A token that had won, and lost the run, may win again (R40a)."""
    decision = decide(job, command, now, past)
    if not isinstance(command, c.Claim) or not isinstance(decision.answer, c.Spent):
        return decision
    run = job.find(command.slot, command.request)
    if run is None:
        return decision
    others = tuple(one._replace(token=one.token + " before") for one in run.attempts)
    lease = run.lease._replace(token=others[-1].token)
    decision = decide(_patched(job, run._replace(attempts=others, lease=lease)), command, now, past)
    after = decision.job.find(command.slot, command.request)
    if after is None or not isinstance(decision.answer, c.Won):
        return decide(job, command, now, past)
    attempts = (*run.attempts[:-1], after.attempts[-2]._replace(token=run.attempts[-1].token), after.attempts[-1])
    return decision._replace(job=_patched(decision.job, after._replace(attempts=attempts)))


def old_token_accepted(kind: type[c.Heartbeat | c.Finish | c.Release]) -> Decide:
    """A command of this kind works with any token that the run ever had (R14)."""

    def rule(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
        if isinstance(command, kind):
            run = job.find(command.slot, command.request)
            if run is not None and any(one.token == command.token for one in run.attempts):
                command = replace(command, token=run.lease.token)
        return decide(job, command, now, past)

    return rule


def all_leases_renewed(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A heartbeat of one run keeps the others of the job alive too (R13)."""
    decision = decide(job, command, now, past)
    if not isinstance(decision.answer, c.Renewed):
        return decision
    until = decision.answer.until
    runs = tuple(run._replace(lease=run.lease._replace(until=until)) for run in decision.job.runs)
    return decision._replace(job=decision.job._replace(runs=runs))


def finish_after_the_end(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run that ended may be finished once more, with another outcome (R10)."""
    if isinstance(command, c.Finish) and past is not None and past.status != command.status:
        changed = past._replace(status=command.status, ended=now)
        return Decision(job, c.Finished(command.status), (changed,))
    return decide(job, command, now, past)


def ended_run_again(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run that ended may be claimed once more (R10)."""
    if not isinstance(command, c.Claim) or past is None:
        return decide(job, command, now, past)
    decision = decide(job._replace(newest=None, floor=None), command, now, None)
    return decision if isinstance(decision.answer, c.Won) else decide(job, command, now, past)


def overlap_ignored(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run starts beside another one that is alive (R7)."""
    decision = decide(job, command, now, past)
    if not isinstance(command, c.Claim) or not isinstance(decision.answer, c.Overlaps):
        return decision
    decision = decide(job, replace(command, overlap="allow"), now, past)
    run = decision.job.find(command.slot, command.request)
    if run is None:
        return decision
    return decision._replace(job=_patched(decision.job._replace(overlap="skip"), run._replace(overlap="skip")))


def superseded_started(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A slot is first started after a newer one (R9)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Superseded):
        decision = decide(job._replace(newest=None), command, now, past)
        if isinstance(decision.answer, c.Won):
            return decision._replace(job=decision.job._replace(newest=job.newest))
        return decide(job, command, now, past)
    return decision


def attempts_counted_wrongly(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run that was given back is taken for handed over, and the attempt for none (R4, R16)."""
    if isinstance(command, c.Release):
        command = replace(command, counts=False)
    return decide(job, command, now, past)


def attempts_without_end(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run is started again however often its runners died (R4)."""
    if isinstance(command, c.Claim):
        command = replace(command, max_attempts=command.max_attempts + 1)
    return decide(job, command, now, past)


def fence_not_raised(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A takeover is given the fence of the attempt before."""
    decision = decide(job, command, now, past)
    if not isinstance(command, c.Claim) or not isinstance(decision.answer, c.Won) or decision.answer.attempt < 2:
        return decision
    return decision._replace(job=decision.job._replace(fence=job.fence))


def fence_forgotten(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """Pruning starts the fences from the beginning (S12)."""
    decision = decide(job, command, now, past)
    if decision.forget:
        return decision._replace(job=decision.job._replace(fence=0))
    return decision


def lapsed_lease_renewed(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A lease that had run out comes back beside another run that is alive (R7)."""
    decision = decide(job, command, now, past)
    if not isinstance(decision.answer, c.Blocked):
        return decision
    decision = decide(job._replace(overlap="allow"), command, now, past)
    return decision._replace(job=decision.job._replace(overlap=job.overlap))


def dead_run_left(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """Winning a new slot leaves an older run that is dead as it was (R6)."""
    decision = decide(job, command, now, past)
    if not isinstance(decision.answer, c.Won) or not decision.ended:
        return decision
    ended = {one.id for one in decision.ended}
    left = tuple(run for run in job.runs if run.id in ended)
    runs = tuple(sorted((*left, *decision.job.runs), key=lambda run: (run.slot, run.request)))
    return decision._replace(job=decision.job._replace(runs=runs), ended=())


def older_run_taken_over(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A dead run is started again after a newer one (R5)."""
    if isinstance(command, c.Claim) and job.find(command.slot, command.request) is not None:
        decision = decide(job._replace(newest=None), command, now, past)
        if isinstance(decision.answer, c.Won) and decision.job.newest is not None:
            newest = max(decision.job.newest, job.newest or 0)
            return decision._replace(job=decision.job._replace(newest=newest))
    return decide(job, command, now, past)


def won_claim_forgotten(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """The claim that won, asked again as its answer was lost, is told that somebody holds the run (R40a)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Won) and _asked_again(job, command):
        return Decision(job, c.Running("", decision.answer.attempt, decision.answer.until))
    return decision


def _asked_again(job: Job, claim: c.Claim) -> bool:
    run = job.find(claim.slot, claim.request)
    return run is not None and run.lease.held_by(claim.token)


def won_claim_not_renewed(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """The claim that won, asked again, is told so, and its lease is left as it was."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and isinstance(decision.answer, c.Won) and _asked_again(job, command):
        run = job.runs[[one.lease.token for one in job.runs].index(command.token)]
        if run.lease.live(now):
            return Decision(job, replace(decision.answer, until=run.lease.until))
    return decision


def finish_forgotten(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """The finish that ended a run, asked again as its answer was lost, is refused (R40a)."""
    decision = decide(job, command, now, past)
    if isinstance(decision.answer, c.Finished) and decision.answer.already:
        return Decision(job, c.Refused(decision.answer.status))
    return decision


def pause_ignored(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """New runs start while the job is paused (R37)."""
    decision = decide(job, command, now, past)
    if not isinstance(decision.answer, c.Paused):
        return decision
    decision = decide(job._replace(paused=None), command, now, past)
    return decision._replace(job=decision.job._replace(paused=job.paused))


def wish_run_twice(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A wish that was claimed, told again, is a new one (R36)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Trigger) and command.id in job.taken:
        decision = decide(job._replace(taken=(), runs=()), command, now, past)
        return decision._replace(job=decision.job._replace(taken=job.taken, runs=job.runs))
    return decision


def manual_mode_forgotten(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A manual run has no say in who may renew a lapsed lease (R7)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and command.request and isinstance(decision.answer, c.Won):
        return decision._replace(job=decision.job._replace(overlap=job.overlap))
    return decision


def claim_only_mode_kept(job: Job, command: c.Command, now: int, past: Past | None) -> Decision:
    """A run that takes no lease has a say in who may renew one (R46)."""
    decision = decide(job, command, now, past)
    if isinstance(command, c.Claim) and command.lease_ms is None and decision.ended:
        return decision._replace(job=decision.job._replace(overlap=command.overlap))
    return decision


def _but(*laws: str) -> frozenset[str]:
    return frozenset(laws)


FAULTS: Final = (
    Fault("no version check", "I2", worlds.SKIP, versions=False),
    Fault("no deadline", "S14", worlds.SKIP, deadlines=False),
    Fault("no deadline, in effect", "I8a", worlds.SKIP, deadlines=False, without=_but("S14")),
    Fault("lateness ignored", "I4", worlds.SKIP, late_ignored),
    Fault("early ignored", "I4", worlds.SKIP, early_ignored),
    Fault("a live run interrupted", "S11", worlds.SKIP, live_run_interrupted),
    Fault("a live run taken over", "S8", worlds.SKIP, live_run_taken_over),
    Fault("a released lease renewed", "S9", worlds.SKIP, released_lease_renewed),
    Fault("states forgotten too soon", "R11", worlds.FORGET, state_forgotten),
    Fault("a deleted state asked for again", "I4", worlds.FORGET, state_forgotten, without=_but("R11")),
    Fault("a spent token wins again", "I2", worlds.SKIP, spent_token_wins),
    Fault("a finish with an old token", "I3", worlds.SKIP, old_token_accepted(c.Finish)),
    Fault("a heartbeat with an old token", "S4", worlds.SKIP, old_token_accepted(c.Heartbeat)),
    Fault("a release with an old token", "S4", worlds.SKIP, old_token_accepted(c.Release)),
    Fault("a heartbeat that renews other runs", "R40", worlds.ALLOW, all_leases_renewed),
    Fault("a finish after the end", "I3", worlds.SKIP, finish_after_the_end),
    Fault("an ended run claimed again", "I4", worlds.SKIP, ended_run_again),
    Fault("overlap ignored", "I1", worlds.SKIP, overlap_ignored),
    Fault("a superseded slot started", "I4", worlds.SKIP, superseded_started),
    Fault("slots out of order, in effect", "I5", worlds.SKIP, superseded_started, without=_but("I4")),
    Fault("hand-overs counted wrongly", "I6", worlds.SKIP, attempts_counted_wrongly),
    Fault("attempts without end", "I6", worlds.SKIP, attempts_without_end),
    Fault("the fence not raised", "S12", worlds.SKIP, fence_not_raised),
    Fault("the fence forgotten by pruning", "S12", worlds.FORGET, fence_forgotten),
    Fault("a lapsed lease renewed beside a live one", "I1", worlds.MANUAL, lapsed_lease_renewed),
    Fault("the overlap mode of a manual run forgotten", "I1", worlds.MIXED, manual_mode_forgotten),
    Fault("the overlap mode of a claim-only run kept", "I1", worlds.DEPLOYS, claim_only_mode_kept),
    Fault("a dead run left by a newer win", "R6", worlds.SKIP, dead_run_left),
    Fault("a dead run taken over after a newer win", "R5", worlds.ALLOW, older_run_taken_over),
    Fault("a claim that won told otherwise", "I8a", worlds.SKIP, won_claim_forgotten),
    Fault("a claim that won, asked again, not renewed", "I9", worlds.SKIP, won_claim_not_renewed),
    Fault("a finish that ended the run refused", "S15", worlds.SKIP, finish_forgotten),
    Fault("a pause ignored", "R37", worlds.MANUAL, pause_ignored),
    Fault("a wish run twice", "R36", worlds.MANUAL, wish_run_twice),
)
