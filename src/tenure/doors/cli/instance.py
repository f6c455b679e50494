"""`tenure instance`: who shares a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tenure.doors.cli.access import Access, store_options, with_store
from tenure.doors.cli.output import Cell, look, put, put_json, say, table
from tenure.doors.cli.texts import CONTEXT, Noun, exits

if TYPE_CHECKING:
    from tenure.scheduler.records import InstanceView, Records

HEADS = ("instance", "state", "seen", "host", "pid", "version", "clock", "jobs", "running", "backup of")


@click.group(cls=Noun, context_settings=CONTEXT)
def instance() -> None:
    """List the instances that share a store."""


store_options(instance)


@instance.command("list", context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130, _3="the store's file does not exist"))
@with_store
def list_instances(access: Access) -> int:
    """List all instances: alive or since when silent, where, their clock, and what they run."""
    from tenure.doors.cli.wording import instance_json

    async def ask(records: Records) -> tuple[int, list[InstanceView]]:
        found = await records.instances()
        return await records.now(), found

    now, found = access.ask(ask)
    if access.as_json:
        put_json([instance_json(one, now) for one in found])
        return 0
    if not found:
        say("no instance is there. tenure run MODULE:OBJECT starts one; instances that stop in order leave this list.")
        return 0
    for line in table(HEADS, [_row(one, now) for one in found], look()):
        put(line)
    for one in found:
        for reason in one.reasons:
            put(f"{one.name}: {reason}")
    return 0


def _row(one: InstanceView, now: int) -> tuple[str | Cell, ...]:
    from tenure.rules.instant import span_words
    from tenure.rules.times import about, away

    state = Cell("alive", "good") if one.alive else Cell(f"silent for {about(now - one.seen)}", "bad")
    if one.alive and one.reasons:
        state = Cell("alive, see below", "warn")
    offset = "exact" if one.offset_ms == 0 else f"{'+' if one.offset_ms > 0 else ''}{span_words(one.offset_ms)}"
    return (
        Cell(one.name, "strong"),
        state,
        away(one.seen, now),
        one.host,
        str(one.pid),
        one.version,
        Cell(offset, "warn" if abs(one.offset_ms) > 1_000 else ""),
        str(len(one.jobs)),
        _running(one, now),
        f"{one.backups} run{'' if one.backups == 1 else 's'}",
    )


def _running(one: InstanceView, now: int) -> str:
    """What it ran when it was last seen; where that is not this very moment it is said."""
    from tenure.rules.times import away
    from tenure.scheduler.run import run_key

    if not one.running:
        return "-"
    seen = away(one.seen, now)
    return ", ".join(run_key(*key) for key in one.running) + ("" if seen == "now" else f" (as of {seen})")
