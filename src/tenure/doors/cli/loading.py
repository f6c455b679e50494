"""Find an application: `MODULE:OBJECT` becomes a `Tenure`, or one line that says why not."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from tenure.errors import ConfigError

if TYPE_CHECKING:
    from tenure.app import Tenure

WHERE = (
    "Give MODULE:OBJECT (tenure run tasks:app), or set TENURE_APP, "
    'or write app = "tasks:app" below [tool.tenure] in pyproject.toml.'
)


class NotLoaded(click.ClickException):
    """The application's own code raised while it was imported."""


class Misused(NotLoaded):
    """It asked Tenure wrongly."""

    exit_code = 2


def load(spec: str) -> Tenure:
    """The application named by `MODULE:OBJECT`, or by `MODULE` where it holds one. Raises ConfigError, NotLoaded."""
    name, _, attribute = spec.strip().partition(":")
    if re.search(r"\.py\b|[/\\]", name):
        right = re.sub(r"[/\\]+", ".", re.sub(r"\.py$", "", name)).strip(".")
        raise ConfigError("app", spec, f"is a path; write MODULE:OBJECT, here {right}:{attribute or 'app'}.")
    if not re.fullmatch(r"\w+(\.\w+)*", name) or not re.fullmatch(r"(\w+(\.\w+)*)?", attribute):
        raise ConfigError("app", spec, "is not of the form MODULE:OBJECT, such as tasks:app.")
    module = _imported(name, spec)
    return _found(module, attribute, spec)


def _imported(name: str, spec: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError("app", spec, f"names the module {error.name!r}, {_not_there(error.name)}") from None
        raise _failed(error) from error
    except (KeyboardInterrupt, click.Abort):
        raise
    except BaseException as error:  # sys.exit() at import is a fault of the application too
        raise _failed(error) from error


def _not_there(name: str) -> str:
    here = Path.cwd()
    modules = [path.stem for path in here.glob("*.py")] + [path.parent.name for path in here.glob("*/__init__.py")]
    near = difflib.get_close_matches(name, modules, 1)
    hint = f" Did you mean {near[0]}?" if near else " Start it from the folder that holds it, or install it."
    return f"which is neither in {here} nor installed.{hint}"


def _failed(error: BaseException) -> NotLoaded:
    """What was raised, and the line of the application's code where it was."""
    said = " ".join(str(error).split())
    what = said if isinstance(error, ConfigError) else f"{type(error).__name__}: {said}".rstrip(": ")
    place = "" if isinstance(error, ConfigError) and error.where else _place(error)  # it says itself where it stands
    end = "" if isinstance(error, ConfigError) else " (TENURE_DEBUG=1 shows the traceback)"
    kind = Misused if isinstance(error, ConfigError) else NotLoaded
    return kind(f"{place}: {what}{end}" if place else f"{what}{end}")


def _place(error: BaseException) -> str:
    """`tasks.py:12`: the innermost line that is neither Python's, nor an installed package's, nor ours."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename)}:{error.lineno}"
    paths = sysconfig.get_paths()
    foreign = tuple({paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]})
    ours = str(Path(__file__).parents[2]) + os.sep
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = frame.filename
        if not file.startswith(("<", *foreign, ours)):
            return f"{_relative(file)}:{frame.lineno}"
    return ""


def _relative(file: str) -> str:
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file


def _found(module: ModuleType, attribute: str, spec: str) -> Tenure:
    from tenure.app import Tenure

    holders = [name for name, value in vars(module).items() if isinstance(value, Tenure)]
    if not attribute:
        if len(holders) == 1:
            attribute = holders[0]
        else:
            raise ConfigError(
                "app", spec, f"names no object in {module.__name__}, which holds {_many(holders, module)}."
            )
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(attribute, holders or list(vars(module)), 1)
            hint = f"Did you mean {module.__name__}:{near[0]}?" if near else f"It holds {_many(holders, module)}."
            raise ConfigError("app", spec, f"names {attribute!r}, which is not in {module.__name__}.", hint)
        found = getattr(found, part)
    if not isinstance(found, Tenure):
        hint = (
            f"There is {_many(holders, module)}." if holders else 'Make one there: app = Tenure("sqlite:///tenure.db").'
        )
        raise ConfigError("app", spec, f"is of type {type(found).__name__}, not a Tenure.", hint)
    return found


def _many(holders: list[str], module: ModuleType) -> str:
    if not holders:
        return 'no Tenure: make one there, app = Tenure("sqlite:///tenure.db")'
    return " and ".join(f"{module.__name__}:{name}" for name in holders)
