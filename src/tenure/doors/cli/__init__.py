"""The command line. Every command reads its options, asks one thing of the house, and spells the answer.

Must stay cheap to import: `tenure --help` loads click and the table of commands, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    from tenure.doors.cli.root import cli

    return cli.answer(arguments)
