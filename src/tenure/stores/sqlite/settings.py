"""What a sqlite:// URL says: the path and four options, each checked, in sentences."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from tenure.errors import ConfigError
from tenure.rules.instant import span
from tenure.stores.sqlite.schema import DURABILITY

SHAPES: Final = "Write sqlite:///name.db for a file in this folder, or sqlite:////var/lib/app/name.db for a full path."
_OPTIONS: Final = ("allow_network_fs", "prefix", "synchronous", "timeout")
_YES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_PREFIX: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}", re.ASCII)
# Below this a lock that another process holds for one slow fsync is called a failure; above, a caller hangs.
_SHORTEST_MS, _LONGEST_MS = 100, 60_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How one file is to be used. `synchronous`: full, or normal (a power cut forgets acknowledged commits)."""

    path: str
    prefix: str = "tenure_"
    synchronous: str = "full"
    timeout: float = 5.0
    allow_network_fs: bool = False


def settings(url: str, **options: object) -> Settings:
    """Read a URL such as `sqlite:///tenure.db?synchronous=normal`; options given beside it win over it.

    Raises ConfigError, in one sentence.
    """
    parts = urlsplit(url)
    if parts.netloc:
        # What stands before an @ may be a password: it is not shown.
        host = parts.netloc.rpartition("@")[2]
        raise ConfigError(
            "store",
            f"sqlite://{host}{parts.path}",
            f"has two slashes, so that {host!r} is read as a host, and SQLite has none.",
            SHAPES,
        )
    path = unquote(parts.path[1:]) or parts.path[1:]
    if not path or path.endswith("/"):
        raise ConfigError("store", url.partition("?")[0], "names no file.", SHAPES)
    if path.startswith(":memory:"):
        shown = f"sqlite:///{path}"
        raise ConfigError("store", shown, "would be another database for each connection.", "Use memory:// instead.")
    if "\0" in path or parts.fragment:
        raise ConfigError("store", f"sqlite:///{path}", "holds a NUL or a #.", "Write # as %23 in a URL.")
    given: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    given.update({name: value for name, value in options.items() if value is not None})
    return Settings(path, **{name: _option(name, value) for name, value in given.items()})


def _option(name: str, value: Any) -> Any:
    match name:
        case "prefix":
            return _prefix(value)
        case "synchronous":
            return _synchronous(value)
        case "timeout":
            return _timeout(value)
        case "allow_network_fs":
            return _flag(name, value)
        case _:
            near = difflib.get_close_matches(name, _OPTIONS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_OPTIONS)}."
            raise ConfigError("store option", name, "is no option of a sqlite:// store.", hint)


def _prefix(value: Any) -> str:
    if not isinstance(value, str) or not _PREFIX.fullmatch(value) or value.lower().startswith("sqlite_"):
        raise ConfigError(
            "prefix", value, "must be 1 to 40 letters, digits and _, not begin with a digit, nor with sqlite_."
        )
    return value


def _synchronous(value: Any) -> str:
    word = str(value).lower()
    if word not in DURABILITY:
        raise ConfigError(
            "synchronous", value, "must be full, or normal, with which a power cut forgets acknowledged commits."
        )
    return word


def _timeout(value: Any) -> float:
    try:
        ms = span(value)
    except ValueError as error:
        raise ConfigError("timeout", value, str(error)) from None
    if not _SHORTEST_MS <= ms <= _LONGEST_MS:
        raise ConfigError("timeout", value, "must be from 0.1 to 60 seconds.")
    return ms / 1000


def _flag(name: str, value: Any) -> bool:
    word = str(value).lower()
    if word not in _YES:
        raise ConfigError(name, value, "must be 1 or 0.")
    return _YES[word]
