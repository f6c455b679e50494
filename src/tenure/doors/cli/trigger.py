"""`tenure job trigger`: ask for a run, and wait for its end, or for the word that there will be none."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.access import Access, length, with_store
from tenure.doors.cli.output import put, put_json, say
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.scheduler.records import InstanceView, JobView, Records, RunView


@click.command(
    "trigger",
    context_settings=CONTEXT,
    epilog=exits(
        0, 1, 2, 3, 130, _1="the run failed, was dropped or did not end in time (--wait), or the store failed"
    ),
)
@click.argument("name", metavar="JOB")
@click.option("--wait", is_flag=True, help="Wait for the run's end; exit 1 unless it succeeded.")
@click.option("--timeout", metavar="DUR", help="With --wait: how long at most, 90, 45s, 1h30m.  [default: no limit]")
@with_store
def trigger(access: Access, *, name: str, wait: bool, timeout: str | None) -> int:
    """Ask for a run of a job now. An instance that knows the job claims it; prints the request's id."""
    if timeout is not None and not wait:
        raise click.UsageError("--timeout bounds the waiting, so it needs --wait")
    seconds = None if timeout is None else length("--timeout", timeout) / 1000

    async def ask(records: Records) -> tuple[int, str, JobView, list[InstanceView]]:
        now = await records.now()
        return now, await records.trigger(name), await records.job(name), await records.instances()

    now, wish, found, instances = access.ask(ask)
    known = knowing(name, instances)
    if not (wait and access.as_json):
        if access.as_json:
            put_json({"job": name, "request": wish, "instances": known, "paused": found.paused is not None})
        else:
            put(wish)
    if found.paused is not None:
        say(f"{name} is paused, and a pause holds for triggered runs too: tenure job resume {quote(name)}")
    elif known:
        say(f"asked for a run of {name}; known to {', '.join(known)}: one of them claims it within 5 s.")
    else:
        say(f"no live instance knows {name}: the request waits{_span(found.told)} until one starts (tenure run).")
    return _wait(access, name, wish, now, seconds) if wait else 0


def knowing(name: str, instances: Iterable[InstanceView]) -> list[str]:
    """The live instances that know a job."""
    return [one.name for one in instances if one.alive and name in one.jobs]


def _span(told: dict[str, Any]) -> str:
    """How long a request waits, by the definition that the store was told."""
    from tenure.rules.instant import span_words
    from tenure.scheduler.wishes import waits_ms

    return f" for {span_words(waits_ms(told))}" if told else ""


def _wait(access: Access, name: str, wish: str, since: int, seconds: float | None) -> int:
    from tenure.doors.cli.following import until_ended
    from tenure.doors.cli.wording import run_json

    seen = until_ended(access, name, wish, since, seconds=seconds)
    if access.as_json and seen.run is not None:
        put_json(run_json(seen.run))
    if seen.state == "dropped":
        say(f"no run came of the request {wish}: {seen.why}")
        return 1
    if seen.run is None or seen.state != "ended":
        what = "the run has not ended" if seen.state == "running" else "no instance has claimed it"
        say(f"{what} within {seconds:g} s; it is not called off: tenure runs list {quote(name)}")
        return 1
    if not access.as_json:
        say(run_words(seen.run, seen.run.ended or 0))
    return 0 if seen.run.status in ("success", "claimed") else 1


def run_words(run: RunView, now: int) -> str:
    """A run in one line: its slot, status, attempt, runner, and when."""
    from tenure.doors.cli.wording import clean
    from tenure.rules.instant import span_words
    from tenure.rules.times import away, short

    last = run.attempts[-1]
    at = f"started {away(last.started, now)}"
    if run.ended is not None:
        took = f"ended {span_words(max(0, run.ended - run.attempts[0].started))} after its start"
        at = took if run.ended == now else f"ended {away(run.ended, now)}"
    words = f"{short(run.slot)}: {run.status}, attempt {last.number} on {last.runner}, {at}"
    if run.progress is not None:
        of = f" of {run.progress.total:g}" if run.progress.total is not None else ""
        words += f", {run.progress.done:g}{of} {clean(run.progress.note)}".rstrip()
    if run.error is not None:
        words += f"; {clean(run.error[0])}: {clean(run.error[1])}"
    return words
