"""kill -9 between every two calls to the store: right before one, or right after it (case 16)."""

import signal

import pytest
from fleet import Fleet
from store_urls import stores

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]


@stores("sqlite", "valkey9", long=("postgres",))
def test_case_r16_and_r32_kill_between_two_store_calls(any_url):
    """The process dies at its n-th step: nothing lost, nothing twice."""
    kill_at(any_url, range(2, 40, 9))


@pytest.mark.long
@stores("sqlite", "postgres", "valkey9", "redis62", "cluster")
def test_case_r16_and_r32_kill_at_each_of_the_first_sixty_steps(any_url):
    """Every step, one by one."""
    runs = kill_at(any_url, range(60))
    again = [run for run in runs if len(run.attempts) > 1]
    print(f"60 deaths, {len(runs)} runs, {len(again)} of them in more than one attempt")
    assert again  # some deaths fell into a run


def kill_at(url, steps):
    wishes = []
    with Fleet(url, lease="1s", kind="short") as fleet:
        fleet.start()
        fleet.registered(1)
        for step in steps:
            doomed = fleet.start(env={"TENURE_FAILPOINT": str(step)})
            while fleet.workers[doomed].poll() is None:
                wishes.append(fleet.trigger())
                fleet.through(wishes[-1])
            assert fleet.workers[doomed].returncode == -signal.SIGKILL
        wishes.append(fleet.trigger())
        fleet.through(wishes[-1])
        runs = fleet.runs()
        effects = {line["key"] for line in fleet.of("effect")}
    assert sorted(run.request for run in runs) == sorted(wishes)  # none lost, none twice
    assert {run.status for run in runs} == {"success"}
    # A death between the effect and its record lets the effect happen again; the record is one.
    assert {run.key for run in runs} == effects
    return runs
