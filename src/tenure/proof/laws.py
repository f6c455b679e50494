"""The laws of runs, one function each, numbered as in the specification; asked of every change of a document.

The laws here are asked of one step alone; those that need all that went before stand in `chronicle.py`. A law
answers with a sentence where it is broken, else None. None of them calls the rules: they would repeat their
mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tenure.proof.steps import Breach, Step, counted, won
from tenure.rules import commands as c
from tenure.rules.job import Job, Past, Run, run_id
from tenure.rules.runs import KEPT, TOLERANCE

LOSING: Final = (
    c.Running, c.Overlaps, c.Late, c.Superseded, c.Gone, c.Early, c.Paused, c.Spent, c.Blocked, c.Refused,
)  # fmt: skip
HOLDERS: Final = (c.Heartbeat, c.Finish, c.Release)

StepLaw = Callable[[Step], str | None]


def _both(step: Step) -> Iterator[tuple[Run, Run]]:
    """Each run that stands in both documents, before and after."""
    for before in step.before.runs:
        after = step.after.find(before.slot, before.request)
        if after is not None and after is not before:
            yield before, after


def i2(step: Step) -> str | None:
    """I2. Attempts are 1, 2, 3, ... without gaps, each with its own token; what was told of one stays."""
    for run in step.after.runs:
        numbers = [attempt.number for attempt in run.attempts]
        if numbers != list(range(1, len(numbers) + 1)):
            return f"the attempts of run {run.id} are numbered {numbers}"
        if len({attempt.token for attempt in run.attempts}) < len(numbers):
            return f"a token was used twice in run {run.id}"
        if run.lease.token != run.attempts[-1].token:
            return f"the lease of run {run.id} is not its last attempt's"
    for before, after in _both(step):
        more = len(after.attempts) - len(before.attempts)
        if more not in (0, 1) or (more and won(step) is None):
            return f"run {before.id} went from {len(before.attempts)} to {len(after.attempts)} attempts"
        for old, new in zip(before.attempts, after.attempts, strict=False):
            if old[:6] != new[:6]:
                return f"attempt {old.number} of run {before.id} became another one: {old.token}, {new.token}"
    return None


def i3(step: Step) -> str | None:
    """I3. A finish carries the last attempt's token; a run leaves the document only by its one end."""
    ended = {past.id: past for past in step.ended}
    for run in step.before.runs:
        if (step.after.find(run.slot, run.request) is None) != (run.id in ended):
            return f"run {run.id} vanished without an end, or ended and is still there"
        if run.id in ended and ended[run.id].attempts[-1].token != run.lease.token:
            return f"run {run.id} ended by a token that is not its last attempt's"
    if len(ended) < len(step.ended) or (step.past is not None and step.past.id in ended):
        return f"a run ended twice: {', '.join(past.id for past in step.ended)}"
    if isinstance(step.command, c.Finish) and step.answer == c.Finished(step.command.status):
        finished = step.before.find(step.command.slot, step.command.request)
        if finished is None or finished.lease.token != step.command.token:
            return "a finish was accepted that does not carry the last attempt's token"
    return None


def i4(step: Step) -> str | None:
    """I4. No slot is first started after it ended, was superseded (skip), too late, or early."""
    claim, attempt = step.command, won(step)
    if not isinstance(claim, c.Claim) or attempt is None or attempt.number > 1:
        return None
    if not claim.create:
        return "a takeover started a run that did not exist"
    if step.past is not None:
        return f"run {step.past.id} was started again after it had ended as {step.past.status}"
    if step.now - claim.slot > claim.bound_ms + TOLERANCE:
        return f"slot {claim.slot} was started {step.now - claim.slot} ms late, more than its bound allows"
    if claim.request:
        return None
    if claim.slot > step.now:
        return f"slot {claim.slot} was started {claim.slot - step.now} ms before its time"
    newest = step.before.newest
    if newest is not None and newest > claim.slot and claim.overlap == "skip" and claim.lease_ms is not None:
        return f"slot {claim.slot} was started after the newer slot {newest}"
    return None


