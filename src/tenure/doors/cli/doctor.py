"""`tenure doctor`: what is right and what is wrong, one line each, with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tenure.doors.cli.access import Access, with_store
from tenure.doors.cli.output import look, put, put_json, wrap
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.doors.cli.checks import Check

STYLES: Final = {"ok": "good", "warn": "warn", "fail": "bad"}


@click.command(
    context_settings=CONTEXT,
    short_help="Check this machine, the store, the instances and jobs.",
    epilog=exits(0, 1, 2, 3, 130, _0="nothing failed", _1="a check failed", _3="the store's file does not exist"),
)
@with_store
def doctor(access: Access) -> int:
    """Check this machine, the store, its instances and jobs, and the board that this user is signed in to.

    One line each, with what to do.
    """
    from tenure.doors.cli import checks

    found = [*checks.machine(), *checks.store(access.application), *checks.board()]
    failed = [one for one in found if one.status == "fail"]
    if access.as_json:
        told = [{"name": one.name, "status": one.status, "says": one.says, "fix": one.fix or None} for one in found]
        put_json({"ok": not failed, "checks": told})
    else:
        _show(found)
    if all(one.missing for one in failed):
        return 3 if failed else 0
    return 1


def _show(found: list[Check]) -> None:
    seen = look()
    wide = max(len(one.name) for one in found)
    room = None if seen.width is None else max(20, seen.width - wide - 8)
    for one in found:
        says = wrap(one.says, room)
        put(f"{seen.paint(one.status.ljust(4), STYLES[one.status])}  {one.name.ljust(wide)}  {says[0]}")
        for line in [*says[1:], *(wrap(one.fix, room) if one.fix else [])]:
            put(f"{' ' * (wide + 8)}{line}")
