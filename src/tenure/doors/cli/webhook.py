"""`tenure endpoint webhook`: addresses at which other systems put todos on an endpoint."""

from __future__ import annotations

from typing import Any

import click

from tenure.doors.cli.output import look, pairs, put, put_json, say, table
from tenure.doors.cli.remote import Remote, ago, board_options, only_name, with_board
from tenure.doors.cli.texts import CONTEXT, Noun, exits


@click.group(cls=Noun, context_settings=CONTEXT)
def webhook() -> None:
    """Make, list, rotate and delete webhooks, at which other systems put todos on an endpoint."""


board_options(webhook)


@webhook.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="ENDPOINT")
@with_board
def list_webhooks(remote: Remote, endpoint: str) -> int:
    """List the webhooks of an endpoint."""
    told = remote.get("endpoints", _find(remote, endpoint), "webhooks")
    if remote.as_json:
        put_json(told)
        return 0
    if not told["webhooks"]:
        say(f"it has no webhooks. Make one: tenure endpoint webhook add {endpoint} NAME")
        return 0
    rows = [
        (one["id"], one["name"], one["queue"], ago(one["last_delivery_at"]) if one["last_delivery_at"] else "never")
        for one in told["webhooks"]
    ]
    for line in table(("WEBHOOK", "NAME", "QUEUE", "DELIVERED"), rows, look()):
        put(line)
    return 0


@webhook.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="ENDPOINT")
@click.argument("name", metavar="NAME")
@click.option("--queue", metavar="Q", help="Where its todos go. Default: the endpoint's first queue.")
@with_board
def add(remote: Remote, endpoint: str, name: str, queue: str | None) -> int:
    """Make a webhook. Its signing secret is shown this once."""
    body = {"name": name, "queue": queue}
    return _shown(remote, remote.create("endpoints", _find(remote, endpoint), "webhooks", body=body))


@webhook.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="ENDPOINT")
@click.argument("webhook_id", metavar="WEBHOOK")
@with_board
def rotate(remote: Remote, endpoint: str, webhook_id: str) -> int:
    """Give a webhook another secret, which is shown this once; the old one no longer counts."""
    return _shown(remote, remote.send("POST", "endpoints", _find(remote, endpoint), "webhooks", webhook_id, "rotate"))


@webhook.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 4, 130))
@click.argument("endpoint", metavar="ENDPOINT")
@click.argument("webhook_id", metavar="WEBHOOK")
@with_board
def delete(remote: Remote, endpoint: str, webhook_id: str) -> int:
    """Delete a webhook: deliveries to it are refused from now on."""
    remote.send("DELETE", "endpoints", _find(remote, endpoint), "webhooks", webhook_id)
    say(f"{webhook_id} deleted")
    return 0


def _shown(remote: Remote, told: dict[str, Any]) -> int:
    if remote.as_json:
        put_json(told)
        return 0
    one = told["webhook"]
    for line in pairs([("webhook", one["id"]), ("url", one["url"]), ("secret", told["secret"] or "-")], look()):
        put(line)
    say("The secret is not shown again. Deliveries are signed after Standard Webhooks.")
    return 0


def _find(remote: Remote, name: str) -> str:
    return only_name(name, "endpoint", remote.get("endpoints")["endpoints"])
