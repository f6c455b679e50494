"""`tenure endpoint connect`: the settings by which an agent's client finds an endpoint, written or printed.

By HTTP the settings name the credential and don't hold it: such files are shared and committed. By `--stdio` they need
none, since `tenure mcp` finds what this machine keeps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.output import put_json, say
from tenure.doors.cli.texts import CONTEXT, exits
from tenure.doors.wire.clients import CLIENTS, VARIABLE, Client, settings

NOT_FOUND: Final = 3


def kept_slug(url: str, endpoint: str) -> str | None:
    """The slug of an endpoint whose credential is kept here, named by slug, id or a name that only one has."""
    kept = keeping.read().get("servers", {}).get(url, {}).get("endpoints", {})
    exact = [slug for slug, one in kept.items() if endpoint in (slug, one.get("id"))]
    named = exact or [slug for slug, one in kept.items() if one.get("name") == endpoint]
    return named[0] if len(named) == 1 else None


def merged(present: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The settings that are there with the new ones in them; other servers stay, the same one is replaced."""
    told = {**present}
    for key, value in new.items():
        if isinstance(value, dict):
            told[key] = {**told.get(key, {}), **value}
        else:
            told[key] = [*(one for one in told.get(key, []) if one not in value), *value]
    return told


def write(client: Client, new: dict[str, Any], folder: Path) -> Path:
    """Write the settings into the client's file below `folder`. Raises ConfigError for one that can't take them."""
    from tenure.errors import ConfigError

    path = folder / client.path
    try:
        present = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        told = merged(present, new)
    except (OSError, ValueError, TypeError, AttributeError):
        hint = "Run it without --write, and put in by hand what it prints."
        raise ConfigError("settings", str(path), "can't be read as a JSON object of servers.", hint) from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        hint = "Run it without --write, and put in by hand what it prints."
        raise ConfigError("settings", str(path), f"can't be written: {error.strerror}.", hint) from None
    return path


@click.command("connect", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, _3="no credential of it is kept here"))
@click.argument("endpoint", metavar="ENDPOINT")
@click.option("--client", "name", type=click.Choice(list(CLIENTS)), default="claude", show_default=True)
@click.option(
    "--stdio", is_flag=True, help="For a client without HTTP: through tenure mcp, which finds the credential."
)
@click.option("--write", "writes", is_flag=True, help="Write them into the client's file in this folder.")
@click.option("--url", metavar="URL", help="The board's address.  [env: TENURE_URL; default: the one signed in to]")
def connect(*, endpoint: str, name: str, stdio: bool, writes: bool, url: str | None) -> int:
    """Print, or write, the settings by which an agent's client works on ENDPOINT.

    ENDPOINT is the slug, id or name of one that was vended here.
    """
    client, address = CLIENTS[name], (url or keeping.server()).rstrip("/")
    slug = kept_slug(address, endpoint)
    if slug is None:
        say(
            f"tenure: no credential of {endpoint} at {address} is kept here. "
            "Vend or rotate it here: tenure endpoint vend NAME, tenure endpoint rotate ENDPOINT."
        )
        return NOT_FOUND
    told = settings(client, slug, address, stdio=stdio)
    if writes:
        say(f"written: {write(client, told, Path.cwd())}")
    else:
        say(f"{client.title} reads this from {client.path}:")
        put_json(told)
    if not stdio and "${input:" not in client.secret:
        say(
            f"The credential is not in it. {client.title} takes it from the environment: set {VARIABLE}; it is kept in "
            f"{keeping.place()}. With --stdio nothing is to be set."
        )
    return 0
