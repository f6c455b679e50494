"""What `tenure db --database` does to a board's tables, where the server runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tenure.doors.cli.output import put, put_json, say

if TYPE_CHECKING:
    from tenure.board.database import Database

NOTHING = 5


def plan(url: str, as_json: bool) -> int:
    """Show the SQL of the steps that are missing."""
    from tenure.board import upgrade as upgrading

    with _opened(url) as database:
        steps, text = upgrading.missing(database), upgrading.sql(database)
    if as_json:
        put_json({"database": shown(url), "pending": steps, "sql": text})
    elif steps:
        put(text.rstrip())
    else:
        say(f"{shown(url)} is up to date.")
    return 0 if steps else NOTHING


def upgrade(url: str, as_json: bool) -> int:
    """Apply the steps that are missing."""
    from tenure.board import upgrade as upgrading

    with _opened(url, make=True) as database:
        steps = upgrading.upgrade(database)
    if as_json:
        put_json({"database": shown(url), "applied": steps})
    elif steps:
        for step in steps:
            put(f"{step} applied")
    else:
        say(f"{shown(url)} is up to date.")
    return 0 if steps else NOTHING


def check(url: str, as_json: bool) -> int:
    """Look whether all steps are there; nothing is changed."""
    from tenure.board import upgrade as upgrading

    with _opened(url) as database:
        steps = upgrading.missing(database)
    faults = [f"step {step} is missing. Run: tenure db upgrade --database {shown(url)}" for step in steps]
    if as_json:
        put_json({"database": shown(url), "ok": not faults, "faults": faults})
    else:
        for one in faults or (f"ok: the board's tables in {shown(url)} are those that this version needs",):
            put(one)
    return 1 if faults else 0


def backup(url: str, file: Path, as_json: bool) -> int:
    """Copy a SQLite database whole."""
    from tenure.board.backup import backup as copy
    from tenure.errors import ConfigError

    source = _file(url)
    if source is None:
        hint = "Use pg_dump, or your own backup of the server." if url.startswith("postgres") else ""
        raise ConfigError("database", shown(url), "is no SQLite file, which is what this copies.", hint)
    size = copy(source, file, _progress if sys.stderr.isatty() else lambda _left, _total: None)
    if as_json:
        put_json({"source": str(source), "file": str(file), "bytes": size})
    else:
        secret = source.with_name(source.name + ".secret")
        put(f"{source} copied to {file}, {size} bytes" + (f"; keep {secret} with it" if secret.exists() else ""))
    return 0


def _progress(left: int, total: int) -> None:
    sys.stderr.write(f"\r{100 * (total - left) // max(1, total):3} %" + ("\n" if left == 0 else ""))


@contextmanager
def _opened(url: str, *, make: bool = False) -> Iterator[Database]:
    """The database; a file is made only where that is asked for. Raises NotFound."""
    from tenure.board.database import Database
    from tenure.board.engines import plain_url
    from tenure.board.opening import check_file
    from tenure.errors import NotFound

    plain_url(url)
    file = _file(url)
    if file is not None and not make and not file.exists():
        raise NotFound(f"there is no file {file}, so there is no board. Start one: tenure board --database {url}")
    check_file(url)
    database = Database(url)
    try:
        yield database
    finally:
        database.shut()


def _file(url: str) -> Path | None:
    from tenure.board.opening import file_of

    return file_of(url) if url.startswith("sqlite:///") else None


def shown(url: str) -> str:
    """The URL without its password."""
    from tenure.app import redact

    return redact(url)
