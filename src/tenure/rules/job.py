"""What is kept of one job: the document that the rules read and write, and the records of ended runs.

All values are immutable and compare by value, so that the rules may be explored. Times are whole
milliseconds on the store's clock. A document stays a few hundred bytes: what has ended leaves it.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NamedTuple

from tenure.rules.lease import Lease

Overlap = Literal["skip", "allow"]
Reason = Literal["schedule", "catch-up", "takeover", "manual"]
Status = Literal["success", "failed", "interrupted", "claimed"]
How = Literal["success", "failed", "handed-over", "unsure", "expired", "timeout", "claimed"]

FORMAT: Final = 1


class Attempt(NamedTuple):
    """One start of a run (R18). `renewed` is the claim's or the last accepted heartbeat's time."""

    number: int
    token: str
    runner: str
    reason: str
    fence: int
    started: int
    renewed: int
    beats: int = 0
    ended: int | None = None
    how: str | None = None


class Progress(NamedTuple):
    """What a handler said of how far it is; it travels with the next heartbeat."""

    done: float
    total: float | None
    note: str


class Run(NamedTuple):
    """A run that has not ended. The last attempt is the current one; `handed` of them do not count (R4)."""

    slot: int
    request: str
    lease: Lease
    lease_ms: int
    overlap: Overlap
    handed: int
    attempts: tuple[Attempt, ...]
    progress: Progress | None = None

    @property
    def id(self) -> str:
        return run_id(self.slot, self.request)

    def renewed(self, now: int, progress: Progress | None) -> Run:
        """After an accepted heartbeat at `now` (R13)."""
        last = self.attempts[-1]
        beaten = Attempt(*last[:6], now, last.beats + 1, *last[8:])
        return self._replace(
            lease=self.lease.renewed(now + self.lease_ms), attempts=(*self.attempts[:-1], beaten), progress=progress
        )

    def closed(self) -> tuple[Attempt, ...]:
        """The attempts with the last one ended: an expired one ended at its lease end (R18)."""
        last = self.attempts[-1]
        if last.ended is not None:
            return self.attempts
        return (*self.attempts[:-1], last._replace(ended=self.lease.until, how="expired"))

    def interrupted(self, now: int) -> Past:
        """Its record when nobody may start it again (R4 to R6)."""
        return self.over("interrupted", now, self.closed())

    def over(self, status: Status, now: int, attempts: tuple[Attempt, ...]) -> Past:
        """Its record when it has ended."""
        return Past(self.slot, self.request, status, now, self.lease_ms, self.handed, attempts)


class Past(NamedTuple):
    """A run that has ended: it never changes again (R10)."""

    slot: int
    request: str
    status: Status
    ended: int
    lease_ms: int
    handed: int
    attempts: tuple[Attempt, ...]
    result: Any = None
    error: tuple[str, str, str] | None = None

    @property
    def id(self) -> str:
        return run_id(self.slot, self.request)


class Mark(NamedTuple):
    """Why nothing ran at a slot, or at `slots` of them from `slot` to `until` (R12, R36a). It is no state.

    `whom`: the run that stood in the way; `after`: the slot before, so that neighbours can be merged.
    """

    slot: int
    until: int
    slots: int
    why: str
    whom: str
    at: int
    by: str
    request: str = ""
    after: int | None = None


class Request(NamedTuple):
    """A wish for a run outside the schedule (R36)."""

    id: str
    at: int
    by: str


class Definition(NamedTuple):
    """What the last instance to start said of the job: for people, and to notice drift (R29a).

    `schedule` is the normalised expression and zone, `told` the JSON shown to people.
    """

    schedule: str
    fingerprint: str
    told: str


class Job(NamedTuple):
    """One job's document.

    newest: the newest slot ever won; overlap: the mode of that run, or of a manual one won since (R7); floor:
    the highest slot whose ended run was deleted (R11); fence: of the last attempt won; bound: the largest
    lateness any claim carried; paused: since when, None where it is not; seen: schedules and when each was
    first seen, newest last; forgotten: marks of slots up to here were deleted; taken: the last wishes that
    were claimed or dropped, so that one told again makes no second run (R36).
    """

    newest: int | None = None
    overlap: Overlap = "skip"
    floor: int | None = None
    fence: int = 0
    bound: int = 0
    paused: int | None = None
    requests: tuple[Request, ...] = ()
    seen: tuple[tuple[str, int], ...] = ()
    definition: Definition | None = None
    forgotten: int | None = None
    runs: tuple[Run, ...] = ()
    taken: tuple[str, ...] = ()

    def find(self, slot: int, request: str) -> Run | None:
        """The unfinished run of that slot or request."""
        for run in self.runs:
            if run.slot == slot and run.request == request:
                return run
        return None

    def with_run(self, run: Run) -> Job:
        """The document with this run in its place; runs stand in the order of their slots."""
        others = [other for other in self.runs if other.slot != run.slot or other.request != run.request]
        return self._replace(runs=tuple(sorted((*others, run), key=lambda one: (one.slot, one.request))))

    def without(self, *over: Past) -> Job:
        """The document without runs that have ended."""
        if not over:
            return self
        gone = {(past.slot, past.request) for past in over}
        return self._replace(runs=tuple(run for run in self.runs if (run.slot, run.request) not in gone))

    def since(self, schedule: str) -> int | None:
        """When this schedule was first seen here; no slot before that is caught up (R29a)."""
        return next((at for seen, at in self.seen if seen == schedule), None)


EMPTY: Final = Job()


def run_id(slot: int, request: str = "") -> str:
    """The name of a run within its job: the slot's milliseconds, and the request of a manual run."""
    return f"{slot}#{request}" if request else str(slot)


