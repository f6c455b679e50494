"""`tenure auth`: which board this user is signed in to, and as whom."""

from __future__ import annotations

import sys

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.output import look, pairs, put, put_json, say
from tenure.doors.cli.remote import SIGN_IN, Remote, board_options, with_board
from tenure.doors.cli.texts import CONTEXT, exits


@click.group(context_settings=CONTEXT)
def auth() -> None:
    """Sign in to a board, sign out, and show as whom."""


board_options(auth)


@auth.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130, _4="the token was not accepted"))
@click.argument("url", metavar="[URL]", required=False)
@click.option("--with-token", is_flag=True, help="Read the token from stdin, for scripts.")
def login(url: str | None, with_token: bool) -> int:
    """Keep a token for the board at URL, which is asked from then on.

    Make the token on the board's page, under Settings. Who starts `tenure board` for the first time is signed in
    already.
    """
    from tenure.client import Board, calls
    from tenure.errors import ConfigError

    url = (url or keeping.server()).rstrip("/")
    base, login, _ = url.partition("/login/")
    if login:
        hint = f"Open it in a browser, make a token under Settings, and run: tenure auth login {base}"
        raise ConfigError("URL", f"{base}/login/…", "is a sign-in link, which signs a browser in, once.", hint)
    if "://" not in url:
        raise ConfigError("URL", url, "is no address of a board.", f"Write http://{url}")
    stdin = sys.stdin
    if not with_token and not stdin.isatty():
        hint = "Pipe it in: tenure auth login --with-token"
        raise ConfigError("token", "", "can't be asked for without a terminal.", hint)
    token = stdin.readline().strip() if with_token else click.prompt(f"Token for {url}", hide_input=True, err=True)
    with Board(url, token=token, patience_seconds=0) as board:
        me = board.ask(calls.get("/api/v1/me"))
    keeping.keep_token(url, token, me["name"])
    say(f"signed in to {url} as {me['name']}")
    return 0


@auth.command(context_settings=CONTEXT, epilog=exits(0, 2, 5, 130, _5="nobody was signed in"))
@click.argument("url", metavar="[URL]", required=False)
def logout(url: str | None) -> int:
    """Forget the token for the board at URL. It stays valid; revoke it under Settings."""
    url = (url or keeping.server()).rstrip("/")
    if not keeping.drop_token(url):
        say(f"nobody is signed in to {url} here.")
        return 5
    say(f"signed out of {url}")
    return 0


@auth.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 4, 130))
@with_board
def status(remote: Remote) -> int:
    """Show the board's address and as whom this user is signed in."""
    me = remote.get("me")
    if remote.as_json:
        put_json({"url": remote.url, **me})
        return 0
    facts = [("board", remote.url), ("human", me["name"]), ("friend code", me["friend_code"])]
    for line in pairs([*facts, ("kept in", str(keeping.place()))], look()):
        put(line)
    return 0


@auth.command(context_settings=CONTEXT, epilog=exits(0, 2, 4, 130))
@with_board
def token(remote: Remote) -> int:
    """Print the token in use, for a program that needs one."""
    found = keeping.token(remote.url)
    if found is None:
        say(f"nobody is signed in to {remote.url} here. Run: tenure auth login {remote.url}")
        return SIGN_IN
    put(found)
    return 0
