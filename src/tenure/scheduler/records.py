"""What people and tools ask of a store: jobs, runs, instances, and why; and pause, resume, trigger.

Everything here works without any job's handler: what it tells stands in the store.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.errors import NotFound, StoreCorrupt, TenureError
from tenure.rules import commands as c
from tenure.rules import job as documents
from tenure.rules.job import Attempt, Past, decode_past
from tenure.rules.runs import REQUESTS
from tenure.rules.schedule import Schedule
from tenure.scheduler import presence
from tenure.scheduler.jobs import check_name, document, read_schedule
from tenure.scheduler.ledger import Ledger, Page
from tenure.scheduler.run import run_key
from tenure.scheduler.seams import SystemChance, SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Mark, Store

EVER: Final = 1 << 53
PREFIX: Final = "job:"
MANY: Final = 10_000


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as the store knows it. Times in store milliseconds; `told`: its definition (see `Job.told`)."""

    name: str
    told: dict[str, Any]
    paused: int | None
    requests: int
    next_slot: int | None
    last: RunView | None
    running: tuple[RunView, ...]
    version: int
    seen_since: int | None


@dataclass(frozen=True, slots=True)
class RunView:
    """One run. status: `running`, `expired`, `released`, or how it ended; lease_until only while it has not."""

    job: str
    slot: int
    request: str
    status: str
    attempts: tuple[Attempt, ...]
    lease_ms: int
    lease_until: int | None = None
    ended: int | None = None
    result: Any = None
    error: tuple[str, str, str] | None = None
    progress: documents.Progress | None = None

    @property
    def key(self) -> str:
        return run_key(self.job, self.slot, self.request)


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One instance's page. `alive`: it was seen within the last 15 s on the store's clock; `running`: as of `seen`."""

    name: str
    alive: bool
    seen: int
    started: int
    host: str
    pid: int
    version: str
    offset_ms: int
    jobs: tuple[str, ...]
    running: tuple[tuple[str, int, str], ...]
    backups: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened to one job between two times: runs and marks, oldest first; `now` on the store's clock."""

    job: str
    since: int
    until: int
    now: int
    runs: tuple[RunView, ...]
    marks: tuple[Mark, ...]
    told: dict[str, Any] = field(default_factory=dict)


