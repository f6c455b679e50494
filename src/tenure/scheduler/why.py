"""Why did it run, or not run, at that time? Every slot has an outcome that can be asked for (R36a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tenure.rules.instant import iso, span_words
from tenure.rules.job import run_id, split_run_id
from tenure.rules.schedule import Schedule
from tenure.scheduler.jobs import document, read_schedule
from tenure.scheduler.ledger import Page
from tenure.scheduler.records import Records, RunView
from tenure.scheduler.run import run_key
from tenure.stores.contract import Ask, Mark

OUTCOMES = {
    "success": "It ran and succeeded",
    "failed": "It ran and failed",
    "interrupted": "It was started and interrupted",
    "claimed": "It was claimed (this job keeps no lease, so its end is not recorded)",
    "running": "It is running",
    "expired": "Its runner has gone silent: the lease ran out, and the next attempt, or the next slot, will end it",
    "released": "It was handed over, and the next attempt is due",
}


@dataclass(frozen=True, slots=True)
class Why:
    """An outcome in one word, and in sentences. `slot` is the slot that was meant, None where there is none."""

    job: str
    outcome: str
    sentence: str
    slot: int | None = None
    run: RunView | None = None


async def why(records: Records, job: str, when: int) -> Why:
    """The outcome of the slot at, or nearest before, `when` (store milliseconds); raises NotFound for the job."""
    asked = await records.job(job)
    schedule = read_schedule(asked.told)
    if schedule is None:
        return Why(job, "no slot", f"{job} has no schedule; it runs when it is triggered.")
    found = schedule.previous(when)
    if found is None:
        return Why(job, "no slot", f"{job} has no slot at or before {iso(when)}.")
    slot = found.at_ms
    now, pages = await records.ledger.pages([Ask(document(job), (run_id(slot),))])
    lead = _lead(job, schedule, slot, when)
    run = await records.run(job, slot)
    if run is not None:
        return Why(job, run.status, lead + _of_run(run, now), slot, run)
    marks = await records.store.marks(document(job), slot, slot, 1)
    if marks:
        return Why(job, marks[0].why, lead + _of_mark(job, marks[0]), slot)
    outcome, sentence = _of_nothing(pages[0], slot, now, asked.told)
    return Why(job, outcome, lead + sentence, slot)


def _lead(job: str, schedule: Schedule, slot: int, when: int) -> str:
    if slot == when:
        return ""
    after = schedule.next(when)
    then = f", the next is {iso(after.at_ms)}" if after is not None else ""
    return f"{iso(when)} is no slot of {job}; the one before is {iso(slot)}{then}. "


def _of_run(run: RunView, now: int) -> str:
    words = [OUTCOMES.get(run.status, run.status) + "."]
    for one in run.attempts:
        ended = one.ended if one.ended is not None else (run.ended or now)
        how = one.how or run.status
        words.append(
            f"Attempt {one.number} on {one.runner} ({one.reason}), {iso(one.started)}, "
            f"{how} after {span_words(ended - one.started)}."
        )
    if run.error is not None:
        words.append(f"{run.error[0]}: {run.error[1]}")
    return " ".join(words)


def _of_mark(job: str, mark: Mark) -> str:
    many = "" if mark.count == 1 else f" One of {mark.count} slots from {iso(mark.slot)} to {iso(mark.until)}."
    asked = f" (asked by {mark.by}, {iso(mark.at)})"
    match mark.why:
        case "overlap":
            other = run_key(job, *split_run_id(mark.whom)) if mark.whom else "another run"
            return f"Skipped: {other} was still running{asked}.{many}"
        case "late":
            return f"Skipped: the claim came too late{asked}.{many}"
        case "paused":
            return f"Skipped: the job was paused{asked}.{many}"
        case _:
            return f"Missed: nobody was there to claim it (noted by {mark.by}, {iso(mark.at)}).{many}"


def _of_nothing(page: Page, slot: int, now: int, told: dict[str, Any]) -> tuple[str, str]:
    """There is neither a run nor a mark: what the document alone can say."""
    job = page.job
    since = job.since(job.definition.schedule) if job.definition else None
    if slot > now:
        return "not due", f"It is not due yet; it comes in {span_words(slot - now)}."
    if job.floor is not None and slot <= job.floor:
        return "forgotten", f"Its record was pruned; runs up to {iso(job.floor)} are forgotten."
    if job.forgotten is not None and slot <= job.forgotten:
        return "forgotten", f"Marks up to {iso(job.forgotten)} were pruned: forgotten since then."
    if since is not None and slot < since:
        return "before", f"This schedule was first seen at {iso(since)}; slots before that are not its own."
    if job.newest is not None and slot < job.newest:
        return "superseded", f"Nothing ran: nobody claimed it before the newer run of {iso(job.newest)} was started."
    if job.paused is not None:
        return "paused", f"Nothing ran: the job is paused since {iso(job.paused)}."
    bound = max(told.get("max_late_ms", 0) + 10_000, told.get("catch_up_ms", 0))
    if now - slot <= bound:
        return "due", "It is due, and nobody has claimed it yet."
    return "missed", "Nothing ran: nobody claimed it within its bounds."
