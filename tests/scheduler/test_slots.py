"""Slots become claims: by the store's clock, with jitter, in batches, once (R19, R20, R32, R33, R41)."""

import asyncio

import pytest

from tenure import StoreUnavailable
from tenure.rules.instant import iso


def starts(log):
    return [key for key, _, _ in log.of("begin")]


def test_r19_one_run_per_slot(job, cluster, log):
    """Three instances, sixty slots: each slot once."""
    c = cluster([job(when="10s", jitter=0.25)])
    c.advance(600)
    assert len(starts(log)) == len(set(starts(log))) == 60
    assert all(len(run.attempts) == 1 for run in c.ended("tick"))


def test_r19_jitter_is_drawn_once_per_instant_and_scaled(job, cluster):
    """Jobs with equal jitter of one instant share a claim; twice the jitter waits twice as long."""
    c = cluster(
        [job("x", when="3600s", jitter=1), job("y", when="3600s", jitter=1), job("z", when="3600s", jitter=2)], 1
    )
    c.advance(15)
    started = {event.job: event.at - c.now() // 3_600_000 * 3_600_000 for event in c.heard("won")}
    assert started["x"] == started["y"]
    assert started["z"] == pytest.approx(2 * started["x"], abs=60)


def test_r41_a_thousand_jobs_in_one_read_and_one_commit(job, cluster):
    """All are due at one instant: one read and one commit claim them all."""
    jobs = [job(f"job-{n:04}", when="3600s", takes=3) for n in range(1000)]
    c = cluster(jobs, 1)
    c.advance(9.4)
    wire = c.nodes["a"].wire
    before = wire.calls
    c.advance(0.4)
    assert len(c.heard("won")) == 1000
    assert wire.calls - before <= 4  # each call crosses twice, there and back: one read, one commit


def test_r20_overlap_is_skipped_and_marked_once(job, cluster):
    """A run of 25 s, slots each 10 s: two slots are skipped, with one merged mark that names the run in the way."""
    c = cluster([job(when="10s", takes=25)])
    c.advance(40)
    (mark,) = c.marks("tick")[:1]
    assert (mark.why, mark.count) == ("overlap", 2)
    assert mark.whom == str(c.ended("tick")[0].slot)
    assert {event.detail["why"] for event in c.heard("skip")} == {"overlap"}


def test_r20_a_skipped_slot_is_watched(job, cluster, log):
    """The earlier run ends within the jitter; another instance claims the new one; the skipper becomes its backup."""
    c = cluster([job(when="10s", takes=10.1, jitter=1)], 3, seed=3)
    c.advance(10.0)
    c.until(lambda: len(log.of("begin")) >= 2)
    c.advance(1)
    skipped = {event.runner for event in c.heard("skip")}
    runner = c.runner("tick")
    key = ("tick", c.page("tick").job.newest, "")
    watching = {name for name, node in c.nodes.items() if key in node.instance.keeper.watches}
    assert skipped
    assert watching == set(c.nodes) - {runner}


def test_r5_the_next_slot_first_interrupts_the_dead_run(job, cluster, log):
    """The lease ran out, and the next slot's claim came first: the dead run is interrupted, not retried."""
    c = cluster([job(when="60s", takes=50, lease=30, heartbeat=5)], 1)
    c.advance(10)
    c.until(lambda: log.of("begin"))
    c.kill("a")
    c.advance(62)
    c.start("b")
    c.advance(5)
    first = c.ended("tick")[0]
    assert first.status == "interrupted"
    assert first.attempts[0].how == "expired"
    assert len(starts(log)) == 2


def test_case_r6_a_handler_of_no_time_runs_once(job, cluster, log):
    """1 ms handler, 10 instances, claims spread over 200 ms: one run per slot."""
    c = cluster([job(when="10s", takes=0.001, jitter=0.2)], 10)
    c.advance(300)
    assert len(starts(log)) == len(set(starts(log))) == 30


def test_case_r7_clocks_three_seconds_apart(job, cluster, log):
    """Instance clocks at -3, 0, +3 s, 5 ms handler: one run per slot, on time by the store's clock."""
    c = cluster([job(when="10s", takes=0.005)], 0)
    for name, skew in (("a", -3), ("b", 0), ("c", 3)):
        c.start(name, skew=skew)
    c.advance(300)
    assert len(starts(log)) == len(set(starts(log))) == 30
    assert all(0 <= run.attempts[0].started - run.slot < 100 for run in c.ended("tick"))


@pytest.mark.parametrize("skew", [3600, -3600])
def test_r32_an_hour_off_runs_on_time(job, cluster, log, skew):
    """An instance an hour off neither runs early nor late, and says so once (case 61)."""
    c = cluster([job(when="10s")], 2)
    c.start("c", skew=skew)
    c.advance(120)
    runners = {run.attempts[0].runner for run in c.ended("tick")}
    assert all(0 <= run.attempts[0].started - run.slot < 100 for run in c.ended("tick"))
    assert len(starts(log)) == len(set(starts(log)))
    told = [event for event in c.heard("clock") if event.runner == "c"]
    assert len(told) == 1
    assert told[0].detail["by_ms"] == pytest.approx(skew * 1000, abs=100)
    assert not c.health("c").ok
    assert "clock" in c.health("c").reasons[0]
    assert runners


def test_case_r61_alone_and_an_hour_fast(job, cluster, log):
    """The only instance is an hour ahead: every slot runs once, on time by the store's clock."""
    c = cluster([job(when="10s")], 0)
    c.start("a", skew=3600)
    c.advance(100)
    assert len(starts(log)) == 10
    assert all(0 <= run.attempts[0].started - run.slot < 100 for run in c.ended("tick"))


@pytest.mark.parametrize("step", [-90, 3600, -3600])
def test_r33_an_instance_clock_that_steps_changes_nothing(job, cluster, log, step):
    """Its wall clock jumps just after a slot: no slot twice, none lost (case 11)."""
    c = cluster([job(when="10s")], 2)
    c.advance(10)
    for node in c.nodes.values():
        node.clock.skew_ms += step * 1000
    c.advance(60)
    assert len(starts(log)) == len(set(starts(log))) == 7


def test_r33_the_store_clock_steps_forward(job, cluster, log):
    """The slots jumped over are a missed range; nothing runs twice."""
    c = cluster([job(when="10s", catch_up=0)], 2)
    c.advance(10)
    c.store_skew_ms += 300_000
    c.advance(60)
    assert len(starts(log)) == len(set(starts(log)))
    assert any("forward" in event.detail["why"] for event in c.heard("clock"))
    missed = [mark for mark in c.marks("tick") if mark.why == "missed"]
    assert sum(mark.count for mark in missed) >= 28


def test_r33_what_was_jumped_over_is_recorded_at_once(job, cluster):
    """A job of every second: before its next slot is won, and there is a hole that nobody asks about."""
    c = cluster([job(when="1s")], 2)
    c.advance(10.2)
    c.store_skew_ms += 300_000
    c.until(lambda: any("forward" in event.detail["why"] for event in c.heard("clock")))
    c.advance(0.1)
    missed = [mark for mark in c.marks("tick") if mark.why == "missed"]
    assert sum(mark.count for mark in missed) >= 298


def test_r33_the_store_clock_steps_back(job, cluster, log):
    """Nothing repeats, and health fails until it has caught up."""
    c = cluster([job(when="10s")], 2)
    c.advance(60.5)
    ran = len(starts(log))
    c.store_skew_ms -= 60_000
    c.advance(30)
    assert not c.health("a").ok
    assert any("went back" in reason for reason in c.health("a").reasons)
    assert len(starts(log)) == ran
    c.advance(50)
    assert not any("went back" in reason for reason in c.health("a").reasons)
    assert len(starts(log)) == len(set(starts(log)))
    assert len(starts(log)) > ran


def test_case_r62_a_timer_that_fires_early_waits(job, cluster, log):
    """The instance believes the store 20 ms ahead: `early`, one more claim at the time named, one run."""
    c = cluster([job(when="10s")], 1)
    c.advance(5)
    clock = c.nodes["a"].instance.shared.store_clock
    clock._low += 20
    clock._high += 20
    c.advance(10)
    assert len(starts(log)) == 1
    run = c.ended("tick")[0]
    assert run.attempts[0].started >= run.slot


def test_case_r24_a_job_that_only_one_instance_knows(job, cluster, log):
    """A knows X, B knows X and Y; A wins all it can; Y still runs on B."""
    x, y = job("x", when="10s"), job("y", when="10s")
    c = cluster([x], 1)
    c.start("b", jobs=[x, y])
    c.advance(100)
    assert len(c.ended("x")) == len(c.ended("y")) == 10
    assert {run.attempts[0].runner for run in c.ended("y")} == {"b"}


def test_case_r69_once_per_slot_and_no_overlap_are_the_defaults(job, cluster):
    """Nothing was asked for: unique per slot, and never two at once."""
    one = job(when="10s")
    assert one.overlap == "skip"
    live = []

    async def handler(run):
        live.append(run.key)
        assert len(live) == 1
        await asyncio.sleep(14)
        live.remove(run.key)

    c = cluster([job(handler=handler, when="10s")])
    c.advance(200)
    assert all(run.status == "success" for run in c.ended("tick"))


def test_r20_allow_runs_side_by_side(job, cluster, log):
    """`overlap="allow"`: slots do not wait for each other."""
    c = cluster([job(when="10s", takes=25, overlap="allow")])
    c.advance(60)
    assert len(starts(log)) == 6
    assert not c.heard("skip")


def test_r46_claim_only_is_recorded_and_over(job, cluster, log):
    """lease=None: one winner per slot, recorded as claimed; no backup, no heartbeat, overlap is not asked."""
    c = cluster([job(when="10s", takes=25, lease=None)])
    c.advance(60)
    assert len(starts(log)) == len(set(starts(log))) == 6
    assert {run.status for run in c.ended("tick")} == {"claimed"}
    assert not c.heard("backup")
    assert not any(node.instance.keeper.holdings for node in c.nodes.values())


def test_r46_a_lost_answer_still_runs(job, cluster, log):
    """The winner that reads back its own token after a lost answer runs."""
    c = cluster([job(when="60s", lease=None)], 1)
    c.advance(9)
    wire = c.nodes["a"].wire
    lose_answer(wire)
    c.advance(10)
    assert len(starts(log)) == 1


def lose_answer(wire):
    """The next commit is applied, and its answer lost."""
    commit = wire.commit

    async def lost(changes):
        wire.commit = commit
        await commit(changes)
        raise StoreUnavailable("the connection was cut.")

    wire.commit = lost


def test_r40a_a_lost_answer_to_a_claim_is_no_orphan(job, cluster, log):
    """Applied, answer lost: read again, our token is there, and the run starts at once."""
    c = cluster([job(when="60s", takes=5)], 1)
    c.advance(9)
    lose_answer(c.nodes["a"].wire)
    c.advance(2)
    assert len(starts(log)) == 1
    c.advance(10)
    assert [len(run.attempts) for run in c.ended("tick")] == [1]


def test_r40a_a_lost_answer_to_a_finish_is_one_finish(job, cluster, log):
    """The finish was applied, the answer lost: asked again it is `already`, and nobody hears `lost`."""
    c = cluster([job(when="60s", takes=1)], 2)
    c.advance(10)
    lose_answer(c.nodes[c.runner("tick")].wire)
    c.advance(10)
    assert [run.status for run in c.ended("tick")] == ["success"]
    assert not c.heard("lost")
    assert len(c.heard("success")) == 1


def test_r40a_a_commit_that_may_still_land_is_waited_for(job, cluster, log):
    """The commit hangs past its caller's patience and lands before its deadline: one attempt, run by its winner."""
    c = cluster([job(when="60s", takes=5)], 1)
    c.advance(9)
    wire = c.nodes["a"].wire
    commit = wire.commit

    async def slow(changes):
        wire.commit = commit

        async def land():
            await asyncio.sleep(1.5)
            await commit(changes)

        c.loop.spawn("world", land())
        raise StoreUnavailable("no answer in time.")

    wire.commit = slow
    c.advance(4)
    assert len(starts(log)) == 1
    c.advance(10)
    run = c.ended("tick")[0]
    assert len(run.attempts) == 1
    assert run.attempts[0].started - run.slot < 100


def test_r40a_a_decision_after_its_deadline_changes_nothing(job, cluster, log):
    """A commit that arrives a minute late is void: the run was decided anew long ago."""
    c = cluster([job(when="60s", takes=5)], 1)
    c.advance(9)
    wire = c.nodes["a"].wire
    commit = wire.commit
    verdicts = []

    async def stuck(changes):
        wire.commit = commit

        async def land():
            await asyncio.sleep(40)
            verdicts.append((await commit(changes)).outcomes)

        c.loop.spawn("world", land())
        raise StoreUnavailable("no answer in time.")

    wire.commit = stuck
    c.advance(60)
    assert verdicts[0][0].value in ("raced", "expired")
    assert len(starts(log)) == 1


def test_r8_late_by_the_stores_clock(job, cluster):
    """A claim that reaches the store after its bound and tolerance is refused as late, and marked."""
    c = cluster([job(when="3600s", max_late=5, catch_up=0)], 1)
    c.advance(5)
    wire = c.nodes["a"].wire
    read, gate = wire.read, asyncio.Event()

    async def stuck(asks):
        if any(ask.runs for ask in asks) and not gate.is_set():
            wire.timeout = 100
            await asyncio.sleep(30)
            gate.set()
        return await read(asks)

    wire.read = stuck
    wire.timeout = 100
    c.advance(60)
    assert [event.detail["why"] for event in c.heard("skip")] == ["late"]
    assert c.marks("tick")[0].why == "late"


def test_r8_a_catch_up_is_late_by_its_own_bound(job, cluster, log):
    """Asked for 40 s after its slot, within `catch_up`; the claim reaches the store 40 s later, beyond it."""
    c = cluster([job(when="3600s", max_late=5, catch_up=60)], 0)
    c.start("a")
    c.advance(5)
    c.kill("a")
    c.advance(45)
    c.start("b")
    wire = c.nodes["b"].wire
    read, wire.timeout = wire.read, 100

    async def stuck(asks):
        if any(ask.runs and ask.before is None for ask in asks):
            wire.read = read
            await asyncio.sleep(40)
        return await read(asks)

    wire.read = stuck
    c.advance(60)
    assert [(event.runner, event.detail["why"]) for event in c.heard("skip")] == [("b", "late")]
    assert starts(log) == []
    assert [mark.why for mark in c.marks("tick")] == ["late"]


def test_r25_missed_only_when_hopeless(job, cluster, log):
    """The store is out for 40 s around a slot: the claim is retried, and the slot runs late but runs."""
    c = cluster([job(when="3600s")], 1)
    c.advance(5)
    c.partition("a")
    c.advance(40)
    assert not c.heard("missed")
    c.heal("a")
    c.advance(20)
    assert len(starts(log)) == 1
    assert [event.name for event in c.events if event.name.startswith("store-")] == ["store-down", "store-up"]


def test_r25_missed_when_a_newer_slot_is_due(job, cluster, log):
    """The outage lasts over the next slots: the older are missed, the latest is caught up."""
    c = cluster([job(when="10s")], 1)
    c.advance(5)
    c.partition("a")
    c.advance(60)
    c.heal("a")
    c.advance(20)
    assert c.heard("missed")
    missed = sum(mark.count for mark in c.marks("tick") if mark.why == "missed")
    keys = starts(log)
    assert len(keys) == len(set(keys)) >= 2
    assert missed >= 5
    assert missed + len(keys) == 8  # every slot from 01:00:00 to 01:01:10 has its outcome


def test_r20_the_words_of_a_start(job, cluster):
    """Each event carries job, slot, attempt, runner and the store's time."""
    c = cluster([job(when="60s")], 1)
    c.advance(11)
    started = c.heard("started")[0]
    assert (started.job, started.attempt, started.runner) == ("tick", 1, "a")
    assert iso(started.slot) == "2026-01-01T01:00:00Z"
    assert 0 <= started.at - started.slot < 100


def test_case_r71_a_thousand_jobs_on_ten_instances(job, cluster, log):
    """All at :00: every job runs once, all start within two seconds, each instance asks a handful of times."""
    jobs = [job(f"job-{n:04}", when="3600s", takes=1, jitter=0.25) for n in range(1000)]
    c = cluster(jobs, 10)
    c.advance(9.4)
    before = {name: node.wire.calls for name, node in c.nodes.items()}
    c.advance(1.0)
    assert len(starts(log)) == len(set(starts(log))) == 1000
    assert max(event.detail["late_ms"] for event in c.heard("started")) < 2_000
    crossings = [node.wire.calls - before[name] for name, node in c.nodes.items()]
    assert max(crossings) <= 2 * 8  # there and back; finishes and checks of the first second included


def test_case_r72_history_is_bounded_by_count(job, cluster):
    """Long after, no more is kept than was asked for, whatever ran; the document stays small."""
    c = cluster([job(when="2s", history=5, max_late=1, catch_up=1)], 1)
    c.advance(900)
    assert len(c.ended("tick")) <= 5 + 75  # a window of 71 s is kept for late claims, pruned once a minute
    assert len(c.page("tick").found.body) < 1_000
