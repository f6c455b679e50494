"""`tenure friend`: endpoints that one human vends to another, on request."""

from __future__ import annotations

import re
from typing import Any

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.endpoint import lease_refusals, lease_seconds
from tenure.doors.cli.output import Cell, look, pairs, put, put_json, say, table
from tenure.doors.cli.remote import Remote, ago, board_options, expiry, with_board
from tenure.doors.cli.texts import CONTEXT, Noun, exits
from tenure.doors.cli.wording import clean

_STATES = {"approved": "good", "declined": "bad", "ended": "dim", "requested": "warn"}


@click.group(cls=Noun, context_settings=CONTEXT)
def friend() -> None:
    """Ask another human for an endpoint of theirs; answer such requests.

    Your own friend code stands in `tenure auth status`. FRIENDSHIP is an id from `tenure friend list`.
    """


board_options(friend)


@friend.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@with_board
def list_friends(remote: Remote) -> int:
    """List what you asked for, and what you were asked for."""
    told = remote.get("friends")
    if remote.as_json:
        put_json(told)
        return 0
    if not told["friendships"]:
        say("no requests yet. Ask with your friend's code: tenure friend request CODE --queue Q --verb V")
        return 0
    rows = [_row(one) for one in told["friendships"]]
    for line in table(("FRIENDSHIP", "WHO", "STATE", "QUEUES", "VERBS", "ENDPOINT", "REASON"), rows, look()):
        put(line)
    return 0


def _row(one: dict[str, Any]) -> tuple[str | Cell, ...]:
    who = f"{one['other'] or 'somebody'} asked you" if one["side"] == "approver" else f"you asked {one['other'] or '?'}"
    return (
        Cell(one["id"], "strong"),
        who,
        Cell(one["state"], _STATES.get(one["state"], "")),
        ", ".join(one["queues"]),
        ", ".join(one["verbs"]),
        one["endpoint"] or "-",
        clean(one["reason"] or "-"),
    )


@friend.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@click.argument("code", metavar="CODE")
@click.option("--queue", "queues", metavar="Q", multiple=True, required=True, help="A queue; may be repeated.")
@click.option("--verb", "verbs", metavar="V", multiple=True, help="A verb; may be repeated. Default: to drain.")
@click.option("--reason", metavar="TEXT", help="Why, for your friend to read.")
@with_board
def request(remote: Remote, code: str, queues: tuple[str, ...], verbs: tuple[str, ...], reason: str | None) -> int:
    """Ask the human who shows this friend code for an endpoint. An unknown code is answered like a known one."""
    from tenure.errors import ConfigError
    from tenure.rules.endpoints import DRAIN

    if not re.fullmatch(r"[0-9A-Z]{4}(-[0-9A-Z]{4}){3}", code.strip().upper()):
        raise ConfigError("CODE", code, "is no friend code.", "Your friend finds it with: tenure auth status")
    body = {"code": code, "queues": list(queues), "verbs": list(verbs or DRAIN), "reason": reason}
    return _told(remote, remote.create("friends", body=body))


@friend.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("friendship", metavar="FRIENDSHIP")
@click.option("--agent", metavar="NAME", help="The agent of yours that it is vended on. Default: your friend's name.")
@click.option("--name", metavar="NAME", help="Of the endpoint. Default: your friend's.")
@click.option("--queue", "queues", metavar="Q", multiple=True, help="Only this queue of those asked for.")
@click.option("--verb", "verbs", metavar="V", multiple=True, help="Only this verb of those asked for.")
@click.option("--lease-ttl", metavar="DUR", help="How long a claim lasts by default, 1m to 24h.")
@click.option("--expires", metavar="DUR|TIME", help="When it ends. Default: when it is revoked.")
@with_board
def approve(remote: Remote, friendship: str, **options: Any) -> int:
    """Vend what was asked for, or less. Your friend collects the credential; you never see it."""
    body = {
        "agent": options["agent"] or _other(remote, friendship),
        "name": options["name"],
        "queues": list(options["queues"]) or None,
        "verbs": list(options["verbs"]) or None,
        "default_lease_ttl_seconds": lease_seconds(options["lease_ttl"]),
        "expires_at": expiry(options["expires"]),
    }
    said = {key: value for key, value in body.items() if value is not None}
    with lease_refusals():
        told = remote.send("POST", "friends", friendship, "approve", body=said)
    return _told(remote, told)


def _other(remote: Remote, friendship: str) -> str:
    """The friend's name; of a request that is not there none is needed, since the board refuses it."""
    names = {one["id"]: one["other"] for one in remote.get("friends")["friendships"]}
    return names.get(friendship) or "friend"


@friend.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("friendship", metavar="FRIENDSHIP")
@with_board
def decline(remote: Remote, friendship: str) -> int:
    """Say no to a request."""
    return _told(remote, remote.send("POST", "friends", friendship, "decline"))


@friend.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("friendship", metavar="FRIENDSHIP")
@click.option("--again", is_flag=True, help="As the one who approved: let your friend collect once more.")
@click.option("--no-save", is_flag=True, help="Don't keep the credential here.")
@with_board
def collect(remote: Remote, friendship: str, again: bool, no_save: bool) -> int:
    """Take the credential away, once, within 7 days of the approval."""
    if again:
        return _told(remote, remote.send("POST", "friends", friendship, "allow-collect"))
    told = remote.send("POST", "friends", friendship, "collect")
    slug = told["friendship"]["endpoint"]
    kept = "" if no_save else keeping.keep_shown(remote.url, slug, friendship, slug, told["credential"])
    if remote.as_json:
        put_json(told)
        return 0
    for line in pairs([("endpoint", slug), ("mcp", told["mcp_url"]), ("credential", told["credential"])], look()):
        put(line)
    say(f"The credential is not shown again. {kept}".rstrip())
    return 0


@friend.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("friendship", metavar="FRIENDSHIP")
@with_board
def end(remote: Remote, friendship: str) -> int:
    """End it, from either side; the endpoint is revoked with it."""
    return _told(remote, remote.send("POST", "friends", friendship, "end"))


def _told(remote: Remote, one: dict[str, Any]) -> int:
    if remote.as_json:
        put_json(one)
        return 0
    put(f"{one['id']}: {one['state']}" + (f", endpoint {one['endpoint']}" if one["endpoint"] else ""))
    if one["state"] == "approved" and one["collect_until_at"]:
        left = ago(one["collect_until_at"]).removeprefix("in ")
        say(f"your friend has {left} to collect it: tenure friend collect {one['id']}")
    return 0
