"""Open a board: its secrets, its tables, and on an empty database its first human.

Blocks; a server calls it before its loop, or from a thread. Must not print: what is to be told is returned.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from tenure.board import humans, signing_in, tokens
from tenure.board.board import Board, BoardSettings
from tenure.board.database import Database, Tx
from tenure.board.engines import plain_url
from tenure.board.secrets import Ring, Secret, private, ring_beside, ring_of
from tenure.board.upgrade import upgrade_in
from tenure.errors import ConfigError, NotFound
from tenure.rules.bounds import NAME_CHARS

DEFAULT_URL: Final = "sqlite:///tenure.db"
SECRET_VARIABLE: Final = "TENURE_SECRET"  # noqa: S105 - the name of a variable


class First(NamedTuple):
    """The human of a board that had none, a one-time sign-in link's secret, and a token for who started the board."""

    name: str
    link: Secret
    token: Secret


class Opened(NamedTuple):
    """An open board, what was done to open it, in sentences without secrets, and its first human if that is new."""

    board: Board
    said: list[str]
    first: First | None


def open_board(url: str, environ: Mapping[str, str], settings: BoardSettings | None = None) -> Opened:
    """Open the board in this database; upgrade it, and give it a human, where that is needed (B50, B52).

    Raises ConfigError for a URL or secret that will not do, Refused when the database does not answer, StoreTooOld.
    """
    check_file(url)
    ring, said = _ring(url, environ)
    database = Database(url)
    board = Board(database, ring, settings or BoardSettings())
    try:
        steps, first = database.writing(_prepare, board, _user(environ))
    except BaseException:
        database.shut()
        raise
    said += [f"database: step {step} applied" for step in steps]
    if first is not None:
        said.append(f"first start: {first.name} was added")
    return Opened(board, said, first)


def open_where_it_is(url: str, environ: Mapping[str, str], *, make: bool = False) -> Board:
    """The board in this database for a command on the server's machine: upgraded, and without a first human.

    make: also where there is none yet. Raises NotFound for a file that is not there, and what `open_board` raises.
    """
    kind, plain = plain_url(url)
    file = file_of(plain)
    if kind == "sqlite" and not make and not file.exists():
        raise NotFound(f"there is no file {file}, so there is no board. Start one: tenure board --database {url}")
    check_file(url)
    ring, _ = _ring(url, environ)
    board = Board(Database(url), ring)
    try:
        board.database.writing(upgrade_in)
    except BaseException:
        board.database.shut()
        raise
    return board


@contextlib.contextmanager
def served_alone(url: str) -> Iterator[None]:
    """Be the one server of a board on SQLite, for whose notices no other would hear (B50). Raises ConfigError.

    The lock ends with the process, however that ends; its empty file stays. Commands for one step do without.
    """
    check_file(url)
    with contextlib.ExitStack() as held:
        try:
            if sys.platform != "win32" and _has_file(plain := plain_url(url)[1]):
                import fcntl

                path = file_of(plain).resolve()  # one lock, by whatever name the database is opened
                # Not of the database's own files: closing a descriptor of those drops the locks that SQLite holds.
                lock = held.enter_context(open(path.with_name(path.name + ".lock"), "a", opener=private))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "is served by another `tenure board` already, and a board on SQLite has one server."
            hint = "End that one first; several servers need a board on PostgreSQL: --database postgresql://…"
            raise ConfigError("database", url, why, hint) from None
        except OSError:
            pass  # a file system that knows no locks, or a lock file of another user: served as well as can be
        yield


def check_file(url: str) -> None:
    """Raise ConfigError where a SQLite file can't be made or written: SQLite says just that it can't open it."""
    kind, plain = plain_url(url)
    path = file_of(plain).absolute()
    if kind != "sqlite" or not path.parent.is_dir():
        return
    if path.is_dir():
        raise ConfigError("database", url, "is a folder.", f"Name a file in it, such as sqlite:///{path}/tenure.db")
    for place in (path, path.parent):
        if place.exists() and not os.access(place, os.R_OK | os.W_OK):
            why = f"can't be written: {place} is read-only for this user."
            raise ConfigError("database", url, why, "Give it write permission there, or name another file.")


def file_of(plain: str) -> Path:
    """The file that a URL names, read as SQLAlchemy reads it: `%20` is a blank."""
    return Path(unquote(plain.removeprefix("sqlite:///").partition("?")[0]))


def _has_file(plain: str) -> bool:
    return plain.startswith("sqlite:///") and file_of(plain).name not in ("", ":memory:")


def _prepare(tx: Tx, board: Board, user: str) -> tuple[list[str], First | None]:
    """In one transaction, under the lock of migrations: of several servers that start at once, one does this."""
    steps = upgrade_in(tx)
    person = humans.first_human(tx, board, user)
    if person is None:
        return steps, None
    link = signing_in.link_for(tx, board, person.name)
    token = tokens.create(tx, board, person.human, "first start").secret
    return steps, First(person.name, link, token)


def _ring(url: str, environ: Mapping[str, str]) -> tuple[Ring, list[str]]:
    """The server's secrets: from the environment, or beside a SQLite file; PostgreSQL is refused without (B12)."""
    kind, plain = plain_url(url)
    told = environ.get(SECRET_VARIABLE, "")
    if told.strip() or kind == "postgresql":
        return ring_of(told), []
    path = file_of(plain)
    if not _has_file(plain):
        raise ConfigError("database", url, "names no file: a board outlives its server.", "Write sqlite:///tenure.db")
    beside = path.with_name(path.name + ".secret")
    fresh = not beside.exists()
    try:
        ring = ring_beside(beside)
    except OSError as error:
        why = f"needs the file {beside} beside it: {error.strerror or error}."
        raise ConfigError("database", url, why, "Name a folder that exists and can be written.") from None
    return ring, [f"secret: made in {beside}, for this board alone; keep it with the database"] if fresh else []


def _user(environ: Mapping[str, str]) -> str:
    """Who starts the board: the first human is named after them."""
    try:
        name = environ.get("USER") or environ.get("USERNAME") or getpass.getuser()
    except (KeyError, OSError):
        name = ""
    name = "".join(sign for sign in name if sign.isprintable()).strip()[:NAME_CHARS]
    return name or "owner"
