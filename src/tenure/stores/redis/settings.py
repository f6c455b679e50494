"""What a URL of a Redis or Valkey store says: where the servers are, who we are, and a few options."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from tenure.errors import ConfigError
from tenure.rules.instant import span

SHAPES: Final = (
    "Write redis://host:6379/0, unix:///run/redis.sock, redis+cluster://host:6379,host:6380, or "
    "redis+sentinel://host:26379,host:26380/service."
)
_OPTIONS: Final = (
    "db", "password", "prefix", "sentinel_password", "sentinel_username", "ssl_ca_certs", "ssl_cert_reqs",
    "ssl_certfile", "ssl_check_hostname", "ssl_keyfile", "timeout", "tls", "username", "wait_replicas",
)  # fmt: skip
_YES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
# No braces: the first pair in a key must be the hash tag's.
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,40}", re.ASCII)
_SHORTEST_MS, _LONGEST_MS = 100, 60_000
_KINDS: Final = {"redis+cluster": "cluster", "redis+sentinel": "sentinel", "unix": "unix"}
_TLS: Final = {"rediss", "valkeys"}
_PORT, _SENTINEL_PORT = 6379, 26379

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Tls:
    """How a server's certificate is checked, and ours shown."""

    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    cert_reqs: str = "required"
    check_hostname: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """How the servers are reached and used. kind: single, unix, cluster or sentinel. Never shown whole: passwords."""

    kind: str
    shown: str
    addresses: tuple[Address, ...] = ()
    path: str = ""
    service: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    tls: Tls | None = None
    prefix: str = "tenure"
    timeout: float = 5.0
    wait_replicas: int = 0


def settings(url: str, **options: object) -> Settings:
    """Read a URL; options given beside it win over it. Raises ConfigError, in one sentence without any password."""
    try:
        parts = urlsplit(url)
        credentials, _, place = parts.netloc.rpartition("@")
        given: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise ConfigError("store", url.partition(":")[0] + "://…", "can't be read as a URL.", SHAPES) from None
    given.update({name: value for name, value in options.items() if value is not None})
    for name in given:
        if name not in _OPTIONS:
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_OPTIONS)}."
            raise ConfigError("store option", name, "is no option of a Redis or Valkey store.", hint)
    kind = _KINDS.get(parts.scheme, "single")
    shown = f"{parts.scheme}://{place}{parts.path}"
    if parts.fragment:
        raise ConfigError("store", shown, "holds a #.", "Write # as %23 in a URL.")
    user, colon, password = credentials.partition(":")
    where = _where(kind, parts, place, shown, given)
    username = given.get("username") or unquote(user) or None
    return Settings(
        kind=kind,
        shown=_shown(parts.scheme, parts.netloc, parts.path, username, given),
        username=username,
        password=given.get("password") or (unquote(password) if colon else "") or None,
        sentinel_username=given.get("sentinel_username") or None,
        sentinel_password=given.get("sentinel_password") or None,
        tls=_tls(parts.scheme, given),
        prefix=_prefix(given.get("prefix", "tenure")),
        timeout=_timeout(given.get("timeout", 5.0)),
        wait_replicas=_count("wait_replicas", given.get("wait_replicas", 0), 16),
        **where,
    )


def _where(kind: str, parts: SplitResult, place: str, shown: str, given: dict[str, Any]) -> dict[str, Any]:
    """Addresses or path, service and database."""
    path = unquote(parts.path)
    asked = given.get("db")
    if kind == "unix":
        if place or not path.strip("/"):
            raise ConfigError("store", shown, "names no socket.", "Write unix:///run/redis.sock, with three slashes.")
        return {"path": path, "db": _count("db", asked or 0, 10_000)}
    addresses = _addresses(place, _SENTINEL_PORT if kind == "sentinel" else _PORT, shown)
    if kind == "single" and len(addresses) > 1:
        raise ConfigError("store", shown, "names several servers.", "Write redis+cluster:// or redis+sentinel://.")
    rest = [part for part in path.split("/") if part]
    service = ""
    if kind == "sentinel":
        if not rest:
            raise ConfigError("store", shown, "names no service.", "Write redis+sentinel://host:26379/service.")
        service = rest.pop(0)
    if len(rest) > 1 or (rest and asked is not None):
        raise ConfigError("store", shown, "names more than one database.", SHAPES)
    db = _count("db", rest[0] if rest else asked or 0, 10_000)
    if kind == "cluster" and db:
        raise ConfigError("store", shown, "names a database, and a cluster has only 0.", "Leave it out.")
    return {"addresses": addresses, "service": service, "db": db}


def _addresses(place: str, port: int, shown: str) -> tuple[Address, ...]:
    addresses = []
    for one in place.split(","):
        try:
            at = urlsplit(f"//{one}")
            host, told = at.hostname, at.port
        except ValueError:
            host, told = None, None
        if not host:
            raise ConfigError("store", shown, f"{one!r} is no host and port.", SHAPES)
        addresses.append((host, told or port))
    return tuple(addresses)


def _shown(scheme: str, netloc: str, path: str, username: str | None, given: dict[str, Any]) -> str:
    """The URL as it may be shown: made anew, so that no password can be left in it."""
    query = "&".join(f"{name}={given[name]}" for name in ("db", "prefix") if name in given)
    secret = given.get("password") or "@" in netloc
    user = f"{quote(username or '')}{':***' if secret else ''}@" if username or secret else ""
    place = netloc.rpartition("@")[2]
    return f"{scheme}://{user}{place}{path}" + (f"?{query}" if query else "")


def _tls(scheme: str, given: dict[str, Any]) -> Tls | None:
    wanted = scheme in _TLS or _flag("tls", given.get("tls", "0"))
    named = [name for name in given if name.startswith("ssl_")]
    if not wanted:
        if named:
            raise ConfigError(named[0], given[named[0]], "means nothing without TLS.", "Write rediss://, or add tls=1.")
        return None
    reqs = str(given.get("ssl_cert_reqs", "required")).lower()
    if reqs not in {"required", "none"}:
        raise ConfigError("ssl_cert_reqs", reqs, "must be required, or none, with which anybody may answer.")
    check = _flag("ssl_check_hostname", given.get("ssl_check_hostname", "1")) and reqs == "required"
    ca_certs, certfile, keyfile = (given.get(f"ssl_{name}") or None for name in ("ca_certs", "certfile", "keyfile"))
    return Tls(ca_certs, certfile, keyfile, reqs, check)


def _prefix(value: Any) -> str:
    if not isinstance(value, str) or not _PREFIX.fullmatch(value):
        raise ConfigError("prefix", value, "must be 1 to 40 letters, digits and any of _ . : and -.")
    return value


def _timeout(value: Any) -> float:
    try:
        ms = span(value)
    except ValueError as error:
        raise ConfigError("timeout", value, str(error)) from None
    if not _SHORTEST_MS <= ms <= _LONGEST_MS:
        raise ConfigError("timeout", value, "must be from 0.1 to 60 seconds.")
    return ms / 1000


def _count(name: str, value: Any, most: int) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > most:
        raise ConfigError(name, value, f"must be a whole number from 0 to {most}.")
    return int(text)


def _flag(name: str, value: Any) -> bool:
    word = str(value).lower()
    if word not in _YES:
        raise ConfigError(name, value, "must be 1 or 0.")
    return _YES[word]
