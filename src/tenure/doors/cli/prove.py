"""`tenure prove`: simulated worlds of real instances, seed after seed, until a law is broken or the time is over."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from tenure.doors.cli.output import Cell, look, pairs, put, put_json, say
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.proof.prove import Tally

BAR: Final = 24
DEFAULT: Final = "0..99"
_SEEDS: Final = re.compile(r"(\d+)(\.\.(\d+)?)?")


def _seeds(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, int | None] | None:
    """`A..B`, `A..` without an end, or one seed."""
    if text is None:
        return None
    found = _SEEDS.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} names no seeds; write A..B, A.. (with --minutes), or one number.")
    first = int(found[1])
    last = first if found[2] is None else None if found[3] is None else int(found[3])
    if last is not None and last < first:
        raise click.BadParameter(f"{text!r} ends before it begins.")
    return first, last


def _faults(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Numbers with commas, or `none`."""
    if text is None:
        return None
    if text == "none":
        return ()
    if not all(one.isdecimal() for one in text.split(",")):
        raise click.BadParameter(f"{text!r} is no list of numbers; write 2,5,9 or none.")
    return tuple(int(one) for one in text.split(","))


@click.command(
    context_settings=CONTEXT,
    short_help="Put the scheduler through simulated faults; hold the laws.",
    epilog=exits(0, 1, 2, 130, _0="every law held", _1="a law was broken, or the search was too tame"),
)
@click.option("--seeds", callback=_seeds, metavar="A..B", help=f"Which schedules; A.. goes on.  [default: {DEFAULT}]")
@click.option("--minutes", type=click.FloatRange(0.01), metavar="N", help="Stop after so many minutes.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N", help="Processes.")
@click.option(
    "--length",
    type=click.FloatRange(3, 600),
    default=12,
    show_default=True,
    metavar="N",
    help="Simulated minutes each.",
)
@click.option("--faults", callback=_faults, metavar="2,5", help="Play one seed with these of its faults alone.")
@click.option("--history", is_flag=True, help="Play one seed, and show what happened in it.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def prove(
    *,
    seeds: tuple[int, int | None] | None,
    minutes: float | None,
    workers: int,
    length: float,
    faults: tuple[int, ...] | None,
    history: bool,
    as_json: bool,
) -> int:
    """Put the scheduler through simulated faults, and hold its laws.

    Each seed is a schedule: three instances, the shipping code, on a clock that is turned, with a store behind a
    network. They are killed, frozen, cut off, stopped and started with other definitions; the store stalls,
    restarts, steps its clock and loses writes. Every change and every handler is held against the laws. The same
    seed gives the same history everywhere. The first seed that breaks a law is shrunk to the faults that it needs.
    """
    from tenure.proof.prove import search

    if seeds is None:
        seeds = (0, None if minutes is not None else 99)
    first, last = seeds
    if last is None and minutes is None:
        raise click.UsageError(f"the seeds {first}.. have no end; give --minutes, or an end.")
    if faults is not None or history:
        if last != first:
            raise click.UsageError("--faults and --history are of one seed; give it as --seeds N.")
        return _one(first, length, faults, history=history)
    numbers: Iterable[int] = itertools.count(first) if last is None else range(first, last + 1)
    bar = _Bar(None if last is None else last - first + 1, minutes)
    tally = None
    for tally in search(numbers, length, workers=workers, seconds=None if minutes is None else minutes * 60):
        bar.show(tally)
    bar.end()
    if tally is None:
        raise click.UsageError("there was no time for one schedule; give more --minutes.")
    return _told(tally, first, length, bar.seconds, as_json=as_json)


