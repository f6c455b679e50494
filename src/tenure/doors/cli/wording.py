"""One spelling of every value that the command line shows: for people, and as JSON. Field names here are pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenure.rules.instant import SECOND, iso, span_words
from tenure.rules.times import local

if TYPE_CHECKING:
    from tenure.rules.job import Attempt
    from tenure.rules.schedule import Change, Schedule, Slot
    from tenure.scheduler.records import InstanceView, JobView, RunView


def clean(text: str) -> str:
    """Text from a handler as a terminal may show it: nothing in it can move the cursor or change colours."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


# --- JSON -------------------------------------------------------------------------------------------------


def instant_fields(name: str, ms: int | None) -> dict[str, Any]:
    """`name` as ISO 8601 with Z, and `name_ms`; both null where there is none."""
    return {name: None if ms is None else iso(ms), f"{name}_ms": ms}


def attempt_json(attempt: Attempt, run_ended: int | None) -> dict[str, Any]:
    """One attempt; its token is a key and stays out of sight."""
    ended = attempt.ended if attempt.ended is not None else run_ended
    return {
        "number": attempt.number,
        "runner": attempt.runner,
        "reason": attempt.reason,
        "fence": attempt.fence,
        **instant_fields("started", attempt.started),
        **instant_fields("renewed", attempt.renewed),
        "beats": attempt.beats,
        **instant_fields("ended", ended),
        "how": attempt.how,
        "duration_ms": None if ended is None else ended - attempt.started,
    }


def run_json(run: RunView) -> dict[str, Any]:
    """One run with its attempts."""
    progress, error = run.progress, run.error
    first = run.attempts[0].started if run.attempts else None
    return {
        "key": run.key,
        "job": run.job,
        **instant_fields("slot", run.slot),
        "request": run.request or None,
        "status": run.status,
        "runner": run.attempts[-1].runner if run.attempts else None,
        "attempts": [attempt_json(one, run.ended) for one in run.attempts],
        "lease_ms": run.lease_ms,
        **instant_fields("lease_until", run.lease_until),
        **instant_fields("started", first),
        **instant_fields("ended", run.ended),
        "duration_ms": None if run.ended is None or first is None else run.ended - first,
        "late_ms": None if first is None else first - run.slot,
        "progress": None if progress is None else progress._asdict(),
        "result": run.result,
        "error": None if error is None else dict(zip(("type", "message", "trace"), error, strict=True)),
    }


OPTIONS = (
    "lease_ms",
    "heartbeat_ms",
    "max_attempts",
    "overlap",
    "jitter_ms",
    "catch_up_ms",
    "max_late_ms",
    "history",
    "timeout_ms",
    "when_unsure",
    "retries",
)


def takeover_ms(told: dict[str, Any]) -> int | None:
    """The longest from a dead runner's last heartbeat to the takeover (R22); None where there is no lease."""
    lease: int | None = told.get("lease_ms")
    return None if lease is None else lease + 2 * int(told.get("heartbeat_ms", 0))


def job_json(job: JobView) -> dict[str, Any]:
    """One job as the store knows it."""
    told = job.told
    return {
        "name": job.name,
        "words": told.get("words"),
        "cron": told.get("cron"),
        "every_ms": told.get("every_ms"),
        "tz": told.get("tz"),
        "dst_gap": told.get("dst_gap"),
        "dst_overlap": told.get("dst_overlap"),
        "paused": job.paused is not None,
        **instant_fields("paused_since", job.paused),
        **instant_fields("next", job.next_slot),
        "last": None if job.last is None else run_json(job.last),
        "running": [run_json(run) for run in job.running],
        "waiting_requests": job.requests,
        "options": {name: told.get(name) for name in OPTIONS},
        "takeover_ms": takeover_ms(told),
        **instant_fields("schedule_since", job.seen_since),
        "version": job.version,
    }


def instance_json(instance: InstanceView, now: int) -> dict[str, Any]:
    """One instance's page."""
    from tenure.scheduler.run import run_key

    return {
        "name": instance.name,
        "alive": instance.alive,
        **instant_fields("seen", instance.seen),
        "silent_ms": max(0, now - instance.seen),
        **instant_fields("started", instance.started),
        "host": instance.host,
        "pid": instance.pid,
        "version": instance.version,
        "offset_ms": instance.offset_ms,
        "jobs": list(instance.jobs),
        "running": [run_key(*key) for key in instance.running],
        "backups": instance.backups,
        "reasons": list(instance.reasons),
    }


def slot_json(slot: Slot, tz: str) -> dict[str, Any]:
    """One slot: when it is, what the wall clock shows, and what was meant where a clock change moved it."""
    return {
        **instant_fields("at", slot.at_ms),
        "local": local(slot.at_ms, tz),
        "meant": slot.local,
        "shifted": slot.shifted or None,
    }


def change_json(change: Change, slots: tuple[Slot, ...], says: str) -> dict[str, Any]:
    """One clock change, and what the schedule does on its day."""
    return {
        **instant_fields("at", change.at_ms),
        "kind": change.kind,
        "local_before": change.local_before,
        "local_after": change.local_after,
        "offset_before_seconds": change.offset_before_ms // SECOND,
        "offset_after_seconds": change.offset_after_ms // SECOND,
        "says": says,
        "slots": [slot_json(slot, change.tz) for slot in slots],
    }


def schedule_line(schedule: Schedule) -> str:
    """A schedule as it is written in code, on one line."""
    from tenure.rules.schedule import Every

    return f"every {span_words(schedule.interval_ms)}" if isinstance(schedule, Every) else schedule.identity


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    """A schedule as plain values."""
    from tenure.rules.schedule import Cron, Every

    return {
        "kind": "every" if isinstance(schedule, Every) else "cron",
        "cron": schedule.expression if isinstance(schedule, Cron) else None,
        "every_ms": schedule.interval_ms if isinstance(schedule, Every) else None,
        "tz": schedule.tz,
        "identity": schedule.identity,
        "words": schedule.words(),
        "warnings": list(schedule.warnings()),
    }
