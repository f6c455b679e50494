"""On start, on waking, after an outage: unfinished runs, the latest slot, ranges nobody spoke of (R28a, R29, R36a)."""

import asyncio

import pytest

from tenure import StoreUnavailable
from tenure.rules.commands import Missed
from tenure.scheduler.records import Records
from tenure.scheduler.why import why


def starts(log):
    return [key for key, _, _ in log.of("begin")]


def asked(c, job, when):
    return c.loop.run_until_complete(why(Records(c.store), job, when))


def begin(c, n=0):
    for name in "abc"[:n]:
        c.start(name)


def test_r29_a_live_run_gets_one_more_backup(job, cluster):
    """An instance that starts beside a running run watches it, and takes over when the runner dies."""
    c = cluster([job(when="3600s", takes=300)], 1)
    c.advance(15)
    c.start("b")
    c.advance(2)
    c.kill("a")
    c.advance(40)
    assert c.runner("tick") == "b"


def test_r29_a_dead_run_that_is_still_the_latest_is_taken_over(job, cluster):
    """At once, not at the next slot."""
    c = cluster([job(when="3600s", takes=60)], 1)
    c.advance(15)
    c.kill("a")
    c.advance(600)
    c.start("b")
    c.advance(1)
    assert c.runner("tick") == "b"
    assert c.page("tick").job.runs[0].attempts[1].reason == "takeover"


def test_r29_one_missed_run_is_caught_up_and_only_the_latest(job, cluster, log):
    """All instances down for an hour: one catch-up run, the rest is a missed range (case 64)."""
    c = cluster([job(when="60s")], 1)
    c.advance(10)
    c.kill("a")
    c.advance(3600)
    begin(c, 2)
    c.advance(5)
    caught = [run for run in c.ended("tick") if run.attempts[0].reason == "catch-up"]
    assert len(caught) == 1
    assert [mark.count for mark in c.marks("tick") if mark.why == "missed"] == [59]
    assert len(starts(log)) == 2


def test_r29_older_than_catch_up_is_missed(job, cluster, log):
    """The latest slot was due longer ago than catch_up: nothing runs, and the slot is told as missed."""
    c = cluster([job(when="3600s", catch_up=60)], 1)
    c.advance(5)
    c.kill("a")
    c.advance(200)
    c.start("b")
    c.advance(30)
    assert starts(log) == []
    assert [mark.count for mark in c.marks("tick") if mark.why == "missed"] == [1]
    assert asked(c, "tick", c.marks("tick")[0].slot).outcome == "missed"


def test_r29a_a_new_job_does_not_run_for_a_slot_of_the_past(job, cluster, log):
    """First seen at 10:00:09: nothing runs until the next slot."""
    c = cluster([job(when="60s")], 0)
    c.loop.seconds += 15
    c.start("a")
    c.advance(20)
    assert starts(log) == []


def test_case_r66_a_changed_expression_does_not_run_at_once(job, cluster, log):
    """`0 3` becomes `0 4` at 10:00: nothing runs until 04:00."""
    three, four = job(when="0 3 * * *"), job(when="0 4 * * *")
    c = cluster([three], 1, start="2026-01-01T02:59:00Z")
    c.advance(120)
    c.stop("a")
    assert len(starts(log)) == 1
    c.loop.seconds += 7 * 3600
    c.start("b", jobs=[four])
    c.advance(60)
    assert len(starts(log)) == 1
    c.loop.seconds += 17.99 * 3600
    c.advance(240)
    assert starts(log)[1:] == ["tick@2026-01-02T04:00:00Z"]


def test_case_r21_a_deploy_exactly_at_the_slot(job, cluster, log):
    """Nobody is there for 30 s around a daily job's slot: one catch-up run."""
    daily = job(when="0 1 * * *")
    c = cluster([daily], 1, start="2026-01-01T00:59:00Z")
    c.advance(45)
    c.stop("a")
    c.advance(30)
    begin(c, 2)
    c.advance(10)
    assert starts(log) == ["tick@2026-01-01T01:00:00Z"]
    assert c.ended("tick")[0].attempts[0].reason == "catch-up"


@pytest.mark.parametrize("phase", range(0, 60, 5))
def test_case_r22_stopping_the_last_instance_at_every_phase(job, cluster, log, phase):
    """Stop the one that last did anything, at every phase of a 60 s cycle; the other loses no slot."""
    c = cluster([job(when="60s", takes=1)], 2, start="2026-01-01T00:59:55Z")
    c.advance(70 + phase)
    c.stop(c.ended("tick")[-1].attempts[-1].runner.split("~")[0])
    c.advance(180)
    slots = [run.slot for run in c.ended("tick")]
    assert slots == list(range(slots[0], slots[-1] + 1, 60_000))


