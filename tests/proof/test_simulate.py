"""Whole instances under simulated faults: no law is broken, and a seed is the same history everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.proof import faults
from tenure.proof.conduct import LAWS
from tenure.proof.prove import replay, search, shrunk
from tenure.proof.sabotage import SABOTAGES
from tenure.proof.simulate import simulate

ROOT = Path(__file__).parents[2]
DIGESTS = "from tenure.proof.simulate import simulate; print([simulate(seed, {}).digest for seed in range({})])"


@pytest.mark.parametrize("first", range(0, 48, 3))
def test_no_schedule_breaks_a_law(first: int) -> None:
    """Forty-eight schedules of twelve simulated minutes, with every kind of fault; `make prove` plays thousands."""
    for seed in range(first, first + 3):
        outcome = simulate(seed)
        assert outcome.breach is None, f"{replay(seed, 12, range(len(outcome.plan)))}: {outcome.breach}"
        assert outcome.wins > 5


def test_every_kind_of_fault_is_drawn() -> None:
    """A kind that never comes would be no fault."""
    drawn = {fault.kind for seed in range(200) for fault in faults.draw(seed, 720)}
    assert drawn == set(faults.KINDS)


def test_the_same_seed_is_the_same_history_in_another_process() -> None:
    """Whatever the hashes of strings are there."""
    told = {_digests(sys.executable, hashes, 3, 3) for hashes in ("1", "4242")}
    assert told == {f"{[simulate(seed, 3).digest for seed in range(3)]}\n"}


@pytest.mark.long
def test_the_same_hundred_seeds_on_another_python() -> None:
    """Twice a hundred seeds here, and once on Python 3.13, with the packages of this one."""
    other = _another_python("3.13")
    if other is None:
        pytest.skip("there is no python3.13 on this machine")
    here = {_digests(sys.executable, hashes, 12, 100) for hashes in ("1", "2")}
    assert here == {_digests(other, "3", 12, 100)}


def _digests(python: str, hashes: str, minutes: int, seeds: int) -> str:
    packages = [str(ROOT / "src"), *(one for one in sys.path if one.endswith("site-packages"))]
    environment = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(packages)}
    command = [python, "-B", "-c", DIGESTS.format(minutes, seeds)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def _another_python(version: str) -> str | None:
    """One that runs: a shim of pyenv may name one that is not chosen."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = [*(str(one) for one in installed), shutil.which(f"python{version}")]
    for python in (one for one in found if one is not None):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None


def test_other_seeds_are_other_histories() -> None:
    """A digest that is always the same would prove nothing."""
    assert len({simulate(seed, 3).digest for seed in range(5)}) == 5


def test_faults_can_be_left_out() -> None:
    """What is left means the same: with none there is no trouble, and every slot runs."""
    calm = simulate(1, only=())
    assert calm.faults == {}
    assert calm.breach is None
    assert {line.what for line in calm.lines} & {"unsure", "lost", "store-down"} == set()
    assert simulate(1, only=(0, 1)).faults.total() == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda one: one.what)
def test_what_is_planted_is_found(sabotage) -> None:  # type: ignore[no-untyped-def]
    """By its known seed, by a law that it breaks."""
    found = simulate(sabotage.seed, planted=sabotage.planted).breach
    assert found is not None
    assert found.law in sabotage.laws, str(found)


def test_enough_is_planted_in_every_place() -> None:
    """In rules, ledger, keeper, catch-up, timers and store, and each is found within two thousand seeds."""
    assert {one.place for one in SABOTAGES} >= {"rules", "ledger", "keeper", "catch-up", "timers", "store"}
    assert len(SABOTAGES) >= 20
    assert all(0 <= one.seed < 2_000 for one in SABOTAGES)


def test_the_laws_of_conduct_are_seen_to_be_sharp_in_whole_instances() -> None:
    """By something planted, but those that others forestall; `test_conduct.py` breaks each of them by hand."""
    caught = {law for one in SABOTAGES for law in one.laws[:1]}
    assert set(LAWS) - caught <= {"L1", "L3", "L4", "L5", "L8", "S23", "S24"}


@pytest.mark.long
@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda one: one.what)
def test_the_first_seed_that_finds_it(sabotage) -> None:  # type: ignore[no-untyped-def]
    """The seeds told in docs/proof.md are the first: none before finds it."""
    first = next(seed for seed in range(2_000) if simulate(seed, planted=sabotage.planted).breach is not None)
    assert first == sabotage.seed


def test_a_seed_is_shrunk_to_the_faults_it_needs() -> None:
    """And told as one line that plays it again."""
    sabotage = next(one for one in SABOTAGES if one.what == "no runner judges itself")
    needed = shrunk(sabotage.seed, planted=sabotage.planted)
    whole = simulate(sabotage.seed, planted=sabotage.planted)
    less = simulate(sabotage.seed, only=needed, planted=sabotage.planted)
    assert 0 < len(needed) <= 3 < len(whole.plan)
    assert less.breach is not None
    assert whole.breach is not None
    assert less.breach.law == whole.breach.law
    assert replay(sabotage.seed, 12, needed) == (
        f"tenure prove --seeds {sabotage.seed} --faults {','.join(map(str, needed))}"
    )


def test_a_search_adds_up() -> None:
    """Two seeds of three simulated minutes; the tally is theirs."""
    *_, tally = search(range(2), 3)
    assert (tally.schedules, tally.minutes, tally.highest, tally.failed) == (2, 6, 1, [])
    assert tally.wins == sum(simulate(seed, 3).wins for seed in range(2))
    assert tally.unmet == ()


@pytest.mark.long
def test_a_search_on_two_processes_is_the_same_search() -> None:
    """Whoever plays a seed, it is the same."""
    *_, here = search(range(20), 3)
    *_, there = search(range(20), 3, workers=2)
    assert (here.schedules, here.faults, here.reached) == (there.schedules, there.faults, there.reached)
