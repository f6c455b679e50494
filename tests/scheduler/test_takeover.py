"""A runner dies, freezes, is cut off or blocked; somebody else takes over, and only then (R20 to R26)."""

import asyncio

import pytest

from tenure import ConfigError, LeaseLost, StoreUnavailable


def test_r22_a_dead_runner_is_taken_over_within_the_bound(job, cluster, log):
    """At most lease + 2 heartbeats after its last heartbeat, plus the grid; near the lease end with exact timers."""
    c = cluster([job(takes=300, when="3600s", lease=30, heartbeat=5)])
    c.advance(10)
    c.until(lambda: log.of("begin"))
    c.advance(42)
    c.kill(c.runner("tick"))
    c.until(lambda: len(log.of("begin")) == 2)
    first, second = c.page("tick").job.runs[0].attempts
    assert second.started - first.renewed <= 30_000 + 200 + 100
    assert (first.how, first.ended) == ("expired", first.renewed + 30_000)
    assert second.reason == "takeover"
    assert second.fence == first.fence + 1


@pytest.mark.parametrize("seed", range(20))
def test_r22_whoever_dies_the_run_ends_once(job, cluster, log, seed):
    """Kill runners until one instance is left: attempts count up, one success, nothing twice."""
    c = cluster([job(takes=40, when="3600s", max_attempts=5)], 3, seed=seed)
    c.advance(10)
    for _ in range(2):
        c.until(lambda: c.page("tick").job.runs and c.page("tick").job.runs[0].lease.live(c.now()))
        c.advance(20)
        c.kill(c.runner("tick"))
        c.advance(35)
    c.until(lambda: c.ended("tick"))
    run = c.ended("tick")[0]
    assert run.status == "success"
    assert [attempt.how for attempt in run.attempts] == ["expired", "expired", "success"]
    assert len(log.of("end")) == 1


def test_r4_attempts_are_limited(job, cluster):
    """With one attempt allowed, a dead runner's run ends as interrupted, and a backup says so."""
    c = cluster([job(takes=300, when="3600s", max_attempts=1)])
    c.advance(11)
    c.kill(c.runner("tick"))
    c.until(lambda: c.ended("tick"))
    assert c.ended("tick")[0].status == "interrupted"
    assert c.heard("interrupted")


def test_r24_a_frozen_runner_wakes_and_loses(job, cluster, log):
    """SIGSTOP for two leases, SIGCONT: the second attempt stands, the first hears `lost` and writes nothing."""
    ended = []

    async def handler(run):
        log.add("begin", run)
        try:
            await asyncio.sleep(80)
            log.add("end", run)
        except asyncio.CancelledError:
            ended.append((run.attempt, run.held()))
            raise

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(11)
    first = c.runner("tick")
    c.freeze(first)
    c.advance(60)
    assert c.runner("tick") != first
    c.thaw(first)
    c.advance(10)
    assert ended == [(1, False)]
    assert [event.name for event in c.nodes[first].events if event.name in ("unsure", "lost")] == ["unsure", "lost"]
    c.advance(100)
    run = c.ended("tick")[0]
    assert (run.status, run.attempts[-1].number) == ("success", 2)
    assert [entry[1] for entry in log.of("end")] == [2]


def test_case_r4_a_runner_cut_off_is_unsure_before_the_other_begins(job, cluster, log):
    """R26: its handler is cancelled at lease - heartbeat, and `held()` is false, before B starts."""
    seen, runs = [], {}

    async def handler(run):
        log.add("begin", run)
        runs[run.runner] = run
        try:
            while True:
                await asyncio.sleep(0.1)
                run.check()
        except asyncio.CancelledError:
            seen.append((run.runner, run.held(), c.now()))
            raise

    c = cluster([job(handler=handler, when="3600s", lease=30, heartbeat=5)])
    c.advance(12)
    first = c.runner("tick")
    c.partition(first)
    c.until(lambda: not runs[first].held())
    assert len(log.of("begin")) == 1  # the other has not begun yet
    c.until(lambda: len(log.of("begin")) == 2)
    began = c.page("tick").job.runs[0].attempts[1].started
    runner, held, at = seen[0]
    assert (runner, held) == (first, True)  # told in time: the lease had not run out yet
    assert at < began
    assert 4_000 <= began - at <= 6_500  # one heartbeat, as the seed says
    assert c.heard("unsure")[0].runner == first


