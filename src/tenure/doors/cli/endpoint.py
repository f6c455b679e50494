"""`tenure endpoint`: what a human vends to agents and workers, edits in place and ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.access import length
from tenure.doors.cli.connect import connect
from tenure.doors.cli.output import Cell, look, pairs, put, put_json, say, table
from tenure.doors.cli.remote import Remote, ago, board_options, expiry, only_name, with_board
from tenure.doors.cli.texts import CONTEXT, Noun, exits
from tenure.doors.cli.webhook import webhook
from tenure.rules.bounds import LIST_LIMIT

HEADS: Final = ("ENDPOINT", "NAME", "STATE", "QUEUES", "LEASE", "PRESENCE", "EXPIRES", "SEEN")
_STATES: Final = {"active": "good", "expired": "warn", "revoked": "bad"}
NONE_ACTIVE: Final = "no endpoint is active; --all shows those that were. Vend one: tenure endpoint vend NAME"
NONE_YET: Final = "there are no endpoints yet. Vend one: tenure endpoint vend NAME"


@click.group(cls=Noun, context_settings=CONTEXT)
def endpoint() -> None:
    """Vend endpoints to agents and workers; edit, rotate and revoke them.

    ENDPOINT is a slug, an id, or a name that just one active endpoint has.
    """


board_options(endpoint)
endpoint.add_command(connect)
endpoint.add_command(webhook)


@endpoint.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@click.option("--all", "ended", is_flag=True, help="Revoked and expired ones too.")
@with_board
def list_endpoints(remote: Remote, ended: bool) -> int:
    """List endpoints: queues, default lease, presence, and when each was last used."""
    told = remote.get("endpoints")
    if remote.as_json:
        put_json(told)
        return 0
    shown = [one for one in told["endpoints"] if ended or one["state"] == "active"]
    if not shown:
        say(NONE_ACTIVE if told["endpoints"] else NONE_YET)
        return 0
    for line in table(HEADS, [_row(one) for one in shown], look()):
        put(line)
    return 0


def lease_words(one: dict[str, Any]) -> str:
    """The default lease as people read it, and whose it is."""
    from tenure.rules.instant import span_words

    words = span_words(one["effective_lease_ttl_seconds"] * 1000)
    return words if one["effective_lease_ttl_source"] == "endpoint" else f"{words} (server)"


def _row(one: dict[str, Any]) -> tuple[str | Cell, ...]:
    return (
        Cell(one["slug"], "strong"),
        one["name"],
        Cell(one["state"], _STATES[one["state"]]),
        ", ".join(one["queues"]),
        lease_words(one),
        one["presence"]["value"],
        ago(one["expires_at"]) if one["expires_at"] else "never",
        ago(one["last_seen_at"]) if one["last_seen_at"] else "never",
    )


@endpoint.command("show", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@with_board
def show_endpoint(remote: Remote, name: str) -> int:
    """Show one endpoint: scope, lease, presence, credentials."""
    one = remote.get("endpoints", find(remote, name))
    if remote.as_json:
        put_json(one)
        return 0
    kept = remote.get("endpoints", one["slug"], "credentials")["credentials"]
    seen = look()
    put(f"{seen.paint(one['slug'], 'strong')}  {one['name']}")
    facts: list[tuple[str, str | Cell]] = [
        ("state", Cell(one["state"], _STATES[one["state"]])),
        ("agent", one["agent"]),
        ("queues", ", ".join(one["queues"])),
        ("verbs", ", ".join(one["verbs"])),
        ("lease", lease_words(one)),
        ("presence", one["presence"]["value"]),
        ("expires", ago(one["expires_at"]) if one["expires_at"] else "when it is revoked"),
        ("last seen", ago(one["last_seen_at"]) if one["last_seen_at"] else "never"),
        ("mcp", f"{remote.url}/mcp/{one['slug']}"),
    ]
    facts += [(place, one[key]) for place, key in (("shift", "shift"), ("id", "id")) if one[key]]
    facts += [("targets", ", ".join(one["targets"]))] if one["targets"] else []
    facts += [("credential", _credential(each)) for each in kept]
    for line in pairs(facts, seen):
        put(line)
    return 0


def _credential(one: dict[str, Any]) -> str:
    used = f"used {ago(one['last_seen_at'])}" if one["last_seen_at"] else "never used"
    end = f", ends {ago(one['expires_at'])}" if one["expires_at"] else ""
    return f"…{one['hint']}, {used}{end}"


@endpoint.command("vend", context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@click.argument("name", metavar="NAME")
@click.option("--queue", "queues", metavar="Q", multiple=True, help="A queue of its todos; may be repeated.")
@click.option("--verb", "verbs", metavar="V", multiple=True, help="A verb it may use; may be repeated. Default: all.")
@click.option("--target", "targets", metavar="SLUG", multiple=True, help="An endpoint it may put todos on.")
@click.option("--agent", metavar="NAME", help="The agent it is for. Default: one of the same name.")
@click.option(
    "--lease-ttl", metavar="DUR", help="How long its claims last by default: 1m to 24h. Default: the server's."
)
@click.option("--expires", metavar="DUR|TIME", help="When it ends: 30d, or a time. Default: when it is revoked.")
@click.option("--no-save", is_flag=True, help="Don't keep the credential here.")
@with_board
def vend(remote: Remote, name: str, *, no_save: bool, **options: Any) -> int:
    """Vend an endpoint: an address and a credential, for an agent or worker. The credential is shown this once."""
    body = {
        "name": name,
        "agent": options["agent"],
        "queues": list(options["queues"]) or None,
        "verbs": list(options["verbs"]) or None,
        "targets": [find(remote, target) for target in options["targets"]] or None,
        "default_lease_ttl_seconds": lease_seconds(options["lease_ttl"]),
        "expires_at": expiry(options["expires"]),
    }
    with lease_refusals():
        told = remote.create("endpoints", body=body)
    code = _handed_out(remote, told, keep=not no_save)
    known = remote.get("endpoints")["endpoints"]
    if sum(one["name"] == told["endpoint"]["name"] and one["state"] == "active" for one in known) > 1:
        say(f"warning: another active endpoint has the name {name}; name this one by its slug.")
    return code


def _handed_out(remote: Remote, told: dict[str, Any], *, keep: bool) -> int:
    one, credential = told["endpoint"], told["credential"]
    kept = ""
    if keep and credential:
        kept = keeping.keep_shown(remote.url, one["slug"], one["id"], one["name"], credential)
    if remote.as_json:
        put_json(told)
        return 0
    facts = [
        ("endpoint", one["slug"]),
        ("queues", ", ".join(one["queues"])),
        ("lease", lease_words(one)),
        ("expires", ago(one["expires_at"]) if one["expires_at"] else "when it is revoked"),
        ("mcp", told["mcp_url"]),
        ("credential", credential or "was shown before, and is not shown again"),
    ]
    for line in pairs(facts, look()):
        put(line)
    if credential:
        say(f"The credential is not shown again. {kept}".rstrip())
        say(f"next: tenure todo add {one['slug']} TITLE, then tenure work {one['slug']} -- COMMAND")
    return 0


@endpoint.command("edit", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@click.option(
    "--lease-ttl", metavar="DUR|default", help="How long its claims last by default; `default`: the server's."
)
@click.option("--name", "label", metavar="NAME", help="Another name for people; the slug stays.")
@click.option("--mcp-era", metavar="ERA", help="handshake, both, or default: which clients of MCP it serves.")
@with_board
def edit(remote: Remote, name: str, lease_ttl: str | None, label: str | None, mcp_era: str | None) -> int:
    """Change what is not scope. Claims that are held keep their expiry; scope needs a new vend."""
    if lease_ttl is None and label is None and mcp_era is None:
        raise click.UsageError("nothing to change was given; give --lease-ttl, --name or --mcp-era")
    seconds = lease_seconds(lease_ttl)
    slug = find(remote, name)
    told: Any = None
    if lease_ttl is not None:
        with lease_refusals():
            told = remote.send("PATCH", "endpoints", slug, body={"default_lease_ttl_seconds": seconds})
    if label is not None:
        told = remote.send("PUT", "endpoints", slug, "name", body={"name": label})
    if mcp_era is not None:
        era = None if mcp_era == "default" else mcp_era
        told = remote.send("PUT", "endpoints", slug, "mcp-era", body={"mcp_era": era})
    return _changed(remote, told)


def _changed(remote: Remote, told: dict[str, Any]) -> int:
    if remote.as_json:
        put_json(told)
        return 0
    shift = f", shift {told['shift']}" if told["shift"] else ""
    put(f"{told['slug']}: {told['state']}, lease {lease_words(told)}, {told['presence']['value']}{shift}")
    return 0


@endpoint.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@click.option("--overlap", metavar="DUR", default="0", help="How long the old credential stays valid, up to 24h.")
@click.option("--no-save", is_flag=True, help="Don't keep the new credential here.")
@with_board
def rotate(remote: Remote, name: str, overlap: str, no_save: bool) -> int:
    """Give it a new credential, which is shown this once. The old one ends now, or after --overlap."""
    slug = find(remote, name)
    seconds = whole_seconds("overlap", overlap)
    told = remote.send("POST", "endpoints", slug, "rotate", body={"overlap_seconds": seconds})
    code = _handed_out(remote, told, keep=not no_save)
    say(
        f"The one before ends in {overlap}."
        if seconds
        else "The one before has ended; --overlap 1h would have kept it."
    )
    return code


@endpoint.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@with_board
def revoke(remote: Remote, name: str) -> int:
    """End it at once: its claims are closed, its live todos become dead letters. This can't be undone."""
    slug = find(remote, name)
    told = remote.send("POST", "endpoints", slug, "revoke")
    keeping.drop_credential(remote.url, told["slug"])
    dead = remote.get("todos", endpoint=slug, state="dead", limit=LIST_LIMIT)
    count = sum(one["ended_at"] == told["ended_at"] for one in dead["todos"])
    if count:
        more = "at least " if dead["next_cursor"] else ""
        say(f"{more}{count} todos died with it: tenure todo move TODO ENDPOINT puts one elsewhere.")
    return _changed(remote, told)


