"""Jobs that are put to a running instance, changed, and taken away again."""

import json

import pytest

from tenure.errors import StoreUnavailable
from tenure.rules.job import decode
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


def test_a_job_that_is_registered_is_put_though_the_store_goes_away_then(job, cluster, log):
    """It runs from then on, so nobody is told that it could not be put; what is to be recovered is looked for later."""
    c = cluster([job("first", "1h")], 1)
    c.advance(20)
    catchup, asked = c.nodes["a"].instance.catchup, []
    recover = catchup.recover

    async def away(jobs):
        asked.append([one.name for one in jobs])
        if len(asked) == 1:
            raise StoreUnavailable("it went away")
        await recover(jobs)

    catchup.recover = away
    second = job("second", "10s")
    on(c, "a", lambda instance: instance.put_job(second))
    c.advance(11)
    assert asked == [["second"], ["first", "second"]]
    assert [key.partition("@")[0] for key, _, _ in log.of("begin")] == ["first", "second"]


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


@pytest.mark.parametrize(("when", "ran"), [("20s", ["00Z", "20Z"]), (None, ["00Z"])])
def test_b49_a_job_that_is_defined_anew_at_its_slot_loses_it_not(job, cluster, log, when, ran):
    """An instance that is held up at a slot hears of an edit before it sees to the slot: that one runs all the same."""
    c = cluster([job("tick", "10s")], 1)
    c.advance(9.498)  # two milliseconds before the slot
    node = c.nodes["a"]
    c.freeze("a")
    edited = job("tick", when)

    async def put():
        node.instance.clockwork.put(edited)

    task = c.loop.spawn(node.name, put())
    c.advance(0.05)
    c.thaw("a")
    c.until(task.done)
    c.advance(25)
    slots = [key.removeprefix("tick@2026-01-01T01:00:") for key, _, _ in log.of("begin")]
    assert slots == ran


def test_r29a_a_change_on_purpose_is_no_drift(job, cluster):
    """Two instances are given a new definition of a job that they know: nobody warns that another told otherwise."""
    c = cluster([job("tick", "10s")], 2)
    c.advance(15)
    edited = job("tick", "20s", catch_up="1h")
    for name in c.nodes:
        on(c, name, lambda instance: instance.put_job(edited))
    assert not c.heard("drift")
    c.start("late", jobs=[job("tick", "20s", catch_up="2h")])
    c.advance(5)
    assert c.heard("drift")


def test_r29a_going_back_to_an_old_schedule_catches_up_none_of_its_slots(job, cluster, log):
    """From minute 7 to minute 18 and, in the next hour at ten past, back: its minute 7 was no slot, and is none now."""
    early, late = job("tick", "7 * * * *", catch_up="30m"), job("tick", "18 * * * *", catch_up="30m")
    c = cluster([early], 2, start="2026-01-01T00:06:00Z")
    for edited, seconds in ((late, 4 * 60), (early, 3600)):
        c.advance(seconds)
        for name in c.nodes:
            on(c, name, lambda instance, edited=edited: instance.put_job(edited))
    c.advance(60)
    assert [key[-9:] for key, _, _ in log.of("begin")] == ["00:07:00Z", "00:18:00Z"]
    assert not c.marks("tick")
    c.advance(3600)
    assert [key[-9:] for key, _, _ in log.of("begin")][2:] == ["02:07:00Z"]


def test_a_slot_that_waits_its_jitter_is_dropped_with_its_job(job, cluster, log):
    """Once a job has been dropped no run of it starts, also not of a slot that came before."""
    c = cluster([job("tick", "10s", jitter="4s")], 1)
    c.advance(9.51)
    assert not log.of("begin")
    on(c, "a", lambda instance: instance.drop_job("tick"))
    c.advance(30)
    assert not log.of("begin")
    assert not c.health("a").reasons


@pytest.mark.parametrize("after", [0, 0.0005, 0.001, 0.002, 0.004])
def test_r29a_a_job_that_is_put_while_its_instance_starts_is_registered(job, cluster, after):
    """At whatever step of the start it comes: the store knows its definition."""
    c = cluster([job("first", "10s")], 1)
    c.loop.advance(after)
    first, second = job("first", "20s", catch_up="1h"), job("second", "1h")
    for one in (first, second):
        on(c, "a", lambda instance, one=one: instance.put_job(one))
    c.advance(5)
    reading = c.loop.run_until_complete(c.store.read([Ask(one.document) for one in (first, second)]))
    assert decode(reading.found[0].body).definition.fingerprint == first.fingerprint()
    assert reading.found[1].version > 0
    assert not c.heard("drift"), "it is this instance itself that told otherwise"
