"""What all help texts share: how options are read, and the exit codes."""

from __future__ import annotations

from typing import Any, Final

import click

CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Noun(click.Group):
    """A group of commands of one noun; `ls` is `list` too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, "list" if cmd_name == "ls" else cmd_name)


_CODES: Final = {
    0: "done",
    1: "failed or refused",
    2: "usage or settings",
    3: "not found or lost",
    4: "sign-in needed",
    5: "nothing to do",
    130: "interrupted",
}


def exits(*codes: int, **special: str) -> str:
    """The exit codes of a command, for the end of its help; `special`: `_3="no such file"` says it more exactly."""
    told = {code: special.get(f"_{code}", _CODES[code]) for code in codes}
    return "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {words}" for code, words in told.items())
