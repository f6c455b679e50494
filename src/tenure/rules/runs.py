"""One job's runs: the rules R1 to R18, R29a, R36, R37 and R46, once, for every store.

House rules of this file:
- `decide` is a pure function of the document, the command and the store's time; it never waits or draws.
- It is total: every command has an answer in every state, and an answer is a value, never an exception.
- What loses changes nothing: the very same document comes back, so that nothing is written.
- It is safe to ask again: a command that took effect answers the same when its reply was lost.
"""

from __future__ import annotations

from typing import Final, NamedTuple, assert_never

from tenure.rules import commands as c
from tenure.rules.instant import DAY, MINUTE, SECOND
from tenure.rules.job import Attempt, Definition, Job, Mark, Past, Request, Run
from tenure.rules.lease import VALIDITY, Lease, validity

# A claim that is late by no more than this beyond its bound still counts as in time (R8).
TOLERANCE: Final = 10 * SECOND
# How much longer than any lateness or lease a record is kept (R11).
KEPT: Final = MINUTE
# Wishes that wait at a time, wishes and schedules remembered per job: a document stays small.
REQUESTS: Final = 16
TAKEN: Final = 8
SCHEDULES: Final = 4


class Decision(NamedTuple):
    """The document as it is to be, the answer, and what goes into the history beside it.

    ended: runs that ended by this; marks: see Mark; forget: names of ended runs to delete; trim: marks up
    to this slot are to be deleted; hint: others would like to know at once; valid_ms: how long after `now`
    it may still be written.
    """

    job: Job
    answer: c.Answer
    ended: tuple[Past, ...] = ()
    marks: tuple[Mark, ...] = ()
    forget: tuple[str, ...] = ()
    trim: int | None = None
    hint: bool = False
    valid_ms: int = VALIDITY


def decide(job: Job, command: c.Command, now: int, past: Past | None = None) -> Decision:
    """What `command` does to `job` at `now`. `past`: the ended run that the command speaks of, if there is one."""
    match command:
        case c.Claim():
            return _claim(job, command, now, past)
        case c.Heartbeat():
            return _heartbeat(job, command, now, past)
        case c.Finish():
            return _finish(job, command, now, past)
        case c.Release():
            return _release(job, command, now, past)
        case c.Register():
            return _register(job, command, now)
        case c.Pause():
            return _pause(job, now)
        case c.Resume():
            return _resume(job)
        case c.Trigger():
            return _trigger(job, command, now)
        case c.Missed():
            return _missed(job, command, now)
        case c.Prune():
            return _prune(job, command, now)
        case _:
            assert_never(command)


def live_runs(job: Job, now: int, but: Run | None = None) -> tuple[Run, ...]:
    """The runs of the job whose lease is live, `but` one."""
    return tuple(run for run in job.runs if run is not but and run.lease.live(now))


# --- claims -----------------------------------------------------------------------------------------------


def _claim(job: Job, claim: c.Claim, now: int, past: Past | None) -> Decision:
    if past is not None:
        last = past.attempts[-1]
        if past.status == "claimed" and last.token == claim.token:
            return Decision(job, c.Won(last.number, last.token, last.fence, now, last.reason))
        return Decision(job, c.Ended(past.status))
    run = job.find(claim.slot, claim.request)
    if run is not None:
        return _claim_again(job, run, claim, now)
    return _claim_new(job, claim, now)


