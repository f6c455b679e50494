"""`tenure job`: the jobs that a store knows, and what can be said to them."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.access import Access, moment, store_options, with_store
from tenure.doors.cli.output import Cell, Look, look, pairs, put, put_json, say, table
from tenure.doors.cli.texts import CONTEXT, Noun, exits
from tenure.doors.cli.trigger import knowing, run_words, trigger

if TYPE_CHECKING:
    from tenure.scheduler.records import InstanceView, JobView, Records

NONE_YET = "no jobs are known here yet. They are registered when an application first starts: tenure run MODULE:OBJECT"


@click.group(cls=Noun, context_settings=CONTEXT)
def job() -> None:
    """List, show, pause, resume and trigger jobs; ask why."""


store_options(job)
job.add_command(trigger)


@job.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130, _3="the store's file does not exist"))
@with_store
def list_jobs(access: Access) -> int:
    """List all jobs: schedule, next slot, last outcome, and where they run."""
    from tenure.doors.cli.wording import job_json

    async def ask(records: Records) -> tuple[int, list[JobView], list[InstanceView]]:
        return await records.now(), await records.jobs(), await records.instances()

    now, jobs, instances = access.ask(ask)
    if access.as_json:
        put_json([job_json(one) for one in jobs])
    elif jobs:
        heads = ("job", "schedule", "next", "last", "running on")
        for line in table(heads, [_row(one, now) for one in jobs], look()):
            put(line)
        alone = [one.name for one in jobs if not knowing(one.name, instances)]
        if alone:
            say(f"no instance is running {', '.join(alone)}: no run will start until one does (tenure run).")
    else:
        say(NONE_YET)
    return 0


def _row(job: JobView, now: int) -> tuple[str | Cell, ...]:
    from tenure.rules.times import away, short
    from tenure.scheduler.picture import STATUS_STYLES

    coming: str | Cell = "-"
    if job.paused is not None:
        coming = Cell("paused", STATUS_STYLES["paused"])
    elif job.next_slot is not None:
        coming = f"{short(job.next_slot)}, {away(job.next_slot, now)}"
    last: str | Cell = "-"
    if job.last is not None and job.last.ended is not None:
        last = Cell(f"{job.last.status}, {away(job.last.ended, now)}", STATUS_STYLES.get(job.last.status, ""))
    return Cell(job.name, "strong"), str(job.told.get("words", "")), coming, last, _where(job) or "-"


def _where(job: JobView) -> str:
    return ", ".join(
        run.attempts[-1].runner + (f" ({run.status})" if run.status != "running" else "") for run in job.running
    )


@job.command("show", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("name", metavar="JOB")
@with_store
def show_job(access: Access, name: str) -> int:
    """Show one job: its schedule, options, next slots, and its current and last run."""
    from tenure.doors.cli.following import BACK_MS
    from tenure.doors.cli.wording import job_json
    from tenure.scheduler.wishes import dropped

    async def ask(records: Records) -> tuple[int, JobView, list[tuple[str, str]], bool]:
        now = await records.now()
        found = await records.job(name)
        gone = await dropped(records, name, now - BACK_MS, now, limit=3)
        return now, found, gone, bool(knowing(name, await records.instances()))

    now, found, gone, known = access.ask(ask)
    if access.as_json:
        put_json(job_json(found))
        return 0
    for line in _shown(found, now, look(), gone, known):
        put(line)
    return 0


def _shown(job: JobView, now: int, seen: Look, gone: list[tuple[str, str]], known: bool) -> list[str]:
    from tenure.doors.cli.explain import night_lines, slot_lines
    from tenure.doors.cli.wording import schedule_line
    from tenure.rules.nights import upcoming
    from tenure.rules.times import away, short
    from tenure.scheduler.jobs import read_schedule

    schedule = read_schedule(job.told)
    facts: list[tuple[str, str | Cell]] = [("schedule", str(job.told.get("words", "")))]
    if schedule is not None:
        facts += [("", schedule_line(schedule)), *(("warning", Cell(one, "warn")) for one in schedule.warnings())]
    if job.paused is not None:
        facts.append(("paused", Cell(f"since {short(job.paused)}, {away(job.paused, now)}", "warn")))
    facts += _options(job.told)
    if job.requests:
        facts.append(("waiting", f"{job.requests} triggered, not claimed yet"))
    facts += [("dropped", Cell(f"triggered as {wish}: {reason}", "warn")) for wish, reason in gone]
    if not known:
        facts.append(("running", Cell("no instance is running it", "warn")))
    facts += [("running", run_words(run, now)) for run in job.running]
    if job.last is not None:
        facts.append(("last", run_words(job.last, now)))
    lines = [seen.paint(job.name, "strong"), *pairs(facts, seen)]
    if schedule is not None and job.paused is None:
        lines += slot_lines(schedule, upcoming(schedule, now + 1, 3), now, seen)
    if schedule is not None and schedule.tz != "UTC":
        lines += night_lines(schedule, now, seen)
    return lines


def _options(told: dict[str, Any]) -> list[tuple[str, str | Cell]]:
    from tenure.doors.cli.wording import takeover_ms
    from tenure.rules.instant import span_words

    if not told:
        return []
    worst = takeover_ms(told)
    lease = "none (claim-only)"
    if worst is not None:
        lease = (
            f"{span_words(told['lease_ms'])}, heartbeat every {span_words(told['heartbeat_ms'])}; "
            f"a takeover comes at most {span_words(worst)} after a dead runner's last heartbeat"
        )
    timeout = told.get("timeout_ms")
    rest = (
        f"overlap {told['overlap']}, at most {told['max_attempts']} attempts, catch up "
        f"{span_words(told['catch_up_ms'])}, at most {span_words(told['max_late_ms'])} late, timeout "
        f"{span_words(timeout) if timeout else 'none'}, {told['history']} runs kept"
    )
    return [("lease", lease), ("options", rest)]


@job.command("next", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 5, 130, _5="it has no slot to come"))
@click.argument("name", metavar="[JOB]", required=False)
@click.option(
    "--count", default=5, show_default=True, metavar="N", type=click.IntRange(1, 1000), help="How many slots."
)
@with_store
def next_slots(access: Access, name: str | None, count: int) -> int:
    """Show the next slots of a job, or of all jobs in order."""
    from tenure.doors.cli.wording import slot_json
    from tenure.rules.nights import upcoming
    from tenure.rules.times import away, clock, short
    from tenure.scheduler.jobs import read_schedule

    async def ask(records: Records) -> tuple[int, list[JobView]]:
        return await records.now(), [await records.job(name)] if name is not None else await records.jobs()

    now, jobs = access.ask(ask)
    coming = []
    for one in jobs:
        schedule = read_schedule(one.told)
        if schedule is not None and one.paused is None:
            coming += [(slot, one.name, schedule.tz) for slot in upcoming(schedule, now + 1, count)]
    coming = sorted(coming, key=lambda entry: (entry[0].at_ms, entry[1]))[:count]
    if access.as_json:
        put_json([{"job": job, "tz": tz, **slot_json(slot, tz)} for slot, job, tz in coming])
    elif coming:
        rows = [
            (short(slot.at_ms), away(slot.at_ms, now), job, clock(slot.at_ms, tz) + f" {tz}" if tz != "UTC" else "")
            for slot, job, tz in coming
        ]
        for line in table(("next", "", "job", "local"), rows, look()):
            put(line)
    if not coming:
        say(_nothing_to_come(name, jobs))
        return 5
    return 0


def _nothing_to_come(name: str | None, jobs: list[JobView]) -> str:
    if name is None:
        return "no job has a slot to come." if jobs else NONE_YET
    if jobs[0].paused is not None:
        return f"{name} is paused; no slot is claimed until: tenure job resume {quote(name)}"
    return f"{name} has no slot to come; it runs when it is triggered: tenure job trigger {quote(name)}"


@job.command("pause", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 5, 130, _5="it was paused already"))
@click.argument("name", metavar="JOB")
@with_store
def pause(access: Access, name: str) -> int:
    """Start no new run of a job, on any instance, until it is resumed. A run under way goes on."""
    return _switch(access, name, pausing=True)


@job.command("resume", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 5, 130, _5="it was not paused"))
@click.argument("name", metavar="JOB")
@with_store
def resume(access: Access, name: str) -> int:
    """End a job's pause. At most one slot is caught up."""
    return _switch(access, name, pausing=False)