@endpoint.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@click.argument("value", metavar="in|out|shift", type=click.Choice(["in", "out", "shift"]))
@click.option("--for", "span", metavar="DUR", help="For so long. Default: until the next boundary of its shift.")
@with_board
def presence(remote: Remote, name: str, value: str, span: str | None) -> int:
    """Say whether new todos wake its workers; `shift`: as its shift says. What it may claim stays."""
    body = {"presence": None if value == "shift" else value}
    if span is not None:
        body["for_seconds"] = whole_seconds("for", span)  # type: ignore[assignment] # a number among words
    return _changed(remote, remote.send("PUT", "endpoints", find(remote, name), "presence", body=body))


@endpoint.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("name", metavar="ENDPOINT")
@click.argument("value", metavar="SHIFT|none")
@with_board
def shift(remote: Remote, name: str, value: str) -> int:
    """Give it weekly hours, such as "TZ=Europe/Berlin Mon-Fri 09:00-18:00; Sat 10:00-14:00"; `none` takes them away."""
    body = {"shift": None if value == "none" else value}
    return _changed(remote, remote.send("PUT", "endpoints", find(remote, name), "shift", body=body))


def find(remote: Remote, name: str) -> str:
    """The slug of an endpoint that was named by slug, id, or a name that just one active endpoint has."""
    return only_name(name, "endpoint", remote.get("endpoints")["endpoints"])


def lease_seconds(text: str | None) -> int | None:
    """A default lease that was typed; None for `default` and for nothing. The range is the board's to refuse."""
    return None if text in (None, "default") else whole_seconds("lease-ttl", text)


@contextmanager
def lease_refusals() -> Iterator[None]:
    """What the board refuses of a default lease, led by the option that it was typed as."""
    from tenure.client import Refused

    try:
        yield
    except Refused as error:
        if "default_lease_ttl_seconds" not in str(error):
            raise
        raise Refused(error.status, error.code, f"--lease-ttl must be 1m to 24h: {error}", error.details) from None


def whole_seconds(field: str, text: str) -> int:
    """A length of time that must be whole seconds. Raises ConfigError."""
    from tenure.errors import ConfigError

    ms = length(field, text)
    if ms % 1000:
        raise ConfigError(field, text, "is no whole number of seconds; write 90, 90s, 45m or 1h30m.")
    return ms // 1000