def s4(step: Step) -> str | None:
    """S4. A heartbeat, finish or release that changed anything carried the current token."""
    command = step.command
    if not isinstance(command, HOLDERS) or not step.effective:
        return None
    run = step.before.find(command.slot, command.request)
    if run is None or run.lease.token != command.token:
        return f"a {type(command).__name__.lower()} changed a run with a token that is not current"
    return None


def s8(step: Step) -> str | None:
    """S8. A live run is taken over by nobody."""
    for before, after in _both(step):
        if len(after.attempts) > len(before.attempts) and before.lease.live(step.now):
            return f"run {before.id} was taken over while its lease was live"
    return None


def s9(step: Step) -> str | None:
    """S9. A released lease stays released until the next attempt is won."""
    for before, after in _both(step):
        same = before.lease.token == after.lease.token
        if before.lease.released and same and after.lease != before.lease:
            return f"the released lease of run {before.id} was renewed"
    return None


def s10(step: Step) -> str | None:
    """S10. A finish never ends a run whose attempt was released."""
    if not isinstance(step.command, c.Finish):
        return None
    for past in step.ended:
        run = step.before.find(past.slot, past.request)
        if run is not None and run.lease.released:
            return f"run {past.id} was finished after its release"
    return None


def s11(step: Step) -> str | None:
    """S11. Interrupted only with no live lease, and because a newer run came or the attempts are used up."""
    claim = step.command
    for past in step.ended:
        run = step.before.find(past.slot, past.request)
        if past.status != "interrupted" or run is None:
            continue
        if run.lease.live(step.now):
            return f"run {past.id} was interrupted while its lease was live"
        if not isinstance(claim, c.Claim):
            return f"run {past.id} was interrupted by no claim"
        newest = step.after.newest
        newer = newest is not None and newest > run.slot
        if run.request:  # a wish is superseded by no slot; only winning one ends it
            newer = won(step) is not None and not claim.request
        asked = (claim.slot, claim.request) == (run.slot, run.request)
        used_up = asked and counted(run) >= claim.max_attempts
        # R46: a definition that became claim-only takes nothing over; what a lease left is at its end.
        if not newer and not used_up and not (asked and claim.lease_ms is None):
            return f"run {past.id} was interrupted though it had attempts left and no newer run was won"
    return None


def s12(step: Step) -> str | None:
    """S12. The fence grows by one with every attempt won, and changes with nothing else."""
    attempt = won(step)
    if attempt is None:
        if step.after.fence != step.before.fence:
            return f"the fence went from {step.before.fence} to {step.after.fence} with no attempt won"
    elif not attempt.fence == step.after.fence == step.before.fence + 1:
        return f"attempt {attempt.number} has fence {attempt.fence} after {step.before.fence}"
    return None


def s14(step: Step) -> str | None:
    """S14. What reaches the store after its deadline changes nothing."""
    if step.at is None or step.deadline is None or not step.effective or step.at <= step.deadline:
        return None
    return f"a change decided at {step.now} was written {step.at - step.deadline} ms after its deadline"


def s15(step: Step) -> str | None:
    """S15. What is acknowledged is recorded; the finish that ended a run, asked again, is answered ok."""
    command, answer, past = step.command, step.answer, step.past
    if not isinstance(command, c.Claim | c.Heartbeat | c.Finish | c.Release):
        return None
    run = step.after.find(command.slot, command.request)
    lease = None if run is None else run.lease
    over = next((one for one in (*step.ended, past) if one is not None and _of(one, command)), None)
    match answer:
        case c.Won():
            token, until = (over.attempts[-1].token, 0) if over is not None else ("", 0)
            if lease is not None:
                token, until = lease.token, lease.until
            told = token == command.token and (until == answer.until or lease is None)
        case c.Renewed():
            told = lease is not None and lease.held_by(command.token) and lease.until == answer.until
        case c.Released():
            told = lease is not None and lease.token == command.token and lease.released
        case c.Finished():
            told = over is not None and (over.attempts[-1].token, over.status) == (command.token, answer.status)
        case _ if isinstance(command, c.Finish) and past is not None:
            told = (past.attempts[-1].token, past.status) != (command.token, command.status)
        case _:
            told = True
    return None if told else f"a {type(command).__name__.lower()} was answered {answer}, and the record differs"