def _switch(access: Access, name: str, *, pausing: bool) -> int:
    async def ask(records: Records) -> bool:
        return await (records.pause(name) if pausing else records.resume(name))

    changed = access.ask(ask)
    if access.as_json:
        put_json({"job": name, "paused": pausing, "changed": changed})
    if not changed:
        say(f"{name} was {'paused already' if pausing else 'not paused'}; nothing was changed.")
        return 5
    if pausing:
        end = f"tenure job resume {quote(name)}"
        say(f"{name} is paused on all instances; a run under way goes on. To end the pause: {end}")
    else:
        say(f"{name} is resumed; instances see it within 5 s.")
    return 0


@job.command("why", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("name", metavar="JOB")
@click.argument("when", metavar="TIME")
@with_store
def ask_why(access: Access, name: str, when: str) -> int:
    """Say why a job ran, or did not, at a time: ISO 8601 (UTC if it names no zone) or now-2h."""
    from tenure.doors.cli.wording import clean, instant_fields, run_json
    from tenure.scheduler.why import Why, why

    async def ask(records: Records) -> tuple[int, Why, bool]:
        at = moment("TIME", when, await records.now())
        return at, await why(records, name, at), bool(knowing(name, await records.instances()))

    at, answer, known = access.ask(ask)
    if access.as_json:
        told = {
            "job": answer.job,
            **instant_fields("asked", at),
            "outcome": answer.outcome,
            "sentence": answer.sentence,
        }
        put_json({**told, **instant_fields("slot", answer.slot), "run": run_json(answer.run) if answer.run else None})
    else:
        put(clean(answer.sentence))
    if not known:
        say(f"no instance is running {name}: no run will start until one does (tenure run).")
    return 0
