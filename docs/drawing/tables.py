"""Tables of the pages, asked of the code: options and bounds, takeover times, nights of clock changes, events.

What a row is about is said here in words; every number and every outcome is the code's own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final

from tenure.errors import ConfigError
from tenure.rules import timers
from tenure.rules.instant import MINUTE, SECOND, aware, instant, span_words
from tenure.rules.lease import provable, unsure_after, validity
from tenure.rules.runs import TOLERANCE
from tenure.rules.schedule import Cron, Schedule, Slot, cron, every, next_nights
from tenure.scheduler import events as heard
from tenure.scheduler.jobs import DEFAULTS, OPTIONS, Job, define
from tenure.settings import JOB_OPTIONS
from tenure.stores.sqlite.store import POLL_SECONDS


class TableError(Exception):
    """The code has something that its table does not speak of, or the other way round."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _job(**options: Any) -> Job:
    return define("report", every(60 * SECOND), lambda: None, options)


# --- options ----------------------------------------------------------------------------------------------

# What an option is for, and a value that is refused: the refusal tells the bound.
_OPTIONS: Final[dict[str, tuple[str, Any]]] = {
    "lease": (
        "how long a runner is believed alive after a heartbeat; `None`: [claim-only](leases.md#claim-only)",
        "48h",
    ),
    "heartbeat": ("how often a runner renews its lease", "24h"),
    "max_attempts": ("how many attempts of a run may die; those handed over by `stop()` do not count", 0),
    "overlap": ("whether a run may start while another run of the job is alive", "queue"),
    "jitter": ("an instance waits a random time up to this before it claims a slot", "9999d"),
    "catch_up": ("how old the latest slot may be for an instance that starts to run it; 0 switches it off", "9999d"),
    "max_late": (
        f"how late a claim may reach the store, with {span_words(TOLERANCE)} of tolerance on top",
        "9999d",
    ),
    "history": ("how many ended runs of the job are kept", -1),
    "timeout": ("how long one attempt may run", 0),
    "when_unsure": ("what to do with the handler when the lease could not be renewed in time", "ask"),
    "retries": ("how often a handler that raised is called again within its attempt", -1),
    "retry_delay": (
        "the wait before the first retry, half to all of it; doubled each time, up to 600 times as long",
        "9999d",
    ),
}


def options() -> str:
    """The options of a job: default, bound, meaning."""
    if tuple(_OPTIONS) != OPTIONS or set(OPTIONS) != set(JOB_OPTIONS):
        raise TableError(f"the table of options speaks of {', '.join(_OPTIONS)}; there are {', '.join(OPTIONS)}")
    rows = [[f"`{name}`", _default(name), _bound(name, bad), words] for name, (words, bad) in _OPTIONS.items()]
    return table(("option", "default", "bound", "what it says"), rows)


def _default(name: str) -> str:
    if name == "heartbeat":
        return f"the smaller of {span_words(_job().heartbeat_ms)} and a sixth of the lease"
    value = DEFAULTS[name]  # type: ignore[literal-required]
    if value is None:
        return "none"
    if isinstance(value, float):
        return span_words(round(value * 1000))
    return f"`{value!r}`".replace("'", '"')


def _bound(name: str, bad: Any) -> str:
    """The bound, as the refusal of a bad value tells it."""
    try:
        _job(**{name: bad})
    except ConfigError as error:
        said = re.search(r"use (.+?)\.?$|none of (.+?)\.?$|not (under half of the lease)", error.why)
        if said is not None:
            words = next(filter(None, said.groups()))
            words = words.replace(", at most 1000000000", "").replace("0ms to", "0 to").replace("'", "`")
            return _with_extras(name, words)
        raise TableError(f"{name}={bad!r} is refused without a bound: {error}") from error
    raise TableError(f"{name}={bad!r} is not refused")


def _with_extras(name: str, words: str) -> str:
    if name in ("lease", "timeout"):
        return f"{words}, or `None`"
    if name == "jitter":
        most = define("report", every(10 * SECOND), lambda: None, {"jitter": "9s"}).jitter_ms
        gap = f'the smallest gap between slots ({span_words(most)} for `every("10s")`)'
        return f"{words}; capped to under half of {gap}"
    return words


# --- takeover ---------------------------------------------------------------------------------------------

_LEASES: Final = (None, "10s", "3s", "1s")

