"""Sequences that a review found to break a rule, each mended: kept, so that they stay mended."""

import asyncio
import gc

import pytest

from tenure import StoreUnavailable
from tenure.scheduler.records import Records


def losing(wire, times=1, what=lambda change: True):
    """The next commits of such a change are applied, and their answers lost."""
    commit, left = wire.commit, [times]

    async def lost(changes):
        verdict = await commit(changes)
        if left[0] and any(what(change) for change in changes):
            left[0] -= 1
            raise StoreUnavailable("the connection was cut.")
        return verdict

    wire.commit = lost


def test_i9_a_win_that_was_told_late_is_reckoned_from_the_telling(job, cluster):
    """The claim lands, its answer is lost, 18 s of outage, told again, cut off again: never two that are sure."""
    runs = {}

    async def handler(run):
        runs[run.runner] = run
        await asyncio.Event().wait()

    c = cluster([job(handler=handler, when="3600s", lease=30, when_unsure="continue")], 1)
    c.advance(9.2)
    losing(c.nodes["a"].wire)
    c.until(lambda: c.page("tick").job.runs)
    c.partition("a")
    c.advance(18)
    c.heal("a")
    c.until(lambda: "a" in runs)
    c.start("b")
    c.advance(1)
    c.partition("a")
    for _ in range(500):
        c.advance(0.1)
        assert sum(run.held() for run in runs.values()) <= 1
    assert "b" in runs


def test_i9_a_win_whose_answer_took_longer_than_its_lease_is_not_started_on_it(job, cluster, log):
    """It is proved anew first, or given back."""
    c = cluster([job(when="3600s", takes=1, lease=2)], 1)
    held = []
    c.advance(9.2)
    wire = c.nodes["a"].wire
    commit = wire.commit
    wire.timeout = 60

    async def slow(changes):
        wire.commit = commit
        verdict = await commit(changes)
        await asyncio.sleep(4)
        return verdict

    wire.commit = slow
    c.nodes["a"].instance.events.on(
        "started", lambda event: held.extend(h.held() for h, _ in c.nodes["a"].instance.runner.playing.values())
    )
    c.advance(20)
    assert held == [True]
    assert [run.status for run in c.ended("tick")] == ["success"]


def test_r27_a_win_not_known_yet_at_stop_is_given_back(job, cluster, log):
    """With one attempt allowed it would be lost: stop() asks by the same token until it knows."""
    c = cluster([job(when="3600s", max_attempts=1)], 1)
    c.advance(9.2)
    losing(c.nodes["a"].wire)
    c.until(lambda: c.page("tick").job.runs)
    c.stop("a", timeout=10)
    assert [one.how for one in c.page("tick").job.runs[0].attempts] == ["handed-over"]
    c.start("b")
    c.advance(5)
    assert [run.status for run in c.ended("tick")] == ["success"]


def test_r29_a_dead_run_with_a_newer_slot_due_is_left_by_the_watchman_too(job, cluster):
    """After days of nobody, past the catch-up of the latest slot: the old run is not taken over."""
    c = cluster([job(when="3600s", takes=100, catch_up=60)], 1)
    c.advance(20)
    c.kill("a")
    c.loop.seconds += 5 * 86_400 + 1_200
    c.start("b")
    c.advance(30)
    assert len(c.page("tick").job.runs[0].attempts) == 1


def test_r17_a_doubtful_commit_of_one_job_costs_no_other_its_lease(job, cluster):
    """A job of long leases has a commit of unknown outcome; one of a one-second lease is renewed all along."""
    c = cluster([job("slow", takes=100, when="3600s", lease=60), job("quick", takes=100, when="3600s", lease=1)], 1)
    c.advance(12)
    wire = c.nodes["a"].wire
    commit = wire.commit

    async def failing(changes):
        if any(change.name == "job:slow" for change in changes):
            raise StoreUnavailable("no answer.")
        return await commit(changes)

    for _ in range(5):
        wire.commit = failing
        c.advance(2)
        wire.commit = commit
        c.advance(4)
    assert not c.heard("unsure", "quick")
    assert len(c.page("quick").job.runs[0].attempts) == 1


def test_r25_one_end_that_cannot_be_recorded_harms_no_other(job, cluster):
    """The ends of five runs go to the store together; one of them makes our own code fail."""
    jobs = [job(f"job-{n}", when="3600s", takes=1) for n in range(5)]
    c = cluster(jobs, 1)
    c.advance(10)
    ledger = c.nodes["a"].instance.ledger
    decide = ledger._decide

    def failing(name, found, commands, now, sent):
        if name == "job:job-0" and any(getattr(command, "status", "") == "success" for _, command in commands):
            raise RecursionError
        return decide(name, found, commands, now, sent)

    ledger._decide = failing
    c.advance(5)
    assert [c.ended(f"job-{n}")[0].status for n in range(5)] == ["failed"] + ["success"] * 4
    assert c.ended("job-0")[0].error[0] == "ResultError"


