"""What of a store needs a person's eye: jobs that are late or failing, runs that are stuck, instances gone silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tenure.rules.instant import SECOND, span_words
from tenure.rules.times import about
from tenure.scheduler import presence
from tenure.scheduler.jobs import read_schedule
from tenure.scheduler.records import PREFIX, InstanceView, JobView, Records, RunView
from tenure.scheduler.why import why
from tenure.stores.contract import Ask

# So long after a slot nobody is late yet: jitter, a heartbeat and a round trip fit into it.
PATIENCE: Final = 5 * SECOND
BAD: Final = ("failed", "interrupted")


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing to look at: the job or instance that it is of, and a sentence; `run` where it is about one."""

    name: str
    says: str
    run: RunView | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """A store at one look."""

    now: int
    jobs: tuple[JobView, ...]
    instances: tuple[InstanceView, ...]
    late: tuple[Concern, ...]
    failing: tuple[Concern, ...]
    stuck: tuple[Concern, ...]
    silent: tuple[Concern, ...]

    def runs_where(self, job: str) -> list[str]:
        """The instances that are alive and know a job."""
        return [one.name for one in self.instances if one.alive and job in one.jobs]


async def overview(records: Records, jobs: Sequence[JobView] | None = None) -> Overview:
    """The store at one look; of these jobs, or of all."""
    found = await records.jobs() if jobs is None else list(jobs)
    instances = await records.instances()
    now = await records.now()
    late = [concern for job in found for concern in await _late(records, job, now)]
    return Overview(
        now,
        tuple(found),
        tuple(instances),
        tuple(late),
        tuple(concern for job in found for concern in _failing(job)),
        tuple(concern for job in found for run in job.running for concern in _stuck(job, run, now)),
        tuple(_silent(one, now) for one in instances if one.jobs and not one.alive),
    )


async def _late(records: Records, job: JobView, now: int) -> list[Concern]:
    """Whether the last slot came and went without a run. Asked of the record only where the document can't tell."""
    schedule = read_schedule(job.told)
    if schedule is None or job.paused is not None or job.running:
        return []
    slot = schedule.previous(now)
    if slot is None or now - slot.at_ms < PATIENCE or (job.seen_since or 0) > slot.at_ms:
        return []
    if job.last is not None and not job.last.request and job.last.slot >= slot.at_ms:
        return []
    answer = await why(records, job.name, slot.at_ms)
    if answer.outcome not in ("due", "missed", "late"):
        return []
    return [Concern(job.name, f"its slot of {about(now - slot.at_ms)} ago: {_lowered(answer.sentence)}")]


def _failing(job: JobView) -> list[Concern]:
    if job.last is None or job.last.status not in BAD:
        return []
    error, how = job.last.error, "failed" if job.last.status == "failed" else "was interrupted"
    return [Concern(job.name, f"{error[0]}: {error[1]}" if error else f"its last run {how}", job.last)]


def _stuck(job: JobView, run: RunView, now: int) -> list[Concern]:
    last, timeout = run.attempts[-1], job.told.get("timeout_ms")
    if run.status == "expired":
        return [Concern(job.name, f"{last.runner} is silent and its lease ran out; nobody has taken over yet", run)]
    if timeout and run.status == "running" and now - last.started > timeout:
        return [Concern(job.name, f"runs beyond its timeout of {span_words(timeout)} on {last.runner}", run)]
    return []


def _silent(one: InstanceView, now: int) -> Concern:
    return Concern(one.name, f"not seen for {about(now - one.seen)}; it did not stop in order")


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


async def versions(records: Records) -> tuple[tuple[str, int], ...]:
    """The version of every job's document, and who is there: where this is the same, a page looks the same."""
    names, here = await records.store.names(PREFIX), await records.store.names(presence.PREFIX)
    reading = await records.store.read([Ask(name) for name in names])
    changed = zip(names, (found.version for found in reading.found), strict=True)
    return (*changed, *((name, 0) for name in here))
