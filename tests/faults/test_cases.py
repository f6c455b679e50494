"""Cases from the field that need processes, on each kind of store."""

import signal
import time

import pytest
from fleet import Fleet
from redis_server import until
from store_urls import stores

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@stores("pgbouncer", long=("sqlite", "postgres", "valkey9", "cluster"))
def test_case_r1_a_runner_whose_commits_are_rolled_back(any_url):
    """Fifty in a row: its handler stops within the lease, another takes the run over, and it writes nothing more."""
    with Fleet(any_url, lease="1s") as fleet:
        doomed = fleet.start(env={"TENURE_ROLLBACKS": "50"})
        fleet.harm(doomed)
        fleet.registered(1)
        wish = fleet.trigger()
        begun = fleet.wait("begin", name=doomed)
        fleet.start()
        ended = fleet.wait("end", token=begun["token"])
        second = fleet.wait("begin", attempt=2)
        fleet.wait("event", event="lost", name=doomed)
        run = fleet.through(wish)
    assert ended["boot"] - begun["boot"] <= 1 + 0.5
    assert second["name"] != doomed
    assert [one.how for one in run.attempts] == ["expired", "success"]


@stores("sqlite", long=("postgres", "pgbouncer", "valkey9", "redis62", "redis70", "cluster"))
def test_case_r37_sigterm_while_a_handler_goes_on(any_url):
    """It runs three leases longer, within the stop's time: heartbeats go on, nobody takes over, its success counts."""
    with Fleet(any_url, lease="1s", kind="deaf", block=3, stop_timeout=10) as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        begun = fleet.wait("begin")
        fleet.signal(begun["name"], signal.SIGTERM)
        run = fleet.through(wish)
        assert fleet.workers[begun["name"]].wait(10) == 0
    assert (run.status, len(run.attempts)) == ("success", 1)
    assert run.attempts[0].beats > 10


@pytest.mark.long
@stores("sqlite", "postgres", "pgbouncer", "valkey9", "redis62", "redis70", "cluster")
def test_case_r12_a_handler_of_ten_leases(any_url):
    """One attempt."""
    with Fleet(any_url, lease="1s", takes=10) as fleet:
        for _ in range(3):
            fleet.start()
        fleet.registered(3)
        run = fleet.through(fleet.trigger())
    assert (run.status, len(run.attempts)) == ("success", 1)


@pytest.mark.long
@stores("sqlite", "postgres", "postgres15", "pgbouncer", "valkey9", "redis62", "redis70", "cluster")
def test_case_r36_and_r42_a_runner_that_is_killed(any_url):
    """On every store the run goes on within lease + two heartbeats of the last one."""
    with Fleet(any_url) as fleet:
        found = fleet.takeovers(3)
    assert max(since_beat for _, since_beat in found) <= 3 + 2 * 0.5 + 0.5


@pytest.mark.long
@stores("sqlite", "postgres", "valkey9")
def test_case_r64_sigstop_across_five_hundred_slots(any_url):
    """On waking at most one of them is run, and the others are recorded as missed."""
    with Fleet(any_url, lease="2s", kind="short", every=0.05, jitter=0, history=100_000) as fleet:
        name = fleet.start()
        fleet.wait("effect")
        fleet.freeze(name)
        time.sleep(26)
        fleet.signal(name, signal.SIGCONT)
        until(lambda: slept_over(fleet))
        fleet.news("effect")
        (mark,) = slept_over(fleet)
        ran = [run.slot for run in fleet.runs() if mark.slot <= run.slot <= mark.until]
    assert ran == []


def slept_over(fleet):
    """The long stretch of slots that nobody ran."""
    marks = fleet.ask(lambda records: records.store.marks("job:work", 0, 1 << 53, 100))
    return [mark for mark in marks if mark.why == "missed" and mark.count >= 500]