def _of(past: Past, command: c.Claim | c.Heartbeat | c.Finish | c.Release) -> bool:
    return (past.slot, past.request) == (command.slot, command.request)


def r2(step: Step) -> str | None:
    """R2, R3, I7. `running` is said of a live lease only; a run without one can be claimed or is ended."""
    claim = step.command
    if not isinstance(claim, c.Claim):
        return None
    run = step.before.find(claim.slot, claim.request)
    live = run is not None and run.lease.live(step.now)
    if isinstance(step.answer, c.Running) and not live:
        return f"run {run_id(claim.slot, claim.request)} was called running, but its lease is not live"
    if run is not None and not live and not isinstance(step.answer, c.Won | c.Ended | c.Overlaps | c.Spent):
        return f"run {run.id} has no live lease and can't be claimed: {step.answer}"
    return None


def r5(step: Step) -> str | None:
    """R5. No slot is started once more after a newer one was won."""
    claim, attempt = step.command, won(step)
    if not isinstance(claim, c.Claim) or attempt is None or attempt.number == 1 or claim.request:
        return None
    newest = step.before.newest
    if newest is not None and newest > claim.slot:
        return f"attempt {attempt.number} of slot {claim.slot} was won after the newer slot {newest}"
    return None


def r6(step: Step) -> str | None:
    """R6. When a new slot is won, no older run and no manual run without a live lease is left."""
    claim, attempt = step.command, won(step)
    if not isinstance(claim, c.Claim) or attempt is None or attempt.number > 1:
        return None
    if claim.request or claim.lease_ms is None:
        return None
    for run in step.after.runs:
        if (run.slot < claim.slot or run.request) and not run.lease.live(step.now):
            return f"run {run.id} is dead and was left unfinished when slot {claim.slot} was won"
    return None


def r11(step: Step) -> str | None:
    """R11. What is forgotten was old enough, and the floor is raised over it."""
    if isinstance(step.command, c.Prune):
        heads = {head.run: head for head in step.command.heads}
        for run in step.forget:
            if step.now - heads[run].slot <= step.before.bound + TOLERANCE + KEPT:
                return f"run {run} was forgotten while a late claim could still ask for it"
            if heads[run].keep > step.now:
                return f"run {run} was forgotten too soon after its end"
            if "#" not in run and (step.after.floor is None or step.after.floor < heads[run].slot):
                return f"run {run} was forgotten, but the floor is {step.after.floor}"
    elif step.forget:
        return f"runs were forgotten by no pruning: {', '.join(step.forget)}"
    low, high = step.before.floor, step.after.floor
    if low is not None and (high is None or high < low):
        return f"the floor sank from {low} to {high}"
    return None


def r13(step: Step) -> str | None:
    """R13, R24. The current token of a run that was not released is never refused."""
    command = step.command
    if not isinstance(command, HOLDERS) or not isinstance(step.answer, c.Refused):
        return None
    run = step.before.find(command.slot, command.request)
    if run is not None and run.lease.held_by(command.token):
        return f"the current token of run {run.id} was refused: {step.answer}"
    return None


