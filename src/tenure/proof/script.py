"""One scenario under way: what its commands do to a world, and how what happened is told in words.

The commands are the methods of `Script` that end in `_`; what one of them is given is the rest of its line.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from tenure.proof import conduct
from tenure.proof.faults import LONGEST_LEASE
from tenure.proof.witness import Line, Witness
from tenure.proof.workload import at_work
from tenure.proof.world import Node, World
from tenure.rules import commands as c
from tenure.rules.instant import instant, iso, span
from tenure.rules.job import decode_past
from tenure.rules.schedule import cron, every
from tenure.scheduler.jobs import Job, define
from tenure.scheduler.run import Run

DAY: Final = "2026-01-01T"
# What the store does is told by the events of those it does it for; these are told of nobody.
_UNTOLD: Final = frozenset((
    "win", "won", "takeover", "success", "failed", "interrupted", "claimed", "started",
    "killed", "told to stop", "frozen", "cut off",
))  # fmt: skip
_WORDS: Final = {
    "begin": "begins",
    "end": "ends",
    "backup": "is a backup of",
    "lost": "has lost",
    "unsure": "is unsure of",
    "skip": "skips",
    "handed-over": "hands over",
    "missed": "tells as missed",
    "abandoned": "leaves",
    "drift": "sees another definition",
    "clock": "sees the clock:",
    "store-down": "can't reach the store",
    "store-up": "reaches the store again",
    "stop": "is told to stop",
    "stopped": "has stopped",
    "kill": "is killed",
    "start": "starts",
}
# Details of events that are told, and how.
_DETAILS: Final = {
    "why": "{}", "says": "{}", "error": "{}", "to": "to {}", "by": "by {}", "of": "of {}", "count": "slots: {}",
    "blocked_ms": "for {} ms",
}  # fmt: skip


class ScenarioError(Exception):
    """A scenario that can't be read or played: which line, and why."""


