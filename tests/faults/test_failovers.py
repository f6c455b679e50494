"""The server that instances run on is replaced by another one, while they hold runs and start new ones."""

import contextlib
import signal
import time

import pytest
from fleet import Fleet
from postgres_private import both, wait_for_standby
from proxy import Proxy, target_of, through
from redis_server import Sentinel, free_port, fresh_prefix, slot_of, with_options
from redis_server import until as comes_true

from tenure.stores.redis.documents import bucket_of

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(180)]


def test_r44_a_standby_is_promoted_while_a_run_is_held(pair):
    """Synchronous: the run goes on in its first attempt on the new primary, and nothing acknowledged is missing."""
    primary, standby = pair
    wait_for_standby(primary)
    with Fleet(both(primary, standby), lease="8s", heartbeat=0.5, takes=4) as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        fleet.wait("begin")
        primary.stop(signal.SIGQUIT)
        standby.sql("SELECT pg_promote()")
        run = fleet.through(wish)
    assert standby.sql("SELECT pg_is_in_recovery()") == [(False,)]
    assert (run.status, len(run.attempts)) == ("success", 1)


@pytest.mark.parametrize("kind", ["valkey9", "redis62"])
def test_r43_a_replica_is_promoted_without_acknowledged_writes(private, kind):
    """The weaker promise: the last slot, whose success was acknowledged, runs twice; its record stays one."""
    master = private(kind, port=free_port())
    replica = private(kind, port=free_port(), replicaof=("127.0.0.1", str(master.port)))
    comes_true(lambda: replica.info("replication")["master_link_status"] == "up")
    proxy = Proxy(target_of(master.url))
    url = with_options(through(proxy, master.url), prefix=fresh_prefix())
    with contextlib.closing(proxy), Fleet(url, lease="1s", kind="short", every=12, jitter=0) as fleet:
        fleet.keeps = False
        for _ in range(2):
            fleet.start()
        fleet.wait("event", event="success")
        comes_true(lambda: master.run("WAIT", 1, 100) == 1)
        with replica.frozen():
            master.run("CLIENT", "KILL", "TYPE", "replica")  # else what it was sent waits in its socket
            lost = fleet.news("begin")
            fleet.wait("event", event="success", slot=lost["slot_ms"])
            master.stop()
            for name in fleet.workers:  # only after an outage of more than a heartbeat they look for what is due
                fleet.wait("event", event="store-down", name=name)
            time.sleep(0.5)
        replica.run("REPLICAOF", "NO", "ONE")
        proxy.target = target_of(replica.url)
        again = fleet.news("begin", key=lost["key"])
        fleet.wait("event", event="success", slot=lost["slot_ms"])
        fleet.news("event", event="success")
        runs = [run for run in fleet.runs() if run.slot == lost["slot_ms"]]
    assert again["token"] != lost["token"]
    assert [line["token"] for line in fleet.of("effect", key=lost["key"])] == [lost["token"], again["token"]]
    assert [(run.status, [one.token for one in run.attempts]) for run in runs] == [("success", [again["token"]])]


def test_sentinel_promotes_while_a_run_is_held(private, tmp_path):
    """The instances ask the sentinel again; the run goes on in its first attempt on the new master."""
    master = private(port=free_port())
    replica = private(port=free_port(), replicaof=("127.0.0.1", str(master.port)))
    comes_true(lambda: replica.info("replication")["master_link_status"] == "up")
    sentinel = Sentinel(tmp_path, master.port)
    with contextlib.ExitStack() as stack:
        stack.callback(sentinel.stop)
        sentinel.start()
        url = with_options(f"redis+sentinel://127.0.0.1:{sentinel.port}/main", prefix=fresh_prefix(), timeout=2)
        fleet = stack.enter_context(Fleet(url, lease="20s", heartbeat=0.5, takes=6))
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        fleet.wait("begin")
        comes_true(lambda: master.run("WAIT", 1, 100) == 1)
        master.stop()
        comes_true(lambda: replica.info("replication")["role"] == "master")
        fleet.wait("end")
        run = fleet.through(wish)
    assert (run.status, len(run.attempts)) == ("success", 1)


def test_slots_move_and_masters_fail_while_a_run_is_held(private):
    """A cluster whose slot moves and whose master then dies: the run goes on in its first attempt."""
    cluster = private("cluster")
    slot = slot_of(bucket_of("job:work"))
    url = with_options(cluster.url, prefix=fresh_prefix(), timeout=2)
    with Fleet(url, lease="20s", heartbeat=0.5, takes=6) as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        fleet.wait("begin")
        source = cluster.owner(slot)
        target = next(node for node in cluster.masters() if node is not source)
        cluster.move(slot, source, target)
        replica = cluster.replica_of(target)
        comes_true(lambda: replica.info("replication")["master_link_status"] == "up")
        target.stop()
        comes_true(lambda: replica.info("replication")["role"] == "master")
        run = fleet.through(wish)
    assert (run.status, len(run.attempts)) == ("success", 1)
