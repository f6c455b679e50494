"""Each scene of the pages, played by real instances on a turned clock. A scene that ends otherwise is an error.

Chance is steady here: each instance draws the same number again and again. So a drawing changes when the code does
something else, and not when it draws once more than before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from drawing.talk import STORE, Talk, clock, listening, sequence, slot_clock
from tenure.rules.instant import span
from tenure.rules.job import Run as Unfinished
from tenure.rules.schedule import every
from tenure.scheduler.jobs import Job, define
from tenure.scheduler.run import Run
from tenure.testing import Cluster

BEFORE: Final = "2026-01-01T00:59:50.500Z"  # 9.5 seconds before the first slot
NAME: Final = "report"
# What each instance draws, of 0 to 1. The lowest waits the shortest jitter, and so comes first.
DRAWS: Final = {"a": 0.2, "b": 0.5, "c": 0.8, "z": 0.2}
# How long a call travels to the store, and back.
WAY: Final = 0.001

Play = Callable[[Talk, Cluster], bool]


class SceneError(Exception):
    """A scene no longer happens as its page says."""


class Steady:
    """An instance's chance, always the same; made by the seed that a cluster gives, which ends in its name."""

    def __init__(self, seed: str) -> None:
        self._name = seed.rpartition(" ")[2]
        self._tokens = 0

    def draw(self) -> float:
        return DRAWS[self._name]

    def token(self) -> str:
        self._tokens += 1
        return f"{self._name}{self._tokens}"


def job(when: str = "1h", *, takes: float = 0.0, handler: Any = None, **options: Any) -> Job:
    """A job that runs for `takes` turned seconds."""

    async def perform() -> None:
        await asyncio.sleep(takes)

    return define(NAME, every(span(when)), handler or perform, options)


@contextmanager
def stage(one: Job, names: str, *, way: float = WAY, start: str = BEFORE) -> Iterator[Talk]:
    """A cluster of these instances, and what will be told of it."""
    with (
        patch("tenure.testing.cluster.SeededChance", Steady),
        Cluster([one], 0, start=start, delay=(way, way)) as cluster,
    ):
        talk = Talk(cluster)
        for name in names:
            begin(talk, name)
        yield talk


def played(one: Job, names: str, play: Play, start: str = BEFORE) -> str:
    """The drawing of a scene, if `play` says that the story was told."""
    with stage(one, names, start=start) as talk:
        with listening(talk):
            told = play(talk, talk.cluster)
        if not told:
            drawing = sequence(talk)
            raise SceneError(f"{play.__qualname__}: it no longer goes as the page says, but so:\n{drawing}")
        return sequence(talk)


def begin(talk: Talk, name: str) -> None:
    """Start an instance whose events are heard."""
    talk.cluster.start(name).events.on("*", talk.hear)


def to(talk: Talk, text: str) -> None:
    """Turn the clock to a time of the day."""
    now = clock(talk.cluster.now())
    talk.cluster.advance(_seconds(text) - _seconds(now))


def _seconds(text: str) -> float:
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def unfinished(cluster: Cluster) -> Unfinished | None:
    """The newest run that has not ended."""
    runs = cluster.page(NAME).job.runs
    return runs[-1] if runs else None


def runs_on(cluster: Cluster, name: str) -> bool:
    """Whether that instance holds the live lease."""
    run = unfinished(cluster)
    return run is not None and run.lease.live(cluster.now()) and run.lease.holder == name


def lapse(talk: Talk) -> None:
    """Note when the lease of the run will run out."""
    run = unfinished(talk.cluster)
    if run is not None:
        talk.note(STORE, f"the lease of run {slot_clock(run.slot)} has run out", at=run.lease.until)


def takeover() -> str:
    """A runner dies; of two backups one takes over."""

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:23.5")
        if not runs_on(c, "a"):
            return False
        talk.note("a", "dies, kill -9")
        c.kill("a")
        lapse(talk)
        c.until(lambda: c.heard("takeover"))
        c.advance(0.4)
        return runs_on(c, "b")

    return played(job(takes=300), "abc", play)