def _claim_again(job: Job, run: Run, claim: c.Claim, now: int) -> Decision:
    """A claim of a run that was started before: R2, R5, R4, R7, R3, in this order."""
    current, live = run.attempts[-1], run.lease.live(now)
    if run.lease.held_by(claim.token):
        return _claim_repeated(job, run, now)
    if any(attempt.token == claim.token for attempt in run.attempts):
        return Decision(job, c.Spent())
    if live:
        return Decision(job, c.Running(run.lease.holder, current.number, run.lease.until))
    newer_won = not run.request and job.newest is not None and job.newest > run.slot
    used_up = len(run.attempts) - run.handed >= claim.max_attempts
    if newer_won or used_up or claim.lease_ms is None:
        over = run.interrupted(now)
        ended = c.Ended("interrupted")
        return Decision(job.without(over), ended, (over,), valid_ms=validity(run.lease_ms))
    if claim.overlap == "skip" and (others := live_runs(job, now, run)):
        return Decision(job, _overlaps(others[0]))
    return _win(job, claim, claim.lease_ms, now, run)


def _claim_repeated(job: Job, run: Run, now: int) -> Decision:
    """The claim that won, asked again: its answer was lost.

    The lease is renewed, if it may: who asks reckons its lease from this very read on (R26).
    """
    current = run.attempts[-1]
    if not run.lease.live(now) and job.overlap == "skip" and (others := live_runs(job, now, run)):
        return Decision(job, _overlaps(others[0]))
    renewed = run.renewed(now, run.progress)
    won = c.Won(current.number, current.token, current.fence, renewed.lease.until, current.reason)
    return Decision(job.with_run(renewed), won, valid_ms=validity(run.lease_ms))


def _claim_new(job: Job, claim: c.Claim, now: int) -> Decision:
    """A claim of a run that has no state: the first refusal that applies, else R1."""
    if not claim.create:
        return Decision(job, c.Gone())
    ordered = claim.lease_ms is not None and claim.overlap == "skip"
    if claim.request:
        if all(request.id != claim.request for request in job.requests):
            return Decision(job, c.Ended("forgotten"))
    else:
        if (job.floor is not None and claim.slot <= job.floor) or claim.slot == job.newest:
            return Decision(job, c.Ended("forgotten"))
        if claim.slot > now:
            return Decision(job, c.Early(claim.slot - now))
        if ordered and job.newest is not None and job.newest > claim.slot:
            return Decision(job, c.Superseded(job.newest))
    late = now - claim.slot - claim.bound_ms - TOLERANCE
    if late > 0:
        # A wish that came too late is dropped, or every instance would go on asking for it.
        return Decision(_unwished(job, claim), c.Late(late), marks=(_mark(claim, "late", "", now),))
    if job.paused is not None:
        return Decision(job, c.Paused(job.paused), marks=(_mark(claim, "paused", "", now),))
    if ordered and (others := live_runs(job, now)):
        return Decision(job, _overlaps(others[0]), marks=(_mark(claim, "overlap", others[0].id, now),))
    if claim.lease_ms is None:
        return _record(job, claim, now)
    return _win(job, claim, claim.lease_ms, now, None)


def _win(job: Job, claim: c.Claim, lease_ms: int, now: int, run: Run | None) -> Decision:
    """R1 and R3, and R6 where it is a new run: the attempt, its lease, and the end of what it replaces."""
    number = len(run.attempts) + 1 if run else 1
    fence, until = job.fence + 1, now + lease_ms
    attempt = Attempt(number, claim.token, claim.runner, claim.reason, fence, now, now)
    won = Run(
        claim.slot,
        claim.request,
        Lease(claim.token, claim.runner, until),
        lease_ms,
        claim.overlap,
        run.handed if run else 0,
        (*run.closed(), attempt) if run else (attempt,),
        run.progress if run else None,
    )
    over = () if run or claim.request else _replaced(job, claim.slot, now)
    return Decision(
        _progressed(job.without(*over).with_run(won), claim, fence),
        c.Won(number, claim.token, fence, until, claim.reason),
        over,
        valid_ms=validity(lease_ms),
    )


