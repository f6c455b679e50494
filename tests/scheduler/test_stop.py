"""stop(): handed over, finished or left; and nothing counted that should not be (R27)."""

import asyncio

import pytest


def test_r27_a_handler_that_raises_is_handed_over_at_once(job, cluster):
    """The signal is set, the handler raises, the lease is released; a backup has it within two heartbeats."""

    async def handler(run):
        if run.attempt == 1:
            await run.lost.wait()
            run.check()
        await asyncio.sleep(1)

    c = cluster([job(handler=handler, when="3600s", max_attempts=1)])
    c.advance(12)
    first = c.runner("tick")
    c.stop(first)
    released = c.now()
    c.until(lambda: c.ended("tick"))
    run = c.ended("tick")[0]
    assert [one.how for one in run.attempts] == ["handed-over", "success"]
    assert run.attempts[1].started - released <= 10_000
    assert run.attempts[1].started - run.attempts[0].ended <= 300  # the store pushes
    assert c.heard("handed-over")[0].runner == first


def test_r27_three_hand_overs_in_a_row_with_one_attempt(job, cluster):
    """Hand-overs are not counted: deploys can't use the attempts up."""

    async def handler(run):
        if run.attempt <= 3:
            await run.lost.wait()
            run.check()

    c = cluster([job(handler=handler, when="3600s", max_attempts=1)], 4)
    c.advance(12)
    for _ in range(3):
        c.stop(c.runner("tick"))
        c.advance(11)
    run = c.ended("tick")[0]
    assert [one.how for one in run.attempts] == ["handed-over"] * 3 + ["success"]
    assert run.handed == 3


def test_r27_a_handler_that_returns_is_finished(job, cluster):
    """It saw the signal, or was done anyway: success."""

    async def handler(run):
        await run.lost.wait()
        return "tidied up"

    c = cluster([job(handler=handler, when="3600s")], 2)
    c.advance(12)
    c.stop(c.runner("tick"))
    assert [(run.status, run.result) for run in c.ended("tick")] == [("success", "tidied up")]


def test_r27_an_async_handler_is_cancelled_a_second_before(job, cluster):
    """It does not look at the signal: cancelled one second before the timeout, and handed over."""
    c = cluster([job(when="3600s", takes=500)], 2)
    c.advance(12)
    first, begin = c.runner("tick"), c.now()
    c.stop(first, timeout=20)
    assert 18_900 <= c.now() - begin <= 20_000
    c.until(lambda: c.page("tick").job.runs[0].lease.live(c.now()), at_most=11)
    assert c.page("tick").job.runs[0].attempts[0].how == "handed-over"


def test_r27_what_ignores_it_all_is_left(job, cluster):
    """Renewals end at the timeout, a backup takes over at the lease end, what it returns later is not sent."""

    async def handler(run):
        while run.attempt == 1 and not over:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue
        held.append((run.attempt, run.held()))

    held, over = [], []
    c = cluster([job(handler=handler, when="3600s", lease=30)], 2)
    c.advance(12)
    first, begin = c.runner("tick"), c.now()
    c.stop(first, timeout=5)
    assert c.now() - begin <= 7_000
    assert c.heard("abandoned")[0].runner == first
    c.until(lambda: c.ended("tick"))
    run = c.ended("tick")[0]
    assert [one.how for one in run.attempts] == ["expired", "success"]
    over.append(True)
    c.advance(5)
    assert (1, False) in held
    assert len(c.heard("success")) == 1


def test_case_r37_heartbeats_go_on_until_the_timeout(job, cluster):
    """SIGTERM with a 60 s handler and a 30 s lease: beats go on, no peer re-runs it, and it is finished."""
    c = cluster([job(when="3600s", takes=60, lease=30)], 2)
    c.advance(12)
    c.stop(c.runner("tick"), timeout=120)
    run = c.ended("tick")[0]
    assert (run.status, len(run.attempts)) == ("success", 1)


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_r27_a_claim_won_after_stop_began_is_given_back_unrun(job, cluster, log, sync):
    """Its answer was under way when stop() began: released, not run, and another instance runs it."""

    def handler(run):  # which nobody could cancel before it has begun
        log.add("begin", run)

    c = cluster([job(when="3600s", handler=handler if sync else None)], 2, delay=(0.4, 0.4))
    c.advance(9.0)
    c.nodes["b"].wire._delay = lambda: 3.0
    c.advance(1.5)  # a's commit is under way
    c.stop("a", timeout=10)
    c.nodes["b"].wire._delay = lambda: 0.001
    c.advance(30)
    run = c.ended("tick")[0]
    assert [(one.runner, one.how) for one in run.attempts] == [("a", "handed-over"), ("b", "success")]
    assert [runner for _, _, runner in log.of("begin")] == ["b"]


@pytest.mark.parametrize("timeout", [0, 0.5, 3])
def test_r27_stop_ends_within_its_timeout_and_two_seconds(job, cluster, timeout):
    """Also while the store is gone."""
    c = cluster([job(when="3600s", takes=500)], 1)
    c.advance(12)
    c.partition("a")
    begin = c.now()
    c.stop("a", timeout=timeout)
    assert c.now() - begin <= timeout * 1000 + 2_000


def test_r25_a_finish_is_retried_until_it_is_answered(job, cluster):
    """The store is out when the handler returns: heartbeats and finish go on, and it ends as success."""
    c = cluster([job(when="3600s", takes=5, when_unsure="continue")], 1)
    c.advance(12)
    c.partition("a")
    c.advance(60)
    c.heal("a")
    c.advance(20)
    assert [run.status for run in c.ended("tick")] == ["success"]