_TIMES: Final[tuple[tuple[str, str, Callable[[Job], float | None]], ...]] = (
    ("Heartbeat", "the smaller of 5 s and lease / 6, unless given", lambda job: job.heartbeat_ms),
    (
        "Takeover of a dead runner, at most, after its last heartbeat",
        "lease + 2 × heartbeat",
        lambda job: job.takeover_ms,
    ),
    (
        "Takeover by a backup that knows the lease end, at most, after the last heartbeat",
        f"lease + 1 ms + {timers.AFTER_END} ms + {timers.GRID} ms",
        lambda job: _looks_at_last(job.lease_ms or 0, job.heartbeat_ms),
    ),
    (
        "A backup's checks while the runner lives, apart",
        "1 to 2 × heartbeat",
        lambda job: 2 * job.heartbeat_ms,
    ),
    ("Takeover after a hand-over, where the hint is lost", "2 × heartbeat", lambda job: 2 * job.heartbeat_ms),
    (
        "Takeover after a hand-over, where the hint comes",
        f"{timers.GRID} ms, and the hint's way (SQLite: {POLL_SECONDS * 1000:.0f} ms)",
        lambda _: timers.GRID + POLL_SECONDS * 1000,
    ),
    (
        "A runner without renewals is unsure after",
        "lease − the smaller of heartbeat and lease / 6",
        lambda job: unsure_after(job.lease_ms or 0, job.heartbeat_ms),
    ),
    ("`held()` is false after", "lease − 1 %", lambda job: provable(job.lease_ms or 0)),
    ("A decision must reach the store within", "the smaller of 2 s and lease / 6", lambda job: validity(job.lease_ms)),
)


def _looks_at_last(lease_ms: int, heartbeat_ms: int) -> float:
    """When a backup asks, at the latest, that has just been told the lease end."""
    return timers.next_look(lease_ms - 1.0, float(lease_ms), heartbeat_ms, 1.0, 1.0)


def takeover_times() -> str:
    """How long everything takes, for the default lease and for shorter ones."""
    jobs = [_job(**({} if lease is None else {"lease": lease})) for lease in _LEASES]
    heads = ["what", "formula", f"{span_words(jobs[0].lease_ms or 0)} (default)"]
    heads += [span_words(job.lease_ms or 0) for job in jobs[1:]]
    rows = [[what, formula, *(span_words(round(told(job) or 0)) for job in jobs)] for what, formula, told in _TIMES]
    return table(heads, rows)


# --- nights -----------------------------------------------------------------------------------------------

_NIGHTS: Final = (
    ("Europe/Berlin", "2026-03-01"),
    ("Europe/Berlin", "2026-10-01"),
    ("Australia/Lord_Howe", "2026-10-01"),
    ("Australia/Lord_Howe", "2026-04-01"),
)
_NIGHTLY: Final = ("30 2 * * *", "15 2 * * *", "0 3 * * *", "*/30 1-2 * * *", "0 */2 * * *", "*/30 * * * *")
_MANY: Final = 6


def four_nights() -> str:
    """What six schedules do on four nights of two zones, as they are by default."""
    heads = ["schedule", *(_night_head(*night) for night in _NIGHTS)]
    rows = []
    for expression in _NIGHTLY:
        cells = [_night(cron(expression, tz), day) for tz, day in _NIGHTS]
        rows.append([f"`{expression}`", *cells])
    return table(heads, rows)


def choices() -> str:
    """What the choices for gaps and overlaps do to one job on the two nights of Berlin."""
    spring, autumn = _NIGHTS[:2]
    rows = []
    for gap in ("shift", "asap", "skip"):
        one = cron("*/30 1-2 * * *", spring[0], dst_gap=gap)
        rows.append([f'`dst_gap="{gap}"`', _night_head(*spring), _night(one, spring[1])])
    for overlap in ("first", "second", "both"):
        one = cron("*/30 1-2 * * *", autumn[0], dst_overlap=overlap)
        rows.append([f'`dst_overlap="{overlap}"`', _night_head(*autumn), _night(one, autumn[1])])
    return table(("choice", "night", "slots"), rows)


def _night_head(tz: str, day: str) -> str:
    ((change, _),) = next_nights(cron("0 0 * * *", tz), instant(day, 0), 1)
    before, after = change.local_before, change.local_after
    return f"{tz} {before[:10]}: {before[11:16]} → {after[11:16]}"


def _night(schedule: Schedule, day: str) -> str:
    """The slots near the change, by what the clocks show; what was meant stands beside what was moved."""
    ((change, slots),) = next_nights(schedule, instant(day, 0), 1)
    near = [slot for slot in slots if abs(slot.at_ms - change.at_ms) <= 120 * MINUTE]
    if isinstance(schedule, Cron) and schedule.is_elapsed:
        gaps = {span_words(later.at_ms - one.at_ms) for one, later in pairwise(near)}
        return f"each {', '.join(sorted(gaps))} of real time"
    offsets = change.offset_before_ms, change.offset_after_ms
    told = [_shown(slot, offsets[slot.at_ms >= change.at_ms]) for slot in near]
    return ", ".join(told) if told else "nothing near"


