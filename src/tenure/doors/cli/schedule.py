"""`tenure schedule`: what puts todos on an endpoint by itself, once per slot."""

from __future__ import annotations

from typing import Any, Final

import click

from tenure.doors.cli.endpoint import find
from tenure.doors.cli.explain import Expressions
from tenure.doors.cli.output import Cell, look, pairs, put, put_json, say, table
from tenure.doors.cli.remote import Remote, ago, board_options, piped, with_board
from tenure.doors.cli.texts import CONTEXT, Noun, exits
from tenure.doors.cli.todo import as_json

HEADS: Final = ("SCHEDULE", "ENDPOINT", "WHEN", "NEXT", "TODO")
_STYLES: Final = {"todo": "good", "skipped": "warn", "refused": "bad"}


@click.group(cls=Noun, context_settings=CONTEXT)
def schedule() -> None:
    """Schedules put todos on an endpoint: each slot makes one, however many servers there are."""


board_options(schedule)


def _plan_options(command: Any) -> Any:
    """What a schedule says, as options of add and edit."""
    for option in (
        click.option("--catch-up", metavar="DUR", help="How late a missed slot is still made up for."),
        click.option("--overlap", metavar="CHOICE", help="skip (default): none while the last is not ended; or allow."),
        click.option("--priority", type=click.IntRange(-9, 9), metavar="N", help="-9 to 9."),
        click.option("--queue", metavar="Q", help="Default: the endpoint's first queue."),
        click.option("--payload", metavar="JSON", help="For the worker's program; `-` reads it from stdin."),
        click.option("--body", metavar="TEXT", help="Markdown, shown as written, with the same fields; `-` reads it."),
        click.option("--dst-overlap", metavar="CHOICE", help="first (default), second or both: for double times."),
        click.option("--dst-gap", metavar="CHOICE", help="shift (default), asap or skip: for skipped times."),
        click.option("--tz", metavar="ZONE", help="Zone of the wall clock. Default: UTC."),
    ):
        command = option(command)
    return command


def _plan(options: dict[str, Any]) -> dict[str, Any]:
    said = {key: value for key, value in options.items() if value is not None}
    if said.get("body") == "-" and said.get("payload") == "-":
        raise click.UsageError("only one of --body and --payload can be read from stdin")
    if "payload" in said:
        said["payload"] = as_json("payload", said["payload"])
    if said.get("body") == "-":
        said["body"] = piped("body")
    return said


@schedule.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="[ENDPOINT]", required=False)
@with_board
def list_schedules(remote: Remote, endpoint: str | None) -> int:
    """List schedules: when they are due, the next slot, or why they are paused."""
    told = remote.get("schedules", endpoint=None if endpoint is None else find(remote, endpoint))
    if remote.as_json:
        put_json(told)
        return 0
    if not told["schedules"]:
        say('no schedules yet. Add one: tenure schedule add ENDPOINT "0 7 * * MON-FRI" --title TITLE')
        return 0
    for line in table(HEADS, [_row(one) for one in told["schedules"]], look()):
        put(line)
    return 0


def _row(one: dict[str, Any]) -> tuple[str | Cell, ...]:
    coming = ago(one["next_at"]) if one["next_at"] else Cell(one["paused"] or "never", "warn")
    return Cell(one["name"], "strong"), one["endpoint"], one["words"], coming, one["title"]


@schedule.command("show", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="SCHEDULE")
@click.option("--count", default=5, show_default=True, type=click.IntRange(1, 100), metavar="N", help="How many slots.")
@with_board
def show_schedule(remote: Remote, name: str, count: int) -> int:
    """Show one schedule: what it says, its next slots, and what the last ones became."""
    one = remote.get("schedules", name)
    coming = remote.get("schedules", name, "next", count=count)
    slots = remote.get("schedules", name, "slots", limit=count)["slots"]
    if remote.as_json:
        put_json({**one, "coming": coming, "slots": slots})
        return 0
    _show(one)
    _show_coming(coming)
    if slots:
        put()
        rows = [(each["slot_at"], Cell(each["outcome"], _STYLES[each["outcome"]]), _became(each)) for each in slots]
        for line in table(("last slots", "", ""), rows, look()):
            put(line)
    return 0


def _show(one: dict[str, Any]) -> None:
    seen = look()
    put(f"{seen.paint(one['name'], 'strong')}  {one['words']}")
    queue = f", queue {one['queue']}" if one["queue"] else ""
    catch_up = "none" if one["catch_up"] == "0ms" else f"up to {one['catch_up']} late"
    facts: list[tuple[str, str | Cell]] = [
        ("endpoint", f"{one['endpoint']}{queue}, priority {one['priority']}"),
        ("expression", f"{one['expression']}, {one['tz']}"),
        ("title", one["title"]),
        ("overlap", one["overlap"]),
        ("catch up", catch_up),
    ]
    if one["paused"]:
        facts.append(("paused", Cell(one["paused"], "warn")))
    for line in pairs(facts, seen):
        put(line)


