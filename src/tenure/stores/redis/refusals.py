"""What a server or the driver answers, in Tenure's words: one sentence each of what, why, and what to do."""

from __future__ import annotations

import re
from typing import Final

from redis import exceptions as driver

from tenure.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooOld,
    StoreUnavailable,
)

# The word that says what is wrong begins the answer; before Redis 7 a script's error wraps it: "...: -OOM command".
_CODES: Final = (
    "ASK|BUSY|CLUSTERDOWN|CROSSSLOT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|OOM|READONLY"
    "|TRYAGAIN|UNKILLABLE|WRONGPASS|WRONGTYPE"
)
_CODE: Final = re.compile(rf"(?:^|[-: ])({_CODES})\b")
# Where the word is missing, in a script's error or in the driver's own.
_PHRASES: Final = (
    ("authentication required", "NOAUTH"),
    ("hello must be called with the client already authenticated", "NOAUTH"),
    ("invalid username-password pair", "WRONGPASS"),
    ("invalid password", "WRONGPASS"),
    ("can't run this command or subcommand", "NOPERM"),
    ("can't access at least one of the keys", "NOPERM"),
    ("no permissions to", "NOPERM"),
    ("acl failure in script", "NOPERM"),
)
_CLASSES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (driver.MovedError, "MOVED"),
    (driver.AskError, "ASK"),
    (driver.TryAgainError, "TRYAGAIN"),
    (driver.MasterDownError, "MASTERDOWN"),
    (driver.ClusterDownError, "CLUSTERDOWN"),
    (driver.ClusterCrossSlotError, "CROSSSLOT"),
    (driver.BusyLoadingError, "LOADING"),
    (driver.NoScriptError, "NOSCRIPT"),
    (driver.OutOfMemoryError, "OOM"),
    (driver.ReadOnlyError, "READONLY"),
    (driver.NoPermissionError, "NOPERM"),
    (driver.AuthenticationError, "WRONGPASS"),
)

_SENTENCES: Final[dict[str, tuple[type[StoreError], str]]] = {
    "BUSY": (StoreBusy, "runs somebody's script that does not end. Stop it with SCRIPT KILL"),
    "UNKILLABLE": (StoreBusy, "runs somebody's script that does not end and has written. Stop it with SHUTDOWN NOSAVE"),
    "OOM": (StoreFull, "is at its memory limit and refuses to write; reads go on. Raise maxmemory; it is tried again"),
    "MISCONF": (
        StoreFull,
        "can't save its snapshot and refuses to write; reads go on. Look for a full disk or a lost folder in its log",
    ),
    "READONLY": (StoreReadOnly, "is a replica and can't be written. Name the master, or use redis+sentinel://"),
    "NOREPLICAS": (
        StoreUnavailable,
        "has fewer replicas connected than its min-replicas-to-write asks for, and refuses to write. Bring them back",
    ),
    "LOADING": (StoreUnavailable, "is loading its data and will answer soon; it is tried again"),
    "MASTERDOWN": (StoreUnavailable, "is a replica that has lost its master; it is tried again"),
    "CLUSTERDOWN": (
        StoreUnavailable,
        "says that the cluster is down: too few of its masters can be reached. It is tried again",
    ),
    "TRYAGAIN": (StoreUnavailable, "is moving these keys to another node and has not finished; it is tried again"),
    "MOVED": (
        StoreUnavailable,
        "sends us to another node of its cluster. Write redis+cluster:// if you did not; it is tried again",
    ),
    "WRONGPASS": (StoreError, "refuses our user name or password. Check those in the URL"),
    "NOAUTH": (StoreError, "asks for a password. Write it into the URL: redis://user:password@host"),
    "NOPERM": (
        StoreError,
        "does not allow our user a command or key that Tenure needs. Grant what the answer names",
    ),
    "WRONGTYPE": (
        StoreCorrupt,
        "holds something else under one of Tenure's keys. Look who writes keys with its prefix, or choose another",
    ),
    "CROSSSLOT": (StoreError, "is a cluster. Write redis+cluster:// instead"),
}
_SENTENCES["ASK"] = _SENTENCES["MOVED"]

# What servers say of themselves when they were meant for something else.
_STRAY: Final = (
    ("unknown command", StoreTooOld, "knows not all commands that Tenure needs: Redis 6.2 or Valkey 7.2 or newer"),
    ("max number of clients", StoreUnavailable, "has all the clients it may have. Raise maxclients; it is tried again"),
    ("without any password configured", StoreError, "asks for no password. Leave it out of the URL"),
    ("db index is out of range", StoreError, "has no database of that number"),
)  # fmt: skip


def code(error: BaseException) -> str:
    """The word by which a server says what is wrong; empty where it is none we know."""
    text = str(error)
    for phrase, word in _PHRASES:
        if phrase in text.lower():
            return word
    for cls, word in _CLASSES:
        if isinstance(error, cls):
            return word
    told = _CODE.search(text)
    return told[1] if told else ""


def refusal(error: BaseException, where: str) -> StoreError:
    """The error of ours for one of the driver's."""
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    word = code(error)
    if word in _SENTENCES:
        cls, sentence = _SENTENCES[word]
        return cls(f"{where} {sentence} ({said}).")
    for text, stray, sentence in _STRAY:
        if text in str(error).lower():
            return stray(f"{where} {sentence} ({said}).")
    if isinstance(error, driver.ResponseError):
        return StoreError(f"{where} refused a command ({said}). This is a fault of Tenure; please report it.")
    return StoreUnavailable(
        f"{where} can't be reached, or the connection was lost ({said}), so of a commit it is not known whether it was "
        f"applied. Check that the server runs; Tenure reads again before it acts."
    )


def unanswered(where: str, seconds: float) -> StoreUnavailable:
    """A server that accepts and never answers, or a network that swallows."""
    return StoreUnavailable(
        f"{where} did not answer within {seconds:g} s, so of a commit it is not known whether it was applied. Check "
        f"the server and the network; Tenure reads again before it acts."
    )


def too_few(where: str, acknowledged: int, wanted: int) -> StoreUnavailable:
    """A commit that stands on the master, and on fewer replicas than was asked for."""
    return StoreUnavailable(
        f"{where} has written, but {acknowledged} of the {wanted} replicas asked for (wait_replicas) have acknowledged "
        f"it in time, so a failover may forget it. Check the replicas; Tenure reads again before it acts."
    )


def forked(where: str) -> StoreError:
    """A child of fork() uses its parent's store."""
    return StoreError(
        f"{where} was opened before this process was forked, and its connections can't be shared across a fork. "
        f"Open the store after the fork, in the process that uses it."
    )


def closed(where: str) -> StoreError:
    """The store was not opened, or was closed."""
    return StoreError(f"The store {where} is not open. Call open() first; once closed it can't be used again.")
