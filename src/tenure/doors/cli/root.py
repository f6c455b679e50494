"""The root of the command tree: the table of commands, loaded when used, and one line for every error."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from tenure.doors.cli.access import store_options
from tenure.doors.cli.output import say, unheard
from tenure.doors.cli.texts import CONTEXT, exits

INTERRUPTED: Final = 130
# A disk or a quota that is full.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a board refused, by its status: sign in, or there is nothing of that name.
_OF_STATUS: Final = {401: 4, 404: 3}
# What the commands of the board import first of what its extra brings.
_OF_BOARD: Final = ("alembic", "argon2", "fastapi", "httpx2", "mcp", "sqlalchemy", "starlette", "uvicorn")

# name: (module of this package, its command, what `tenure --help` says of it)
COMMANDS: Final = {
    "run": ("running", "run", "Run an application's jobs in this process."),
    "demo": ("demo", "demo", "Watch a takeover: three instances, one of them killed."),
    "explain": ("explain", "explain", "Say when a schedule runs, clock changes included."),
    "job": ("job", "job", "List, show, pause, resume and trigger jobs; ask why."),
    "runs": ("runs", "runs", "List and show runs, draw their timeline, follow new ones."),
    "instance": ("instance", "instance", "List the instances that share a store."),
    "db": ("db", "db", "Plan, upgrade, check and back up the tables of a store or board."),
    "board": ("board", "board", "Serve the board: todos, endpoints and the web page."),
    "auth": ("auth", "auth", "Sign in to a board, sign out, and show as whom."),
    "endpoint": ("endpoint", "endpoint", "Vend endpoints to agents and workers; edit and revoke them."),
    "todo": ("todo", "todo", "Add, list, show and steer todos."),
    "schedule": ("schedule", "schedule", "Put todos on an endpoint by itself, once per slot."),
    "friend": ("friend", "friend", "Ask another human for an endpoint; answer such requests."),
    "human": ("human", "human", "Add humans to a board's database, and let them in."),
    "work": ("work", "work", "Claim todos and run a command for each."),
    "mcp": ("mcp", "mcp", "Carry MCP over stdin and stdout, for agents without HTTP."),
    "doctor": ("doctor", "doctor", "Check this machine, the store, the instances and jobs."),
    "prove": ("prove", "prove", "Put the scheduler through simulated faults; hold the laws."),
}


class Tree(click.Group):
    """A group whose commands are imported when they are used, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        found = getattr(importlib.import_module(f"tenure.doors.cli.{module}"), attribute)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would call it a failure
            return _enough()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, _, told) in COMMANDS.items()])

    def answer(self, arguments: Sequence[str] | None = None) -> int:
        """Run one command; whatever goes wrong becomes one line on stderr and an exit code."""
        if sys.stdout is None:  # it was closed before we began
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
        try:
            result = super().main(
                list(sys.argv[1:] if arguments is None else arguments), prog_name="tenure", standalone_mode=False
            )
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 - the outermost place: whatever it is becomes one line
            return _failed(error)
        return result if isinstance(result, int) else 0

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """As `answer`, for callers that know click's own entry: it exits."""
        sys.exit(self.answer(args))


def _enough() -> int:
    """Whoever read our output has enough; what is still buffered must not fail once more at exit."""
    unheard(sys.stdout)
    return 0


def _failed(error: BaseException) -> int:
    """One line, and the exit code that belongs to it."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return _enough()
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        say("tenure: interrupted")
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message())
        return 2
    if os.environ.get("TENURE_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(error)
    sentence, code = _sentence(error)
    say(f"tenure: {sentence}")
    return code


def _sentence(error: BaseException) -> tuple[str, int]:
    from tenure.errors import ConfigError, MissingExtra, NotFound, TenureError

    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _OF_BOARD:
        error = MissingExtra("the board", "board")
    if isinstance(error, click.UsageError):
        return _usage(error), 2
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, TenureError):
        code = 2 if isinstance(error, ConfigError) else 3 if isinstance(error, NotFound) else 1
        code = _OF_STATUS.get(getattr(error, "status", 0), code)
        return " ".join(str(error).split()), code
    if isinstance(error, OSError) and error.errno in _FULL:
        return f"what is to be written has no place: {error.strerror}. Free some there, or write elsewhere.", 1
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"this is a fault of Tenure's own: {what}. TENURE_DEBUG=1 shows where.", 1


def _usage(error: click.UsageError) -> str:
    """What was typed wrongly, and where to read how it is typed."""
    said = " ".join(error.format_message().split())
    if said and said[-1] not in ".?!)":
        said += "."
    said = said[:1].lower() + said[1:]
    if isinstance(error, click.BadParameter) and error.param is not None and isinstance(error.param.type, click.Choice):
        typed = said.partition("': '")[2].partition("'")[0]
        near = difflib.get_close_matches(typed, [str(choice) for choice in error.param.type.choices], 1)
        said += f" Did you mean {near[0]!r}?" if near else ""
    where = error.ctx.command_path if error.ctx is not None else "tenure"
    return f"{said} See: {where} --help"


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from tenure import __version__

    click.echo(f"tenure {__version__}")
    ctx.exit()


@click.command(
    cls=Tree,
    context_settings=CONTEXT,
    no_args_is_help=True,
    epilog=exits(0, 1, 2, 3, 4, 5, 130),
    help="Work held on leases: scheduled jobs that run once, on one of many instances; a board of todos for agents.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def cli() -> None:
    """The root does nothing by itself."""


store_options(cli, hidden=True)


__all__ = ["COMMANDS", "Tree", "cli"]
