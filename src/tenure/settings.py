"""Where a setting comes from: argument, then `TENURE_*`, then `[tool.tenure]` in pyproject.toml, then the default."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tenure.errors import ConfigError
from tenure.rules.instant import span

DEFAULT_STORE: Final = "sqlite:///tenure.db"
# What may stand in the environment and in the file; the options of jobs may stand there too.
GENERAL: Final = ("store", "app", "name", "stop_timeout")
JOB_OPTIONS: Final = (
    "lease", "heartbeat", "max_attempts", "overlap", "jitter", "catch_up", "max_late", "history", "timeout",
    "when_unsure", "retries", "retry_delay",
)  # fmt: skip
_WHOLE: Final = ("max_attempts", "history", "retries")


def file_settings(start: Path | None = None) -> dict[str, Any]:
    """`[tool.tenure]` of the nearest pyproject.toml, upwards from `start`; {} where there is none.

    Raises ConfigError for a file that can't be read or a name that is no setting.
    """
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("tenure", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError("pyproject.toml", str(path), f"can't be read: {error}.") from None
        return _known(table, str(path))
    return {}


def _known(table: Any, path: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError("tool.tenure", table, f"in {path} is no table; write [tool.tenure] and settings below it.")
    allowed = (*GENERAL, *JOB_OPTIONS)
    for name in table:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(allowed)}."
            raise ConfigError(f"tool.tenure.{name}", table[name], f"in {path} is no setting.", hint)
    return dict(table)


def environment_settings(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The settings of the environment: `TENURE_LEASE=45s` and so on. Unknown `TENURE_` names are left alone."""
    environ = os.environ if environ is None else environ
    found: dict[str, Any] = {}
    for name in (*GENERAL, *JOB_OPTIONS):
        value = environ.get(f"TENURE_{name.upper()}")
        if value:
            found[name] = _typed(name, value)
    if "store" in found:
        found["store"] = _store(found["store"], environ)
    return found


def _typed(name: str, value: str) -> Any:
    if name in _WHOLE:
        try:
            return int(value)
        except ValueError:
            raise ConfigError(f"TENURE_{name.upper()}", value, "is no whole number.") from None
    if name in ("lease", "timeout") and value.lower() == "none":
        return None
    return value


def _store(value: str, environ: Mapping[str, str]) -> str:
    """`env:NAME` reads the URL from another variable: the only way in which DATABASE_URL is ever used."""
    if not value.startswith("env:"):
        return value
    name = value.removeprefix("env:")
    url = environ.get(name)
    if not url:
        raise ConfigError("TENURE_STORE", value, f"names the variable {name}, which is not set; set it.")
    return url


def resolve(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All settings, each from the first place that has it."""
    return {**file_settings(), **environment_settings(environ), **given}


def seconds_of(name: str, value: float | str | timedelta) -> float:
    """A setting that is a length of time, in seconds. Raises ConfigError that names it."""
    try:
        return span(value) / 1000
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from None