class Script:
    """One scenario under way: a world, and what was told of it so far."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._seed, self._start = "scenario", "00:59:50.500"
        self._world: World | None = None
        self._told = 0
        self._open = ExitStack()
        self._standby: tuple[Callable[[], None], ...] = ()

    @property
    def world(self) -> World:
        """The world; it is made when it is first needed."""
        if self._world is None:
            self._world = World(self._seed, Witness, start=instant(f"{DAY}{self._start}Z", 0), drift=0.0)
            self._world.deploys = lambda _: list(self.jobs.values())
            self._open.enter_context(self._world.open())
            self._world.witness.exclusive = frozenset(
                one.name for one in self.jobs.values() if one.overlap == "skip" and one.lease_ms is not None
            )
            self._world.witness.patient = frozenset(
                one.name for one in self.jobs.values() if one.when_unsure == "continue"
            )
        return self._world

    def play(self, command: str) -> list[str]:
        """One command; what happened until it was done."""
        verb, _, rest = command.partition(" ")
        do = getattr(self, f"{verb}_", None)
        if do is None:
            known = ", ".join(name.removesuffix("_") for name in vars(Script) if name.endswith("_") and name[0] != "_")
            raise ScenarioError(f"there is no command {verb!r}. There are: {known}.")
        told = do(rest) or []
        return [*self._news(), *told]

    def _news(self) -> list[str]:
        if self._world is None:
            return []
        self.world.loop.run(asyncio.sleep(0))
        lines, self._told = self.world.witness.lines[self._told :], len(self.world.witness.lines)
        return [said for line in lines if (said := self._said(line))]

    def _said(self, line: Line) -> str:
        role = line.node.removesuffix("/handlers")
        if line.node == "store" or line.what in _UNTOLD:
            return ""
        run = "" if line.slot is None else f" run {_short(iso(line.slot))}"
        attempt = f" attempt {line.attempt} of" if line.attempt else ""
        parts = (part.partition("=") for part in re.split(r" (?=\w+=)", line.told))
        details = [_DETAILS[key].format(value) for key, _, value in parts if key in _DETAILS]
        told = f" ({', '.join(details)})" if details else ""
        job = f" {line.job}" if len(self.jobs) > 1 and line.job else ""
        return f"{self._clock(line.at)}  {role:7} {_WORDS.get(line.what, line.what)}{attempt}{job}{run}{told}"

    def _clock(self, second: float) -> str:
        """The time of the day at a turned second, as it was when the scenario began."""
        at = self.world.start_ms + int(second * 1000)
        return f"{_short(iso(at - at % 1000))}.{at % 1000:03d}"

    def close(self) -> None:
        """The laws that are asked of whole histories, and the end of the world. Raises Breach."""
        try:
            self.world.peace = self.world.loop.seconds
            if self.world.witness.breach is None:
                conduct.check(conduct.Case(self.world, self.world.loop.seconds))
            if self.world.witness.breach is not None:
                raise self.world.witness.breach
        finally:
            self._open.close()

    def abandon(self) -> None:
        """The end of the world, whatever the laws would say."""
        self._open.close()

    def _node(self, role: str) -> Node:
        """The instance of this role; `runner`: the one that holds a live lease."""
        if role == "runner":
            now = self.world.site.now()
            runs = [run for told in self.world.witness.told.values() for run in told.job.runs if run.lease.live(now)]
            if not runs:
                raise ScenarioError("there is no runner: nobody holds a live lease.")
            role = runs[-1].lease.holder.partition("~")[0]
        if role not in self.world.nodes:
            raise ScenarioError(f"there is no instance {role!r} yet; start it.")
        return self.world.nodes[role]

    # --- the stage ---------------------------------------------------------------------------------------

    def seed_(self, seed: str) -> None:
        """`seed NAME`: other draws."""
        self._seed = seed

    def at_(self, clock: str) -> None:
        """`at HH:MM:SS`: when it begins, half a second before ten to one where nothing else is said."""
        self._start = clock

    def job_(self, rest: str) -> None:
        """`job NAME every 1h, takes 5m, lease 30s, handler heeds`: a job, or another definition of it."""
        head, *options = (part.strip() for part in rest.split(","))
        name, kind, *when = shlex.split(head)
        given: dict[str, Any] = {}
        takes, handler = 0.0, "heeds"
        for option in options:
            key, _, value = option.partition(" ")
            if key == "takes":
                takes = span(value) / 1000
            elif key == "handler":
                handler = value
            else:
                given[key] = _value(value)
        schedule = every(span(when[0])) if kind == "every" else cron(when[0], "UTC") if kind == "cron" else None
        self.jobs[name] = define(name, schedule, _handler(self, takes, handler), {"jitter": 0, **given})

    def start_(self, rest: str) -> None:
        """`start a b`, `start a ahead 1h`: instances that know the jobs so far; `knowing report` only that one."""
        words = rest.split()
        skew, jobs = 0.0, list(self.jobs.values())
        if "knowing" in words:
            place = words.index("knowing")
            jobs, words = [self.jobs[name] for name in words[place + 1 :]], words[:place]
        for word, sign in (("ahead", 1), ("behind", -1)):
            if word in words:
                place = words.index(word)
                skew, words = sign * float(span(words[place + 1])), words[:place]
        for role in words:
            self.world.start(role, jobs, skew_ms=skew)

    # --- time --------------------------------------------------------------------------------------------

    def until_(self, clock: str) -> None:
        """`until HH:MM:SS`: turn the clock."""
        self._turn((instant(f"{DAY}{clock}Z", 0) - self.world.start_ms) / 1000 - self.world.loop.seconds)

    def after_(self, length: str) -> None:
        """`after 90s`: turn the clock."""
        self._turn(span(length) / 1000)

    def _turn(self, seconds: float) -> None:
        if seconds < 0:
            raise ScenarioError("that time has passed.")
        try:
            self.world.loop.run(asyncio.sleep(seconds))
        except RuntimeError:
            if self.world.witness.breach is None:
                raise
            raise self.world.witness.breach from None

    # --- what befalls instances --------------------------------------------------------------------------

    def kill_(self, role: str) -> None:
        """`kill a`: kill -9."""
        self.world.trouble(self._node(role).name, "killed")
        self.world.kill(self._node(role))

    def stop_(self, role: str) -> None:
        """`stop a`: SIGTERM."""
        self.world.trouble(self._node(role).name, "told to stop")
        self.world.stop(self._node(role))

    def freeze_(self, role: str) -> None:
        """`freeze a`: SIGSTOP."""
        self.world.trouble(self._node(role).name, "frozen", 1e9)
        self.world.freeze(self._node(role))

    def block_(self, role: str) -> None:
        """`block a`: the loop of its handlers stands still."""
        self.world.freeze(self._node(role), engine=False)

    def thaw_(self, role: str) -> None:
        """`thaw a`: the end of a freeze, or of a block."""
        self.world.thaw(self._node(role))
        self.world.over(self._node(role).name)

    def cut_(self, rest: str) -> None:
        """`cut a`: it and the store lose each other; `cut requests a`, `cut replies a`: one way."""
        way, _, role = rest.rpartition(" ")
        link = self._node(role).link
        self.world.trouble(self._node(role).name, "cut off", 1e9)
        link.cut_out, link.cut_in = way in ("", "requests"), way in ("", "replies")

    def heal_(self, role: str) -> None:
        """`heal a`: the end of a cut."""
        link = self._node(role).link
        link.cut_out = link.cut_in = False
        self.world.over(self._node(role).name)

    def clock_(self, rest: str) -> None:
        """`clock a -90s`: the wall clock of an instance steps."""
        role, step = rest.split()
        self._node(role).clock.skew_ms += _signed(step)

    # --- the store, and people ---------------------------------------------------------------------------

    def store_(self, rest: str) -> None:
        """`store stalls`, `goes on`, `falls`, `rises`, `steps 40s`, `copies`, `forgets`.

        It forgets what was written since it was last copied, as an asynchronous failover does.
        """
        site, world = self.world.site, self.world
        what, _, step = rest.partition(" ")
        if what in ("stalls", "falls", "forgets"):
            world.trouble("store", what, 1e9)
        if what == "steps":
            world.trouble("store", "its clock steps")
            site.step(_signed(step))
            world.witness.doubtful_until = world.loop.seconds + LONGEST_LEASE
        elif what == "copies":
            lose_writes, lose_told = site.keep(), world.witness.keep()
            self._standby = (lose_writes, lose_told)
        elif what == "forgets":
            before = conduct.spoken(world)
            site.fall()
            for lose in self._standby:
                lose()
            world.unspoken |= before - conduct.spoken(world)
            world.witness.doubtful_until = world.loop.seconds + LONGEST_LEASE
        else:
            {"stalls": site.stall, "goes": site.go_on, "falls": site.fall, "rises": site.rise}[what]()
            if what in ("goes", "rises"):
                world.over("store")

    def trigger_(self, job: str) -> None:
        """`trigger report`: somebody wants a run."""
        self.world.say(job, c.Trigger("wish", "a person"))

    def pause_(self, job: str) -> None:
        """`pause report`."""
        self.world.say(job, c.Pause())

    def resume_(self, job: str) -> None:
        """`resume report`."""
        self.world.say(job, c.Resume())

    def show_(self, job: str) -> list[str]:
        """`show report`: what the store knows of its runs, and why nothing ran at other slots."""
        shelf = self.world.site.store._shelves[f"job:{job}"]  # noqa: SLF001 - as it is
        told: list[tuple[int, str]] = []
        for past in map(decode_past, (one.body for one in shelf.history.values())):
            how = ", ".join(f"attempt {one.number} at {one.runner} {one.how}" for one in past.attempts)
            told.append((past.slot, f"run {_short(iso(past.slot))}  {past.status}: {how}"))
        for run in self.world.witness.told[f"job:{job}"].job.runs:
            how = f"attempt {run.attempts[-1].number} at {run.lease.holder}"
            told.append((run.slot, f"run {_short(iso(run.slot))}  running: {how}"))
        for mark in shelf.marks:
            until = f" to {_short(iso(mark.until))}, {mark.count} slots" if mark.until > mark.slot else ""
            told.append((mark.slot, f"slot {_short(iso(mark.slot))}{until}  {mark.why}"))
        return [line for _, line in sorted(told)]


def _handler(script: Script, takes: float, kind: str) -> Any:
    """A handler that works for so long, and `heeds` what it is told, is `deaf` to it, or `raises` in the end."""

    async def perform(run: Run) -> None:
        await at_work(script.world.witness, run, takes, deaf=kind == "deaf", careful=kind != "deaf")
        if kind == "raises":
            raise ValueError("it went wrong")

    return perform


def _value(text: str) -> Any:
    return None if text == "none" else int(text) if text.isdecimal() else text


def _signed(text: str) -> float:
    return -float(span(text[1:])) if text.startswith("-") else float(span(text))


def _short(text: str) -> str:
    """The time of the day alone; the day is always the same one."""
    return text.partition("T")[2].removesuffix("Z")
