"""`tenure explain`: when a schedule runs, without a store."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final

import click

from tenure.doors.cli.output import Cell, Look, look, pairs, put, put_json, say, table, wrap
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.rules.schedule import Schedule, ScheduleError, Slot

MOST: Final = 1_000


class Expressions(click.Command):
    """A command whose arguments may begin with a dash: `-5 * * * *` is a wrong expression, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        strange = [one for one in args if re.match(r"-[^-a-zA-Z]", one) or (one.startswith("-") and " " in one)]
        if strange and "--" not in args:
            args = [one for one in args if one not in strange] + ["--", *strange]
        return super().parse_args(ctx, args)


@click.command(
    cls=Expressions,
    context_settings=CONTEXT,
    short_help="Say when a schedule runs, clock changes included.",
    epilog=exits(0, 2, 130),
)
@click.argument("expr", nargs=-1, required=True)
@click.option("--tz", "tz", default="UTC", metavar="ZONE", show_default=True, help="Zone of the wall clock.")
@click.option(
    "--count", default=5, show_default=True, metavar="N", type=click.IntRange(0, MOST), help="How many slots."
)
@click.option("--from", "begin", default="now", metavar="TIME", help="Start: ISO 8601 (UTC if bare), or now-2h.")
@click.option("--dst-gap", default="shift", metavar="CHOICE", help="shift (default), asap or skip: for skipped times.")
@click.option(
    "--dst-overlap", default="first", metavar="CHOICE", help="first (default), second or both: for double times."
)
@click.option("--json", "as_json", is_flag=True, help="The same data as JSON.")
def explain(
    *, expr: tuple[str, ...], tz: str, count: int, begin: str, dst_gap: str, dst_overlap: str, as_json: bool
) -> int:
    """Say when a schedule runs.

    EXPR is a cron expression in quotes ("30 2 * * *", or six fields with seconds first, or @daily), or a
    length of time (10s, 1h30m). Shown: the schedule in words, its next slots, and what it does on the next
    two days on which the clocks of its zone are changed.
    """
    from tenure.doors.cli.wording import schedule_line
    from tenure.rules.nights import upcoming
    from tenure.rules.plans import timetable
    from tenure.rules.schedule import ScheduleError

    text = " ".join(expr)
    start = _start(begin)
    try:
        schedule = timetable(text, tz, dst_gap, dst_overlap)
    except ScheduleError as error:
        _refused(error, text, tz, many=len(expr) > 1)
        return 2
    slots = upcoming(schedule, start, count)
    if as_json:
        put_json(_told(text, schedule, slots, start))
        return 0
    seen = look()
    for part in wrap(schedule.words(), seen.width):
        put(seen.paint(part, "strong"))
    facts: list[tuple[str, str | Cell]] = [("schedule", schedule_line(schedule))]
    facts += [("warning", Cell(one, "warn")) for one in schedule.warnings()]
    for line in (*pairs(facts, seen), *slot_lines(schedule, slots, start, seen), *night_lines(schedule, start, seen)):
        put(line)
    return 0


def _start(text: str) -> int:
    from tenure.errors import ConfigError
    from tenure.rules.instant import instant

    try:
        return instant(text, time.time_ns() // 1_000_000)
    except (ValueError, OverflowError) as error:
        raise ConfigError("--from", text, str(error)) from None


def _refused(error: ScheduleError, text: str, tz: str, *, many: bool) -> None:
    """One sentence, and the place that it speaks of with carets below."""
    say(
        f"tenure: {error}" + (" (put the expression in quotes: the shell replaces * by names of files)" if many else "")
    )
    caret = error.caret()
    if not caret and error.field == "tz":
        caret = f"--tz {tz}\n     {'^' * max(1, len(tz))}"
    elif not caret and error.field in ("dst_gap", "dst_overlap"):
        option = f"--{error.field.replace('_', '-')} "
        caret = f"{option}{error.value}\n{' ' * len(option)}{'^' * max(1, len(error.value))}"
    elif not caret:
        shown = "".join(letter if letter.isprintable() else "?" for letter in text)[:200] or "''"
        caret = f"{shown}\n{'^' * len(shown)}"
    for line in caret.split("\n"):
        say(f"  {line}")


def slot_lines(schedule: Schedule, slots: list[Slot], start: int, seen: Look) -> list[str]:
    """The slots: the wall clock with its offset, UTC, and how far away."""
    from tenure.rules.nights import shift_words
    from tenure.rules.times import away, clock, short

    if not slots:
        return []
    rows = [
        (
            clock(slot.at_ms, schedule.tz),
            short(slot.at_ms).removesuffix(":00Z") + "Z" if slot.at_ms % 60_000 == 0 else short(slot.at_ms),
            away(slot.at_ms, start),
            Cell(shift_words(slot), "warn"),
        )
        for slot in slots
    ]
    if schedule.tz == "UTC":
        shown = table(("next", "", ""), [(row[1], row[2], row[3]) for row in rows], seen)
    else:
        shown = table((f"next, {schedule.tz}", "UTC", "", ""), rows, seen)
    return ["", *shown]


def night_lines(schedule: Schedule, start: int, seen: Look) -> list[str]:
    """What happens on the next two days of a clock change."""
    from tenure.rules.nights import change_words, nights, no_changes

    found = nights(schedule, start)
    if not found:
        return ["", *(seen.paint(part, "dim") for part in wrap(f"{no_changes(schedule.tz)}.", seen.width))]
    lines = ["", seen.paint(f"The next clock changes, {schedule.tz}", "dim")]
    room = None if seen.width is None else seen.width - 4
    for change, _, says in found:
        lines += [f"  {part}" for part in wrap(change_words(change), room)]
        lines += [f"    {part}" for part in wrap(says, room)]
    return lines


def _told(text: str, schedule: Schedule, slots: list[Slot], start: int) -> dict[str, Any]:
    from tenure.doors.cli.wording import change_json, instant_fields, schedule_json, slot_json
    from tenure.rules.nights import nights

    return {
        "expression": text,
        **schedule_json(schedule),
        **instant_fields("from", start),
        "next": [slot_json(slot, schedule.tz) for slot in slots],
        "changes": [change_json(change, day, says) for change, day, says in nights(schedule, start)],
    }
