"""Which answer is given where several apply: every pair of reasons, with a run that was started and without."""

from __future__ import annotations

import itertools

import pytest

from tenure.proof.onejob import OneJob, claim
from tenure.rules import commands as c
from tenure.rules.job import Job, Request

S = 1_000
LEASE = 30 * S
MINUTE = 60 * S


# What holds of a run of slot 0 that was started, in the order in which it is told.
HOLDS: dict[str, c.Answer] = {
    "ended": c.Ended("success"),
    "running": c.Running("runner of a", 1, 500 * S),
    "newer won": c.Ended("interrupted"),
    "used up": c.Ended("interrupted"),
    "overlap": c.Overlaps(40 * S, "w", "runner of m", 540 * S),
    "none": c.Won(2, "z", 3, 90 * S, "schedule"),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(HOLDS, 2)))
def test_the_first_answer_that_applies_to_a_run_with_state(first: str, second: str) -> None:
    """Ended, running, R5, R4, overlap, won: the earlier of any two is told."""
    holds = {first, second}
    job = OneJob(laws=False)
    job.claim(0, "a", 0, lease_ms=500 * S if "running" in holds else LEASE)
    other = OneJob(Job(requests=(Request("w", 40 * S, ""),)), laws=False)
    other.claim(40 * S, "m", 40 * S, request="w", lease_ms=500 * S)
    if "ended" in holds:
        job.finish(0, "a", S)
    beside = other.job.runs if "overlap" in holds else ()
    newest = 40 * S if "newer won" in holds else 0
    job.job = job.job._replace(runs=(*job.job.runs, *beside), newest=newest, fence=2)
    assert job.claim(0, "z", MINUTE, max_attempts=1 if "used up" in holds else 3) == HOLDS[first]


# Reasons against a new claim of slot 60 s, in the order in which they are told, and how each comes about.
REASONS: dict[str, tuple[type[c.Answer], dict[str, object], dict[str, object]]] = {
    "gone": (c.Gone, {"create": False}, {}),
    "forgotten": (c.Ended, {}, {"floor": MINUTE}),
    "early": (c.Early, {"at": MINUTE - 1}, {}),
    "superseded": (c.Superseded, {}, {"newest": 90 * S}),
    "late": (c.Late, {"at": 200 * S}, {}),
    "paused": (c.Paused, {}, {"paused": 5}),
    "overlap": (c.Overlaps, {}, {"alive": True}),
    "won": (c.Won, {}, {}),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(REASONS, 2)))
def test_the_first_answer_that_applies_to_a_run_without_state(first: str, second: str) -> None:
    """Gone, forgotten, early, superseded, late, paused, overlap, won: the earlier of any two is told."""
    if {first, second} == {"early", "late"}:
        return  # no slot is both
    answer, asked, fields = REASONS[first]
    _, asked_too, fields_too = REASONS[second]
    how = {**asked_too, **asked}
    state = {**fields_too, **fields}
    alive = state.pop("alive", False)
    job = OneJob(Job(**state), laws=False)
    if alive:
        other = OneJob(laws=False)
        other.claim(30 * S, "other", 30 * S, lease_ms=500 * S)
        job.job = job.job._replace(runs=other.job.runs)
    at = how.pop("at", MINUTE)
    assert isinstance(job.ask(claim(MINUTE, "z", **how), at), answer)