def _show_coming(told: dict[str, Any]) -> None:
    seen = look()
    put()
    rows = [(one["local"], one["slot_at"], ago(one["slot_at"])) for one in told["next"]]
    for line in table((f"next, {told['tz']}", "UTC", ""), rows, seen):
        put(line)
    for night in told["clock_changes"]:
        put(f"  {night['change']}")
        put(f"    {night['does']}")
    for warning in told["warnings"]:
        say(f"warning: {warning}")


def _became(one: dict[str, Any]) -> str:
    state = f", {one['todo_state']}" if one["todo_state"] else ""
    return " ".join(part for part in (one["todo_id"] and f"{one['todo_id']}{state}", one["reason"]) if part)


@schedule.command(
    "add", cls=Expressions, context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130),
    short_help="Give an endpoint a schedule.",
)  # fmt: skip
@click.argument("endpoint", metavar="ENDPOINT")
@click.argument("expression", metavar="EXPR")
@click.option("--title", metavar="TITLE", help="Of its todos. Default: the schedule's name.")
@click.option("--name", metavar="NAME", help="Of the schedule. Default: the endpoint's.")
@_plan_options
@with_board
def add(remote: Remote, endpoint: str, expression: str, name: str | None, title: str | None, **options: Any) -> int:
    """Give ENDPOINT a schedule: a cron expression in quotes, or a length of time such as 10m.

    Title and body may hold {slot}, {slot:%Y-%m-%d} and {name}, which each slot fills in.
    """
    name = name or endpoint
    body = {"name": name, "expression": expression, "title": title or name, **_plan(options)}
    told = remote.create("endpoints", find(remote, endpoint), "schedules", body=body)
    if remote.as_json:
        put_json(told)
        return 0
    _show(told)
    _show_coming(remote.get("schedules", told["id"], "next", count=3))
    return 0


@schedule.command("preview", cls=Expressions, context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@click.argument("expression", metavar="EXPR")
@click.option("--tz", metavar="ZONE", help="Zone of the wall clock. Default: UTC.")
@click.option("--dst-gap", metavar="CHOICE", help="shift (default), asap or skip: for skipped times.")
@click.option("--dst-overlap", metavar="CHOICE", help="first (default), second or both: for double times.")
@click.option("--count", default=5, show_default=True, type=click.IntRange(1, 100), metavar="N", help="How many slots.")
@with_board
def preview(remote: Remote, **asked: Any) -> int:
    """Show when it would be due, clock changes included. Nothing is made."""
    body = {key: value for key, value in asked.items() if value is not None}
    told = remote.send("POST", "schedules", "preview", body=body)
    if remote.as_json:
        put_json(told)
        return 0
    put(told["words"])
    _show_coming(told)
    return 0


@schedule.command(
    "edit", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130), short_help="Change what a schedule says."
)
@click.argument("name", metavar="SCHEDULE")
@click.option("--expression", metavar="EXPR", help="When it is due.")
@click.option("--title", metavar="TITLE", help="Of its todos.")
@_plan_options
@with_board
def edit(remote: Remote, name: str, **options: Any) -> int:
    """Change what is given; the rest stays. Every server goes by it from the next slot on."""
    body = _plan(options)
    if not body:
        raise click.UsageError("nothing to change was given; give --expression, --title, --tz or another option")
    return _changed(remote, remote.send("PATCH", "schedules", name, body=body))


def _changed(remote: Remote, told: dict[str, Any]) -> int:
    if remote.as_json:
        put_json(told)
        return 0
    _show(told)
    return 0


@schedule.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="SCHEDULE")
@with_board
def pause(remote: Remote, name: str) -> int:
    """Make no todos until it is resumed."""
    return _changed(remote, remote.send("POST", "schedules", name, "pause"))


@schedule.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="SCHEDULE")
@with_board
def resume(remote: Remote, name: str) -> int:
    """End a pause; at most one slot is caught up."""
    return _changed(remote, remote.send("POST", "schedules", name, "resume"))


@schedule.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 5, 130, _5="it made none"))
@click.argument("name", metavar="SCHEDULE")
@with_board
def trigger(remote: Remote, name: str) -> int:
    """Make a todo now, out of turn, by the same rules as a slot's."""
    told = remote.send("POST", "schedules", name, "trigger")
    if remote.as_json:
        put_json(told)
    else:
        put(_became(told) if told["todo_id"] else f"{told['outcome']}: {told['reason']}")
    return 0 if told["todo_id"] else 5


@schedule.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="SCHEDULE")
@with_board
def remove(remote: Remote, name: str) -> int:
    """Take it away; its todos stay, and its name is free again."""
    remote.send("DELETE", "schedules", name)
    say(f"{name} removed")
    return 0
