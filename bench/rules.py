"""Decisions and explored states a second of CPU: what one core does that does nothing else."""

from __future__ import annotations

import time

from rows import Row

from tenure.proof import worlds
from tenure.proof.explore import explore
from tenure.rules import commands as c
from tenure.rules.job import EMPTY, decode, encode
from tenure.rules.runs import decide


def measure(*, quick: bool) -> list[Row]:
    """A life of a run, decided again and again; and one of the standard worlds, explored whole."""
    return [*_decisions(20_000 if quick else 200_000), *_explored()]


def _decisions(count: int) -> list[Row]:
    claim = c.Claim(60_000, "one", "a", 30_000, 3, 60_000, "skip", "schedule", True)
    held = decide(EMPTY, claim, 60_100).job
    asked = [
        (EMPTY, claim, 60_100),
        (held, c.Heartbeat(60_000, "one"), 65_000),
        (held, c.Claim(60_000, "two", "b", 30_000, 3, 0, "skip", "takeover", False), 66_000),
        (held, c.Claim(60_000, "two", "b", 30_000, 3, 0, "skip", "takeover", False), 99_000),
        (held, c.Finish(60_000, "one", "success"), 70_000),
        (held, c.Release(60_000, "one", False), 70_000),
    ]
    begin = time.process_time()
    for _ in range(count // len(asked)):
        for job, command, now in asked:
            decide(job, command, now)
    rate = count / (time.process_time() - begin)
    begin = time.process_time()
    for _ in range(count // 4):
        decode(encode(held))
    trips = count / 4 / (time.process_time() - begin)
    return [
        Row("decide(), mixed commands", rate, "/s of CPU", ">= 100,000", rate >= 100_000),
        Row("a document written and read", trips, "/s of CPU", detail={"bytes": len(encode(held))}),
    ]


def _explored() -> list[Row]:
    begin = time.process_time()
    found = explore(worlds.SKIP)
    rate = found.states / (time.process_time() - begin)
    assert found.complete
    assert found.breach is None, found
    detail = {"states": found.states, "transitions": found.transitions, "documents": found.documents}
    return [Row("states explored, two instances and two slots", rate, "/s of CPU", ">= 20,000", rate >= 20_000, detail)]
