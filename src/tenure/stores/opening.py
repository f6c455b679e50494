"""A URL becomes a store. The one file that knows them all; each is imported when it is asked for.

A new store is one row of the table below.
"""

from __future__ import annotations

import difflib
import importlib
import re
import threading
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

from tenure.errors import ConfigError, MissingExtra
from tenure.stores.contract import Store
from tenure.stores.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class Row:
    """Where a store is found: its module, its class, and the extra that brings its driver.

    The class takes the URL, and options by keyword.
    """

    module: str
    cls: str
    extra: str = ""


_POSTGRES: Final = Row("tenure.stores.postgres", "PostgresStore", "postgres")
_REDIS: Final = Row("tenure.stores.redis", "RedisStore", "redis")
_VALKEY: Final = Row("tenure.stores.redis", "RedisStore", "valkey")

STORES: Final = {
    "sqlite": Row("tenure.stores.sqlite", "SqliteStore"),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "postgresql+psycopg": _POSTGRES,
    "redis": _REDIS,
    "rediss": _REDIS,
    "redis+cluster": _REDIS,
    "redis+sentinel": _REDIS,
    "unix": _REDIS,
    "valkey": _VALKEY,
    "valkeys": _VALKEY,
}

_shared: dict[str, MemoryStore] = {}
_sharing: Final = threading.Lock()


def store_from_url(url: str, **options: object) -> Store:
    """The store that `url` names, not yet opened; options given beside the URL win over those in it.

    Raises ConfigError for a URL that names no store, MissingExtra for a driver that is not installed.
    """
    scheme, found, _ = url.strip().partition("://")
    scheme = scheme.lower()
    if not found:
        raise ConfigError("store", redact(url), "is no URL of a store.", "Write sqlite:///tenure.db, or memory://.")
    if scheme != "memory" and scheme not in STORES:
        near = difflib.get_close_matches(scheme, [*STORES, "memory"], 1)
        hint = f"Did you mean {near[0]}://?" if near else f"There are {_existing()}."
        raise ConfigError("store", redact(url), f"no store has the scheme {scheme}://.", hint)
    make = _memory if scheme == "memory" else _class(scheme, STORES[scheme])
    try:
        return cast(Store, make(url.strip(), **options))
    except ConfigError:
        raise
    except ValueError:  # brackets around no address, half a character
        raise ConfigError("store", redact(url), "can't be read as a URL.", "Write sqlite:///tenure.db.") from None


def _class(scheme: str, row: Row) -> type:
    try:
        return cast(type, getattr(importlib.import_module(row.module), row.cls))
    except ModuleNotFoundError as error:
        if row.extra and not (error.name or "").startswith("tenure"):
            raise MissingExtra(f"{scheme}://", row.extra) from error
        raise


def _existing() -> str:
    """One scheme of each kind of store."""
    kinds = {row: scheme for scheme, row in reversed(STORES.items())}
    return ", ".join(f"{scheme}://" for scheme in reversed(kinds.values())) + " and memory://"


def _memory(url: str, **options: object) -> MemoryStore:
    """`memory://` is a new store each time; `memory://name` is one for the whole process."""
    parts = urlsplit(url)
    if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc or any(options.values()):
        raise ConfigError(
            "store", redact(url), "takes a name and nothing else.", "Write memory://, or memory://name to share it."
        )
    if not parts.netloc:
        return MemoryStore()
    with _sharing:
        return _shared.setdefault(parts.netloc, MemoryStore(url=f"memory://{parts.netloc}"))


# Credentials end at the last @ of all: a password that was not escaped may hold a slash or a question mark, and
# what is hidden needlessly does less harm than what is shown.
_USER: Final = re.compile(r"(?<=://)(.*)@", re.DOTALL)
_BARE_USER: Final = re.compile(r"^([^/?#]*:.*)@", re.DOTALL)
_SECRET: Final = re.compile(r"([?&;][^=&;]*(?:pass|pwd|secret|token|key|auth)[^=&;]*=)[^&;#]*", re.IGNORECASE)


def redact(url: str) -> str:
    """The URL as it may be shown: any password in it becomes `***`, wherever it stands."""
    pattern = _USER if "://" in url else _BARE_USER
    url = pattern.sub(lambda match: f"{_masked(match[1])}@", url)
    return _SECRET.sub(r"\1***", url)


def _masked(credentials: str) -> str:
    user, colon, password = credentials.partition(":")
    return f"{user}:***" if colon and password else user


def sqlite_version() -> str:
    """The version of the SQLite library that Python uses here."""
    import sqlite3

    return sqlite3.sqlite_version
