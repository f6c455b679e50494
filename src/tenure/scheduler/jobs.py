"""A job as data: its name, schedule, options and handler; each option checked, in one sentence."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from tenure.errors import ConfigError
from tenure.rules.instant import DAY, HOUR, SECOND, span, span_words
from tenure.rules.job import Overlap
from tenure.rules.schedule import Cron, Every, Schedule, ScheduleError, Slot, cron, every
from tenure.rules.schedule_error import shown
from tenure.scheduler.handlers import is_async, wants_run, yields
from tenure.scheduler.seams import Handler

Span = float | str | timedelta
WhenUnsure = Literal["abort", "continue"]

NAME_LETTERS: Final = 200
NAME_BYTES: Final = 512
MAX_SPAN: Final = 3650 * DAY


class Options(TypedDict, total=False):
    """The options of a job; a scheduler holds defaults for all its jobs. Spans: seconds, `1h30m`, or a timedelta."""

    lease: Span | None
    heartbeat: Span
    max_attempts: int
    overlap: Overlap
    jitter: Span
    catch_up: Span
    max_late: Span
    history: int
    timeout: Span | None
    when_unsure: WhenUnsure
    retries: int
    retry_delay: Span


OPTIONS: Final = tuple(Options.__annotations__)
DEFAULTS: Final[Options] = {
    "lease": 30.0,
    "max_attempts": 3,
    "overlap": "skip",
    "jitter": 0.25,
    "catch_up": 300.0,
    "max_late": 60.0,
    "history": 100,
    "timeout": None,
    "when_unsure": "abort",
    "retries": 0,
    "retry_delay": 1.0,
}


@dataclass(frozen=True, slots=True)
class Job:
    """One job, checked. All times in milliseconds; `lease_ms` None: claim-only (R46)."""

    name: str
    schedule: Schedule | None
    handler: Handler
    is_async: bool
    wants_run: bool
    lease_ms: int | None
    heartbeat_ms: int
    max_attempts: int
    overlap: Overlap
    jitter_ms: int
    catch_up_ms: int
    max_late_ms: int
    history: int
    timeout_ms: int | None
    when_unsure: WhenUnsure
    retries: int
    retry_delay_ms: int
    warnings: tuple[str, ...] = ()

    @property
    def document(self) -> str:
        """The name of its document in the store."""
        return document(self.name)

    @property
    def bound_ms(self) -> int:
        """The largest lateness that any of its claims carries."""
        return max(self.max_late_ms, self.catch_up_ms)

    @property
    def takeover_ms(self) -> int | None:
        """The longest from a dead runner's last heartbeat to the takeover (R22); None: there is none (R46)."""
        return None if self.lease_ms is None else self.lease_ms + 2 * self.heartbeat_ms

    def told(self) -> dict[str, Any]:
        """The definition, for people and for `drift`."""
        return {
            **spell(self.schedule),
            "words": self.schedule.words() if self.schedule else "only when triggered",
            "tz": self.schedule.tz if self.schedule else "UTC",
            "lease_ms": self.lease_ms,
            "heartbeat_ms": self.heartbeat_ms,
            "max_attempts": self.max_attempts,
            "overlap": self.overlap,
            "jitter_ms": self.jitter_ms,
            "catch_up_ms": self.catch_up_ms,
            "max_late_ms": self.max_late_ms,
            "history": self.history,
            "timeout_ms": self.timeout_ms,
            "when_unsure": self.when_unsure,
            "retries": self.retries,
            "retry_delay_ms": self.retry_delay_ms,
        }

    def fingerprint(self) -> str:
        """Equal for equal definitions under equal zone data (R29a)."""
        told = json.dumps([self.told(), zone_data_version()], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def spell(schedule: Schedule | None) -> dict[str, Any]:
    """A schedule as plain values, which `read_schedule` reads."""
    match schedule:
        case Cron():
            return {"cron": schedule.expression, "dst_gap": schedule.dst_gap, "dst_overlap": schedule.dst_overlap}
        case Every():
            return {"every_ms": schedule.interval_ms}
        case _:
            return {}


def read_schedule(told: Mapping[str, Any]) -> Schedule | None:
    """The schedule that a stored definition speaks of; None where it has none."""
    if "every_ms" in told:
        return every(told["every_ms"])
    if "cron" in told:
        return cron(told["cron"], told["tz"], dst_gap=told["dst_gap"], dst_overlap=told["dst_overlap"])
    return None


@contextlib.contextmanager
def as_config_error() -> Iterator[None]:
    """A schedule that is refused in here is refused like every other setting."""
    try:
        yield
    except ScheduleError as error:
        field = error.field or "expression"
        why = str(error).removeprefix(f"{field} {shown(error.value)}").lstrip(" :,")  # it is not said twice
        raise ConfigError(field, error.value, why) from None


def slots_between(jobs: Iterable[Job], begin: int, end: int) -> list[tuple[Slot, Job]]:
    """The slots of these jobs with begin <= slot < end (milliseconds), in order."""
    found: list[tuple[Slot, Job]] = []
    for job in jobs:
        slot = job.schedule.next(begin - 1) if job.schedule is not None else None
        while slot is not None and slot.at_ms < end:
            found.append((slot, job))
            slot = job.schedule.next(slot.at_ms) if job.schedule is not None else None
    return sorted(found, key=lambda pair: (pair[0].at_ms, pair[1].name))


def document(job: str) -> str:
    """The name under which a job's document is stored."""
    return f"job:{job}"


@cache
def zone_data_version() -> str:
    """The version of the time zone data in use, as far as it says one."""
    try:
        from tzdata import IANA_VERSION
    except ImportError:
        pass
    else:
        return str(IANA_VERSION)
    import zoneinfo

    for folder in zoneinfo.TZPATH:
        for name, cut in (("+VERSION", ""), ("tzdata.zi", "# version ")):
            try:
                with Path(folder, name).open(encoding="ascii") as file:
                    first = file.readline().strip()
            except OSError:
                continue
            return first.removeprefix(cut)
    return "unknown"


def check_name(name: object, field: str = "name") -> str:
    """One validator at the edge, so that every store answers the same (R40c). Raises ConfigError."""
    if not isinstance(name, str):
        raise ConfigError(field, name, "is no text; give a name of 1 to 200 characters.")
    if not 1 <= len(name) <= NAME_LETTERS:
        raise ConfigError(field, name, f"has {len(name)} characters; a name has 1 to {NAME_LETTERS}.")
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name):
        raise ConfigError(field, name, "has a control character or half of a surrogate pair; leave it out.")
    if unicodedata.normalize("NFC", name) != name:
        raise ConfigError(field, name, "is not in Unicode's NFC form; normalise it.")
    if len(name.encode()) > NAME_BYTES:
        raise ConfigError(field, name, f"has {len(name.encode())} bytes in UTF-8; a name has at most {NAME_BYTES}.")
    if not name.strip():
        raise ConfigError(field, name, "is only white space; give it a word.")
    return name


