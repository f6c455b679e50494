"""What may be asked of a job, and what may be answered. Frozen values; nothing here decides.

Every time is in whole milliseconds on the store's clock; every span ends in `_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tenure.rules.job import How, Overlap, Progress, Reason, Status


@dataclass(frozen=True, slots=True)
class Claim:
    """May `runner` start this run? `create`: it may be a new run; else only one that exists (a takeover).

    bound_ms: how late it may be (R8); lease_ms None: claim-only (R46); after: the slot before this one in
    the schedule, so that neighbouring marks can be merged (R12); request: of a manual run, else "".
    """

    slot: int
    token: str
    runner: str
    lease_ms: int | None
    max_attempts: int
    bound_ms: int
    overlap: Overlap
    reason: Reason
    create: bool
    request: str = ""
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The holder is alive (R13)."""

    slot: int
    token: str
    request: str = ""
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The handler has ended (R15). `how` is `timeout` where the run was failed for that."""

    slot: int
    token: str
    status: Literal["success", "failed"]
    request: str = ""
    result: Any = None
    error: tuple[str, str, str] | None = None
    how: How | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """The holder gives the run back (R16). `counts`: against max_attempts; not for a hand-over by stop()."""

    slot: int
    token: str
    counts: bool
    request: str = ""


@dataclass(frozen=True, slots=True)
class Register:
    """An instance that knows the job has started (R29a). `told`: the definition as JSON, for people.

    anew: it has not; it was given another definition of a job that it knew.
    """

    schedule: str
    fingerprint: str
    told: str
    bound_ms: int
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """No new runs until resumed, on all instances (R37)."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The end of a pause (R37)."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Somebody wants a run now (R36). `id` is drawn by who asks."""

    id: str
    by: str


@dataclass(frozen=True, slots=True)
class Missed:
    """Nobody was there for `count` slots, from `first` to `last` (R36a)."""

    first: int
    last: int
    count: int
    by: str
    why: Literal["missed", "forgotten"] = "missed"


@dataclass(frozen=True, slots=True)
class Head:
    """What pruning needs to know of an ended run; `keep` is the first time at which it may go."""

    run: str
    slot: int
    keep: int


@dataclass(frozen=True, slots=True)
class Prune:
    """Forget what lies beyond the limits (R11, R12): `heads`, oldest first, and marks up to `marks_until`."""

    heads: tuple[Head, ...]
    marks_until: int | None = None


Command = Claim | Heartbeat | Finish | Release | Register | Pause | Resume | Trigger | Missed | Prune


@dataclass(frozen=True, slots=True)
class Won:
    """The run is yours until `until`."""

    attempt: int
    token: str
    fence: int
    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class Running:
    """A live lease holds the run."""

    runner: str
    attempt: int
    until: int


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Another run of the job has a live lease."""

    slot: int
    request: str
    runner: str
    until: int


@dataclass(frozen=True, slots=True)
class Late:
    """The claim came `by_ms` beyond what it may be late."""

    by_ms: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer run of the job was already won."""

    newest: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over. `forgotten`: it was, or its slot has passed, and its record is deleted (R11)."""

    status: Status | Literal["forgotten"]


@dataclass(frozen=True, slots=True)
class Gone:
    """A takeover found no such run."""


@dataclass(frozen=True, slots=True)
class Early:
    """The slot is not due for `wait_ms` more on the store's clock."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The job is paused since then."""

    since: int


@dataclass(frozen=True, slots=True)
class Spent:
    """This token has won an attempt of the run before; a token never wins twice (R40a)."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease now ends at `until`."""

    until: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The lease had run out, and may not be renewed while another run of the job is alive (R7)."""

    slot: int
    runner: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The token is not, or no longer, the key to this run (R14). `status` of the run as it is now."""

    status: Status | Literal["running", "released", "unknown"]
    runner: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end is recorded; `already`: it had been, by this token and with this outcome."""

    status: Status
    already: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The run is up for its next attempt."""

    already: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """since: when the schedule was first seen; drift: the options differ from what was told before."""

    since: int
    drift: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The document can't be read by this version; no rule answers so, who reads the store does."""

    why: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Done, or nothing to do where `changed` is false."""

    changed: bool


Answer = (
    Won
    | Running
    | Overlaps
    | Late
    | Superseded
    | Ended
    | Gone
    | Early
    | Paused
    | Spent
    | Renewed
    | Blocked
    | Refused
    | Finished
    | Released
    | Registered
    | Noted
    | Unreadable
)
