"""The exam that every store sits; for the author of a store, with pytest or without.

    report = await sit(hall)
    print(report)
    random_sequences(hall)

`sit` puts every question of `QUESTIONS`, each on a fresh store. `random_sequences` holds the store step by step
against the memory store: random reads and changes, and random commands of the rules. It needs hypothesis, and
runs a loop of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from tenure.proof import asked_beside, asked_documents, asked_together  # noqa: F401 - their questions register
from tenure.proof.hall import QUESTIONS, Hall, NotAskedError
from tenure.proof.sequences import random_sequences

__all__ = ["QUESTIONS", "Hall", "NotAskedError", "Report", "Result", "random_sequences", "sit"]

# The longest that one question may take, in seconds.
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """How one question went. `passed` None: it is none for this store, and `said` tells why."""

    name: str
    asked: str
    passed: bool | None
    said: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """How the exam went; as text, one line for each question."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """Whether no question failed."""
        return all(result.passed is not False for result in self.results)

    def __str__(self) -> str:
        words = {True: "ok", False: "FAILED", None: "not asked"}
        lines = []
        for result in self.results:
            said = f"\n    {result.said}" if result.said else ""
            lines.append(f"{words[result.passed]:9} {result.asked} ({result.seconds:.2f} s){said}")
        failed = sum(result.passed is False for result in self.results)
        return "\n".join([*lines, f"{len(self.results) - failed} of {len(self.results)} questions without a failure"])


async def sit(hall: Hall, names: Iterable[str] = ()) -> Report:
    """Put the questions of these names, or all, one after the other."""
    return Report(tuple([await _put(hall, name) for name in names or QUESTIONS]))


async def _put(hall: Hall, name: str) -> Result:
    asked = (QUESTIONS[name].__doc__ or name).strip().partition("\n")[0]
    began = time.perf_counter()
    passed: bool | None = True
    said = ""
    try:
        async with asyncio.timeout(LONGEST):
            await QUESTIONS[name](hall)
    except NotAskedError as reason:
        passed, said = None, str(reason)
    except Exception as error:  # noqa: BLE001 - a report tells of whatever a store raises
        passed, said = False, f"{type(error).__name__}: {error}"
    return Result(name, asked, passed, said, time.perf_counter() - began)