def test_case_r26_asleep_for_three_days_every_second(job, cluster, log):
    """Wakes with bounded work: one catch-up, one missed range, no error."""
    c = cluster([job(when="1s")], 1, start="2026-01-01T00:00:00.500Z")
    c.advance(5)
    ran, steps = len(starts(log)), c.loop.steps
    c.freeze("a")
    c.loop.seconds += 3 * 86_400
    c.thaw("a")
    c.advance(0.9)
    assert c.loop.steps - steps < 2_000
    c.advance(5)
    missed = [mark for mark in c.marks("tick") if mark.why == "missed"]
    assert sum(mark.count for mark in missed) >= 3 * 86_400 - 5
    assert len(starts(log)) - ran <= 8


def test_case_r64_sigstop_across_five_hundred_slots(job, cluster, log):
    """At most one run for what was slept over, the rest is recorded as missed."""
    c = cluster([job(when="1s")], 1, start="2026-01-01T00:00:00.500Z")
    c.advance(3)
    ran = len(starts(log))
    c.freeze("a")
    c.advance(500)
    c.thaw("a")
    c.advance(0.4)
    assert len(starts(log)) - ran <= 1
    c.advance(10)
    assert sum(mark.count for mark in c.marks("tick") if mark.why == "missed") in (498, 499, 500)


def test_case_r29_sigstop_for_ten_minutes(job, cluster, log):
    """Resumes; an inner task that dies is restarted, and health says so."""
    c = cluster([job(when="60s")], 1)
    c.advance(12)
    c.freeze("a")
    c.advance(600)
    c.thaw("a")
    c.advance(130)
    assert len(starts(log)) >= 3
    keeper = c.nodes["a"].instance.keeper
    keeper.judge = lambda: 1 / 0
    c.advance(3)
    del keeper.judge
    c.advance(5)
    assert any("died" in reason for reason in c.health("a").reasons)
    c.loop.errors.clear()
    before = len(starts(log))
    c.advance(125)
    assert len(starts(log)) == before + 2


def test_case_r51_a_loop_blocked_ten_minutes(job, cluster, log):
    """The handlers' loop is blocked: slots are claimed, overlaps are marked, nothing fires in a burst."""
    c = cluster([job(when="60s", takes=1)], 1)
    c.advance(10)
    c.block("a", 600)
    c.advance(5)
    assert starts(log) == ["tick@2026-01-01T01:00:00Z", "tick@2026-01-01T01:10:00Z"]
    assert sum(mark.count for mark in c.marks("tick")) == 9
    c.advance(60)
    assert len(starts(log)) == 3


def test_case_r27_the_store_fails_over_twenty_times(job, cluster, log):
    """In ten minutes: the schedule is still alive afterwards."""
    c = cluster([job(when="10s")], 2)
    for _ in range(20):
        for name in ("a", "b"):
            c.partition(name)
        c.advance(12)
        for name in ("a", "b"):
            c.heal(name)
        c.advance(18)
    before = len(starts(log))
    c.advance(60)
    assert len(starts(log)) == before + 6
    assert len(starts(log)) == len(set(starts(log)))


def test_case_r31_the_first_store_call_fails(job, cluster, log):
    """Retried with backoff, visible in health, and it works afterwards."""
    c = cluster([job(when="60s")], 0)
    c.start("a")
    c.partition("a")
    c.advance(8)
    assert not c.health("a").ok
    assert any("not started" in reason for reason in c.health("a").reasons)
    c.heal("a")
    c.advance(75)
    assert c.health("a").ok
    assert starts(log)


def test_case_r32_slots_are_not_chained(job, cluster, log):
    """Killed at any moment around the finish, the next slot still happens."""
    for seed in range(12):
        log.entries.clear()
        c = cluster([job(when="60s", takes=1)], 2, seed=seed)
        c.advance(10.498 + seed * 0.001)
        c.kill(c.ended("tick")[0].attempts[0].runner if c.ended("tick") else c.runner("tick"))
        c.advance(70)
        assert "tick@2026-01-01T01:01:00Z" in starts(log)


def test_case_r67_catch_up_of_one_interval(job, cluster, log):
    """catch_up = one interval: at least once per cycle, also across downtime."""
    c = cluster([job(when="3600s", catch_up=3600)], 1)
    c.advance(15)
    c.kill("a")
    c.advance(3600 + 3500)
    c.start("b")
    c.advance(5)
    assert len(starts(log)) == 2
    assert c.ended("tick")[-1].attempts[0].reason == "catch-up"


