"""What a postgresql:// URL says: where the server is, which is libpq's to read, and a few options of ours."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tenure.errors import ConfigError
from tenure.rules.instant import span

SHAPES: Final = "Write postgresql://user:password@host:5432/database."
_YES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
# Names of indexes are made of the prefix and up to 14 characters more, and may have 63.
_PREFIX: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}", re.ASCII)
_SCHEMA: Final = re.compile(r'[^"%\x00-\x1f]{1,63}')
# Below this a commit that waits for a slow disk is called a failure; above, a caller hangs.
_SHORTEST_MS, _LONGEST_MS = 100, 60_000
# A peer that is gone without a word is noticed within this, also where nothing is being waited for.
_KEEPALIVE: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
# Of several servers one may be gone without a word: the next is tried while a call still has time. libpq's least.
_NEXT_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """How a database is to be used. `server` and `direct` are parameters of libpq.

    schema None: the first of the search path. direct: where to listen for hints, past any pooler. prepare:
    after how many uses a statement is prepared; None never, which every pooler bears. connections: how many
    the store holds for itself, by default 3, or 2 of a user's pool. transactions: how many `run.transaction()`
    may have open.
    """

    server: Mapping[str, Any] = field(repr=False)
    shown: str
    direct: Mapping[str, Any] | None = field(default=None, repr=False)
    prefix: str = "tenure_"
    schema: str | None = None
    timeout: float = 5.0
    upgrade: bool = True
    prepare: int | None = None
    connections: int | None = None
    transactions: int = 10


def settings(url: str, **options: object) -> Settings:
    """Read a URL such as `postgresql://host/db?prefix=jobs_`; options given beside it win over it.

    What is no option of ours is libpq's (`sslmode`, `target_session_attrs`, …). Raises ConfigError, in one
    sentence that holds no password.
    """
    address, _, query = url.partition("?")
    given: dict[str, Any] = {}
    theirs: list[str] = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name in _OPTIONS:
            given[name] = unquote(value)
        else:
            theirs.append(part)
    given.update({name: value for name, value in options.items() if value is not None})
    told = {name: _OPTIONS[name](name, value) for name, value in given.items()}
    if "direct_url" in told:
        told["direct"] = told.pop("direct_url")
    address = "postgresql://" + address.partition("://")[2]
    server = _parameters("store", address + ("?" + "&".join(theirs) if theirs else ""))
    return Settings(server, _shown(server, told), **told)


def _parameters(what: str, url: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        said = str(error).strip()
        unknown = re.search(r'invalid URI query parameter: "([^"]*)"', said)
        if unknown:
            near = difflib.get_close_matches(unknown[1], _OPTIONS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(sorted(_OPTIONS))}, and libpq's own."
            raise ConfigError(f"{what} option", unknown[1], "is no option of a postgresql:// store.", hint) from None
        # What libpq quotes may be a part of the password: it is not shown.
        raise ConfigError(what, "postgresql://…", "can't be read as a URL.", SHAPES) from None
    several = "," in f"{given.get('host', '')}{given.get('hostaddr', '')}"
    hurry = {"connect_timeout": _NEXT_SECONDS} if several and "PGCONNECT_TIMEOUT" not in os.environ else {}
    return {
        **_KEEPALIVE,
        **hurry,
        "application_name": f"tenure/{os.getpid()}",
        "target_session_attrs": "read-write",
        **given,
        "client_encoding": "UTF8",
    }


def _shown(server: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """The URL without what is secret: it is made of the parts that are not."""
    user = f"{quote(str(server['user']), safe='')}@" if "user" in server else ""
    hosts = str(server.get("host", "")).split(",")
    ports = str(server.get("port", "")).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = ",".join(
        quote(host, safe=":[]") + (f":{port}" if port else "") for host, port in zip(hosts, ports, strict=False)
    )
    options = "&".join(f"{name}={quote(str(told[name]), safe='')}" for name in ("prefix", "schema") if told.get(name))
    return f"postgresql://{user}{places}/{quote(str(server.get('dbname', '')))}" + (f"?{options}" if options else "")


# --- options ----------------------------------------------------------------------------------------------


def _prefix(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _PREFIX.fullmatch(value) or value.startswith("pg_"):
        raise ConfigError(
            name, value, "must be 1 to 40 small letters, digits and _, not begin with a digit, nor with pg_."
        )
    return value


def _schema(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _SCHEMA.fullmatch(value) or value.startswith("pg_"):
        raise ConfigError(name, value, 'must be the name of a schema, without " and %.')
    return value


def _timeout(name: str, value: Any) -> float:
    try:
        ms = span(value)
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from None
    if not _SHORTEST_MS <= ms <= _LONGEST_MS:
        raise ConfigError(name, value, "must be from 0.1 to 60 seconds.")
    return ms / 1000


def _flag(name: str, value: Any) -> bool:
    word = str(value).lower()
    if word not in _YES:
        raise ConfigError(name, value, "must be 1 or 0.")
    return _YES[word]


def _direct(name: str, value: Any) -> dict[str, Any]:
    scheme = str(value).partition("://")[0]
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ConfigError(name, "…", "is no URL of a PostgreSQL server.", SHAPES)
    return _parameters(name, "postgresql://" + str(value).partition("://")[2])


def _whole(least: int, most: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        text = str(value)
        if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or not least <= int(text) <= most:
            raise ConfigError(name, value, f"must be a whole number from {least} to {most}.")
        return int(text)

    return read


_OPTIONS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "connections": _whole(1, 100),
    "direct_url": _direct,
    "prefix": _prefix,
    "prepare": _whole(0, 1000),
    "schema": _schema,
    "timeout": _timeout,
    "transactions": _whole(1, 1000),
    "upgrade": _flag,
}
