"""What SQLite answers, in Tenure's words: one sentence each of what, why, and what to do."""

from __future__ import annotations

import sqlite3
from typing import Final

from tenure.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreGone,
    StoreReadOnly,
    StoreUnavailable,
)

# Others hold a lock for a moment: asking again soon is the right answer, within the call's time.
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
# The connection may not be trusted after these: a failed write or fsync leaves unknown what the file holds.
_BROKEN: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_READ_ONLY: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_TRANSIENT: Final = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_ABORT,
    sqlite3.SQLITE_NOLFS,
}


def code(error: sqlite3.Error) -> int:
    """The primary result code; 0 where the module itself refused (a closed connection)."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def busy(error: sqlite3.Error) -> bool:
    """Whether the same call may succeed in a moment."""
    return code(error) in _BUSY


def broken(error: sqlite3.Error) -> bool:
    """Whether the connection must be opened anew."""
    return code(error) in _BROKEN


def refusal(error: sqlite3.Error, path: str, waited: float = 0.0) -> StoreError:
    """The error of ours for one of SQLite's. `waited`: for how many seconds a lock was asked for."""
    primary, said = code(error), f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        return gone(path)
    if primary in _BUSY:
        return StoreBusy(
            f"{path} was locked by others for {waited:.1f} s ({said}), and nothing was changed. Look for a process "
            f"that holds a transaction open, or raise ?timeout=."
        )
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"No space is left to write {path} ({said}); nothing was changed, and reads go on. Free some space "
            f"on that file system; writes are tried again."
        )
    if primary in _READ_ONLY:
        return StoreReadOnly(
            f"{path} can't be written ({said}). Give this user write permission on the file and its folder, and "
            f"check that the file system is not mounted read-only."
        )
    if primary in _DAMAGED:
        return StoreCorrupt(
            f"{path} is damaged or no SQLite database ({said}). Nothing was repaired or deleted: stop all that "
            f"use it, copy the file and its -wal aside, and restore a backup or name another file."
        )
    if primary in _TRANSIENT:
        return StoreUnavailable(
            f"{path} could not be read or written ({said}). Check the disk, the folder and the number of open "
            f"files; it is tried again."
        )
    if "no such table" in str(error) or "no such column" in str(error):
        return StoreCorrupt(
            f"Tenure's tables in {path} are gone or changed ({said}). Restore them from a backup, or name another "
            f"file; nothing was changed."
        )
    return StoreError(f"SQLite refused a statement on {path} ({said}). This is a fault of Tenure; please report it.")


def uncertain(error: sqlite3.Error, path: str) -> StoreError:
    """The error of ours for one that COMMIT gave: whether it was applied is then known for few of them."""
    if code(error) in _BUSY | _READ_ONLY | _DAMAGED | {sqlite3.SQLITE_FULL}:
        return refusal(error, path)
    said = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
    return StoreUnavailable(
        f"{path} could not be committed to ({said}), so whether it was applied is not known. Check the disk; "
        f"Tenure reads again before it acts."
    )


def gone(path: str) -> StoreGone:
    """The file under the path, or its write-ahead log, is not the one that was opened."""
    return StoreGone(
        f"{path} (or its -wal file) was deleted or replaced while it was open, so writes would go into nothing. "
        f"Stop all that use it, put the right file in its place, and start again."
    )


def forked(path: str) -> StoreError:
    """A child of fork() uses its parent's store."""
    return StoreError(
        f"{path} was open when this process was forked, and SQLite can't be shared across a fork. Open the store "
        f"only after the fork, in each process that uses it, or start processes by spawn."
    )


def closed(path: str) -> StoreError:
    """The store was not opened, or was closed."""
    return StoreError(f"The store {path} is not open. Call open() first; once closed it can't be used again.")


def unanswered(path: str, seconds: float, asked: str = "a commit") -> StoreUnavailable:
    """The disk or the machine stands still."""
    return StoreUnavailable(
        f"{path} did not answer {asked} within {seconds:g} s, so whether it was applied is not known. Check the disk; "
        f"Tenure reads again before it acts."
    )
