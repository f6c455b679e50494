"""How a command reaches a store, and the options that all such commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import click

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.scheduler.records import Records

T = TypeVar("T")
Command = Callable[..., Any]


def kept(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep an option's value for the command below, so that it may stand before or after the command's name."""

    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None and value is not False:
            ctx.meta[f"tenure.{name}"] = value

    return keep


def store_options(command: Command, *, hidden: bool = False) -> Command:
    """--store, --app and --json, on a group or a command."""
    for option in (
        click.option(
            "--json", is_flag=True, expose_value=False, callback=kept("json"), hidden=hidden, help="Data as JSON."
        ),
        click.option(
            "--app",
            metavar="MODULE:OBJECT",
            expose_value=False,
            callback=kept("app"),
            hidden=hidden,
            help="The application, and with it its store.  [env: TENURE_APP]",
        ),
        click.option(
            "--store",
            metavar="URL",
            expose_value=False,
            callback=kept("store"),
            hidden=hidden,
            help="The store, whatever the application says.  [env: TENURE_STORE, where the application names none; "
            "default: sqlite:///tenure.db]",
        ),
    ):
        command = option(command)
    return command


def with_store(function: Command) -> Command:
    """A command that is given an `Access` first."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        meta = click.get_current_context().meta
        access = Access(meta.get("tenure.store"), meta.get("tenure.app"), bool(meta.get("tenure.json")))
        try:
            return function(access, *args, **kwargs)
        finally:
            access.close()

    return store_options(command)


@dataclass
class Access:
    """What the options say of the store; `as_json`: how the answer is wanted."""

    store: str | None
    app: str | None
    as_json: bool
    _application: Tenure | None = None
    _made: bool = False

    def application(self) -> Tenure:
        """The store's holder: of --store, else --app, else TENURE_STORE and pyproject.toml, their app, the default."""
        if self._application is None:
            self._application = self._find()
        return self._application

    def _find(self) -> Tenure:
        from tenure.app import Tenure
        from tenure.doors.cli.loading import load
        from tenure.settings import resolve

        if self.app is not None:
            app = load(self.app)
            if self.store is not None:
                app.use_store(self.store)
            return app
        if self.store is not None:
            return Tenure(self.store)
        settings = resolve({})
        if "store" not in settings and settings.get("app"):
            return load(settings["app"])
        return Tenure()

    def ask(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        """Put a question to the store's records. Makes nothing: raises NotFound where file or tables are not."""
        from tenure.errors import NotFound

        app = self.application()
        if not self._made:
            unmade = not_made(app)
            if unmade is not None:
                raise NotFound(unmade)
            self._made = True
        return app.ask_now(question)

    def close(self) -> None:
        """Give the store back."""
        if self._application is not None:
            self._application.close()


def store_file(url: str) -> Path | None:
    """The file of a sqlite:// store; None for any other."""
    parts = urlsplit(url)
    path = unquote(parts.path[1:])
    return Path(path).absolute() if parts.scheme == "sqlite" and not parts.netloc and path else None


def missing_file(url: str) -> Path | None:
    """The file of a sqlite:// store where it does not exist: what only reads must not make it."""
    file = store_file(url)
    return file if file is not None and not file.exists() else None


def not_made(app: Tenure) -> str | None:
    """Why a sqlite:// store can't be asked yet: it has no file, or no tables in it. Makes neither."""
    missing = missing_file(app.store_url)
    if missing is not None:
        return no_file(missing)
    file = store_file(app.store_url)
    if file is None or not app.ask_schema(lambda store: store.plan()):
        return None
    return f"{file} has no tables of Tenure's, so nothing is stored there yet. {_MAKES.format('them')}"


def no_file(file: Path) -> str:
    """That there is no such file, and what makes one."""
    if file.parent.is_dir():
        return f"there is no file {file}, so nothing is stored there yet. {_MAKES.format('it')}"
    return f"there is no file {file}, as there is no folder {file.parent}. Make the folder, or {_OTHER}"


_OTHER: Final = "name another store with --store URL or TENURE_STORE."
_MAKES: Final = f"tenure run makes {{}} when it first starts; or {_OTHER}"


def moment(field: str, text: str, now: int) -> int:
    """An instant that was typed: ISO 8601, UTC where it names no zone, or `now-2h`. Raises ConfigError."""
    from tenure.errors import ConfigError
    from tenure.rules.instant import recorded

    try:
        return recorded(text, now)
    except ValueError as error:
        raise ConfigError(field, text, str(error)) from None


def length(field: str, text: str) -> int:
    """A length of time that was typed, in milliseconds. Raises ConfigError."""
    from tenure.errors import ConfigError
    from tenure.rules.instant import span

    try:
        return span(text)
    except ValueError as error:
        raise ConfigError(field, text, str(error)) from None
