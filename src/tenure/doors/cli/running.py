"""`tenure run`: an application's jobs in a process of its own."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.access import Access, length, with_store
from tenure.doors.cli.output import Look, look, pairs
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.scheduler.events import Event
    from tenure.scheduler.jobs import Job


@click.command(
    context_settings=CONTEXT,
    short_help="Run an application's jobs in this process.",
    epilog=exits(
        0,
        1,
        2,
        3,
        5,
        130,
        _0="stopped in order, after SIGTERM or Ctrl-C",
        _3="no such job or file",
        _5="the application has no job",
        _130="Ctrl-C twice",
    ),
)
@click.argument("target", metavar="[MODULE:OBJECT]", required=False)
@click.option("--only", metavar="JOB", multiple=True, help="Run this job only; may be given several times.")
@click.option(
    "--stop-timeout", metavar="DUR", help="How long handlers may take to stop: 90, 45s, 1h30m.  [default: 20s]"
)
@click.option("-v", "--verbose", is_flag=True, help="Log wins and backups too.")
@with_store
def run(access: Access, *, target: str | None, only: tuple[str, ...], stop_timeout: str | None, verbose: bool) -> int:
    """Run an application's jobs in this process, until SIGTERM or Ctrl-C.

    The application is a Tenure object: MODULE:OBJECT, else TENURE_APP, else app in [tool.tenure] of
    pyproject.toml. On the signal running handlers are told, and finished or handed over; a second signal
    ends at once. TENURE_LOG_FORMAT=json writes the log as JSON lines.
    """
    from tenure import processes
    from tenure.doors.cli.logs import Voice, configure, log_format

    form = "json" if access.as_json else log_format()
    if stop_timeout is not None:
        length("--stop-timeout", stop_timeout)
    application = _application(access, target)
    chosen = _chosen(application, only)
    if not chosen:
        raise NothingToRun("the application defines no job, so there is nothing to run. Define one with @app.every().")
    unheard = _unheard(access, application)
    configure(form, verbose=verbose)
    voice = Voice(form)
    told: Counter[str] = Counter()
    application.on("*", lambda event: _count(told, event))

    def begun() -> None:
        _introduce(application, chosen, voice, unheard)

    def heard(sentence: str) -> None:
        told.clear()
        voice.say(f"tenure: {sentence}")

    code = processes.run(application, only or None, stop_timeout, begun, heard)
    voice.say(f"tenure: stopped; {_ended(told)}")
    return code


class NothingToRun(click.ClickException):
    """There is nothing to do."""

    exit_code = 5


def _application(access: Access, target: str | None) -> Tenure:
    from tenure.doors.cli.loading import WHERE, load
    from tenure.settings import resolve

    spec = target or access.app or resolve({}).get("app")
    if not spec:
        raise click.UsageError(f"which application is to be run? {WHERE}")
    application = load(spec)
    if access.store is not None:
        application.use_store(access.store)
    return application


def _chosen(application: Tenure, only: tuple[str, ...]) -> list[Job]:
    from tenure.errors import NotFound

    jobs = application.jobs
    for name in only:
        if name not in jobs:
            near = difflib.get_close_matches(name, jobs, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It defines: {', '.join(jobs) or 'none'}."
            raise NotFound(f"there is no job {name!r} in this application. {hint}")
    return [jobs[name] for name in only or jobs]


def _count(told: Counter[str], event: Event) -> None:
    told[event.name] += 1


def _ended(told: Counter[str]) -> str:
    """What became of the runs that were under way."""
    words = {
        "success": "finished",
        "failed": "failed",
        "handed-over": "handed over",
        "abandoned": "left: its lease runs out",
    }
    said = [f"{told[name]} {text}" for name, text in words.items() if told[name]]
    return f"runs: {', '.join(said)}" if said else "no run was under way"


# --- what is said at start --------------------------------------------------------------------------------


def _unheard(access: Access, application: Tenure) -> list[str]:
    """What somebody has set and nothing heeds, a sentence each."""
    from tenure.app import redact
    from tenure.settings import environment_settings, misspelt

    store = environment_settings().get("store")
    said = misspelt()
    if store is not None and access.store is None and redact(store) != application.store_url:
        said.append("TENURE_STORE names another store; the application names its own, which wins. --store beats both.")
    return said


def _introduce(application: Tenure, jobs: list[Job], voice: Any, unheard: list[str]) -> None:
    """Version, store, instance, leases, and each job with its next slot and the next clock changes."""
    import tenure

    instance = application.instance
    name = instance.name if instance is not None else ""
    now = time.time_ns() // 1_000_000
    store = application.store_url
    if voice.form == "json":
        for job in jobs:
            voice.say(f"job {job.name}: {_words(job)}", event="job", job=job.name, detail=_job_detail(job, now))
        worst = max((job.takeover_ms or 0 for job in jobs), default=0)
        fields = {"version": tenure.__version__, "store": store, "instance": name, "takeover_ms": worst}
        for sentence in unheard:
            voice.say(f"tenure: warning: {sentence}", event="warning")
        voice.say(f"tenure {tenure.__version__} runs {len(jobs)} jobs on {store} as {name}", event="begun", **fields)
        return
    import sys

    seen = look(sys.stderr)
    facts = [("store", store), ("instance", name), *_leases(jobs)]
    facts += [("warning", sentence) for sentence in unheard]
    lines = [seen.paint(f"tenure {tenure.__version__}", "strong"), *pairs(facts, seen)]
    for job in jobs:
        lines += ["", *_job_lines(job, now, seen)]
    voice.say("\n".join([*lines, ""]))


def _leases(jobs: list[Job]) -> list[tuple[str, str]]:
    """One line for each kind of lease; which jobs have it where there are several."""
    from tenure.rules.instant import span_words

    kinds: dict[tuple[int | None, int], list[str]] = {}
    for job in jobs:
        kinds.setdefault((job.lease_ms, job.heartbeat_ms), []).append(job.name)
    told = []
    for (lease, heartbeat), names in kinds.items():
        whose = f"{', '.join(names)}: " if len(kinds) > 1 else ""
        if lease is None:
            told.append(("lease", f"{whose}none (claim-only): a run whose runner dies is not taken over"))
        else:
            says = f"{whose}{span_words(lease)}, heartbeat every {span_words(heartbeat)}; a takeover comes at most "
            told.append(("lease", says + f"{span_words(lease + 2 * heartbeat)} after a dead runner's last heartbeat"))
    return told


def _words(job: Job) -> str:
    return job.schedule.words() if job.schedule is not None else "only when triggered"


def _job_lines(job: Job, now: int, seen: Look) -> list[str]:
    from tenure.rules.nights import change_words, nights
    from tenure.rules.times import away, clock, short

    lines = [_words(job)]
    if job.schedule is not None:
        slot = job.schedule.next(now)
        if slot is not None:
            zoned = f"{clock(slot.at_ms, job.schedule.tz)} = " if job.schedule.tz != "UTC" else ""
            lines.append(f"next {zoned}{short(slot.at_ms)}, {away(slot.at_ms, now)}")
        if job.schedule.tz != "UTC":
            lines += [f"{change_words(change)}: {says}" for change, _, says in nights(job.schedule, now)]
    return pairs([(job.name, "\n".join(lines))], seen)


def _job_detail(job: Job, now: int) -> dict[str, Any]:
    from tenure.doors.cli.wording import instant_fields
    from tenure.rules.nights import change_words, nights

    slot = job.schedule.next(now) if job.schedule is not None else None
    zoned = job.schedule is not None and job.schedule.tz != "UTC"
    told = (
        [f"{change_words(change)}: {says}" for change, _, says in nights(job.schedule, now)]
        if zoned and job.schedule
        else []
    )
    return {
        "words": _words(job),
        **instant_fields("next", slot.at_ms if slot else None),
        "lease_ms": job.lease_ms,
        "heartbeat_ms": job.heartbeat_ms,
        "takeover_ms": job.takeover_ms,
        "changes": told,
        "warnings": list(job.warnings),
    }
