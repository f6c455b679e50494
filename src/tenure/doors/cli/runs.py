"""`tenure runs`: what ran, and the picture of it."""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from tenure.doors.cli.access import Access, moment, store_options, with_store
from tenure.doors.cli.output import Cell, Look, look, pairs, put, put_json, say, table
from tenure.doors.cli.texts import CONTEXT, Noun, exits

if TYPE_CHECKING:
    from tenure.rules.job import Attempt
    from tenure.scheduler.records import Records, RunView, Timeline

STATUSES: Final = ("running", "expired", "released", "success", "failed", "interrupted", "claimed")
# How much of an error a row of the list shows.
NOTE: Final = 60
LOOK_BACK_MS: Final = 24 * 3_600_000


@click.group(cls=Noun, context_settings=CONTEXT)
def runs() -> None:
    """List and show runs, draw their timeline, follow new ones."""


store_options(runs)


@runs.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130, _3="no such job, or no such file"))
@click.argument("job", metavar="[JOB]", required=False)
@click.option("--status", type=click.Choice(STATUSES), help="Only runs of this status.")
@click.option("--since", metavar="TIME", help="Slots from then on: ISO 8601 or now-2h.")
@click.option("--until", metavar="TIME", help="Slots up to then.")
@click.option(
    "--limit", default=50, show_default=True, metavar="N", type=click.IntRange(1, 10_000), help="The newest so many."
)
@with_store
def list_runs(
    access: Access, *, job: str | None, status: str | None, since: str | None, until: str | None, limit: int
) -> int:
    """List runs, newest first; of one job or of all."""
    from tenure.doors.cli.wording import run_json
    from tenure.scheduler.wishes import dropped

    async def ask(records: Records) -> tuple[int, list[RunView], list[tuple[str, str]]]:
        now = await records.now()
        bounds: dict[str, int] = {}
        if since is not None:
            bounds["since"] = moment("--since", since, now)
        if until is not None:
            bounds["until"] = moment("--until", until, now)
        found = await records.runs(None if job is None else [job], status=status, limit=limit, **bounds)
        back = bounds.get("since", now - LOOK_BACK_MS)
        gone = [] if job is None else await dropped(records, job, back, bounds.get("until", now), limit=3)
        return now, found, gone

    now, found, gone = access.ask(ask)
    if access.as_json:
        put_json([run_json(run) for run in found])
    elif found:
        for line in table(HEADS, [row(run, now) for run in found], look()):
            put(line)
    else:
        say(
            "no run is recorded there. tenure job next shows what is to come, tenure job why JOB TIME what was not run."
        )
    for wish, reason in gone:
        say(f"no run came of the request {wish}: {reason}")
    return 0


HEADS: Final = ("slot", "job", "status", "attempt", "on", "took", "late", "")


def row(run: RunView, now: int) -> tuple[str | Cell, ...]:
    """One run as a row of a table."""
    from tenure.doors.cli.wording import clean
    from tenure.rules.instant import span_words
    from tenure.rules.times import short
    from tenure.scheduler.picture import STATUS_STYLES

    first, last = run.attempts[0], run.attempts[-1]
    note = _cut(f"{clean(run.error[0])}: {clean(run.error[1])}") if run.error is not None else ""
    if run.request:
        note = f"triggered as {run.request} {note}".strip()
    return (
        Cell(short(run.slot), "strong"),
        run.job,
        Cell(run.status, STATUS_STYLES.get(run.status, "")),
        str(len(run.attempts)),
        last.runner,
        span_words((run.ended or now) - first.started) + ("" if run.ended is not None else " so far"),
        span_words(max(0, first.started - run.slot)),
        note,
    )


def _cut(text: str) -> str:
    """The first line of a text, and not all of that where it is long; that there is more is shown."""
    line = text.split("\n", maxsplit=1)[0]
    return line if line == text and len(line) <= NOTE else line[: NOTE - 1].rstrip() + "…"