def split_run_id(run: str) -> tuple[int, str]:
    """The slot and the request that a run's name was made of."""
    slot, _, request = run.partition("#")
    return int(slot), request


_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def encode(job: Job) -> bytes:
    """The document as it is stored: compact JSON, empty fields left out."""
    kept: dict[str, Any] = {"v": FORMAT, "overlap": job.overlap, "fence": job.fence, "bound": job.bound}
    for name in ("newest", "floor", "paused", "forgotten"):
        value = getattr(job, name)
        if value is not None:
            kept[name] = value
    for name in ("requests", "seen", "definition", "runs", "taken"):
        value = getattr(job, name)
        if value:
            kept[name] = value
    return _dumps(kept).encode()


def decode(body: bytes | None) -> Job:
    """The document that `encode` wrote; nothing stored is a job of which nothing is known yet.

    Raises ValueError for a format that this version does not know.
    """
    if body is None:
        return EMPTY
    kept = json.loads(body)
    if kept.get("v") != FORMAT:
        raise ValueError(f"a document of format {kept.get('v')!r} was written by another version of Tenure")
    definition = kept.get("definition")
    return Job(
        kept.get("newest"),
        kept["overlap"],
        kept.get("floor"),
        kept["fence"],
        kept["bound"],
        kept.get("paused"),
        tuple(Request(*request) for request in kept.get("requests", ())),
        tuple((schedule, at) for schedule, at in kept.get("seen", ())),
        Definition(*definition) if definition else None,
        kept.get("forgotten"),
        tuple(_run(run) for run in kept.get("runs", ())),
        tuple(kept.get("taken", ())),
    )


def _run(kept: list[Any]) -> Run:
    slot, request, lease, lease_ms, overlap, handed, attempts, progress = kept
    return Run(
        slot,
        request,
        Lease(*lease),
        lease_ms,
        overlap,
        handed,
        tuple(Attempt(*attempt) for attempt in attempts),
        Progress(*progress) if progress else None,
    )


def encode_past(past: Past) -> bytes:
    """An ended run as it is stored."""
    return _dumps(past).encode()


def decode_past(body: bytes) -> Past:
    """The ended run that `encode_past` wrote."""
    slot, request, status, ended, lease_ms, handed, attempts, result, error = json.loads(body)
    return Past(
        slot,
        request,
        status,
        ended,
        lease_ms,
        handed,
        tuple(Attempt(*attempt) for attempt in attempts),
        result,
        tuple(error) if error else None,
    )