def fencing() -> str:
    """A runner is frozen for longer than its lease, and wakes."""

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:08")
        if not runs_on(c, "a"):
            return False
        talk.note("a", "freezes, as in a stalled machine")
        c.freeze("a")
        lapse(talk)
        c.until(lambda: c.heard("takeover"))
        c.advance(8)
        talk.note("a", "wakes")
        c.thaw("a")
        c.until(lambda: c.heard("lost"))
        return runs_on(c, "b")

    return played(job(takes=300), "ab", play)


def cut_off() -> str:
    """A runner that can't reach the store stops by itself, before its lease has run out."""

    async def handler(run: Run) -> None:
        try:
            await asyncio.sleep(300)
        except asyncio.CancelledError:
            told.append(run.runner)
            raise

    told: list[str] = []

    def play(talk: Talk, c: Cluster) -> bool:
        told.clear()
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:08")
        if not runs_on(c, "a"):
            return False
        talk.note(("a", STORE), "the network between them is cut")
        c.partition("a")
        lapse(talk)
        c.until(lambda: c.heard("unsure"))
        c.advance(0.05)
        talk.note("a", "its handler has been cancelled")
        stopped = told == ["a"]
        c.until(lambda: c.heard("takeover"))
        c.advance(0.4)
        return stopped and runs_on(c, "b")

    return played(job(handler=handler), "ab", play)


def next_slot_first() -> str:
    """The lease of a dead runner runs out just before the next slot, whose claim comes first."""

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:30.3")
        if not runs_on(c, "a"):
            return False
        talk.note("a", "dies, kill -9")
        c.kill("a")
        lapse(talk)
        to(talk, "01:01:00.5")
        ended = c.ended(NAME)
        return bool(ended) and ended[0].status == "interrupted" and runs_on(c, "b")

    # The start decides when heartbeats come: here one comes a moment before the half minute.
    return played(job("1m", takes=50, jitter="10ms"), "ab", play, "2026-01-01T00:59:53.900Z")


def overlap() -> str:
    """A run takes longer than the time between two slots."""

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:30.3")
        runners = [event.runner for event in c.heard("started")]
        return runners == ["a", "a"] and [mark.count for mark in c.marks(NAME)] == [2]

    return played(job("10s", takes=25), "ab", play)


def hand_over() -> str:
    """stop() while a handler runs: it raises when it is told, and a backup has the run at once."""

    async def handler(run: Run) -> None:
        if run.attempt == 1:
            await run.lost.wait()
            run.check()
        await asyncio.sleep(30)

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        talk.on = True
        to(talk, "01:00:07")
        if not runs_on(c, "a"):
            return False
        talk.note("a", "stop() sets the run's signal, and the handler raises")
        c.stop("a")
        c.until(lambda: c.heard("takeover"))
        c.advance(0.4)
        return runs_on(c, "b")

    return played(job(handler=handler), "ab", play)


def catch_up() -> str:
    """Nobody was there at the slot; two instances start two minutes later."""

    def play(talk: Talk, c: Cluster) -> bool:
        c.advance(5)
        c.kill("z")
        to(talk, "01:02:00")
        talk.note(STORE, "run 01:00:00 was due, and nobody was there")
        talk.on = True
        talk.note(("a", "b"), "start")
        begin(talk, "a")
        c.advance(0.1)
        begin(talk, "b")
        c.advance(1.2)
        return [event.runner for event in c.heard("started")] == ["a"] and len(c.heard("backup")) == 1

    return played(job(takes=60, jitter=1), "z", play)


def late_claim() -> str:
    """A claim is held up on its way for longer than it may be late."""

    def play(talk: Talk, c: Cluster) -> bool:
        to(talk, "00:59:59")
        wire = c.nodes["a"].wire
        read = wire.read
        held: list[bool] = []

        async def stuck(asks: Any) -> Any:
            if not held and any(one.runs for one in asks):
                held.append(True)
                await asyncio.sleep(90)
                talk.note(("a", STORE), "it arrives, 90 s after it was sent")
            return await read(asks)

        wire.read = stuck  # type: ignore[method-assign]
        wire.timeout = 120
        talk.on = True
        to(talk, "01:01:31")
        return bool(c.heard("skip"))

    return played(job(catch_up=0), "a", play)
