"""Follow what happens in a store by asking again: new runs, and the end of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tenure.doors.cli.access import Access
    from tenure.scheduler.records import Records, RunView
    from tenure.scheduler.wishes import WishView

# How often is asked, and how long after its slot a run that nobody has spoken of is still looked for.
EVERY_SECONDS: Final = 0.5
BACK_MS: Final = 24 * 3_600_000
UNFINISHED: Final = ("running", "expired", "released")


def changes(access: Access, job: str | None, every: float = EVERY_SECONDS) -> Iterator[tuple[RunView, int]]:
    """Each run, with the store's time, whenever it is new, has a new attempt, or another status; for ever."""
    known: dict[str, tuple[str, int]] | None = None
    while True:
        now, runs = access.ask(_recent(job))
        seen = {run.key: (run.status, len(run.attempts)) for run in runs}
        for run in reversed(runs):
            # What had ended before we came is no news.
            old = run.status not in UNFINISHED if known is None else known.get(run.key) == seen[run.key]
            if not old:
                yield run, now
        known = seen
        time.sleep(every)


def until_ended(access: Access, job: str, request: str, since: int, *, seconds: float | None = None) -> WishView:
    """Wait until a triggered run has ended or none can come of it, or until the seconds are over."""
    from tenure.scheduler.wishes import wish

    end = None if seconds is None else time.monotonic() + seconds
    while True:
        seen = access.ask(lambda records: wish(records, job, request, since))
        over = seen.state in {"ended", "dropped"}
        if over or (end is not None and time.monotonic() >= end):
            return seen
        time.sleep(EVERY_SECONDS if end is None else max(0.0, min(EVERY_SECONDS, end - time.monotonic())))


def _recent(job: str | None) -> Callable[[Records], Coroutine[Any, Any, tuple[int, list[RunView]]]]:
    async def ask(records: Records) -> tuple[int, list[RunView]]:
        now = await records.now()
        return now, await records.runs(None if job is None else [job], since=now - BACK_MS, limit=200)

    return ask