def test_case_r44_a_run_long_dead_is_shown_and_ends(job, cluster):
    """Its lease ran out days ago: shown as expired, and ended by whoever comes."""
    c = cluster([job(when="3600s", takes=100)], 1)
    c.advance(20)
    c.kill("a")
    c.loop.seconds += 5 * 86_400
    (view,) = c.loop.run_until_complete(Records(c.store).runs(["tick"]))
    assert view.status == "expired"
    c.start("b")
    c.advance(3700)
    assert c.ended("tick")[0].status == "interrupted"


def test_r37_the_log_tells_of_a_pause_once(job, cluster, caplog):
    """Not at each slot that it leaves out, which listeners still hear of; and once more after it was resumed."""
    caplog.set_level("INFO", "tenure")
    c = cluster([job("tick", "10s")], 1)
    records = Records(c.store)
    for _ in range(2):
        c.advance(20)
        c.loop.run_until_complete(records.pause("tick"))
        c.advance(60)
        c.loop.run_until_complete(records.resume("tick"))
    assert len(c.heard("skip", "tick")) > 6
    assert sum("paused" in line for line in caplog.messages) == 2


def test_r37_pause_holds_for_all_and_resume_catches_one_up(job, cluster, log):
    """Paused for five slots: five marks as one, nothing runs; resumed: at most one is caught up."""
    c = cluster([job(when="10s")])
    records = Records(c.store)
    c.advance(12)
    assert c.loop.run_until_complete(records.pause("tick"))
    ran = len(starts(log))
    c.advance(50)
    assert len(starts(log)) == ran
    (mark,) = c.marks("tick")
    assert (mark.why, mark.count) == ("paused", 5)
    assert asked(c, "tick", mark.slot).outcome == "paused"
    c.loop.run_until_complete(records.resume("tick"))
    c.advance(1)
    assert len(starts(log)) == ran + 1
    c.advance(10)
    assert len(starts(log)) == ran + 2


def test_r36_trigger_runs_once_beside_the_schedule(job, cluster, log):
    """A wish is claimed by one instance, keyed by the request, and neither supersedes nor is superseded."""
    c = cluster([job(when="60s", takes=2)])
    c.advance(20)
    wish = c.loop.run_until_complete(Records(c.store).trigger("tick"))
    c.advance(5)
    manual = [run for run in c.ended("tick") if run.request]
    assert [(run.request, run.attempts[0].reason) for run in manual] == [(wish, "manual")]
    assert len(log.of("begin")) == 2
    c.advance(60)
    assert len([run for run in c.ended("tick") if not run.request]) == 2


def test_r36_a_wish_waits_for_an_overlap_to_end(job, cluster, log):
    """It obeys overlap: asked for while a run is on, it runs after it."""
    c = cluster([job(when="3600s", takes=30)])
    c.advance(15)
    c.loop.run_until_complete(Records(c.store).trigger("tick"))
    c.advance(10)
    assert len(log.of("begin")) == 1
    c.advance(30)
    assert len(log.of("begin")) == 2


def test_r36a_every_slot_has_an_outcome(job, cluster, log):
    """Through kills, outages, pauses and overlaps: each slot of the schedule can be asked for."""
    c = cluster([job(when="10s", takes=3)], 3, seed=5)
    records = Records(c.store)
    c.advance(50)
    c.kill(c.ended("tick")[-1].attempts[-1].runner)
    c.advance(35)
    c.loop.run_until_complete(records.pause("tick"))
    c.advance(30)
    c.loop.run_until_complete(records.resume("tick"))
    for name in [name for name, node in c.nodes.items() if node.alive]:
        c.kill(name)
    c.advance(100)
    c.start("d")
    c.advance(30)
    first = c.ended("tick")[0].slot
    outcomes = [asked(c, "tick", slot).outcome for slot in range(first, c.now() - 1000, 10_000)]
    assert set(outcomes) <= {
        "success",
        "paused",
        "missed",
        "overlap",
        "running",
        "interrupted",
        "superseded",
        "expired",
    }
    assert {"success", "paused", "missed"} <= set(outcomes)


def test_r36a_a_mark_made_meanwhile_hides_no_slot_behind_it(job, cluster):
    """Of a range that is about to be told as missed somebody marks the first slot: the others are told all the same."""
    c = cluster([job(when="10s", catch_up=0)], 1)
    c.advance(15)
    c.kill("a")
    c.advance(60)
    commit, beside = c.store.commit, []

    async def later(changes, *rest, **more):
        for mark in [mark for change in changes for mark in change.marks if mark.why == "missed" and not beside]:
            beside.append(mark.slot)
            await Records(c.store).ledger.ask_one("tick", Missed(mark.slot, mark.slot, 1, "other"))
        return await commit(changes, *rest, **more)

    c.store.commit = later
    c.start("b")
    c.advance(5)
    (first,) = beside
    told = [mark for mark in c.marks("tick") if mark.slot >= first]
    assert [mark.by for mark in told if mark.slot == first] == ["other"]
    assert sum(mark.count for mark in told) == (max(mark.until for mark in told) - first) // 10_000 + 1 >= 5
    assert [event.detail["count"] for event in c.heard("missed") if "count" in event.detail] == [
        sum(mark.count for mark in told)
    ]