def _record(job: Job, claim: c.Claim, now: int) -> Decision:
    """R46, claim-only: the winner is recorded as ended at once; no lease, no order, no overlap."""
    fence = job.fence + 1
    attempt = Attempt(1, claim.token, claim.runner, claim.reason, fence, now, now, 0, now, "claimed")
    past = Past(claim.slot, claim.request, "claimed", now, 0, 0, (attempt,))
    won = c.Won(1, claim.token, fence, now, claim.reason)
    return Decision(_progressed(job, claim, fence), won, (past,))


def _progressed(job: Job, claim: c.Claim, fence: int) -> Job:
    """What a win leaves in the document besides the run itself."""
    job = _unwished(job._replace(fence=fence, bound=max(job.bound, claim.bound_ms)), claim)
    # A run that takes no lease has no say in who may renew one (R46). A manual one has, though it is no slot:
    # else a lapsed run of an old definition could come back beside it (R7).
    overlap = job.overlap if claim.lease_ms is None else claim.overlap
    if claim.request:
        return job._replace(overlap=overlap)
    if job.newest is not None and job.newest > claim.slot:
        return job
    return job._replace(newest=claim.slot, overlap=overlap)


def _unwished(job: Job, claim: c.Claim) -> Job:
    if not claim.request:
        return job
    waiting = tuple(wish for wish in job.requests if wish.id != claim.request)
    taken = tuple(wish for wish in job.taken if wish != claim.request)[1 - TAKEN :]
    return job._replace(requests=waiting, taken=(*taken, claim.request))


def _replaced(job: Job, slot: int, now: int) -> tuple[Past, ...]:
    """R6: older runs, and manual ones, whose lease is not live when `slot` is won."""
    dead = (run for run in job.runs if (run.slot < slot or run.request) and not run.lease.live(now))
    return tuple(run.interrupted(now) for run in dead)


def _overlaps(other: Run) -> c.Overlaps:
    return c.Overlaps(other.slot, other.request, other.lease.holder, other.lease.until)


def _mark(claim: c.Claim, why: str, whom: str, now: int) -> Mark:
    return Mark(claim.slot, claim.slot, 1, why, whom, now, claim.runner, claim.request, claim.after)


# --- the holder -------------------------------------------------------------------------------------------


def _heartbeat(job: Job, beat: c.Heartbeat, now: int, past: Past | None) -> Decision:
    """R13 and R14; a lapsed lease is renewed under `skip` only if no other run of the job is alive (R7)."""
    run = job.find(beat.slot, beat.request)
    if run is None or not run.lease.held_by(beat.token):
        return Decision(job, _refused(run, past))
    if not run.lease.live(now) and job.overlap == "skip" and (others := live_runs(job, now, run)):
        return Decision(job, c.Blocked(others[0].slot, others[0].lease.holder))
    renewed = run.renewed(now, beat.progress or run.progress)
    return Decision(job.with_run(renewed), c.Renewed(renewed.lease.until), valid_ms=validity(run.lease_ms))


def _finish(job: Job, finish: c.Finish, now: int, past: Past | None) -> Decision:
    """R15; the same finish again answers ok."""
    if past is not None:
        if past.attempts[-1].token == finish.token and past.status == finish.status:
            return Decision(job, c.Finished(past.status, True))
        return Decision(job, _refused(None, past))
    run = job.find(finish.slot, finish.request)
    if run is None or not run.lease.held_by(finish.token):
        return Decision(job, _refused(run, past))
    ended = run.attempts[-1]._replace(ended=now, how=finish.how or finish.status)
    over = run.over(finish.status, now, (*run.attempts[:-1], ended))._replace(result=finish.result, error=finish.error)
    answer = c.Finished(finish.status)
    return Decision(job.without(over), answer, (over,), valid_ms=validity(run.lease_ms))


