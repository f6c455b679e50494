"""`tenure todo`: a human's todos, over all endpoints of theirs."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from tenure.doors.cli.access import length
from tenure.doors.cli.endpoint import find
from tenure.doors.cli.output import Cell, look, pairs, put, put_json, say, table
from tenure.doors.cli.remote import Remote, ago, board_options, expiry, piped, with_board
from tenure.doors.cli.texts import CONTEXT, Noun, exits
from tenure.doors.cli.wording import clean
from tenure.doors.wire.strict import NotJson, parse

HEADS: Final = ("TODO", "STATE", "ENDPOINT", "QUEUE", "TITLE", "HELD BY", "CREATED")
STATES: Final = (
    "pending", "waiting", "blocked", "claimed", "lapsed", "retrying", "failed", "dead", "done", "cancelled",
)  # fmt: skip
_STYLES: Final = {
    "claimed": "accent", "lapsed": "warn", "retrying": "warn", "dead": "bad", "done": "good", "blocked": "warn",
}  # fmt: skip
NOTHING: Final = 5


@click.group(cls=Noun, context_settings=CONTEXT)
def todo() -> None:
    """Add, list, show and steer todos."""


board_options(todo)


@todo.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="[ENDPOINT]", required=False)
@click.option("--queue", metavar="Q", help="Only todos of this queue.")
@click.option("--state", type=click.Choice(STATES), help="Only todos in this state.")
@click.option("--worker", metavar="LABEL", help="Only todos that this worker holds.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), metavar="N", help="How many.")
@with_board
def list_todos(remote: Remote, endpoint: str | None, **options: Any) -> int:
    """List todos, the newest first."""
    told = remote.pages(
        "todos",
        "todos",
        limit=options["limit"],
        endpoint=None if endpoint is None else find(remote, endpoint),
        queue=options["queue"],
        state=options["state"],
        claimed_by=options["worker"],
    )
    if remote.as_json:
        put_json(told)
        return 0
    if not told["todos"]:
        say("no todos. Add one: tenure todo add ENDPOINT TITLE")
        return 0
    for line in table(HEADS, [_row(one) for one in told["todos"]], look()):
        put(line)
    if told["next_cursor"]:
        say(f"these are the newest {options['limit']}; --limit shows more.")
    return 0


def _row(one: dict[str, Any]) -> tuple[str | Cell, ...]:
    holder = one["claimed_by"] or ("you, on the Board" if one["held_on_board"] else "-")
    return (
        Cell(one["id"], "strong"),
        Cell(one["shown"], _STYLES.get(one["shown"], "")),
        one["endpoint"],
        one["queue"],
        one["title"],
        holder,
        ago(one["created_at"]),
    )


@todo.command("show", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("todo_id", metavar="TODO")
@with_board
def show_todo(remote: Remote, todo_id: str) -> int:
    """Show one todo: what it is, every claim and why it ended, what came too late, its notes."""
    told = remote.get("todos", todo_id)
    if remote.as_json:
        put_json(told)
        return 0
    _show(told["todo"])
    return 0


def _show(one: dict[str, Any]) -> None:
    seen = look()
    put(f"{seen.paint(one['id'], 'strong')}  {one['title']}")
    facts: list[tuple[str, str | Cell]] = [
        ("state", Cell(one["shown"], _STYLES.get(one["shown"], ""))),
        ("endpoint", f"{one['endpoint']}, queue {one['queue']}, priority {one['priority']}"),
        ("created", f"{ago(one['created_at'])} by a {one['source']}"),
        ("tried", _tries(one)),
    ]
    if one["reason"]:
        facts.append(("because", one["reason"]))
    if one["retry_at"]:
        facts.append(("retried", ago(one["retry_at"])))
    if one["depends_on"]:
        facts.append(("needs", ", ".join(one["depends_on"])))
    facts += [(key, json.dumps(one[key], ensure_ascii=False)) for key in ("payload", "result") if one[key] is not None]
    facts += [(f"claim {each['attempt']}", _attempt(each)) for each in one["attempts"]]
    facts += [("note", f"{each['text']} ({each['author']}, {ago(each['created_at'])})") for each in one["notes"]]
    # Others wrote it: agents, and whoever calls a webhook.
    for line in pairs([(head, clean(told) if isinstance(told, str) else told) for head, told in facts], seen):
        put(line)
    if one["body"]:
        put()
        put(clean(one["body"].replace("\r\n", "\n")))


def _tries(one: dict[str, Any]) -> str:
    counts = f"failures {one['failures']} of {one['failures_cap']}, lapses {one['lapses']} of {one['lapses_cap']}"
    return f"{one['attempts_made']} times; {counts}"


def _attempt(one: dict[str, Any]) -> str:
    who = one["worker"] or ("a worker" if one["holder"] == "endpoint" else "you, on the Board")
    end = f"{one['end']} {ago(one['ended_at'])}" if one["end"] else f"held, lease ends {ago(one['lease_expires_at'])}"
    because = f": {one['reason']}" if one["reason"] else ""
    late = f"; came too late: {json.dumps(one['late'], ensure_ascii=False)}" if one["late"] else ""
    lease = f"lease {one['lease_ttl_seconds']}s by {one['lease_ttl_source']}, {one['heartbeats']} heartbeats"
    return f"{who}, claimed {ago(one['granted_at'])}, {lease}; {end}{because}{late}"


@todo.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="ENDPOINT")
@click.argument("title", metavar="TITLE")
@click.option("--queue", metavar="Q", help="Default: the endpoint's first queue.")
@click.option("--body", metavar="TEXT", help="Markdown, shown as written; `-` reads it from stdin.")
@click.option("--payload", metavar="JSON", help="For the worker's program; `-` reads it from stdin.")
@click.option("--priority", type=click.IntRange(-9, 9), metavar="N", help="-9 to 9; a step is worth 10 minutes' wait.")
@click.option("--not-before", metavar="DUR|TIME", help="Not to be claimed before then.")
@click.option("--needs", metavar="TODO", multiple=True, help="A todo that must be done first; may be repeated.")
@click.option("--key", metavar="KEY", help="Among live todos of the endpoint a key stands once.")
@with_board
def add(remote: Remote, endpoint: str, title: str, **options: Any) -> int:
    """Put a todo on an endpoint."""
    if options["body"] == "-" and options["payload"] == "-":
        raise click.UsageError("only one of --body and --payload can be read from stdin")
    body = {
        "title": title,
        "queue": options["queue"],
        "body": piped("body") if options["body"] == "-" else options["body"],
        "payload": as_json("payload", options["payload"]),
        "priority": options["priority"],
        "not_before": expiry(options["not_before"]),
        "depends_on": list(options["needs"]) or None,
        "idempotency_key": options["key"],
    }
    told = remote.create("endpoints", find(remote, endpoint), "todos", body=body)
    if remote.as_json:
        put_json(told)
        return 0
    put(told["todo"]["id"])
    where = f"{told['todo']['endpoint']}, queue {told['todo']['queue']}"
    say(f"a live todo has this key already, and the same content: {where}" if told["existing"] else f"added to {where}")
    return 0


def as_json(field: str, text: str | None) -> Any:
    """JSON that was typed, or piped in for `-`. Raises ConfigError."""
    from tenure.errors import ConfigError

    if text is None:
        return None
    try:
        return parse((piped(field) if text == "-" else text).encode())  # as the board will read it
    except NotJson as error:
        raise ConfigError(field, text, f"{error}.") from None


def _step(name: str, told: str, *, option: str | None = None, sent: str = "reason") -> None:
    """A command that does one thing to one todo."""

    @with_board
    def command(remote: Remote, todo_id: str, value: str | None = None) -> int:
        body: dict[str, Any] | None = None
        if option is not None:
            given = as_json(sent, value) if sent == "result" else value
            body = {} if given is None else {sent: given}
        answer = remote.send("POST", "todos", todo_id, name, body=body)
        if remote.as_json:
            put_json(answer)
            return 0
        one = answer.get("todo", answer)
        put(f"{todo_id}: {one.get('shown', one['state'])}")
        return 0

    command.__doc__ = told
    if option is not None:
        command = click.option(option, "value", metavar="JSON" if sent == "result" else "TEXT", help=_HELP[sent])(
            command
        )
    command = click.argument("todo_id", metavar="TODO")(command)
    todo.command(name, context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))(command)


_HELP: Final = {"reason": "Why, for people.", "result": "What came of it; `-` reads it from stdin."}
_step("cancel", "Cancel a todo that nobody holds.", option="--reason")
_step("retry", "Make a failed or dead todo ready now; one more attempt where they were used up.")
_step("release", "End the open claim, whoever holds it, and make the todo ready.", option="--reason")
_step("complete", "Complete a claimed todo, whoever holds it.", option="--result", sent="result")
_step("fail", "Fail a claimed todo, whoever holds it.", option="--reason")


@todo.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("todo_id", metavar="TODO")
@click.argument("endpoint", metavar="ENDPOINT")
@click.option("--queue", metavar="Q", help="Default: the same, else the endpoint's first.")
@with_board
def move(remote: Remote, todo_id: str, endpoint: str, queue: str | None) -> int:
    """Put a todo that nobody holds on another endpoint of yours, off a revoked one too."""
    body = {"to": find(remote, endpoint), "queue": queue}
    told = remote.send("POST", "todos", todo_id, "move", body=body)
    if remote.as_json:
        put_json(told)
        return 0
    put(f"{todo_id}: {told['todo']['shown']} on {told['todo']['endpoint']}, queue {told['todo']['queue']}")
    return 0


@todo.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 5, 130, _5="it did not end in time"))
@click.argument("todo_id", metavar="TODO")
@click.option("--timeout", metavar="DUR", help="Give up after so long.")
@with_board
def watch(remote: Remote, todo_id: str, timeout: str | None) -> int:
    """Follow a todo until it ends; its result goes to stdout. Exit 0: done; 1: dead or cancelled."""
    import time

    until = None if timeout is None else time.monotonic() + length("timeout", timeout) / 1000
    last = ""
    while True:
        one = remote.get("todos", todo_id)["todo"]
        if one["shown"] != last:
            last = one["shown"]
            say(f"{todo_id}: {last}{' by ' + one['claimed_by'] if one['claimed_by'] else ''}")
        if one["ended_at"]:
            put_json(one if remote.as_json else one["result"])
            return 0 if one["state"] == "done" else 1
        if until is not None and time.monotonic() >= until:
            return NOTHING
        time.sleep(1)
