"""`tenure board`: open the board's database, say where it is, and serve it until a signal comes."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import os
import sys
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.human import LINK_MINUTES, database_option
from tenure.doors.cli.output import put, say
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    import socket

    from tenure.board.board import Board
    from tenure.board.opening import Opened

PORT: Final = 8420


@click.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 130, _0="stopped by SIGTERM"))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="The address to listen on.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), metavar="PORT", help="0: any.")
@database_option
@click.option(
    "--public-url", metavar="URL", envvar="TENURE_PUBLIC_URL",
    help="Where others reach it, such as https://board.example.com.  [env: TENURE_PUBLIC_URL]",
)  # fmt: skip
@click.option("--runs", metavar="URL", multiple=True, help="A store of scheduled jobs to show; may be repeated.")
@click.option(
    "--mcp-era", default="handshake", show_default=True, type=click.Choice(["handshake", "both"]), metavar="ERA",
    help="handshake: clients of MCP hear edits; both: the session-less revision is served too.",
)  # fmt: skip
@click.option("--no-open", is_flag=True, help="Don't open a browser at the first start.")
def board(*, host: str, port: int, database: str, public_url: str | None, no_open: bool, **options: Any) -> int:
    """Serve the board: todos, endpoints and the web page, on this machine alone unless --host says otherwise.

    The first start makes a human of your name, prints a sign-in link, and signs this user's command line in.
    """
    from tenure.board.board import BoardSettings
    from tenure.board.opening import open_board, served_alone

    public = None if public_url is None else _public(public_url)
    serve = importlib.import_module("tenure.serve")  # the room above all doors: known by its name alone
    listening: socket.socket = serve.listen(host, port)
    bound = listening.getsockname()[1]
    url = public or f"http://{_shown(host)}:{bound}"
    settings = BoardSettings(public_url=url, mcp_era=options["mcp_era"])
    with listening, served_alone(database):
        opened = open_board(database, os.environ, settings)
        try:
            _check_reach(opened.board, host)
            return int(
                serve.run(
                    opened.board,
                    listening,
                    environ=os.environ,
                    runs=options["runs"],
                    ready=lambda: _told(opened, url, database, host, browse=not no_open),
                )
            )
        finally:
            opened.board.database.shut()


def _public(url: str) -> str:
    """The public address as browsers spell its host. Raises ConfigError: by what is none, no request could call us."""
    from tenure.app import redact
    from tenure.errors import ConfigError

    with contextlib.suppress(ValueError):
        parts = urlsplit(url.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if known and "@" not in parts.netloc and not parts.query and not parts.fragment:
            return parts._replace(netloc=parts.netloc.lower()).geturl().rstrip("/")
    hint = "Write https://board.example.com."
    raise ConfigError("--public-url", redact(url), "is no address of a web server.", hint)


def _shown(host: str) -> str:
    """The host as an address spells it; `all of this machine` is reached by its own name for itself."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not listened on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_reach(board: Board, host: str) -> None:
    """Others could reach it: then a human with a password must be there first. Raises ConfigError."""
    from tenure.board import humans
    from tenure.errors import ConfigError

    if _is_loopback(host):
        return
    people = board.database.reading(humans.list_all, board)
    if not any(one.has_password for one in people):
        name = people[0].name if people else "NAME"
        why = "can be reached by others, and no human of this board has a password yet."
        raise ConfigError("host", host, why, f"Run: tenure human password {name}")


def _told(opened: Opened, url: str, database: str, host: str, *, browse: bool) -> None:
    """What a user sees when requests are answered."""
    from tenure.board.engines import plain_url
    from tenure.errors import ConfigError

    kind, plain = plain_url(database)
    where = plain.removeprefix("sqlite:///") if kind == "sqlite" else plain.rsplit("@", 1)[-1]
    where = f"./{where}" if kind == "sqlite" and not where.startswith("/") else where
    for sentence in opened.said:
        say(sentence)
    put(f"board    {url}     data {where}{'     (loopback only)' if _is_loopback(host) else ''}")
    if opened.first is not None:
        link = f"{url}/login/{opened.first.link.reveal()}"
        put(f"sign in  {link}     one use, {LINK_MINUTES} minutes")
        try:
            keeping.keep_token(url, opened.first.token.reveal(), opened.first.name)
            say(f"this user's command line is signed in as {opened.first.name}; next: tenure endpoint vend NAME")
        except ConfigError as error:  # the board serves all the same, and the link is told just once
            say(f"tenure: this user's command line is not signed in: {error}")
        if browse and sys.stdout.isatty():
            import webbrowser

            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(link)
    else:
        put(f"sign in  {_link_command(opened.board, url, database if kind == 'sqlite' else '')}     makes a link")
    sys.stdout.flush()


def _link_command(board: Board, url: str, database: str) -> str:
    """What makes a sign-in link for this board: its database where that is not the usual one."""
    from tenure.board import humans
    from tenure.board.opening import DEFAULT_URL

    people = board.database.reading(humans.list_all, board)
    words = ["tenure human link", people[0].name if len(people) == 1 else "NAME"]
    words += [f"--database {database}"] if database not in ("", DEFAULT_URL) else []
    words += [f"--url {url}"] if url != keeping.DEFAULT_URL else []
    return " ".join(words)