class Records:
    """Reads and small commands on one opened store."""

    def __init__(
        self, store: Store, ledger: Ledger | None = None, by: str = "a person", warnings: Sequence[str] = ()
    ) -> None:
        self.store = store
        self.warnings = tuple(warnings)
        """What the store had to say when it was opened, a sentence each."""
        self.ledger = ledger or Ledger(store, StoreClock(SystemClock()))
        self.by = by

    async def now(self) -> int:
        """The store's time in milliseconds."""
        return (await self.store.read([])).now

    async def names(self) -> tuple[str, ...]:
        """The names of all jobs."""
        return tuple(name.removeprefix(PREFIX) for name in await self.store.names(PREFIX))

    async def jobs(self) -> list[JobView]:
        """All jobs, by name."""
        names = await self.names()
        now, pages = await self.ledger.pages([Ask(document(name)) for name in names])
        return [await self._job(name, page, now) for name, page in zip(names, pages, strict=True)]

    async def job(self, name: str) -> JobView:
        """One job; raises NotFound, with the nearest name."""
        now, page = await self.page(name)
        return await self._job(name, page, now)

    async def page(self, name: str) -> tuple[int, Page]:
        """A job's document as the rules know it, and the store's time; raises NotFound."""
        check_name(name, "job")
        now, pages = await self.ledger.pages([Ask(document(name))])
        if pages[0].unreadable:
            raise StoreCorrupt(pages[0].unreadable)
        if pages[0].found.version == 0:
            raise NotFound(_unknown("job", name, await self.names()))
        return now, pages[0]

    async def _job(self, name: str, page: Page, now: int) -> JobView:
        told = json.loads(page.job.definition.told) if page.job.definition else {}
        schedule = read_schedule(told)
        slot = schedule.next(now) if schedule is not None and page.job.paused is None else None
        running = tuple(_unfinished(name, run, now) for run in page.job.runs)
        records = await self.store.records(document(name), 0, EVER, 1)
        last = _ended(name, decode_past(records[0].body)) if records else None
        return JobView(
            name,
            told,
            page.job.paused,
            len(page.job.requests),
            slot.at_ms if slot else None,
            last,
            running,
            page.found.version,
            page.job.since(page.job.definition.schedule) if page.job.definition else None,
        )

    async def runs(
        self,
        jobs: Sequence[str] | None = None,
        since: int = 0,
        until: int = EVER,
        status: str | None = None,
        limit: int = 50,
    ) -> list[RunView]:
        """Runs, newest first; of these jobs or of all."""
        found: dict[str, RunView] = {}
        for name in await self.names() if jobs is None else jobs:
            now, page = await self.page(name)
            unfinished = [_unfinished(name, run, now) for run in page.job.runs if since <= run.slot <= until]
            records = await self.store.records(document(name), since, until, limit if status is None else MANY)
            ended = [_ended(name, decode_past(record.body)) for record in records]
            # A run that ended between the two reads is in both; its end is the newer word.
            found.update({run.key: run for run in (*unfinished, *ended)})
        chosen = [run for run in found.values() if status in (None, run.status)]
        return sorted(chosen, key=lambda run: (-run.slot, run.job, run.request))[:limit]

    async def run(self, job: str, slot: int, request: str = "") -> RunView | None:
        """One run; None where there is no state of it."""
        wanted = documents.run_id(slot, request)
        now, pages = await self.ledger.pages([Ask(document(job), (wanted,))])
        unfinished = pages[0].job.find(slot, request)
        if unfinished is not None:
            return _unfinished(job, unfinished, now)
        past = pages[0].past.get(wanted)
        return _ended(job, past) if past is not None else None

    async def timeline(self, job: str, since: int, until: int, limit: int = 500) -> Timeline:
        """All that happened to a job between two store times."""
        now, page = await self.page(job)
        runs = await self.runs([job], since, until, limit=limit)
        marks = await self.store.marks(document(job), since, until, limit)
        told = json.loads(page.job.definition.told) if page.job.definition else {}
        return Timeline(job, since, until, now, tuple(reversed(runs)), tuple(reversed(marks)), told)

    async def schedule(self, job: str) -> Schedule | None:
        """The schedule a job was last told with."""
        _, page = await self.page(job)
        return read_schedule(json.loads(page.job.definition.told)) if page.job.definition else None

    async def instances(self) -> list[InstanceView]:
        """All instances that have a page, by name."""
        names = await self.store.names(presence.PREFIX)
        reading = await self.store.read([Ask(name) for name in names])
        return [
            _instance(name.removeprefix(presence.PREFIX), json.loads(found.body), reading.now)
            for name, found in zip(names, reading.found, strict=True)
            if found.body is not None
        ]

    async def pause(self, job: str) -> bool:
        """No new runs, on any instance; False where it was paused already (R37)."""
        return await self._note(job, c.Pause())

    async def resume(self, job: str) -> bool:
        """End a pause; False where there was none."""
        return await self._note(job, c.Resume())

    async def trigger(self, job: str) -> str:
        """Ask for a run now, by an instance that knows the job (R36). Returns the wish's id."""
        wish = SystemChance().token()[:12]
        if not await self._note(job, c.Trigger(wish, self.by)):
            raise TenureError(f"{job} has {REQUESTS} wishes waiting already; is any instance running it?")
        return wish

    async def forget(self, job: str) -> None:
        """Remove a job with all that is recorded of it. An instance that still runs it will register it anew."""
        _, page = await self.page(job)
        await self.store.commit([Change(document(job), page.found.version, None, delete=True)])

    async def _note(self, job: str, command: c.Command) -> bool:
        await self.page(job)
        answer = (await self.ledger.ask_one(job, command)).answer
        return isinstance(answer, c.Noted) and answer.changed


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"there is no {kind} {name!r} in this store. Did you mean {near[0]!r}?"
    listed = ", ".join(sorted(known)[:10])
    return f"there is no {kind} {name!r} in this store." + (f" There are: {listed}." if listed else " It has none yet.")


def _unfinished(job: str, run: documents.Run, now: int) -> RunView:
    status = "running" if run.lease.live(now) else "released" if run.lease.released else "expired"
    return RunView(
        job, run.slot, run.request, status, run.attempts, run.lease_ms, run.lease.until, progress=run.progress
    )


def _ended(job: str, past: Past) -> RunView:
    return RunView(
        job,
        past.slot,
        past.request,
        past.status,
        past.attempts,
        past.lease_ms,
        ended=past.ended,
        result=past.result,
        error=past.error,
    )


def _instance(name: str, told: dict[str, Any], now: int) -> InstanceView:
    return InstanceView(
        name,
        now - told["seen"] < presence.SILENT,
        told["seen"],
        told["started"],
        told["host"],
        told["pid"],
        told["version"],
        told["offset_ms"],
        tuple(told["jobs"]),
        tuple((job, slot, request) for job, slot, request in told["running"]),
        told["backups"],
        tuple(told["reasons"]),
    )