def _shown(slot: Slot, offset_ms: int) -> str:
    local = f"{aware(slot.at_ms + offset_ms):%H:%M}"
    meant = slot.local[11:16]
    if slot.shifted == "gap":
        return f"{local} ({meant} was meant)"
    return f"{local} ({slot.shifted.removeprefix('overlap-')} pass)" if slot.shifted else local


# --- handlers and events ----------------------------------------------------------------------------------

_TOLD: Final = {
    "": "nothing",
    "stop": "`stop()` has begun",
    "unsure": "the lease could not be renewed in time",
    "timeout": "its `timeout` was reached",
    "lost": "the store refused its token",
    "abandoned": "`stop()` ran out of time",
}
_DONE: Final = {
    "finish": "finished: `success`",
    "fail": "finished: `failed`",
    "time out": "finished: `failed`, as `timeout`",
    "hand over": "released, not counted: the next attempt may start",
    "give up": "released, counted: the next attempt may start",
    "nothing": "nothing is written any more",
}


def endings() -> str:
    """What becomes of a run when its handler has ended."""
    rows = []
    for why, words in _TOLD.items():
        returned, raised = (_DONE[timers.ending(one, why)] for one in (True, False))
        rows.append([words, returned, raised])
    return table(("what the handler was told", "it returned", "it raised, or was cancelled"), rows)


_EVENTS: Final = {
    "won": ("this instance won attempt 1 of a run", "nothing"),
    "started": ("the handler is started; `late_ms` after its slot", "nothing; watch `late_ms`"),
    "success": ("the run is recorded as `success`", "nothing"),
    "failed": ("the run is recorded as `failed`", "read `error`; the run is not started again by the lease"),
    "skip": (
        "a slot was not started: `why` is `overlap`, `late`, `paused` or `superseded`",
        "`overlap` often: the job takes longer than its interval. `late`: clocks or load",
    ),
    "backup": ("this instance looks after a run that another one holds", "nothing"),
    "takeover": ("this instance won attempt 2 or later", "find out why the runner before it went away"),
    "lost": (
        "the store refused this attempt's token: another one has the run",
        "look for pauses of this machine; make the lease longer if they are normal",
    ),
    "unsure": (
        "no renewal worked for so long that the lease may run out; `silent_ms`",
        "look at the store and the network between",
    ),
    "overdue": ("the handler reached its `timeout`", "if it goes on: a thread can't be stopped, make it ask"),
    "drift": (
        "this instance was started with other options than the one before",
        "expected during a deploy; afterwards, find the old one",
    ),
    "handed-over": ("`stop()` gave a running run back", "nothing"),
    "interrupted": (
        "a run ended without an outcome: a newer run started first, or its attempts are used up",
        "see `tenure job why`; a job that kills its runners ends this way",
    ),
    "abandoned": (
        "`stop()` ran out of time and left a handler running",
        "make the handler ask `run.lost`, or give `stop()` more time",
    ),
    "missed": ("slots passed that nobody claimed", "read `why` and `count`; were all instances down?"),
    "stalled": (
        "the loop of the handlers did not turn for longer than a heartbeat; `blocked_ms`",
        "find the blocking call in an async handler; leases were kept",
    ),
    "clock": ("this machine's clock or the store's is off, or stepped", "set it right; see [clocks](#clocks)"),
    "store-down": ("the store can't be reached", "look at the store; claims and finishes are tried again"),
    "store-up": ("it can be reached again; `down_ms`", "nothing"),
    "retry": ("a handler that raised is called again within its attempt", "read `error`"),
    "warning": ("something else that people should read, at most once a minute each", "read `says`"),
}


def events() -> str:
    """Every event, how loud the log is, and what to do."""
    if tuple(_EVENTS) != heard.NAMES:
        raise TableError(f"the table of events speaks of {', '.join(_EVENTS)}; there are {', '.join(heard.NAMES)}")
    rows = [[f"`{name}`", _level(name), meaning, todo] for name, (meaning, todo) in _EVENTS.items()]
    return table(("event", "log", "what happened", "what to do"), rows)


class _Ear(logging.Handler):
    """Hears how loud the log is."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.levels.append(record.levelname.lower())


def _level(name: str) -> str:
    """The level of the log line that this event really makes."""
    log, ear = logging.getLogger("tenure"), _Ear()
    level, propagate = log.level, log.propagate
    log.addHandler(ear)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        heard.Events("a", lambda call: call()).emit(heard.Event(name, 0, "a"))
    finally:
        log.removeHandler(ear)
        log.setLevel(level)
        log.propagate = propagate
    return ear.levels[0]