def test_r40_a_document_that_cannot_be_read_harms_no_other(job, cluster):
    """One was written by another version: its job waits, the others run."""
    c = cluster([job("odd", when="10s"), job("even", when="10s")], 1)
    c.advance(12)
    c.store._shelves["job:odd"].body = b'{"v":99}'
    c.advance(30)
    assert len(c.ended("even")) == 4
    assert len(c.ended("odd")) == 1
    assert any("another version" in event.detail["says"] for event in c.heard("warning"))


def test_r28a_an_office_that_died_works_again_and_loses_nothing(job, cluster, log):
    """The loop that starts runs dies in the middle of a slot: it is restarted, and every job goes on."""
    jobs = [job(f"job-{n}", when="10s") for n in range(3)]
    c = cluster(jobs, 1)
    c.advance(12)
    clockwork = c.nodes["a"].instance.clockwork
    latest = clockwork._latest
    clockwork._latest = lambda one, *more: 1 / 0 if one.name == "job-1" else latest(one, *more)
    c.advance(8)
    clockwork._latest = latest
    c.advance(40)
    for one in jobs:
        assert len({run.slot for run in c.ended(one.name)}) >= 5
    assert any("clockwork died" in reason for reason in c.health("a").reasons)


@pytest.mark.parametrize("lag", [30, 115])
def test_i8_a_long_heartbeat_hides_no_lag(job, cluster, log, lag):
    """Lease 2 h, heartbeat 20 min: the loop lags over a slot, and the slot is run all the same."""
    c = cluster([job(when="3600s", lease=7200, heartbeat=1200)], 1)
    c.advance(9)
    c.freeze("a")
    c.advance(lag)
    c.thaw("a")
    c.advance(10)
    assert len(log.of("begin")) == 1


def test_r21_checks_do_not_spin_after_a_lease_end(job, cluster):
    """A skipped slot is watched for 70 s, by a check each one to two heartbeats."""
    c = cluster([job(when="60s", takes=65)], 1)
    c.advance(10)
    c.start("b")
    c.advance(60)
    before = c.nodes["b"].wire.calls
    c.advance(50)
    assert (c.nodes["b"].wire.calls - before) / 2 <= 45


def test_r30a_a_timeout_outweighs_a_stop(job, cluster):
    """Told to stop first, still running at its timeout: failed, as the timeout says."""

    async def handler(run):
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                return "done at last"

    c = cluster([job(handler=handler, when="3600s", timeout=5)], 1)
    c.advance(12)
    c.nodes["a"].instance.runner.playing  # noqa: B018 - it runs
    c.stop("a", timeout=20)
    assert (c.ended("tick")[0].status, c.ended("tick")[0].attempts[0].how) == ("failed", "timeout")


def test_r33_two_steps_back_are_waited_out(job, cluster):
    """A second, smaller step back does not end the first one's waiting."""
    c = cluster([job(when="10s")], 1)
    c.advance(20)
    c.store_skew_ms -= 60_000
    c.advance(5)
    c.store_skew_ms -= 2_000
    c.advance(20)
    assert any("went back" in reason for reason in c.health("a").reasons)


def test_r6_the_winner_tells_what_it_interrupted(job, cluster):
    """The dead run that a newer slot replaced has its event."""
    c = cluster([job(when="60s", takes=50, lease=30)], 1)
    c.advance(12)
    c.kill("a")
    c.advance(62)
    c.start("b")
    c.advance(5)
    assert [(event.runner, event.slot) for event in c.heard("interrupted")] == [("b", c.ended("tick")[0].slot)]


def test_r32a_a_clock_that_goes_further_astray_is_told_again(job, cluster):
    """Off by 1.5 s is told; an hour later off by an hour: told again."""
    c = cluster([job(when="60s")], 0)
    c.start("a", skew=1.5)
    c.advance(20)
    c.nodes["a"].clock.skew_ms = 3_600_000
    c.advance(20)
    assert [round(event.detail["by_ms"], -2) for event in c.heard("clock")] == [1_500, 3_600_000]


def test_r32a_late_twice_in_a_row_is_told(job, cluster):
    """And health() says so."""
    c = cluster([job(when="60s", max_late=0, catch_up=0)], 1)
    c.advance(5)
    wire = c.nodes["a"].wire
    read = wire.read
    wire.timeout = 100

    async def slow(asks):
        if any(ask.runs for ask in asks):
            await asyncio.sleep(20)
        return await read(asks)

    wire.read = slow
    c.advance(160)
    assert any("late twice" in event.detail["why"] for event in c.heard("clock"))
    assert any("refused as late" in reason for reason in c.health("a").reasons)


