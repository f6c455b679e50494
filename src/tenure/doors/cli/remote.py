"""How a command reaches the board for its human: the address, the token, and how long to be patient."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self
from urllib.parse import quote

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.access import kept

if TYPE_CHECKING:
    from tenure.client import Board

Command = Callable[..., Any]
SIGN_IN: Final = 4
PATIENCE_SECONDS: Final = 5.0


def board_options(command: Command) -> Command:
    """--url and --json, on a group or a command."""
    command = click.option(
        "--json", is_flag=True, expose_value=False, callback=kept("json"), help="The board's answer as JSON."
    )(command)
    return click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        callback=kept("url"),
        help=f"The board's address.  [env: TENURE_URL; default: the one signed in to, else {keeping.DEFAULT_URL}]",
    )(command)


def with_board(function: Command) -> Command:
    """A command that is given a `Remote` first."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        check_text(kwargs)
        meta = click.get_current_context().meta
        url = (meta.get("tenure.url") or keeping.server()).rstrip("/")
        with Remote(url, bool(meta.get("tenure.json"))) as remote:
            return function(remote, *args, **kwargs)

    return board_options(command)


def check_text(typed: Mapping[str, Any]) -> None:
    """Refuse bytes that are no text: the board is told in JSON, which has no place for them."""
    for value in typed.values():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not is_text(text):
                raise click.UsageError(f"{text!r} holds bytes that are no text in UTF-8")


def is_text(text: str) -> bool:
    """Whether it can be sent: Python keeps bytes that it can't read as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def piped(field: str) -> str:
    """What stands on stdin. Raises ConfigError where it is no text."""
    from tenure.errors import ConfigError

    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigError(field, "-", f"is no text on stdin: {error}.") from None
    if not is_text(text):
        raise ConfigError(field, "-", "is no text on stdin: it holds bytes that are not UTF-8.")
    return text


@dataclass
class Remote:
    """The board at `url` as its human asks it; `as_json`: how the answer is wanted."""

    url: str
    as_json: bool
    _board: Board | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()

    def get(self, *path: str, **query: Any) -> Any:
        """Read; path segments are quoted, absent parameters left out."""
        from tenure.client import calls

        return self._ask(calls.get(_path(path), **query))

    def create(self, *path: str, body: Mapping[str, Any]) -> Any:
        """Create, under a key by which the board knows a repetition."""
        from tenure.client import calls

        return self._ask(calls.create(_path(path), _without(body)))

    def send(self, method: str, *path: str, body: Any = None) -> Any:
        """Write, once."""
        from tenure.client import calls

        return self._ask(calls.send(method, _path(path), body))

    def pages(self, key: str, *path: str, limit: int | None = None, **query: Any) -> dict[str, Any]:
        """A list of up to `limit` (all without), its pages put together."""
        first = told = self.get(*path, **query)
        items = list(told[key])
        while told.get("next_cursor") and (limit is None or len(items) < limit):
            told = self.get(*path, **query, cursor=told["next_cursor"])
            items += told[key]
        return {**first, key: items[:limit], "next_cursor": told.get("next_cursor")}

    def _ask(self, call: Any) -> Any:
        from tenure.client import Board

        if self._board is None:
            token = keeping.token(self.url)
            if token is None:
                unsigned(self.url)
            self._board = Board(self.url, token=token, patience_seconds=PATIENCE_SECONDS)
        return self._board.ask(call)


def unsigned(url: str) -> NoReturn:
    """Leave with exit code 4: nobody is signed in."""
    from tenure.client import Refused

    why = f"nobody is signed in to {url} here. Run: tenure auth login {url}"
    raise Refused(401, "unauthenticated", why, {})


def _path(parts: tuple[str, ...]) -> str:
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def _without(body: Mapping[str, Any]) -> dict[str, Any]:
    """Absent is left out; null is said by the one command that means it."""
    return {key: value for key, value in body.items() if value is not None}


def only_name(name: str, noun: str, known: list[dict[str, Any]]) -> str:
    """The slug of what was named by slug, id, or a name that just one active one has. Raises NotFound."""
    import difflib

    from tenure.errors import NotFound

    for one in known:
        if name in (one["slug"], one["id"]):
            return str(one["slug"])
    named = [one["slug"] for one in known if one["name"] == name and one["state"] == "active"]
    if len(named) == 1:
        return str(named[0])
    if named:
        raise NotFound(f"several active {noun}s have the name {name!r}; name one by its slug: {', '.join(named)}.")
    words = {word: one["slug"] for one in known if one["state"] == "active" for word in (one["slug"], one["name"])}
    near = difflib.get_close_matches(name, words, 1)
    hint = f"Did you mean {near[0]}?" if near else f"List them: tenure {noun} list"
    raise NotFound(f"there is no {noun} {name!r}. {hint}")


def expiry(text: str | None) -> str | None:
    """When something is to end, as the board reads it: a length of time from now on, or a time. Raises ConfigError."""
    from tenure.errors import ConfigError
    from tenure.rules.instant import instant, span

    if text is None:
        return None
    try:
        return f"now+{span(text)}ms"
    except ValueError:
        pass
    try:
        instant(text, 0)
    except (ValueError, OverflowError):
        why = "is neither a length of time nor a time; write 30d, or 2026-12-31T18:00:00Z."
        raise ConfigError("time", text, why) from None
    return text


def ago(text: str) -> str:
    """An instant of the board's, as people read it on this machine's clock: 30d is no 29d23h a second later."""
    import time

    from tenure.rules.instant import HOUR, MINUTE, SECOND, instant
    from tenure.rules.times import away

    now = time.time_ns() // 1_000_000
    far = instant(text, 0) - now
    unit = MINUTE if abs(far) >= HOUR - SECOND else SECOND if abs(far) >= MINUTE - SECOND else 1
    return away(now + round(far / unit) * unit, now)
