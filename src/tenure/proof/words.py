"""A way through a small world in words: one line for each step."""

from __future__ import annotations

from tenure.rules import commands as c
from tenure.rules.instant import span_words
from tenure.rules.job import Job, run_id


def of_command(command: c.Command) -> str:
    """A command in words."""
    match command:
        case c.Claim():
            kind = "claim" if command.create else "takeover"
            only = " (claim-only)" if command.lease_ms is None else f" ({command.overlap})"
            return f"the {kind} of run {run_id(command.slot, command.request)} with token {command.token}{only}"
        case c.Heartbeat():
            return f"a heartbeat of run {run_id(command.slot, command.request)} with token {command.token}"
        case c.Finish():
            run = run_id(command.slot, command.request)
            return f"the finish ({command.status}) of run {run} with token {command.token}"
        case c.Release():
            how = "counted" if command.counts else "hand-over"
            return f"the release ({how}) of run {run_id(command.slot, command.request)} with token {command.token}"
        case c.Trigger():
            return f"a wish {command.id}"
        case c.Prune():
            return f"the pruning of runs {', '.join(head.run for head in command.heads)}"
        case _:
            return f"a {type(command).__name__.lower()}"


def of_answer(answer: c.Answer) -> str:
    """An answer in words."""
    match answer:
        case c.Won():
            return f"won, attempt {answer.attempt}, fence {answer.fence}, until {answer.until}"
        case c.Running():
            return f"running, attempt {answer.attempt} until {answer.until}"
        case c.Overlaps():
            return f"overlap with run {run_id(answer.slot, answer.request)} until {answer.until}"
        case c.Ended() | c.Refused():
            return f"{type(answer).__name__.lower()} ({answer.status})"
        case c.Renewed():
            return f"renewed until {answer.until}"
        case _:
            return type(answer).__name__.lower()


def of_job(job: Job) -> str:
    """What a document says of its runs, shortly."""
    runs = [
        f"{run.id}: attempt {run.attempts[-1].number} by {run.lease.token}, "
        + ("released" if run.lease.released else f"until {run.lease.until}" if run.lease.until else "run out")
        for run in job.runs
    ]
    newest = "" if job.newest is None else f"newest {job.newest}, "
    return f"{newest}fence {job.fence}" + "".join(f"; {run}" for run in runs)


def of_time(now: int) -> str:
    """The store's clock, from the beginning of the world."""
    return f"at {span_words(now)}"
