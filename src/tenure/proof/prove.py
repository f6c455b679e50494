"""Many schedules, on one process or several: what they met, and the first that breaks a law, shrunk."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

from tenure.proof import conduct
from tenure.proof.chronicle import HISTORY_LAWS
from tenure.proof.laws import ANSWER_LAWS, CHANGE_LAWS
from tenure.proof.simulate import MINUTES, SOUND, Outcome, Planted, simulate
from tenure.proof.sometimes import REQUIRED

# Schedules per task of a worker.
CHUNK: Final = 5
# The laws that the witness holds at every step, beside those of the tables.
AT_EVERY_STEP: Final = ("S20", "S21", "I9", "R27", "R28a")
LAWS: Final = tuple(
    sorted({*CHANGE_LAWS, *ANSWER_LAWS, *HISTORY_LAWS, *conduct.LAWS, *AT_EVERY_STEP}, key=lambda one: (one[0], one))
)
# From so many schedules on, a search that has not met all that is required is too tame.
TAME: Final = 1_000


@dataclass
class Tally:
    """What was searched so far. failed: seed, law and sentence of each schedule that broke one."""

    schedules: int = 0
    minutes: float = 0.0
    wins: int = 0
    steps: int = 0
    cpu_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str, str]] = field(default_factory=list)
    highest: int = -1

    def take(self, outcome: Outcome) -> None:
        """One more schedule."""
        self.schedules += 1
        self.minutes += outcome.minutes
        self.wins += outcome.wins
        self.steps += outcome.steps
        self.faults.update(outcome.faults)
        self.reached.update(outcome.reached)
        self.highest = max(self.highest, outcome.seed)
        if outcome.breach is not None:
            self.failed.append((outcome.seed, outcome.breach.law, str(outcome.breach).partition(": ")[2]))

    def add(self, other: Tally) -> None:
        """What another process has searched."""
        self.schedules += other.schedules
        self.minutes += other.minutes
        self.wins += other.wins
        self.steps += other.steps
        self.cpu_seconds += other.cpu_seconds
        self.faults.update(other.faults)
        self.reached.update(other.reached)
        self.failed += other.failed
        self.highest = max(self.highest, other.highest)

    @property
    def unmet(self) -> tuple[str, ...]:
        """What should have been met by now and was not."""
        return tuple(sorted(REQUIRED - set(self.reached))) if self.schedules >= TAME else ()


def search(
    seeds: Iterable[int], minutes: float = MINUTES, *, workers: int = 1, seconds: float | None = None
) -> Iterator[Tally]:
    """The tally, again and again as it grows: until the seeds or the real seconds are over, or a law is broken."""
    end = float("inf") if seconds is None else time.monotonic() + seconds
    chunks = _chunks(iter(seeds))
    tally = Tally()
    for part in _in_this_process(chunks, minutes, end) if workers == 1 else _in_others(chunks, minutes, end, workers):
        tally.add(part)
        yield tally
        if tally.failed:
            return


def _chunks(seeds: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(itertools.islice(seeds, CHUNK)):
        yield chunk


def _in_this_process(chunks: Iterator[list[int]], minutes: float, end: float) -> Iterator[Tally]:
    for chunk in chunks:
        if time.monotonic() >= end:
            return
        yield played(chunk, minutes)


def _in_others(chunks: Iterator[list[int]], minutes: float, end: float, workers: int) -> Iterator[Tally]:
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        under_way: set[Future[Tally]] = set()
        try:
            while True:
                while len(under_way) < 2 * workers and time.monotonic() < end and (chunk := next(chunks, None)):
                    under_way.add(pool.submit(played, chunk, minutes))
                if not under_way:
                    return
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        finally:
            for one in under_way:
                one.cancel()


def played(seeds: Sequence[int], minutes: float) -> Tally:
    """The tally of these seeds."""
    tally, begun = Tally(), time.process_time()
    for seed in seeds:
        tally.take(simulate(seed, minutes))
    tally.cpu_seconds = time.process_time() - begun
    return tally


def shrunk(seed: int, minutes: float = MINUTES, planted: Planted = SOUND) -> tuple[int, ...]:
    """The numbers of the fewest faults found with which the seed still breaks the same law: each left out in turn."""
    whole = simulate(seed, minutes, planted=planted)
    if whole.breach is None:
        raise ValueError(f"seed {seed} breaks no law")
    needed = list(range(len(whole.plan)))
    for place in reversed(range(len(whole.plan))):
        fewer = [one for one in needed if one != place]
        less = simulate(seed, minutes, only=fewer, planted=planted)
        if less.breach is not None and less.breach.law == whole.breach.law:
            needed = fewer
    return tuple(needed)


def replay(seed: int, minutes: float, only: Sequence[int]) -> str:
    """The line that plays it again."""
    length = "" if minutes == MINUTES else f" --length {minutes:g}"
    return f"tenure prove --seeds {seed}{length} --faults {','.join(map(str, only)) or 'none'}"
