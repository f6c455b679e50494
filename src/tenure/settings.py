"""Where a setting comes from: argument, then `TENURE_*`, then `[tool.tenure]` in pyproject.toml, then the default."""

from __future__ import annotations

import contextlib
import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tenure.errors import ConfigError, MissingExtra
from tenure.rules.instant import span

DEFAULT_STORE: Final = "sqlite:///tenure.db"
# What may stand in the environment and in the file; the options of jobs may stand there too.
GENERAL: Final = ("store", "app", "name", "stop_timeout")
JOB_OPTIONS: Final = (
    "lease", "heartbeat", "max_attempts", "overlap", "jitter", "catch_up", "max_late", "history", "timeout",
    "when_unsure", "retries", "retry_delay",
)  # fmt: skip
# Read by the commands alone.
OF_COMMANDS: Final = ("debug", "log_format", "demo")
_WHOLE: Final = ("max_attempts", "history", "retries")


def file_of_settings(start: Path | None = None) -> Path | None:
    """The nearest pyproject.toml, upwards from `start`."""
    folder = (start or Path.cwd()).resolve()
    return next((path for place in (folder, *folder.parents) if (path := place / "pyproject.toml").is_file()), None)


def file_settings(start: Path | None = None) -> dict[str, Any]:
    """`[tool.tenure]` of the nearest pyproject.toml, upwards from `start`; {} where there is none.

    Raises ConfigError for a file that can't be read or a name that is no setting.
    """
    path = file_of_settings(start)
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("tenure", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError("pyproject.toml", str(path), f"can't be read: {error}.") from None
    return _known(table, str(path))


def _known(table: Any, path: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError("tool.tenure", table, f"in {path} is no table; write [tool.tenure] and settings below it.")
    allowed = (*GENERAL, *JOB_OPTIONS)
    for name in table:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(allowed)}."
            raise ConfigError(f"tool.tenure.{name}", table[name], f"in {path} is no setting.", hint)
    return {name: _none(name, value) for name, value in table.items()}


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
            where = "(environment)"
            raise ConfigError(f"TENURE_{name.upper()}", value, "is no whole number.", where=where) from None
    return _none(name, value)


def _none(name: str, value: Any) -> Any:
    """`lease` and `timeout` may be none, which neither the environment nor TOML can spell otherwise."""
    spelled = isinstance(value, str) and value.lower() == "none"
    return None if spelled and name in ("lease", "timeout") else value


def _store(value: str, environ: Mapping[str, str]) -> str:
    """`env:NAME` reads the URL from another variable: the only way in which DATABASE_URL is ever used."""
    if not value.startswith("env:"):
        return value
    name = value.removeprefix("env:")
    url = environ.get(name)
    if not url:
        why = f"names the variable {name}, which is not set; set it."
        raise ConfigError("TENURE_STORE", value, why, where="(environment)")
    return url


class Settings(dict[str, Any]):
    """Settings by name. `origins`: for those that stand not in code, how they are called there, and where that is."""

    def __init__(self, settings: Mapping[str, Any], origins: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(settings)
        self.origins = origins

    @contextlib.contextmanager
    def named(self, given: Mapping[str, Any] | None = None) -> Iterator[None]:
        """A refusal in here names the variable or the file that the setting stands in; not of what is `given`."""
        try:
            yield
        except MissingExtra:
            raise
        except ConfigError as error:
            if error.field not in self.origins or error.field in (given or {}):
                raise
            field, where = self.origins[error.field]
            raise ConfigError(field, error.value, error.why, error.hint, where) from None


def resolve(given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
    """All settings, each from the first place that has it."""
    path = file_of_settings()
    file, environment = file_settings(), environment_settings(environ)
    origins = {name: (name, f"in {path}") for name in file}
    origins |= {name: (f"TENURE_{name.upper()}", "(environment)") for name in environment}
    return Settings({**file, **environment, **given}, {k: v for k, v in origins.items() if k not in given})


def misspelt(environ: Mapping[str, str] | None = None) -> list[str]:
    """A sentence for each `TENURE_` name in the environment that looks like a setting and is none."""
    known = [f"TENURE_{name.upper()}" for name in (*GENERAL, *JOB_OPTIONS, *OF_COMMANDS)]
    said = []
    for name in sorted(os.environ if environ is None else environ):
        if name.startswith("TENURE_") and name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.85)
            if near:
                said.append(f"{name} in the environment is no setting, and nothing reads it. Did you mean {near[0]}?")
    return said


def check_source(source: object) -> None:
    """Refuse what is neither a store nor its URL."""
    if isinstance(source, str) or all(hasattr(source, name) for name in ("open", "read", "commit", "url")):
        return
    if isinstance(source, os.PathLike):
        path = os.fspath(source)
        raise ConfigError("store", source, "is a path, and a store is named by a URL.", f"Write sqlite:///{path}")
    raise ConfigError("store", source, "is no URL of a store.", "Write sqlite:///tenure.db, or memory://.")


def seconds_of(name: str, value: float | str | timedelta) -> float:
    """A setting that is a length of time, in seconds. Raises ConfigError that names it."""
    try:
        return span(value) / 1000
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from None