def test_r29a_drift_is_told(job, cluster):
    """An instance with other options: told once, and nothing is reset."""
    c = cluster([job(when="60s")], 1)
    c.advance(15)
    c.start("b", jobs=[job(when="60s", max_attempts=7)])
    c.advance(2)
    assert [event.runner for event in c.heard("drift")] == ["b"]


def test_r11_history_is_pruned_and_nothing_runs_twice(job, cluster, log):
    """history=3: old runs go once their window has passed; a late claim for one is answered as ended."""
    c = cluster([job(when="10s", history=3, max_late=1, catch_up=1)], 2)
    c.advance(400)
    assert 3 <= len(c.ended("tick")) <= 20
    assert c.page("tick").job.floor is not None
    assert len(starts(log)) == len(set(starts(log))) == 40
    assert asked(c, "tick", c.page("tick").job.floor).outcome == "forgotten"


def test_case_r74_a_dead_loop_is_seen(job, cluster):
    """The loop that starts runs hangs: health goes red within two intervals."""
    c = cluster([job(when="10s")], 1)
    c.advance(15)
    shared = c.nodes["a"].instance.clockwork.shared

    class Stuck:
        def __getattr__(self, name):
            return getattr(shared, name)

        async def until(self, *_):
            await asyncio.sleep(10_000)

    c.nodes["a"].instance.clockwork.shared = Stuck()
    c.advance(20)
    assert not c.health("a").ok
    assert "has not turned" in c.health("a").reasons[0]


def test_case_r1_a_runner_that_only_gets_errors_never_writes_again(job, cluster, log):
    """Its next fifty heartbeats fail: unsure within one lease, the other's attempt stands, one outcome."""
    c = cluster([job(when="3600s", takes=60, lease=30)], 2)
    c.advance(15)
    first = c.runner("tick")
    c.nodes[first].wire.failures = [StoreUnavailable("the transaction was rolled back.")] * 200
    at = c.now()
    c.until(lambda: c.heard("unsure"))
    assert c.now() - at <= 30_000
    c.advance(120)
    run = c.ended("tick")[0]
    assert run.status == "success"
    assert run.attempts[-1].runner != first
    assert len(c.ended("tick")) == 1


def test_case_r2_two_instances_with_one_name(job, cluster, log):
    """Identity is a token, not a name: both work, no slot runs twice."""
    c = cluster([job(when="10s", takes=3)], 0)
    c.start("a")
    c.start("b")
    for node in c.nodes.values():
        node.instance.events.runner = "twin"
    c.advance(100)
    assert len(starts(log)) == len(set(starts(log))) == 10


def test_r19_each_catch_up_waits_its_own_jitter(job, cluster, log):
    """A job with half an hour of jitter does not hold another's catch-up back."""
    slow, quick = job("slow", when="3600s", jitter=1700), job("quick", when="3600s", jitter=0.2)
    c = cluster([slow, quick], 1)
    c.advance(5)
    c.kill("a")
    c.advance(20)
    c.start("b")
    c.advance(2)
    assert [run.attempts[0].reason for run in c.ended("quick")] == ["catch-up"]


@pytest.mark.parametrize("lag", [0.3, 4, 40])
def test_r25_a_loop_that_lags_claims_the_slot_late(job, cluster, log, lag):
    """With catch_up=0 too: what is within max_late is claimed, however short the heartbeat."""
    c = cluster([job(when="3600s", lease=1, catch_up=0)], 1)
    c.advance(9.4)
    c.freeze("a")
    c.advance(lag)
    c.thaw("a")
    c.advance(3)
    assert len(starts(log)) == 1


def test_r28a_of_several_slots_slept_over_the_latest_is_claimed(job, cluster, log):
    """The others are a missed range."""
    c = cluster([job(when="2s", lease=1, catch_up=0)], 1)
    c.advance(9)
    ran = len(starts(log))
    c.freeze("a")
    c.advance(21)
    c.thaw("a")
    c.advance(0.8)
    assert len(starts(log)) == ran + 1
    assert sum(mark.count for mark in c.marks("tick") if mark.why == "missed") == 10
    assert len([event for event in c.heard("missed") if "count" in event.detail]) == 1