def test_r26_a_cut_off_runner_that_heals_gives_back_and_is_counted(job, cluster):
    """The cut ends before the lease does: the run is released and counted, and anyone may win its next attempt."""

    async def handler(run):
        await asyncio.sleep(1000 if run.attempt == 1 else 1)

    c = cluster([job(handler=handler, when="3600s", lease=30, heartbeat=5)])
    c.advance(12)
    first = c.runner("tick")
    c.partition(first)
    c.until(lambda: c.heard("unsure"))
    c.heal(first)
    c.until(lambda: c.ended("tick"))
    run = c.ended("tick")[0]
    assert [one.how for one in run.attempts] == ["unsure", "success"]
    assert run.handed == 0


def test_r26_when_unsure_continue_leaves_the_handler(job, cluster, log):
    """`when_unsure="continue"`: it runs on until the store refuses it."""
    c = cluster([job(takes=50, when="3600s", when_unsure="continue")], 1)
    c.advance(11)
    c.partition("a")
    c.advance(40)
    assert c.heard("unsure")
    c.heal("a")
    c.advance(30)
    assert c.ended("tick")[0].status == "success"
    assert len(c.ended("tick")[0].attempts) == 1


def test_r24_one_that_ran_on_in_doubt_is_stopped_when_the_store_refuses_it(job, cluster, log):
    """`when_unsure="continue"`, cut off for two leases and taken over: its handler ends by the refusal alone."""
    told = []

    async def handler(run):
        log.add("begin", run)
        try:
            await asyncio.sleep(120 if run.attempt == 1 else 60)
            log.add("end", run)
        finally:
            told.append((run.attempt, run.lost.is_set(), run.held()))

    c = cluster([job(handler=handler, when="3600s", when_unsure="continue")])
    c.advance(12)
    first = c.runner("tick")
    c.partition(first)
    c.advance(60)
    assert c.runner("tick") != first
    assert told == []
    c.heal(first)
    c.advance(10)
    assert told == [(1, True, False)]
    assert [event.name for event in c.nodes[first].events if event.name in ("unsure", "lost")] == ["unsure", "lost"]
    c.advance(60)
    assert [one.how for one in c.ended("tick")[0].attempts] == ["expired", "success"]
    assert [entry[1] for entry in log.of("end")] == [2]


def test_r26_a_handler_that_returns_after_doubt_is_finished(job, cluster):
    """It returned normally: the store's token check judges it (R26)."""

    async def handler(run):
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return "saved what there was"

    c = cluster([job(handler=handler, when="3600s")], 1)
    c.advance(11)
    c.partition("a")
    c.until(lambda: c.heard("unsure"))
    c.heal("a")
    c.until(lambda: c.ended("tick"))
    assert (c.ended("tick")[0].status, c.ended("tick")[0].result) == ("success", "saved what there was")


def test_case_r46_a_blocked_loop_keeps_its_lease(job, cluster, log):
    """time.sleep(10 leases) inside an async handler: no takeover, success, `stalled` with its length."""
    c = cluster([job(takes=1, when="3600s", lease=3)])
    c.advance(10.5)
    c.block(c.runner("tick"), 30)
    c.advance(2)
    run = c.ended("tick")[0]
    assert (run.status, len(run.attempts)) == ("success", 1)
    (stalled,) = c.heard("stalled")
    assert stalled.job == "tick"
    assert 29_000 <= stalled.detail["blocked_ms"] <= 31_000


def test_case_r47_a_blocked_loop_with_twenty_runs(job, cluster, log):
    """As case 46 with 20 concurrent runs: none is taken over."""
    jobs = [job(f"job-{n}", takes=1, when="3600s", lease=3) for n in range(20)]
    c = cluster(jobs, 1)
    c.start("b")
    c.advance(10.5)
    for name in ("a", "b"):
        c.loop.freeze(f"{name}/handlers")
    c.advance(30)
    for name in ("a", "b"):
        c.loop.thaw(f"{name}/handlers")
    c.advance(3)
    assert all(len(c.ended(one.name)[0].attempts) == 1 for one in jobs)
    assert len(c.heard("stalled")) == 20


