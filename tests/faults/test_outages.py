"""The store goes away while instances hold runs: restarted, silent, not there yet, out of connections."""

import time

import pytest
from fleet import Fleet
from proxy import Proxy, target_of, through
from redis_server import with_options
from store_urls import crash, servers, stores

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@servers("postgres", long=("valkey9", "redis62", "redis70"))
def test_r25_a_restart_while_a_run_is_held(server, store_url):
    """Killed and started again within a lease: the run goes on in its first attempt, and is one success."""
    with Fleet(store_url, lease="4s", takes=3) as fleet:
        for _ in range(3):
            fleet.start()
        fleet.registered(3)
        wish = fleet.trigger()
        begun = fleet.wait("begin")
        crash(server)
        fleet.wait("event", event="store-down", name=begun["name"])
        server.start()
        fleet.wait("event", event="store-up", name=begun["name"])
        run = fleet.through(wish)
    assert (run.status, len(run.attempts)) == ("success", 1)
    assert len(fleet.of("effect")) == 1


@servers("valkey9", long=("postgres", "redis62", "redis70"))
def test_r25_an_outage_longer_than_the_lease(server, store_url):
    """The handler is told to stop before the lease is over; once the store is back, the next attempt is won."""
    with Fleet(store_url, lease="1s") as fleet:
        for _ in range(3):
            fleet.start()
        fleet.registered(3)
        wish = fleet.trigger()
        begun = fleet.wait("begin", attempt=1)
        crash(server)
        fleet.harm()
        ended = fleet.wait("end", token=begun["token"])
        time.sleep(1)
        server.start()
        run = fleet.through(wish)
    assert ended["how"] in ("LeaseLost", "CancelledError")
    assert run.status == "success"
    assert run.attempts[0].how in ("unsure", "expired")
    assert [line["attempt"] for line in fleet.of("effect")] == [2]


@servers("valkey9", long=("postgres", "redis62"))
def test_r44_a_store_that_accepts_and_never_answers(server, store_url):
    """Every call ends by itself, handlers are told to stop; when it answers again the run goes on."""
    proxy = Proxy(target_of(server.url))
    with Fleet(store_url, lease="1s") as fleet:
        for _ in range(3):
            fleet.start(url=through(proxy, store_url))
        fleet.registered(3)
        wish = fleet.trigger()
        begun = fleet.wait("begin", attempt=1)
        proxy.hold()
        fleet.harm()
        fleet.wait("event", event="unsure", name=begun["name"])
        for name in fleet.workers:
            fleet.wait("event", event="store-down", name=name)
        proxy.heal()
        run = fleet.through(wish)
    proxy.close()
    assert run.status == "success"
    assert len(run.attempts) > 1


@servers("valkey9", long=("postgres", "redis62"))
def test_case_r31_the_store_comes_after_the_instances(server, store_url):
    """Started while it is down they wait; they register and run once it is there."""
    crash(server)
    with Fleet(store_url, lease="1s", kind="short") as fleet:
        names = [fleet.start() for _ in range(2)]
        for name in names:
            fleet.wait("event", event="store-down", name=name)
        server.start()
        fleet.registered(2)
        run = fleet.through(fleet.trigger())
    assert (run.status, len(run.attempts)) == ("success", 1)


@pytest.mark.long
@servers("postgres", "valkey9", "redis62")
def test_case_r27_the_store_is_gone_twenty_times(server, store_url):
    """A job of every second: after each outage it is alive, and each slot was run or is told as missed."""
    with Fleet(store_url, lease="1s", kind="short", every=1, jitter=0) as fleet:
        for _ in range(2):
            fleet.start()
        fleet.harm()
        for _ in range(20):
            fleet.news("effect")
            crash(server)
            time.sleep(0.5)
            server.start()
        fleet.news("effect")
        fleet.news("effect")


@stores("postgres")
def test_r44_handlers_that_use_up_the_pool(any_url):
    """They hold all transactions for three leases: heartbeats go on beside them, and who finds none is told."""
    url = with_options(any_url, transactions=2, timeout=1)
    with Fleet(url, lease="1s", kind="greedy", block=3, overlap="allow") as fleet:
        fleet.start()
        fleet.registered(1)
        wishes = [fleet.trigger() for _ in range(5)]
        runs = [fleet.through(wish) for wish in wishes]
    assert [len(run.attempts) for run in runs] == [1] * 5
    assert sorted(run.status for run in runs) == ["failed"] * 3 + ["success"] * 2
    assert all("transactions=" in run.error[1] for run in runs if run.status == "failed")
