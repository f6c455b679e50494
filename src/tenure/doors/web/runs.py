"""Runs: what the scheduler's stores tell, and pause, resume and trigger. It computes nothing; `scheduler` does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import audit
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.web.forms import Filled, text
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.pictures import statistics, timeline
from tenure.doors.web.rendering import link, render
from tenure.doors.web.sources import Source
from tenure.errors import ConfigError
from tenure.rules.instant import HOUR, recorded, span_words
from tenure.rules.nights import change_words, nights, no_changes, shift_words, upcoming
from tenure.rules.refusal import MISSING
from tenure.rules.schedule import Every, Schedule
from tenure.scheduler.jobs import read_schedule
from tenure.scheduler.overview import BAD, Overview, overview
from tenure.scheduler.picture import Pictured, pictured
from tenure.scheduler.records import JobView, Records, RunView
from tenure.scheduler.why import Why, why
from tenure.scheduler.wishes import dropped

STRIP: Final = 30
HISTORY: Final = 300
SLOTS: Final = 5
COMING: Final = 10


class Coming(NamedTuple):
    """A slot to come."""

    at: int
    job: str
    tz: str


class Row(NamedTuple):
    """A job in a list, with how its last runs ended."""

    job: JobView
    strip: Markup
    bad: int
    runs: int
    p95: int | None


async def index(request: Request) -> Response:
    """All stores at one look; straight to the only one where there is one."""
    sources: dict[str, Source] = request.app.state.sources
    if len(sources) == 1:
        return RedirectResponse(link(request, f"/runs/{next(iter(sources))}"), 303)
    return render(request, "runs/index.html", nav="runs", sources=list(sources.values()))


async def store(request: Request) -> Response:
    """One store: what needs an eye, its jobs, what comes next, who runs it."""
    source = found(request)
    owned = None if source.owned is None else await source.owned(request.state.human)

    async def ask(records: Records) -> tuple[Overview, list[Row]]:
        jobs = [job for job in await records.jobs() if owned is None or job.name in owned]
        return await overview(records, jobs), [await _row(records, job) for job in jobs]

    seen, rows = await source.ask(ask)
    if owned is not None:  # how many jobs others have is theirs too (B26)
        mine = [(one, tuple(job for job in one.jobs if job in owned)) for one in seen.instances]
        seen = replace(seen, instances=tuple(replace(one, jobs=jobs) for one, jobs in mine))
    coming = sorted(
        Coming(slot.at_ms, job.name, schedule.tz)
        for job in seen.jobs
        if job.paused is None and (schedule := read_schedule(job.told)) is not None
        for slot in upcoming(schedule, seen.now + 1, SLOTS)
    )[:COMING]
    offsets = statistics.offsets([(one.name, one.offset_ms) for one in seen.instances]) if seen.instances else ""
    return render(
        request,
        "runs/store.html",
        nav="runs",
        live=f"/live/runs/{source.key}",
        source=source,
        seen=seen,
        rows=rows,
        coming=coming,
        offsets=offsets,
        titles=await source.titles_for(request.state.human),
    )


async def _row(records: Records, job: JobView) -> Row:
    runs = await records.runs([job.name], limit=STRIP)
    taken = [took for run in runs if (took := statistics.took_ms(run)) is not None]
    bad = sum(run.status in BAD for run in runs)
    p95 = statistics.percentile(taken, 0.95) if taken else None
    return Row(job, statistics.strip(runs, STRIP), bad, len(runs), p95)


class Page(NamedTuple):
    """What the page of a job is made of."""

    now: int
    job: JobView
    picture: Pictured
    runs: list[RunView]
    gone: list[tuple[str, str]]
    known: list[str]
    why: Why | None


async def job_page(request: Request) -> Response:
    """One job: schedule, next slots and nights, timeline, lateness, durations, and why."""
    source, name = await _job(request)
    query, problems = request.query_params, Filled()

    async def ask(records: Records) -> Page:
        now = await records.now()
        since = _moment(query.get("since", ""), "since", now, problems)
        until = _moment(query.get("until", ""), "until", now, problems)
        if since is not None and since >= (now if until is None else until):
            problems["since"] = "is not before the end, so there is nothing to draw."
            since = until = None
        asked = _moment(query.get("at", ""), "at", now, problems)
        here = await records.instances()
        return Page(
            now,
            await records.job(name),
            await pictured(records, name, since, until),
            await records.runs([name], limit=HISTORY),
            await dropped(records, name, now - 24 * HOUR, now, limit=3),
            [one.name for one in here if one.alive and name in one.jobs],
            None if asked is None else await why(records, name, asked),
        )

    page = await source.ask(ask)
    schedule = read_schedule(page.job.told)
    slots = upcoming(schedule, page.now + 1, SLOTS) if schedule is not None else []
    values: dict[str, Any] = {
        "slots": [(slot, shift_words(slot)) for slot in slots],
        "nights": [(change_words(change), says) for change, _, says in nights(schedule, page.now)] if schedule else [],
        "unchanged": no_changes(schedule.tz) if schedule else "",
        "schedule": schedule,
        "written": _written(schedule),
        "options": _options(page.job.told),
        "timeline": timeline.draw(page.picture.timeline, page.picture.instances),
        "legend": timeline.signs(page.picture.timeline),
        "runs": page.runs,
        "pictures": _pictures(page.runs, schedule.tz if schedule else "UTC"),
        "asked": {key: query.get(key, "") for key in ("since", "until", "at")},
        "problems": problems,
    }
    live = f"/live/runs/{source.key}"
    values["title"] = (await source.titles_for(request.state.human)).get(name, name)
    return render(request, "runs/job.html", nav="runs", live=live, source=source, page=page, **values)


def _written(schedule: Schedule | None) -> str:
    """A schedule as it is written in code."""
    if schedule is None:
        return ""
    return f"every {span_words(schedule.interval_ms)}" if isinstance(schedule, Every) else schedule.identity


def _moment(typed: str, field: str, now: int, problems: Filled) -> int | None:
    """A time that was typed; None for nothing, or for what is no time, which is told beside its field."""
    if not typed.strip():
        return None
    try:
        return recorded(typed, now)
    except ValueError as error:
        problems[field] = str(error)
        return None


def _pictures(runs: list[RunView], tz: str) -> dict[str, Any]:
    """The statistics of runs, each as a picture and as the rows of its table."""
    if not runs:
        return {}
    taken = [took for run in runs if (took := statistics.took_ms(run)) is not None]
    cells = statistics.week(runs, tz)
    return {
        "lateness": statistics.lateness(runs),
        "lateness_rows": statistics.lateness_bins(runs),
        "duration": statistics.duration(runs) if taken else "",
        "p50": statistics.percentile(taken, 0.5) if taken else None,
        "p95": statistics.percentile(taken, 0.95) if taken else None,
        "heat": statistics.heat(runs, tz),
        "heat_rows": [(statistics.DAYS[day], f"{hour:02}:00", *cells[day, hour]) for day, hour in sorted(cells)],
        "strip": statistics.strip(runs, 60),
    }


def _options(told: dict[str, Any]) -> list[tuple[str, str]]:
    """A job's options in words."""
    if not told:
        return []
    lease, timeout = told.get("lease_ms"), told.get("timeout_ms")
    first = ("lease", "none (claim-only)")
    if lease is not None:
        beat = told["heartbeat_ms"]
        worst = span_words(lease + 2 * beat)
        says = (
            f"{span_words(lease)}, heartbeat every {span_words(beat)}; a takeover comes at most {worst} after the last"
        )
        first = ("lease", says)
    return [
        first,
        ("overlap", str(told["overlap"])),
        ("attempts", f"at most {told['max_attempts']}"),
        ("catch up", span_words(told["catch_up_ms"])),
        ("at most late", span_words(told["max_late_ms"])),
        ("timeout", span_words(timeout) if timeout else "none"),
        ("kept", f"{told['history']} runs"),
    ]


