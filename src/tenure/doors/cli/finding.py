"""Which run is meant by what was typed: a key, a job and a time, or a job alone."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from tenure.doors.cli.access import moment
from tenure.errors import NotFound
from tenure.scheduler.run import run_key
from tenure.scheduler.why import why

if TYPE_CHECKING:
    from tenure.scheduler.records import Records, RunView


async def find(records: Records, typed: str, when: str | None) -> RunView:
    """The run; raises NotFound, with the reason why nothing ran there."""
    job, text = await _parted(records, typed, when)
    await records.job(job)  # refuses an unknown one, with the nearest name
    if text is None:
        newest = await records.runs([job], limit=1)
        if newest:
            return newest[0]
        raise NotFound(f"no run of {job} is recorded yet. tenure job next {quote(job)} shows when one is due.")
    time, _, request = text.partition("#")
    at = moment("TIME", time, await records.now())
    run = await records.run(job, at, request)
    if run is None and not request:
        run = await _covering(records, job, at)
    if run is not None:
        return run
    if request:
        raise NotFound(f"there is no run {run_key(job, at, request)} in this store.")
    told = await why(records, job, at)
    raise NotFound(f"there is no run of {job} at {time}. {told.sentence}")


async def _parted(records: Records, typed: str, when: str | None) -> tuple[str, str | None]:
    """Job and time. A job's name may hold an @ itself."""
    if when is not None:
        return typed, when.removeprefix(f"{typed}@")
    if "@" in typed and typed not in await records.names():
        job, _, time = typed.rpartition("@")
        return job, time
    return typed, None


async def _covering(records: Records, job: str, at: int) -> RunView | None:
    """The run of the slot before a time that is no slot; None where that slot had none."""
    before = await records.runs([job], until=at, limit=1)
    if not before:
        return None
    schedule = await records.schedule(job)
    slot = schedule.previous(at) if schedule is not None else None
    return before[0] if slot is None or before[0].request or slot.at_ms == before[0].slot else None