def test_case_r12_a_run_of_ten_leases_is_one_attempt(job, cluster, log):
    """Renewed all along: one attempt."""
    c = cluster([job(takes=300, when="3600s", lease=30)])
    c.advance(320)
    assert [len(run.attempts) for run in c.ended("tick")] == [1]
    assert c.ended("tick")[0].attempts[0].beats >= 58


def test_check_raises_when_the_lease_cannot_be_proved(job, cluster):
    """A sync-style handler that asks: LeaseLost says why."""
    told = []

    async def handler(run):
        while True:
            try:
                run.check()
            except LeaseLost as error:
                told.append(str(error))
                raise
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue  # a handler that ignores cancelling, but asks

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(12)
    c.partition(c.runner("tick"))
    c.until(lambda: told)
    assert "could not be renewed in time" in told[0]


def test_i9_two_handlers_that_ask_are_never_both_sure(job, cluster):
    """Cut, freeze and heal at odd times: at no instant do two attempts both hold."""
    holding = {}

    async def handler(run):
        holding[run.runner] = run
        try:
            await asyncio.Event().wait()
        finally:
            holding.pop(run.runner, None)

    for seed in range(10):
        holding.clear()
        c = cluster([job(handler=handler, when="3600s", lease=10, max_attempts=50)], 3, seed=seed)
        c.advance(11)
        for _ in range(8):
            victim = c.runner("tick") if c.page("tick").job.runs[0].lease.live(c.now()) else "a"
            c.freeze(victim) if seed % 2 else c.partition(victim)
            for _ in range(120):
                c.advance(0.1)
                awake = [run for name, run in holding.items() if not (seed % 2 and name == victim)]
                assert sum(run.held() for run in awake) <= 1
            c.thaw(victim) if seed % 2 else c.heal(victim)
            c.advance(0.01)
            assert sum(run.held() for run in holding.values()) <= 1


def test_r23_leases_are_kept_beside_a_handler_that_blocks(job, cluster):
    """Heartbeats and claims do not run on the handlers' loop: other jobs' slots are claimed meanwhile, others first."""
    c = cluster([job("slow", takes=1, when="3600s", lease=3), job("quick", when="10s", overlap="allow")], 1)
    c.advance(10)
    c.block("a", 30)
    c.advance(3)
    assert [run.status for run in c.ended("slow")] == ["success"]
    assert [run.attempts[0].started - run.slot < 1_100 for run in c.ended("quick")] == [True] * 4


def test_case_r41_recovery_is_no_job(job, cluster):
    """With every handler stuck, the dead runner's run is taken over all the same."""

    async def stuck(run):
        await asyncio.Event().wait()

    jobs = [job(f"job-{n}", handler=stuck, when="3600s", lease=3) for n in range(5)]
    c = cluster(jobs, 2)
    c.advance(11)
    for name in c.nodes:
        c.loop.freeze(f"{name}/handlers")
    first = c.runner("job-0")
    c.kill(first)
    c.advance(5)
    assert {c.page(one.name).job.runs[0].lease.holder for one in jobs} == set(c.nodes) - {first}


def test_case_r52_a_heartbeat_as_long_as_the_lease_is_refused(job):
    """Healthy runners would be taken for dead: heartbeat must be under half of the lease."""
    with pytest.raises(ConfigError, match="heartbeat=30: is not under half of the lease"):
        job(lease=30, heartbeat=30)


def test_r40a_a_takeover_whose_answer_was_lost_is_no_orphan(job, cluster, log):
    """The commit that won was applied, its answer lost: the next check, by the same token, starts the run."""
    c = cluster([job(takes=300, when="3600s", lease=30)], 2)
    c.advance(12)
    first = c.runner("tick")
    other = next(name for name in c.nodes if name != first)
    wire = c.nodes[other].wire
    commit = wire.commit

    async def lost(changes):
        verdict = await commit(changes)
        if any(b"takeover" in (change.body or b"") for change in changes):
            wire.commit = commit
            raise StoreUnavailable("the connection was cut.")
        return verdict

    wire.commit = lost
    c.kill(first)
    c.until(lambda: len(log.of("begin")) == 2, at_most=45)
    assert len(c.page("tick").job.runs[0].attempts) == 2
