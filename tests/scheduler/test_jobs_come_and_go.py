"""Jobs that are put to a running instance, changed, and taken away again."""

import json

from tenure.scheduler.presence import SILENT
from tenure.stores.contract import Ask


def on(cluster, name, what):
    """Have one instance do something, on its own loop."""
    task = cluster.loop.spawn(cluster.nodes[name].name, what(cluster.nodes[name].instance))
    cluster.until(task.done)
    task.result()


def pages(cluster):
    """Each instance's page, and how long ago it was seen."""
    store, wait = cluster.store, cluster.loop.run_until_complete
    names = wait(store.names("instance:"))
    reading = wait(store.read([Ask(name) for name in names]))
    told = [json.loads(found.body) for found in reading.found]
    return {name.removeprefix("instance:"): reading.now - one["seen"] for name, one in zip(names, told, strict=True)}


def test_an_instance_without_jobs_is_seen_and_a_dead_one_is_forgotten(cluster):
    """Servers of a board without schedules beat as others do; the page of one that was killed is removed soon."""
    c = cluster([], 2)
    c.advance(60)
    assert set(pages(c)) == {"a", "b"}
    assert max(pages(c).values()) < SILENT
    c.kill("a")
    c.advance(90)
    assert set(pages(c)) == {"b"}


def test_a_job_is_put_to_running_instances(job, cluster, log):
    """Two instances that began with one job are given another: each of its slots runs once, the first job goes on."""
    c = cluster([job("first", "10s")], 2)
    c.advance(20)
    second = job("second", "10s")
    for name in c.nodes:
        on(c, name, lambda instance: instance.put_job(second))
    c.advance(60)
    keys = [key for key, _, _ in log.of("begin")]
    assert sum(key.startswith("second") for key in keys) == 6
    assert sum(key.startswith("first") for key in keys) == 8
    assert len(keys) == len(set(keys))


def test_a_changed_job_keeps_to_its_new_slots(job, cluster, log):
    """A new definition replaces the old one at once: no slot of the old schedule begins after it."""
    c = cluster([job("tick", "10s"), job("other", "10s")], 1)
    c.advance(15)
    changed = job("tick", "30s")
    on(c, "a", lambda instance: instance.put_job(changed))
    before = len(log.of("begin"))
    c.advance(60)
    later = [key for key, _, _ in log.of("begin")][before:]
    assert sum(key.startswith("tick") for key in later) == 2
    assert sum(key.startswith("other") for key in later) == 6


def test_a_dropped_job_starts_no_more_and_its_run_ends(job, cluster, log):
    """A job that is taken away while it runs: the run ends as a success, and no slot follows."""
    c = cluster([job("tick", "10s", takes=8)], 1)
    c.until(lambda: log.of("begin"))
    on(c, "a", lambda instance: instance.drop_job("tick"))
    c.advance(60)
    assert len(log.of("begin")) == len(log.of("end")) == 1
    assert [run.status for run in c.ended("tick")] == ["success"]