@runs.command("show", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("job", metavar="JOB|KEY")
@click.argument("when", metavar="[TIME]", required=False)
@with_store
def show_run(access: Access, job: str, when: str | None) -> int:
    """Show one run with all its attempts: at a TIME, by its KEY (report@2026-12-01T01:30:00Z), or a job's newest."""
    from tenure.doors.cli.finding import find
    from tenure.doors.cli.wording import run_json

    async def ask(records: Records) -> tuple[int, RunView]:
        return await records.now(), await find(records, job, when)

    now, run = access.ask(ask)
    if access.as_json:
        put_json(run_json(run))
        return 0
    for line in shown(run, now, look()):
        put(line)
    return 0


def shown(run: RunView, now: int, seen: Look) -> list[str]:
    """A run for people."""
    import json

    from tenure.doors.cli.wording import clean
    from tenure.rules.instant import iso, span_words
    from tenure.rules.times import away, short
    from tenure.scheduler.picture import STATUS_STYLES

    facts: list[tuple[str, str | Cell]] = [("status", Cell(run.status, STATUS_STYLES.get(run.status, "")))]
    facts.append(("slot", f"{iso(run.slot)}, {away(run.slot, now)}"))
    if run.request:
        facts.append(("triggered", f"as {run.request}"))
    if run.lease_until is not None:
        facts.append(("lease until", f"{short(run.lease_until)}, {away(run.lease_until, now)}"))
    if run.ended is not None:
        facts.append(("ended", f"{iso(run.ended)}, {span_words(run.ended - run.attempts[0].started)} after its start"))
    if run.progress is not None:
        of = f" of {run.progress.total:g}" if run.progress.total is not None else ""
        facts.append(("progress", f"{run.progress.done:g}{of} {clean(run.progress.note)}".rstrip()))
    if run.result is not None:
        facts.append(("result", clean(json.dumps(run.result, ensure_ascii=False))))
    lines = [seen.paint(run.key, "strong"), *pairs(facts, seen), ""]
    lines += table(ATTEMPT_HEADS, [attempt_row(run, one) for one in run.attempts], seen)
    if run.error is not None:
        lines += ["", seen.paint(f"{clean(run.error[0])}: {clean(run.error[1])}", "bad")]
        lines += clean(run.error[2]).rstrip().split("\n") if run.error[2] else []
    return lines


ATTEMPT_HEADS: Final = ("attempt", "on", "reason", "started", "heartbeats", "last heartbeat", "took", "how it ended")


def attempt_row(run: RunView, one: Attempt) -> tuple[str | Cell, ...]:
    """One attempt as a row of a table."""
    from tenure.rules.instant import iso, span_words
    from tenure.scheduler.picture import STATUS_STYLES

    ended = one.ended if one.ended is not None else run.ended
    how = one.how or (run.status if one is run.attempts[-1] else "-")
    return (
        str(one.number),
        one.runner,
        one.reason,
        iso(one.started),
        str(one.beats),
        f"+{span_words(one.renewed - one.started)}" if one.beats else "-",
        span_words(ended - one.started) if ended is not None else "-",
        Cell(how, STATUS_STYLES.get(how, "")),
    )


@runs.command("timeline", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("job", metavar="JOB")
@click.option("--since", metavar="TIME", help="ISO 8601 or now-2h.  [default: the last hour, or the last runs]")
@click.option("--until", metavar="TIME", help="The end of the picture.")
@click.option("--width", metavar="N", type=click.IntRange(24, 1000), help="Columns.  [default: the terminal's]")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII letters only.")
@with_store
def timeline(access: Access, *, job: str, since: str | None, until: str | None, width: int | None, plain: bool) -> int:
    """Draw a job's runs: rows are instances, bars attempts, with leases, heartbeats, takeovers and hand-overs."""
    from tenure.doors.cli.timeline import draw

    found = access.ask(_pictured(job, since, until))
    picture = found.timeline
    if access.as_json:
        put_json(timeline_json(picture))
        return 0
    seen = look()
    wide = width or seen.width or 80
    for line in draw(picture, wide, unicode=seen.unicode and not plain, colour=seen.colour, instances=found.instances):
        put(line)
    if not (picture.runs or picture.marks):
        say(_elsewhere(job, found.newest))
    if picture.runs:
        put()
        for line in table(BELOW, below(picture), Look(seen.colour, seen.unicode, width or seen.width)):
            put(line)
    return 0


def _elsewhere(job: str, newest: RunView | None) -> str:
    """Where there is something to be seen, for one who sees nothing."""
    from tenure.rules.instant import iso

    if newest is None:
        return f"no run of {job} is recorded yet. tenure job next {quote(job)} shows when one is due."
    at = iso(newest.slot // 1000 * 1000)
    return f"the newest run of {job} was at {at}: tenure runs timeline {quote(job)} --since {at}"


BELOW: Final = ("slot", "attempt", "on", "start", "last heartbeat", "end", "how")
MOST_BELOW: Final = 40


def below(picture: Timeline) -> list[tuple[str | Cell, ...]]:
    """The newest attempts of the picture as a table: times from the run's slot on, heartbeats with their number."""
    from tenure.rules.instant import span_words
    from tenure.rules.times import short
    from tenure.scheduler.picture import STATUS_STYLES

    def after(run: RunView, at: int | None) -> str:
        return "-" if at is None else f"+{span_words(max(0, at - run.slot))}"

    one_day = short(picture.since)[:10] == short(picture.until)[:10]
    rows: list[tuple[str | Cell, ...]] = []
    for run in picture.runs:
        for one in run.attempts:
            how = one.how or run.status
            slot = short(run.slot)[11:] if one_day else short(run.slot)
            rows.append(
                (
                    Cell(f"{slot} {run.request}".rstrip(), "strong"),
                    f"{one.number} {one.reason}",
                    one.runner,
                    after(run, one.started),
                    f"{after(run, one.renewed)} ({one.beats})" if one.beats else "-",
                    after(run, one.ended if one.ended is not None else run.ended),
                    Cell(how, STATUS_STYLES.get(how, "")),
                )
            )
    return rows[-MOST_BELOW:]


def _pictured(job: str, since: str | None, until: str | None) -> Callable[[Records], Any]:
    """The question of the picture, with the times that were typed."""
    from tenure.scheduler.picture import Pictured, pictured

    async def ask(records: Records) -> Pictured:
        now = await records.now()
        start = moment("--since", since, now) if since is not None else None
        end = moment("--until", until, now) if until is not None else None
        if start is not None and start >= (now if end is None else end):
            raise click.UsageError("--since is not before --until, so there is nothing to draw")
        return await pictured(records, job, start, end)

    return ask


def timeline_json(picture: Timeline) -> dict[str, Any]:
    """The data of the picture."""
    from tenure.doors.cli.wording import instant_fields, run_json

    return {
        "job": picture.job,
        **instant_fields("since", picture.since),
        **instant_fields("until", picture.until),
        **instant_fields("now", picture.now),
        "runs": [run_json(run) for run in picture.runs],
        "marks": [
            {
                "why": mark.why,
                **instant_fields("slot", mark.slot),
                **instant_fields("until", mark.until),
                "count": mark.count,
                "whom": mark.whom or None,
                "by": mark.by,
                **instant_fields("at", mark.at),
                "request": mark.request or None,
            }
            for mark in picture.marks
        ],
    }


@runs.command("tail", context_settings=CONTEXT, epilog=exits(1, 2, 3, 130, _130="Ctrl-C, which ends it"))
@click.argument("job", metavar="[JOB]", required=False)
@with_store
def tail(access: Access, job: str | None) -> int:
    """Follow runs as they start, change hands and end, until Ctrl-C. With --json one run per line."""
    from tenure.doors.cli.following import changes
    from tenure.doors.cli.wording import run_json

    seen = look()
    for run, now in changes(access, job):
        if access.as_json:
            put_json(run_json(run), line=True)
        else:
            put(_news(run, now, seen))
    return 0


def _news(run: RunView, now: int, seen: Look) -> str:
    """One line of what is followed."""
    from tenure.doors.cli.wording import clean
    from tenure.rules.instant import span_words
    from tenure.rules.times import short
    from tenure.scheduler.picture import STATUS_STYLES

    words = f"attempt {len(run.attempts)} on {run.attempts[-1].runner}"
    if run.ended is not None:
        words += f", {span_words(run.ended - run.attempts[0].started)} after its start"
    if run.error is not None:
        words += f"  {clean(run.error[0])}: {clean(run.error[1])}"
    status = seen.paint(run.status, STATUS_STYLES.get(run.status, ""))
    return f"{seen.paint(short(now), 'dim')}  {run.key}  {status}, {words}"
