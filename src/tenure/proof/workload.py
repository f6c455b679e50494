"""What the instances of a simulated world work at: two jobs drawn by a seed, handlers good and bad, people who ask.

Jobs come in two definitions, as in a deploy; the schedules of both are the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final

from tenure.proof.witness import Witness
from tenure.rules import commands as c
from tenure.rules.schedule import every
from tenure.scheduler.jobs import Job, define
from tenure.scheduler.run import Run

# How long handlers work, in seconds.
TAKES: Final = (0.0, 3.0, 12.0, 25.0, 45.0, 75.0)
LOOK: Final = 2.0

Options = dict[str, Any]


class Workload:
    """The jobs of one world, and the handlers that its witness sees."""

    def __init__(self, seed: int | str, witness: Witness) -> None:
        self._seed, self._witness = seed, witness
        dice = random.Random(f"{seed} jobs")  # noqa: S311 - a seed is to decide
        self._jobs = [("tick", 60_000, _ticks(dice)), _another(dice)]
        self._changed: Mapping[str, Options] = {name: _deployed(dice, options) for name, _, options in self._jobs}
        both = {name: (options, {**options, **self._changed[name]}) for name, _, options in self._jobs}
        witness.exclusive = frozenset(name for name, ones in both.items() if all(map(_exclusive, ones)))
        witness.patient = frozenset(
            name for name, ones in both.items() if any(one.get("when_unsure") == "continue" for one in ones)
        )

    def jobs(self, deploy: int) -> list[Job]:
        """The jobs as an instance of this deploy knows them; 0 is the first."""
        return [
            define(
                name,
                every(interval) if interval else None,
                self._at_once if options.get("lease", 1) is None else self.perform,
                {**options, **(self._changed[name] if deploy % 2 else {})},
            )
            for name, interval, options in self._jobs
        ]

    def _at_once(self, run: Run) -> None:
        """A sync handler; it takes no turned time."""
        self._witness.begins(run)
        self._witness.leaves(run)

    async def perform(self, run: Run) -> str:
        """A handler: it works, looks around, and heeds what it is told, unless it is one that doesn't."""
        dice = random.Random(f"{self._seed} {run.key} {run.attempt}")  # noqa: S311 - a seed is to decide
        left, deaf, raises = dice.choice(TAKES), dice.random() < 0.1, dice.random() < 0.1
        careful = dice.random() < 0.5
        await at_work(self._witness, run, left, deaf=deaf, careful=careful)
        if raises:
            raise ValueError("as it happens")
        return "done"

    def people(self, seconds: float) -> list[tuple[float, str, c.Command]]:
        """What people ask for: when, of which job, and what."""
        dice = random.Random(f"{self._seed} people")  # noqa: S311 - a seed is to decide
        asked: list[tuple[float, str, c.Command]] = []
        for name, interval, _ in self._jobs:
            wishes = [f"{name}-{number}" for number in range(dice.randrange(3) if interval else 8)]
            asked += [(dice.uniform(5, seconds), name, c.Trigger(wish, "a person")) for wish in wishes]
            if dice.random() < 0.25:
                begin = dice.uniform(5, seconds - 60)
                asked += [(begin, name, c.Pause()), (begin + dice.uniform(5, 60), name, c.Resume())]
        return sorted(asked, key=lambda one: one[0])


async def at_work(witness: Witness, run: Run, left: float, *, deaf: bool, careful: bool = True) -> None:
    """Work for so many seconds. deaf: it goes on when it is cancelled; careful: it checks its lease now and then."""
    witness.begins(run, deaf=deaf)
    try:
        while left > 0:
            try:
                await asyncio.sleep(min(left, LOOK))
            except asyncio.CancelledError:
                if not deaf:
                    raise
            left -= LOOK
            witness.looks(run)
            if careful:
                run.check()
    finally:
        witness.leaves(run)


def _exclusive(options: Options) -> bool:
    return options.get("overlap", "skip") == "skip" and options.get("lease", 1) is not None


def _ticks(dice: random.Random) -> Options:
    """A job of every minute, with the defaults of most options."""
    return {
        "max_attempts": dice.choice((1, 2, 3, 5)),
        "catch_up": dice.choice((0, 40, 300)),
        "max_late": dice.choice((10, 60)),
        "history": dice.choice((0, 100)),
        "jitter": dice.choice((0, 0.25, 5)),
        "when_unsure": dice.choice(("abort", "abort", "continue")),
        "timeout": dice.choice((None, None, 40)),
        "retries": dice.choice((0, 0, 1)),
    }


def _another(dice: random.Random) -> tuple[str, int, Options]:
    """A job of another kind beside it: name, interval in milliseconds (0: only on demand), options."""
    kinds: Mapping[str, tuple[int, Options]] = {
        "beside": (45_000, {"overlap": "allow", "max_attempts": dice.choice((1, 3)), "max_late": 20, "catch_up": 60}),
        "short": (20_000, {"lease": 6, "max_late": 5, "catch_up": 0, "history": dice.choice((0, 5))}),
        "claim-only": (30_000, {"lease": None, "history": dice.choice((0, 20)), "catch_up": 20}),
        "on demand": (0, {"max_attempts": 2, "max_late": 30, "catch_up": 30}),
        "long": (180_000, {"heartbeat": 9, "jitter": 2}),
    }
    name = dice.choice(sorted(kinds))
    return name, *kinds[name]


def _deployed(dice: random.Random, options: Options) -> Options:
    """What the second definition changes."""
    if options.get("lease", 1) is None:
        return dice.choice(({}, {"lease": 10}))
    return dice.choice(
        ({}, {"lease": 20}, {"overlap": "allow"}, {"overlap": "skip"}, {"max_attempts": 1}, {"lease": None})
    )