def _release(job: Job, release: c.Release, now: int, past: Past | None) -> Decision:
    """R16; the same release again answers ok."""
    run = job.find(release.slot, release.request)
    if run is None or run.lease.token != release.token:
        return Decision(job, _refused(run, past))
    if run.lease.released:
        return Decision(job, c.Released(True))
    ended = run.attempts[-1]._replace(ended=now, how="unsure" if release.counts else "handed-over")
    released = run._replace(
        lease=run.lease.given_back(now),
        handed=run.handed + (not release.counts),
        attempts=(*run.attempts[:-1], ended),
    )
    return Decision(job.with_run(released), c.Released(), hint=True, valid_ms=validity(run.lease_ms))


def _refused(run: Run | None, past: Past | None) -> c.Refused:
    if past is not None:
        return c.Refused(past.status, past.attempts[-1].runner)
    if run is None:
        return c.Refused("unknown")
    return c.Refused("released" if run.lease.released else "running", run.lease.holder)


# --- the job ----------------------------------------------------------------------------------------------


def _register(job: Job, told: c.Register, now: int) -> Decision:
    """R29a: when a schedule was first seen is kept, also while an old and a new one alternate in a deploy.

    Not where somebody went back to one on purpose: what passed while another held is not a slot of it.
    """
    changed = told.anew and job.definition is not None and job.definition.schedule != told.schedule
    since = now if changed else dict(job.seen).get(told.schedule, now)
    seen = tuple(pair for pair in job.seen if pair[0] != told.schedule)[1 - SCHEDULES :]
    before = job.definition
    after = job._replace(
        seen=(*seen, (told.schedule, since)),
        definition=Definition(told.schedule, told.fingerprint, told.told),
        bound=max(job.bound, told.bound_ms),
    )
    drift = before is not None and before.fingerprint != told.fingerprint
    return Decision(job if after == job else after, c.Registered(since, drift))


def _pause(job: Job, now: int) -> Decision:
    if job.paused is not None:
        return Decision(job, c.Noted(False))
    return Decision(job._replace(paused=now), c.Noted(True), hint=True)


def _resume(job: Job) -> Decision:
    if job.paused is None:
        return Decision(job, c.Noted(False))
    return Decision(job._replace(paused=None), c.Noted(True), hint=True)


def _trigger(job: Job, wish: c.Trigger, now: int) -> Decision:
    """R36; the same wish again changes nothing. Wishes of yesterday that nobody could claim are dropped."""
    told = any(request.id == wish.id for request in job.requests)
    if told or wish.id in job.taken or any(run.request == wish.id for run in job.runs):
        return Decision(job, c.Noted(True))
    fresh = tuple(request for request in job.requests if now - request.at < DAY)
    if len(fresh) >= REQUESTS:
        return Decision(job, c.Noted(False))
    return Decision(job._replace(requests=(*fresh, Request(wish.id, now, wish.by))), c.Noted(True), hint=True)


def _missed(job: Job, missed: c.Missed, now: int) -> Decision:
    mark = Mark(missed.first, missed.last, missed.count, missed.why, "", now, missed.by)
    return Decision(job, c.Noted(True), marks=(mark,))


def _prune(job: Job, prune: c.Prune, now: int) -> Decision:
    """R11: never what a late claim could still ask for, nor what ended too recently."""
    young = now - job.bound - TOLERANCE - KEPT
    gone = [head for head in prune.heads if head.slot < young and head.keep <= now]
    slots = [head.slot for head in gone if "#" not in head.run]
    floor = max((*slots, job.floor) if job.floor is not None else slots, default=job.floor)
    trim = prune.marks_until if prune.marks_until is not None and prune.marks_until < young else None
    forgotten = job.forgotten if trim is None else max(trim, job.forgotten or trim)
    if not gone and trim is None:
        return Decision(job, c.Noted(False))
    after = job._replace(floor=floor, forgotten=forgotten)
    return Decision(after, c.Noted(True), forget=tuple(head.run for head in gone), trim=trim)


def keep_until(past: Past) -> int:
    """The first time at which the record of an ended run may be deleted on account of its lease (R11)."""
    return past.ended + past.lease_ms + KEPT
