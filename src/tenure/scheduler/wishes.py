"""What became of a wish: a run that somebody asked for by `trigger` (R36)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tenure.rules.instant import MINUTE, SECOND, iso, span_words
from tenure.rules.job import decode_past
from tenure.rules.runs import TOLERANCE
from tenure.scheduler.jobs import document
from tenure.scheduler.records import EVER, MANY, Records, RunView
from tenure.stores.contract import Mark

# How much longer than its bound a wish is still looked for: whoever claims it may be at it.
_GRACE: Final = 2 * SECOND


@dataclass(frozen=True, slots=True)
class WishView:
    """A wish. `dropped`: no run will come of it, and `why` says so in a sentence; `run` where there is one."""

    state: Literal["waiting", "running", "ended", "dropped"]
    run: RunView | None = None
    why: str = ""


def waits_ms(told: Mapping[str, Any]) -> int:
    """How long a wish of a job so defined waits for a runner: beyond that a claim comes too late (R8, R36)."""
    return max(int(told.get("max_late_ms", 0)), int(told.get("catch_up_ms", 0))) + TOLERANCE


async def wish(records: Records, job: str, request: str, since: int) -> WishView:
    """What became of a wish that was told at `since` or later (store milliseconds); raises NotFound for the job."""
    now, page = await records.page(job)
    told = json.loads(page.job.definition.told) if page.job.definition else {}
    waiting = next((one for one in page.job.requests if one.id == request), None)
    if waiting is not None:
        if told and now - waiting.at - waits_ms(told) > _GRACE:
            return WishView("dropped", why=f"no instance claimed it within {span_words(waits_ms(told))}.")
        return WishView("waiting")
    unfinished = next((run for run in page.job.runs if run.request == request), None)
    if unfinished is not None:
        return WishView("running", await records.run(job, unfinished.slot, request))
    begin = since - MINUTE  # the store's clock may have been set back a little
    for record in await records.store.records(document(job), begin, EVER, MANY):
        past = decode_past(record.body)
        if past.request == request:
            return WishView("ended", await records.run(job, past.slot, request))
    for mark in await records.store.marks(document(job), begin, EVER, MANY):
        if mark.request == request and mark.why == "late":
            return WishView("dropped", why=_of_mark(mark))
    return WishView("dropped", why="the store holds neither the request nor a run of it; trigger it again.")


async def dropped(records: Records, job: str, since: int, until: int, limit: int = 100) -> list[tuple[str, str]]:
    """The wishes of a job that no run came of, newest first: each with the reason in a sentence."""
    marks = await records.store.marks(document(job), since, until, MANY)
    return [(mark.request, _of_mark(mark)) for mark in marks if mark.request and mark.why == "late"][:limit]


def _of_mark(mark: Mark) -> str:
    late = span_words(max(0, mark.at - mark.slot) // SECOND * SECOND)
    return f"{mark.by} came to it {late} after it was asked for ({iso(mark.at)}), which is too late for this job."
