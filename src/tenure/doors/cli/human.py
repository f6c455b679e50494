"""`tenure human`: on the database itself, where the server runs. There is no open registration and no admin role."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tenure.doors.cli.output import look, put, put_json, say, table
from tenure.doors.cli.texts import CONTEXT, Noun, exits

if TYPE_CHECKING:
    from tenure.board.board import Board

T = TypeVar("T")
LINK_MINUTES: Final = 10


def database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--database, as `tenure board` takes it."""
    return click.option(
        "--database",
        metavar="URL",
        envvar="TENURE_DATABASE",
        default="sqlite:///tenure.db",
        show_default=True,
        help="The board's database.  [env: TENURE_DATABASE]",
    )(command)


@click.group(cls=Noun, context_settings=CONTEXT)
def human() -> None:
    """Add humans to a board's database, and let them in. Run it where the server runs."""


@human.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@database_option
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def list_humans(database: str, as_json: bool) -> int:
    """List the humans of a board."""
    from tenure.board import humans

    found = on_database(database, humans.list_all)
    if as_json:
        put_json([{"id": one.id, "name": one.name, "has_password": one.has_password} for one in found])
        return 0
    rows = [(one.name, "password" if one.has_password else "sign-in link only", one.id) for one in found]
    for line in table(("HUMAN", "LETS IN", "ID"), rows, look()):
        put(line)
    return 0


@human.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("name", metavar="NAME")
@database_option
@click.option("--url", metavar="URL", envvar="TENURE_URL", default="http://127.0.0.1:8420", help="The board's address.")
def add(name: str, database: str, url: str) -> int:
    """Add a human, and print a link by which they sign in, once, within ten minutes."""
    from tenure.board import humans, signing_in
    from tenure.client.calls import address

    url = address(url)

    def case(tx: Any, board: Board) -> str:
        person = humans.add(tx, board, name)
        return signing_in.link_for(tx, board, person.name).reveal()

    link = on_database(database, case, make=True)
    say(f"{name} was added")
    return _link(url, link)


@human.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("name", metavar="NAME")
@database_option
@click.option("--url", metavar="URL", envvar="TENURE_URL", default="http://127.0.0.1:8420", help="The board's address.")
def link(name: str, database: str, url: str) -> int:
    """Print a link by which a human signs in, once, within ten minutes."""
    from tenure.board import signing_in
    from tenure.client.calls import address

    url = address(url)
    made = on_database(database, lambda tx, board: signing_in.link_for(tx, board, name).reveal())
    return _link(url, made)


def _link(url: str, secret: str) -> int:
    put(f"{url}/login/{secret}")
    say(f"one use, {LINK_MINUTES} minutes; whoever opens it is signed in")
    return 0


@human.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130))
@click.argument("name", metavar="NAME")
@database_option
@click.option("--stdin", "piped", is_flag=True, help="Read the password from stdin, for scripts.")
def password(name: str, database: str, piped: bool) -> int:
    """Give a human a password, or another one. Their sessions end."""
    from tenure.board import humans, signing_in
    from tenure.errors import ConfigError

    if piped:
        text = sys.stdin.readline().rstrip("\n")
    elif sys.stdin.isatty():
        text = click.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise ConfigError("password", "", "can't be asked for without a terminal.", "Pipe it in, with --stdin.")
    signing_in.check_password(text)
    hashed = signing_in.hashed_password(text)

    def case(tx: Any, board: Board) -> None:
        signing_in.put_password(tx, board, humans.named(tx, board, name).human, hashed)

    on_database(database, case)
    say(f"{name} signs in with this password from now on")
    return 0


def on_database(url: str, case: Callable[[Any, Board], T], *, make: bool = False) -> T:
    """Run a use case on the board's database itself; `make`: a new one where there is none. Raises TenureError."""
    from tenure.board.opening import open_where_it_is
    from tenure.board.refused import Refused
    from tenure.errors import NotFound

    board = open_where_it_is(url, os.environ, make=make)
    try:
        return board.database.writing(case, board)
    except Refused as error:
        raise NotFound(str(error)) if error.refusal.code == "not_found" else error from None
    finally:
        board.database.shut()
