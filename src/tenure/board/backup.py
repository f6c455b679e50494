"""Copy a SQLite database whole while it is used. PostgreSQL has tools of its own, which this names."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tenure.board.secrets import make_private
from tenure.errors import ConfigError, NotFound, StoreError

PAGES = 2_000  # copied between two looks of the writers: 8 MiB


def backup(source: Path, target: Path, progress: Callable[[int, int], None] = lambda _left, _total: None) -> int:
    """Copy the database at `source` to a new file; its size in bytes. Writers go on meanwhile.

    progress(pages left, pages in all). Raises NotFound, ConfigError for a target that is there, StoreError.
    """
    if not source.is_file():
        raise NotFound(f"there is no file {source}, so there is nothing to back up.")
    if target.exists():
        raise ConfigError("FILE", str(target), "is there already, and a backup overwrites nothing.", "Name another.")
    make_private(target)
    try:
        with (
            contextlib.closing(
                sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            ) as original,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            # One view of it all: without, each write that comes between two parts begins the copy anew, for ever.
            original.execute("BEGIN")
            original.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            original.backup(copy, pages=PAGES, progress=lambda _status, left, total: progress(left, total))
            (found,) = copy.execute("PRAGMA integrity_check").fetchone()
    except BaseException as error:
        target.unlink(missing_ok=True)  # cut off by Ctrl-C too: nothing that is none is to be taken for a backup
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{source} could not be copied to {target}: {error}.") from None
        raise
    if found != "ok":
        raise StoreError(f"{source} was copied to {target}, but the copy is not whole: {found}.")
    return target.stat().st_size