async def run_page(request: Request) -> Response:
    """One run with its attempts."""
    source, name = await _job(request)
    slot = request.query_params.get("slot", "")
    if not (slot.isascii() and slot.isdecimal() and len(slot) < 16):
        raise Refused(MISSING)
    wanted = int(slot), request.query_params.get("request", "")

    async def ask(records: Records) -> tuple[int, RunView | None, Pictured | None]:
        run = await records.run(name, *wanted)
        if run is None:
            return 0, None, None
        now = await records.now()
        ends = [one.ended or 0 for one in run.attempts]
        end = run.ended if run.ended is not None else max(now, run.lease_until or 0)
        begin = min(run.slot, run.attempts[0].started)
        room = max(1000, (max(end, *ends) - begin) // 30)
        return now, run, await pictured(records, name, begin - room, max(end, *ends) + room)

    now, run, seen = await source.ask(ask)
    if run is None or seen is None:
        raise Refused(MISSING)
    alone = replace(seen.timeline, runs=(run,), marks=())
    return render(
        request,
        "runs/run.html",
        nav="runs",
        live=f"/live/runs/{source.key}",
        source=source,
        now=now,
        run=run,
        title=(await source.titles_for(request.state.human)).get(name, name),
        timeline=timeline.draw(alone),
        legend=timeline.signs(alone),
    )


async def steer(request: Request) -> Response:
    """Pause, resume or trigger a job."""
    source, name = await _job(request, text(request.state.form, "name"))
    word = request.path_params["step"]
    if word not in ("pause", "resume", "trigger"):
        raise Refused(MISSING)
    said = {"pause": "paused", "resume": "resumed", "trigger": "triggered"}[word]
    if source.steer is not None:
        await source.steer(request.state.human, name, word)
    else:
        done = await source.ask(lambda records: getattr(records, word)(name))
        said = said if done else "same"
        board = board_of(request)
        await board.database.write(_steered, board, request.state.human, source, name, word)
    return RedirectResponse(link(request, f"/runs/{source.key}/job?") + urlencode({"name": name, "said": said}), 303)


def _steered(tx: Tx, _board: Board, human: Human, source: Source, job: str, word: str) -> None:
    """Who steered a job of a store that is not the board's own stands in their audit."""
    audit.write(tx, human.id, human, word, ("job", job), f"{job} in {source.title}", tx.now())


def found(request: Request) -> Source:
    """The store that the address names; raises Refused."""
    source: Source | None = request.app.state.sources.get(request.path_params["source"])
    if source is None:
        raise Refused(MISSING)
    return source


async def _job(request: Request, name: str | None = None) -> tuple[Source, str]:
    """The store and the job that are meant, if this human may see it; raises Refused, the same for all that is not."""
    source = found(request)
    name = request.query_params.get("name", "") if name is None else name
    try:
        visible = await source.may_see(request.state.human, name)
    except ConfigError:
        visible = False
    if not visible:
        raise Refused(MISSING)
    return source, name


ROUTES: Final = [
    Route("/runs", signed_in(index)),
    Route("/runs/{source}", signed_in(store)),
    Route("/runs/{source}/job", signed_in(job_page)),
    Route("/runs/{source}/run", signed_in(run_page)),
    Route("/runs/{source}/{step}", signed_in(steer), methods=["POST"]),
]