class _Bar:
    """How far the search is, on one line of a terminal that is written again and again."""

    def __init__(self, schedules: int | None, minutes: float | None) -> None:
        self._schedules, self._minutes = schedules, minutes
        self._begun, self._shown = time.monotonic(), 0.0
        self._live = sys.stderr.isatty()
        self.seconds = 0.0

    def show(self, tally: Tally) -> None:
        self.seconds = time.monotonic() - self._begun
        if not self._live or self.seconds - self._shown < 0.2:
            return
        self._shown = self.seconds
        shares = [tally.schedules / self._schedules] if self._schedules else []
        shares += [self.seconds / 60 / self._minutes] if self._minutes else []
        full = round(min(1.0, max(shares)) * BAR)
        bar = ("█" * full).ljust(BAR, "░")
        pace = f"{tally.schedules:,} schedules  {tally.schedules / self.seconds:.1f}/s"
        met = f"{tally.minutes / 60:,.0f} simulated h  {tally.faults.total():,} faults"
        click.echo(f"\r{bar} {pace}  {met}\x1b[K", err=True, nl=False)

    def end(self) -> None:
        if self._live:
            click.echo("\r\x1b[K", err=True, nl=False)


def _one(seed: int, length: float, only: tuple[int, ...] | None, *, history: bool) -> int:
    """One schedule: its faults, its history if that is asked for, and how it ended."""
    from tenure.proof.simulate import simulate

    outcome = simulate(seed, length, only=only)
    for place, fault in enumerate(outcome.plan):
        if only is None or place in only:
            put(f"fault {place:2}  {fault}")
    for line in outcome.lines if history else ():
        run = "" if line.slot is None else f"{line.job} {line.slot}{'#' + line.request if line.request else ''}"
        attempt = f"attempt {line.attempt}" if line.attempt else ""
        put(" ".join(f"{line.at:9.3f}  {line.node:12} {line.what:12} {run} {attempt} {line.told}".rstrip().split("\n")))
    put(f"digest {outcome.digest}: {'every law held' if outcome.breach is None else outcome.breach}")
    return 0 if outcome.breach is None else 1


def _told(tally: Tally, first: int, length: float, seconds: float, *, as_json: bool) -> int:
    from tenure.proof.prove import LAWS, replay, shrunk

    again = ""
    if tally.failed:
        seed = min(tally.failed)[0]
        say(f"seed {seed} breaks a law; it is shrunk to the faults that it needs ...")
        again = replay(seed, length, shrunk(seed, length))
    if as_json:
        put_json(_figures(tally, first, seconds, again))
        return 1 if tally.failed or tally.unmet else 0
    seen = look()
    faults = ", ".join(f"{kind} {count:,}" for kind, count in tally.faults.most_common())
    told: list[tuple[str, str | Cell]] = [
        ("schedules", f"{tally.schedules:,} of {length:g} simulated minutes: {tally.minutes / 60:,.0f} hours"),
        ("seeds", f"{first} to {tally.highest}"),
        ("pace", f"{tally.schedules / seconds:.1f} a second, {tally.schedules / tally.cpu_seconds:.1f} a CPU second"),
        ("faults", f"{tally.faults.total():,}: {faults}"),
        ("attempts", f"{tally.wins:,} won"),
        ("branches", f"{len(tally.reached)} reached, the rarest: {_rarest(tally)}"),
        ("laws", f"{len(LAWS)}: {' '.join(LAWS)}"),
    ]
    if tally.unmet:
        told.append(("too tame", Cell(f"never met: {', '.join(tally.unmet)}", "bad")))
    for seed, law, sentence in sorted(tally.failed):
        told.append(("broken", Cell(f"seed {seed}: {law}: {sentence}", "bad")))
    told += [("again", Cell(again, "strong"))] if again else [("result", Cell("no law was broken", "good"))]
    for line in pairs(told, seen):
        put(line)
    return 1 if tally.failed or tally.unmet else 0


def _rarest(tally: Tally) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in tally.reached.most_common()[:-4:-1])


def _figures(tally: Tally, first: int, seconds: float, again: str) -> dict[str, Any]:
    return {
        "schedules": tally.schedules,
        "simulated_hours": round(tally.minutes / 60, 1),
        "first_seed": first,
        "last_seed": tally.highest,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(tally.cpu_seconds, 1),
        "faults": dict(sorted(tally.faults.items())),
        "attempts": tally.wins,
        "reached": dict(sorted(tally.reached.items())),
        "never_met": list(tally.unmet),
        "broken": [{"seed": seed, "law": law, "why": why} for seed, law, why in sorted(tally.failed)],
        "replay": again,
    }