def check_options(given: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, with the nearest that does."""
    for name in given:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(OPTIONS)}."
            raise ConfigError(name, given[name], "is no option of a job.", hint)


def define(
    name: str | None,
    schedule: Schedule | None,
    handler: Handler,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    *,
    tiny_leases: bool = False,
) -> Job:
    """A checked job. `tiny_leases`: for tests, leases down to 50 ms. Raises ConfigError in one sentence."""
    check_options(given)
    check_options(defaults or {})
    options = {**DEFAULTS, **(defaults or {}), **given}
    if not callable(handler):
        raise ConfigError("handler", handler, "can't be called; give a function.")
    if yields(handler):
        shown = getattr(handler, "__name__", handler)
        raise ConfigError("handler", shown, "is a generator, whose body no call would run; use no yield in it.")
    lease_ms = _lease(options["lease"], 50 if tiny_leases else SECOND)
    warnings: list[str] = list(schedule.warnings()) if schedule else []
    job = Job(
        name=check_name(name if name is not None else getattr(handler, "__name__", None), "name"),
        schedule=schedule,
        handler=handler,
        is_async=is_async(handler),
        wants_run=wants_run(handler),
        lease_ms=lease_ms,
        heartbeat_ms=_heartbeat(options.get("heartbeat"), lease_ms),
        max_attempts=check_whole("max_attempts", options["max_attempts"], 1),
        overlap=_one_of("overlap", options["overlap"], ("skip", "allow")),
        jitter_ms=_jitter(options["jitter"], schedule, "jitter" in given, warnings),
        catch_up_ms=_span("catch_up", options["catch_up"]),
        max_late_ms=_span("max_late", options["max_late"]),
        history=check_whole("history", options["history"], 0),
        timeout_ms=None if options["timeout"] is None else _span("timeout", options["timeout"], 1),
        when_unsure=_one_of("when_unsure", options["when_unsure"], ("abort", "continue")),
        retries=check_whole("retries", options["retries"], 0),
        retry_delay_ms=_span("retry_delay", options["retry_delay"]),
    )
    if job.max_late_ms < SECOND and schedule is not None:
        warnings.append(
            f"max_late={span_words(job.max_late_ms)} is shorter than a busy instance may be late; slots are still "
            f"claimed within the 10 s tolerance, but use 1s or more to be clear."
        )
    return replace(job, warnings=tuple(warnings)) if warnings else job


def _span(name: str, value: Any, least: int = 0, most: int = MAX_SPAN) -> int:
    try:
        ms = span(value)
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from None
    if not least <= ms <= most:
        raise ConfigError(name, value, f"is out of bounds; use {span_words(least)} to {span_words(most)}.")
    return ms


def _lease(value: Any, least: int) -> int | None:
    return None if value is None else _span("lease", value, least, 24 * HOUR)


def _heartbeat(value: Any, lease_ms: int | None) -> int:
    if lease_ms is None:
        return 5 * SECOND
    if value is None:
        return min(5 * SECOND, lease_ms // 6)
    ms = _span("heartbeat", value, 1)
    if 2 * ms >= lease_ms:
        half = f"half of the lease ({span_words(lease_ms)} / 2 = {span_words(lease_ms // 2)})"
        raise ConfigError("heartbeat", value, f"is not under {half}; use a shorter heartbeat or a longer lease.")
    return ms


def _jitter(value: Any, schedule: Schedule | None, own: bool, warnings: list[str]) -> int:
    ms = _span("jitter", value)
    if schedule is None:
        return ms
    most = max(0, (schedule.smallest_gap_ms() - 1) // 2)
    if ms > most:
        if own:
            warnings.append(
                f"jitter={span_words(ms)} is not under half of the smallest gap between slots "
                f"({span_words(schedule.smallest_gap_ms())}); {span_words(most)} is used."
            )
        return most
    return ms


def check_whole(name: str, value: Any, least: int, most: int = 1_000_000_000) -> int:
    """A whole number within its bounds. Raises ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(name, value, f"is no whole number; use {least} or more.")
    if not least <= value <= most:
        raise ConfigError(name, value, f"is out of bounds; use {least} or more, at most {most}.")
    return value


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, 1)
        hint = f"Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(name, value, f"is none of {', '.join(map(repr, allowed))}.", hint)
    return value


__all__ = ["DEFAULTS", "OPTIONS", "Job", "Options", "Span", "check_name", "define", "document"]
