"""What PostgreSQL answers, in Tenure's words: one sentence each of what, why, and what to do."""

from __future__ import annotations

from typing import Final

import psycopg

from tenure.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreUnavailable

# Rolled back for certain, and likely to succeed when asked again: serialization failure, deadlock.
ROLLED_BACK: Final = {"40001", "40P01"}
# Our own statement divided by zero on purpose: see `statements.late`.
LATE: Final = "22012"
READ_ONLY: Final = "25006"

_BUSY: Final = {"55P03", "57014"}  # a lock or a statement timeout of the server's
_GONE: Final = {"42P01", "42703", "3F000"}  # no such table, column, schema
_TRANSIENT: Final = ("08", "40", "53", "55", "57", "58")  # classes that waiting may help against
_DAMAGED: Final = {"XX001", "XX002"}
# At a connection libpq gives no code, only the server's words; in another language they fall to "unavailable".
_REFUSED: Final = (
    ("password authentication failed", "Check user and password."),
    ("no password supplied", "Give a password in the URL, PGPASSWORD or ~/.pgpass."),
    ("authentication failed", "Check user and password, and the server's pg_hba.conf."),
    ("no pg_hba.conf entry", "Let the server's pg_hba.conf admit this host, user and database."),
    ("does not exist", "Create it, or name another in the URL."),
    ("permission denied for database", "GRANT CONNECT on the database to this user."),
    ("not allow connections", "Allow connections to this database, or name another in the URL."),
    ("server does not support SSL", "Set sslmode in the URL to what the server offers."),
    ("certificate", "Check sslmode, sslrootcert and the host's name."),
)


def words(error: BaseException) -> str:
    """What the server said, in one line."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    text = primary or " ".join(str(error).split()) or type(error).__name__
    code = getattr(error, "sqlstate", None)
    return f"{text} ({code})" if code else text


def lost(error: psycopg.Error) -> bool:
    """Whether the connection must be given up: it broke, or its server may not be written any more."""
    code = error.sqlstate or ""
    if isinstance(error, psycopg.InterfaceError):
        return True
    broke = isinstance(error, psycopg.OperationalError) and not code
    return broke or code.startswith(("08", "57P")) or code in ("25P03", READ_ONLY)


def refusal(error: psycopg.Error, where: str) -> StoreError:
    """The error of ours for one of PostgreSQL's, out of a statement."""
    code, said = error.sqlstate or "", words(error)
    if code == READ_ONLY:
        return standby(where)
    if code in _BUSY:
        return StoreBusy(
            f"{where} ended a statement of Tenure's that waited or ran too long ({said}), and nothing was changed. "
            f"Look for a session that holds a lock on Tenure's tables; it is tried again."
        )
    if code == "53100":
        return StoreFull(
            f"No space is left where {where} writes ({said}); nothing was changed, and reads go on. Free some "
            f"space on the server; writes are tried again."
        )
    if code in ROLLED_BACK:
        return StoreUnavailable(
            f"{where} chose between transactions that were in each other's way, and all was rolled back ({said}). "
            f"Nothing was changed; it may be tried again."
        )
    if lost(error) or code.startswith(_TRANSIENT):
        return StoreUnavailable(
            f"{where} did not answer ({said}), so whether a change was applied is not known. Check the server; "
            f"Tenure reads again before it acts."
        )
    if code == "42501":
        return StoreError(
            f"This user may not do what Tenure needs in {where} ({said}). GRANT SELECT, INSERT, UPDATE and DELETE on "
            f"Tenure's tables, and USAGE on their schema, or CREATE on it where they are still to be made."
        )
    if code in _GONE:
        return StoreCorrupt(
            f"Tenure's tables in {where} are gone or changed ({said}). Restore them from a backup, or run "
            f"`tenure db upgrade` to make them anew; nothing was changed."
        )
    if code in _DAMAGED:
        return StoreCorrupt(f"{where} says that its data is damaged ({said}). Restore a backup; nothing was repaired.")
    if code[:2] in ("22", "54") or isinstance(error, psycopg.DataError):
        return StoreError(f"{where} can't hold a value that was given ({said}), and nothing was changed.")
    return StoreError(f"{where} refused a statement ({said}). This is a fault of Tenure; please report it.")


def unreachable(error: BaseException, where: str, known: bool) -> StoreError:
    """No connection could be made. `known`: the store worked before, so that waiting may help in any case."""
    said = words(error)
    if "read-only" in said or "hot standby" in said:
        return standby(where)
    for phrase, hint in _REFUSED:
        if phrase in said and not known:
            return StoreError(f"{where} can't be used ({said}). {hint}")
    return StoreUnavailable(f"{where} can't be reached ({said}). Check that it runs; it is tried again.")


def standby(where: str) -> StoreUnavailable:
    """The server can only be read."""
    return StoreUnavailable(
        f"{where} is read-only at the moment: a standby, or a primary that was demoted. Name all servers in the URL "
        f"(postgresql://a,b/db); the one that can be written is looked for again."
    )


def outdated(where: str, told: int, seen: int) -> StoreUnavailable:
    """An old primary came back beside the new one (R44)."""
    return StoreUnavailable(
        f"{where} is on timeline {told}, and timeline {seen} was seen before: an old primary that came back, whose "
        f"answers would be wrong. Stop that server; restart this process if going back was intended."
    )


def unanswered(where: str, seconds: float, what: str) -> StoreUnavailable:
    """The server, or what lies between, stands still."""
    return StoreUnavailable(
        f"{where} did not answer a {what} within {seconds:g} s, so whether it was applied is not known. Check the "
        f"server and the network; Tenure reads again before it acts."
    )


def unconfirmed(where: str, said: str) -> StoreUnavailable:
    """PostgreSQL committed and warned: the standby may not have it, and a failover would forget it."""
    return StoreUnavailable(
        f"{where} committed without its standby's word ({said}), so a failover may forget it. Do not cancel commits, "
        f"nor set statement_timeout below what the standby takes; Tenure reads again before it acts."
    )


def exhausted(where: str, count: int) -> StoreBusy:
    """All connections of one kind are in use."""
    return StoreBusy(
        f"All {count} connections to {where} stayed in use for the whole time allowed, and nothing was changed. "
        f"Make transactions shorter, or raise ?transactions= or ?connections=."
    )


def forked(where: str) -> StoreError:
    """A child of fork() uses its parent's store."""
    return StoreError(
        f"{where} was opened before this process was forked, and connections can't be shared across a fork. "
        f"Open the store after the fork, in the process that uses it."
    )


def closed(where: str) -> StoreError:
    """The store was not opened, or was closed."""
    return StoreError(f"The store {where} is not open. Call open() first; once closed it can't be used again.")


def unencodable(where: str, error: UnicodeError) -> StoreError:
    """A name that is no text, such as half of a surrogate pair."""
    return StoreError(f"{where} can't hold a name that was given ({error}), and nothing was changed.")