def test_nothing_grows_over_a_thousand_runs(job, cluster):
    """Tasks, watches, holdings and what is waited for: as few after a thousand slots as after ten."""
    c = cluster([job(when="1s", history=5)], 2)
    c.advance(20)
    gc.collect()
    tasks = len(asyncio.all_tasks(c.loop))
    c.advance(1_000)
    assert len(asyncio.all_tasks(c.loop)) <= tasks + 2
    for node in c.nodes.values():
        assert len(node.instance.keeper.watches) <= 12  # those of the last ten seconds
        assert len(node.instance.keeper.holdings) <= 1
        assert len(node.instance.runner.playing) <= 1


def test_one_hour_fast_one_slow_and_one_right_in_one_cluster(job, cluster, log):
    """Every slot runs once, on time by the store's clock."""
    c = cluster([job(when="10s", jitter=0.2)], 0)
    for name, skew in (("a", 3600), ("b", -3600), ("c", 0)):
        c.start(name, skew=skew)
    c.advance(120)
    keys = [key for key, _, _ in log.of("begin")]
    assert len(keys) == len(set(keys)) == 12
    assert all(0 <= run.attempts[0].started - run.slot < 300 for run in c.ended("tick"))


def test_r40c_a_name_with_half_a_surrogate_is_refused_in_a_sentence(job, cluster):
    """Asked of the records as well."""
    from tenure import ConfigError

    c = cluster([job(when="60s")], 1)
    with pytest.raises(ConfigError, match="surrogate"):
        c.loop.run_until_complete(Records(c.store).pause("\udc80"))


def test_a_blocked_instance_lets_a_healthy_one_go_first(job, cluster):
    """Its handlers' loop is blocked: what it would win would only wait, so the other wins; alone it goes on."""
    c = cluster([job("long", when="3600s", takes=1), job("tick", when="10s")], 2)
    c.advance(9.6)
    blocked = c.runner("long")
    c.loop.freeze(f"{blocked}/handlers")
    c.advance(65)
    runners = [run.attempts[0].runner for run in c.ended("tick") if run.slot >= c.now() - 50_000]
    assert len(runners) >= 4
    assert set(runners) == set(c.nodes) - {blocked}
    c.loop.thaw(f"{blocked}/handlers")
    c.advance(2)


def test_r40a_what_may_still_land_is_waited_for_before_it_is_given_up(job, cluster, log):
    """Decided just in time, asked again just too late, and landed in between: won, not late, and no orphan."""
    c = cluster([job(when="3600s", max_late=0, catch_up=0, takes=1)], 1)
    c.advance(9)
    c.freeze("a")
    c.advance(9.9)
    wire = c.nodes["a"].wire
    commit = wire.commit

    async def stuck(changes):
        if not any(change.name == "job:tick" and change.body for change in changes):
            return await commit(changes)
        wire.commit = commit

        async def land():
            await asyncio.sleep(1.5)
            await commit(changes)

        c.loop.spawn("world", land())
        await asyncio.sleep(0.8)
        raise StoreUnavailable("no answer in time.")

    wire.commit = stuck
    c.thaw("a")
    c.advance(10)
    assert [run.status for run in c.ended("tick")] == ["success"]
    assert not c.heard("skip")


def test_r26_the_doubt_counts_from_the_sending_of_the_read(job, cluster):
    """A heartbeat whose answer took long is worth no more than one that came at once."""
    c = cluster([job(when="3600s", takes=300, lease=30, heartbeat=5, when_unsure="continue")], 1)
    c.advance(12)
    wire = c.nodes["a"].wire
    wire._delay = lambda: 0.45
    beats = c.page("tick").job.runs[0].attempts[0].beats
    c.until(lambda: c.page("tick").job.runs[0].attempts[0].beats > beats + 1)
    renewed = c.page("tick").job.runs[0].attempts[0].renewed
    c.advance(2.5)  # its answer arrives
    c.partition("a")
    c.until(lambda: c.heard("unsure"))
    assert c.heard("unsure")[0].at - renewed <= 25_100


def test_r46_a_claim_only_run_won_while_stopping_is_run(job, cluster, log):
    """It can't be given back: its handler begins, is told to stop, and may end as it likes."""
    c = cluster([job(when="3600s", lease=None, takes=0.5)], 1, delay=(0.4, 0.4))
    c.advance(10.5)
    c.stop("a", timeout=10)
    assert [what for what, *_ in log.entries] == ["begin", "end"]
