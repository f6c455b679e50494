"""The small worlds are explored whole, and every planted fault is caught."""

from __future__ import annotations

from typing import Final

import pytest

from tenure.proof import worlds
from tenure.proof.explore import Report, explore
from tenure.proof.planted import FAULTS
from tenure.proof.smallworld import World, claim
from tenure.rules.job import Job, Request

# The branches of the rules, each beside a world that must reach it: worlds too tame prove nothing.
REACHED: Final[dict[World, tuple[str, ...]]] = {
    worlds.SKIP: (
        "R1 won", "R2 running", "R3 next attempt, expired", "R3 next attempt, released", "R4 used up",
        "R6 won, dead runs interrupted", "R7 overlap, new run", "R8 late", "R9 superseded", "R10 ended", "early",
        "gone", "R13 renewed", "R13 renewed after expiry", "R14 heartbeat refused, ended",
        "R14 heartbeat refused, released", "R14 heartbeat refused, running", "R14 finish refused, ended",
        "R14 finish refused, released", "R14 finish refused, running", "R14 release refused, ended",
        "R14 release refused, running", "R15 finished", "R15 finished after expiry", "R15 finished before",
        "R16 given back", "R16 handed over", "R16 released before", "R40a spent",
        "R40a won before, lease renewed", "store: raced", "store: expired",
    ),
    worlds.THREE: ("R6 won, dead runs interrupted", "R14 release refused, released", "R40a spent"),
    worlds.BACK: ("early", "R40a spent", "R6 won, dead runs interrupted"),
    worlds.ALLOW: ("R5 newer run won",),
    worlds.MIXED: ("R1 won, manual", "R7 heartbeat blocked", "R7 overlap, takeover", "R7 overlap, won before"),
    worlds.FORGET: (
        "R11 forgotten, floor", "R14 finish refused, unknown", "R14 heartbeat refused, unknown",
        "prune: done", "prune: nothing to do",
    ),
    worlds.FORGET_SKIP: ("prune: done", "R11 forgotten, floor"),
    worlds.MANUAL: (
        "R8 late, wish dropped", "R36 no such wish", "R37 paused", "pause: done", "pause: nothing to do",
        "resume: done", "resume: nothing to do", "trigger: done", "trigger: nothing to do",
    ),
    worlds.DEPLOYS: ("R46 claimed", "R1 won, manual", "R7 heartbeat blocked"),
    worlds.CLAIMED: ("R46 claimed", "R46 claimed before", "R46 left by a lease"),
}  # fmt: skip


def test_every_standard_world_is_explored() -> None:
    """No standard world is left out of the table above."""
    assert set(REACHED) == set(worlds.WORLDS)


@pytest.mark.parametrize("world", worlds.WORLDS, ids=lambda world: world.name)
def test_no_interleaving_of_a_small_world_breaks_a_law(world: World) -> None:
    """Every order of reads, commits, lost answers, crashes and time, to the end; and it was no tame world."""
    report = explore(world)
    print(report)
    assert report.breach is None, str(report)
    assert report.complete
    assert set(REACHED[world]) <= set(report.reached)


@pytest.mark.long
@pytest.mark.parametrize("world", worlds.LONG, ids=lambda world: world.name)
def test_no_interleaving_of_a_larger_world_breaks_a_law(world: World) -> None:
    """More slots, more attempts and more definitions at once."""
    report = explore(world)
    print(report)
    assert report.complete, str(report)


def test_instances_without_names_lose_no_branch() -> None:
    """States that differ in names alone are taken for one: with names there are more of them, and no new branch."""
    named, nameless = explore(worlds.SHORT, named=True), explore(worlds.SHORT)
    assert named.complete
    assert nameless.complete
    assert named.states > nameless.states
    assert set(named.reached) == set(nameless.reached)


def test_a_search_that_is_cut_short_says_so() -> None:
    """A limit that was met is never taken for a proof."""
    report = explore(worlds.SHORT, limit=100)
    assert not report.complete
    assert "NOT COMPLETE" in str(report)


def test_every_planted_fault_is_caught() -> None:
    """Each by the law that it breaks, by a short way, after few states."""
    table = [f"{'fault':46} {'law':4} {'caught':6} {'steps':>5} {'states':>7}"]
    missed = []
    for fault in FAULTS:
        report = explore(
            fault.world, fault.rule, versions=fault.versions, deadlines=fault.deadlines, without=fault.without
        )
        caught = report.breach.law if report.breach else "none"
        table.append(f"{fault.name:46} {fault.law:4} {caught:6} {len(report.path):5} {report.states:7}")
        if caught != fault.law or len(report.path) > 14 or report.states > 100_000:
            missed.append(f"{fault.name}: {report}")
    print("\n".join(table))
    assert not missed, "\n".join(missed)


def test_a_way_to_a_breach_is_told_in_words() -> None:
    """One line a step: when, who, what, and what the document says then."""
    report = _report_of("hand-overs counted wrongly")
    assert report.path[0] == "at 0ms: A reads and decides the claim of run 0 with token t1 (skip)"
    assert report.path[1].startswith("at 0ms: A commits the claim of run 0 with token t1 (skip) -> newest 0, fence 1")
    assert report.path[-1].endswith("I6: attempt 3 was won, the 3. that counts, of at most 2")


def _report_of(name: str) -> Report:
    fault = next(one for one in FAULTS if one.name == name)
    return explore(fault.world, fault.rule, without=fault.without)


def test_what_a_store_clock_that_goes_back_can_do_beside_a_manual_run() -> None:
    """A limit, told in the promises: a lapsed run that a manual one left unfinished has its lease back for a while."""
    report = explore(
        World(
            "manual, clock back",
            worlds.at(0, 60, 90),
            (claim(worlds.FIRST), claim(worlds.FIRST, request="w", bound_ms=100_000)),
            start=Job(requests=(Request("w", 0, ""),)),
            wins=2,
            steps_back=True,
        )
    )
    assert report.breach is not None
    assert report.breach.law == "I1"
