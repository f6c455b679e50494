"""The end of a demo: the picture of its runs, the counts, and the exit code that they give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenure.doors.cli.demo.truth import Truth, count
from tenure.doors.cli.output import Cell, look, pairs, wrap
from tenure.doors.cli.timeline import draw
from tenure.errors import NotFound
from tenure.rules.instant import span_words
from tenure.scheduler.picture import fitted

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.doors.cli.demo.plan import Plan
    from tenure.doors.cli.demo.teller import Teller
    from tenure.rules.schedule import Schedule
    from tenure.scheduler.records import JobView, Records, Timeline

EVER: Final = 1 << 53
LONGEST_LEASES: Final = 15


def close(plan: Plan, app: Tenure, teller: Teller) -> int:
    """Draw, count, and judge: 0 only if nothing ran twice, nothing was lost, and every takeover came in time."""

    async def ask(records: Records) -> tuple[JobView, Timeline, Schedule | None]:
        job = await records.job(plan.job)
        return job, await records.timeline(plan.job, 0, EVER, 10_000), await records.schedule(plan.job)

    job, told, schedule = app.ask_now(ask)
    until = job.paused if job.paused is not None else told.now
    if schedule is None:
        raise NotFound(f"the store has lost the schedule of {plan.job}.")
    truth = count(told, schedule, job.seen_since or 0, until, Path(plan.work_file))
    seen = look()
    wide = min(seen.width or 100, 120)
    teller.plain()
    for line in draw(window(told, plan), wide, unicode=seen.unicode, colour=seen.colour, instances=plan.instances):
        teller.plain(line, wrapped=False)
    teller.plain()
    for line in pairs(_figures(plan, truth), seen):
        teller.plain(line, wrapped=False)
    for text, right in _counts(truth):
        for place, part in enumerate(wrap(text, seen.width)):
            teller.plain(seen.paint(part, ("good" if right else "bad") if place == 0 else ""), wrapped=False)
    if plan.store is not None:
        app.ask_now(lambda records: records.forget(plan.job))
        teller.plain(f"the records of {plan.job} were removed from your store again")
    return 0 if _good(plan, truth) else 1


def window(told: Timeline, plan: Plan) -> Timeline:
    """The picture: all that happened, or of a long demo the first takeover and what came after it."""
    whole = fitted(told)
    if whole.until - whole.since <= LONGEST_LEASES * plan.lease_ms:
        return whole
    taken = next((run for run in told.runs if len(run.attempts) > 1), told.runs[0])
    since = taken.slot - plan.lease_ms // 3
    return replace(told, since=since, until=since + LONGEST_LEASES * plan.lease_ms)


def _figures(plan: Plan, truth: Truth) -> list[tuple[str, str | Cell]]:
    lease, heartbeat = span_words(plan.lease_ms), span_words(plan.heartbeat_ms)
    told: list[tuple[str, str | Cell]] = []
    for ms in truth.takeovers_ms:
        bound = f"(bound: lease {lease} + 2 x heartbeat {heartbeat} = {span_words(plan.bound_ms)})"
        says = f"{ms / 1000:.2f}s from the last heartbeat to the takeover {bound}"
        told.append(("takeover", Cell(says, "" if ms <= plan.bound_ms else "bad")))
    if not truth.takeovers_ms:
        told.append(("takeover", Cell("none", "bad")))
    for ms in truth.handovers_ms:
        bound = f"(bound: 2 x heartbeat {heartbeat} = {span_words(2 * plan.heartbeat_ms)})"
        told.append(("hand-over", f"{ms / 1000:.2f}s from the release to the next attempt {bound}"))
    return told


def _counts(truth: Truth) -> list[tuple[str, bool]]:
    """The lines that matter, each with whether it is as it should be."""
    effects = f"{_many(truth.succeeded, 'run')} succeeded; {_many(truth.posted, 'effect')} in the handlers' own file"
    slots = f"{_many(truth.succeeded, 'slot')} ran; {truth.skipped} skipped, each with its reason in the store"
    twice = f"({effects})" if not truth.twice else f"({', '.join(truth.twice)})"
    lost = f"({slots})" if not truth.lost else f"({', '.join(truth.lost)})"
    return [
        (f"working at the same time: {truth.at_once}", truth.at_once == 0),
        (f"ran twice: {len(truth.twice)}   {twice}", not truth.twice),
        (f"lost: {len(truth.lost)}   {lost}", not truth.lost),
    ]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _good(plan: Plan, truth: Truth) -> bool:
    in_time = bool(truth.takeovers_ms) and max(truth.takeovers_ms) <= plan.bound_ms
    return not truth.twice and not truth.lost and not truth.at_once and in_time