def r14(step: Step) -> str | None:
    """R12, R14. What loses changes nothing, but that a wish that came too late is dropped (R36)."""
    if not isinstance(step.answer, LOSING) or not step.effective:
        return None
    dropped = step.before._replace(requests=step.after.requests, taken=step.after.taken)
    if isinstance(step.answer, c.Late) and dropped == step.after and not step.ended and not step.forget:
        return None
    return f"a {type(step.command).__name__.lower()} answered {step.answer} changed the job"


def r37(step: Step) -> str | None:
    """R37. No run is first started while the job is paused."""
    attempt = won(step)
    if attempt is not None and attempt.number == 1 and step.before.paused is not None:
        return f"a run was started though the job is paused since {step.before.paused}"
    return None


_CHANGED_BY: Final[Mapping[type[c.Command], frozenset[str]]] = {
    c.Claim: frozenset(("newest", "overlap", "fence", "bound", "requests", "taken", "runs")),
    c.Heartbeat: frozenset(("runs",)),
    c.Finish: frozenset(("runs",)),
    c.Release: frozenset(("runs",)),
    c.Register: frozenset(("seen", "definition", "bound")),
    c.Pause: frozenset(("paused",)),
    c.Resume: frozenset(("paused",)),
    c.Trigger: frozenset(("requests",)),
    c.Missed: frozenset(),
    c.Prune: frozenset(("floor", "forgotten")),
}


def r40(step: Step) -> str | None:
    """R40. A command changes what it speaks of, and nothing else; other runs it can only end."""
    command, before, after = step.command, step.before, step.after
    for name, old, new in zip(Job._fields, before, after, strict=True):
        if old != new and name not in _CHANGED_BY[type(command)]:
            return f"a {type(command).__name__.lower()} changed `{name}` from {old} to {new}"
    spoken = (command.slot, command.request) if isinstance(command, (c.Claim, *HOLDERS)) else None
    known = {(run.slot, run.request) for run in before.runs}
    for run in after.runs:
        key = (run.slot, run.request)
        if key != spoken and (key not in known or before.find(*key) != run):
            return f"a {type(command).__name__.lower()} of another run changed run {run.id}"
    return None


def i9(step: Step) -> str | None:
    """I9. Who is told that it won reckons its lease from this step's time on (R26): the lease must last as long."""
    command, answer = step.command, step.answer
    if not isinstance(command, c.Claim) or command.lease_ms is None or not isinstance(answer, c.Won):
        return None
    run = step.after.find(command.slot, command.request)
    if run is None or answer.until >= step.now + run.lease_ms:
        return None
    return f"a win was told at {step.now}ms, and its lease of {run.lease_ms}ms ends at {answer.until}ms already"


def i8a(step: Step) -> str | None:
    """I8a, R40a. Who holds a run by the token of this very claim is not told that somebody holds it."""
    command = step.command
    if not isinstance(command, c.Claim) or not isinstance(step.answer, c.Running | c.Spent):
        return None
    run = step.before.find(command.slot, command.request)
    return f"the claim that won run {run.id} is told otherwise" if run and run.lease.held_by(command.token) else None


ANSWER_LAWS: Final[Mapping[str, StepLaw]] = {"S15": s15, "R2": r2, "R13": r13, "I8a": i8a, "I9": i9}
CHANGE_LAWS: Final[Mapping[str, StepLaw]] = {
    "I2": i2, "I3": i3, "I4": i4, "S4": s4, "S8": s8, "S9": s9, "S10": s10, "S11": s11, "S12": s12, "S14": s14,
    "R5": r5, "R6": r6, "R11": r11, "R14": r14, "R37": r37, "R40": r40,
}  # fmt: skip


def check(step: Step, without: frozenset[str] = frozenset()) -> None:
    """Ask all laws of one step, but those named in `without`. Raises Breach at the first that is broken."""
    for laws in (CHANGE_LAWS, ANSWER_LAWS) if step.effective else (ANSWER_LAWS,):
        for name, law in laws.items():
            if name not in without and (sentence := law(step)) is not None:
                raise Breach(name, sentence, step)
