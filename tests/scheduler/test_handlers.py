"""What becomes of handlers: failure, retries, timeouts, results, sync and async (R15, R23, R30, R30a, R31)."""

import asyncio
from decimal import Decimal

import pytest

from tenure import ConfigError
from tenure.scheduler.records import Records


def ran(c, job="tick"):
    (run,) = c.ended(job)
    return run


def test_r30_a_handler_that_raises_is_failed_and_not_retried(job, cluster):
    """Its type, message and the end of its traceback are kept."""

    async def handler(run):
        raise ValueError("no such report")

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(60)
    kind, message, trace = ran(c).error
    assert (ran(c).status, kind, message) == ("failed", "ValueError", "no such report")
    assert trace.rstrip().endswith("ValueError: no such report")
    assert c.heard("failed")[0].detail["error"] == "ValueError: no such report"


def test_r30_retries_stay_in_the_attempt(job, cluster):
    """retries=2 with a backoff: three tries, one attempt, while the lease is held."""
    tries = []

    async def handler(run):
        tries.append(run.attempt)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return "at last"

    c = cluster([job(handler=handler, when="3600s", retries=2, retry_delay=10)])
    c.advance(60)
    assert tries == [1, 1, 1]
    assert (ran(c).status, ran(c).result, len(ran(c).attempts)) == ("success", "at last", 1)
    assert [event.detail["number"] for event in c.heard("retry")] == [1, 2]


def test_run_lost_is_false_until_the_attempt_should_stop(job, cluster):
    """`if run.lost:` asks for the event, not whether there is one."""
    asked = []

    async def handler(run):
        asked.append(bool(run.lost))
        try:
            await asyncio.sleep(60)
        finally:
            asked.append(bool(run.lost))

    c = cluster([job(handler=handler, when="3600s", timeout="5s", lease="3s")])
    c.advance(60)
    assert asked == [False, True]


def test_r30a_timeout_fails_the_run_when_the_handler_has_ended(job, cluster):
    """At the timeout an async handler is cancelled, and the run is failed, whatever it returns."""

    async def handler(run):
        try:
            await asyncio.sleep(500)
        except asyncio.CancelledError:
            return "nearly"

    c = cluster([job(handler=handler, when="3600s", timeout=10)])
    c.advance(40)
    assert (ran(c).status, ran(c).error[0], ran(c).attempts[0].how) == ("failed", "Timeout", "timeout")
    assert "timeout of 10000 ms" in ran(c).error[1]


def test_r30a_a_handler_that_cannot_be_stopped_is_overdue_and_keeps_its_lease(job, cluster):
    """The next slot must not start beside it; health says so."""

    async def handler(run):
        end = asyncio.get_running_loop().time() + 100
        while asyncio.get_running_loop().time() < end:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    c = cluster([job(handler=handler, when="60s", timeout=10)], 2)
    c.advance(100)
    assert c.heard("overdue")
    runner = c.runner("tick")
    assert any("beyond its timeout" in reason for reason in c.health(runner).reasons)
    assert len(c.page("tick").job.runs) == 1
    assert any(mark.why == "overlap" for mark in c.marks("tick"))
    c.advance(20)
    assert c.ended("tick")[0].status == "failed"


@pytest.mark.parametrize(
    ("value", "status", "words"),
    [
        ({"rows": 3}, "success", ""),
        ("x" * 60_000, "success", ""),
        ("x" * 70_000, "failed", "at most 65536"),
        ({1, 2}, "failed", "no JSON"),
        (float("nan"), "failed", "no JSON"),
        ("\ud800", "failed", "no JSON"),
    ],
)
def test_r15_results_are_json_of_64_kib(job, cluster, value, status, words):
    """What can't be kept fails the run, saying so."""

    async def handler(run):
        return value

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(12)
    assert ran(c).status == status
    assert words in (ran(c).error or ("", "", ""))[1]


def test_r31_a_sync_handler_and_one_without_arguments(job, cluster):
    """Both are fine."""
    seen = []

    def plain():
        seen.append("plain")
        return 7

    def with_run(run):
        seen.append(run.job)

    c = cluster([job("one", handler=plain, when="3600s"), job("two", handler=with_run, when="3600s")])
    c.advance(12)
    assert sorted(seen) == ["plain", "two"]
    assert ran(c, "one").result == 7


def test_base_exceptions_are_failures_never_success(job, cluster):
    """SystemExit and KeyboardInterrupt in a handler end the run as failed."""

    async def handler(run):
        raise SystemExit(3)

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(12)
    assert (ran(c).status, ran(c).error[0]) == ("failed", "SystemExit")


def test_r38_the_run_knows_itself(job, cluster):
    """Slot in the job's zone, key, attempt, reason, token and fence."""
    seen = []

    async def handler(run):
        seen.append(run)

    c = cluster([job(handler=handler, when="0 2 * * *", tz="Europe/Berlin", catch_up=0)], 1)
    c.advance(75)
    (run,) = seen
    assert run.slot.isoformat() == "2026-01-01T02:00:00+01:00"
    assert run.slot_utc.isoformat() == "2026-01-01T01:00:00+00:00"
    assert run.key == "tick@2026-01-01T01:00:00Z"
    assert (run.attempt, run.reason, run.fence, run.runner) == (1, "schedule", 1, "a")
    assert len(run.token) == 32
    assert (run.shifted, run.local) == ("", "2026-01-01T02:00:00")


def test_progress_travels_with_the_heartbeat(job, cluster):
    """What the handler says is seen in the store."""

    async def handler(run):
        run.progress(3, 10, "pages")
        await asyncio.sleep(20)

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(20)
    assert c.page("tick").job.runs[0].progress == (3, 10, "pages")


def test_an_error_in_a_listener_stops_nothing(job, cluster, caplog):
    """It is logged; the run goes on."""
    c = cluster([job(when="3600s")], 1)
    c.nodes["a"].instance.events.on("started", lambda event: 1 / 0)
    c.advance(12)
    assert ran(c).status == "success"
    assert "a listener of 'started' raised" in caplog.text


@pytest.mark.parametrize(
    ("done", "total"), [("3", None), (True, None), (float("nan"), 10), (1, float("inf")), (Decimal(1), 2)]
)
def test_progress_is_of_finite_numbers(job, cluster, done, total):
    """Anything else is refused in the handler, and never reaches the heartbeat."""

    async def handler(run):
        with pytest.raises(ConfigError, match="is no finite number"):
            run.progress(done, total)
        await asyncio.sleep(40)

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(60)
    assert ran(c).status == "success"


def test_r30_an_error_that_cannot_say_itself(job, cluster):
    """Its __str__ raises: the run is failed all the same, once."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    async def handler(run):
        raise Mute

    c = cluster([job(handler=handler, when="3600s")])
    c.advance(60)
    assert (ran(c).status, ran(c).error[0]) == ("failed", "Mute")
    assert len(ran(c).attempts) == 1


def test_r17_a_heartbeat_that_fails_in_our_own_code_is_told_and_tried_again(job, cluster):
    """health() says so, and the leases are kept."""
    c = cluster([job(takes=60, when="3600s")], 1)
    c.advance(12)
    keeper = c.nodes["a"].instance.keeper
    beaten, keeper._beaten = keeper._beaten, lambda *_: 1 / 0
    c.advance(6)
    keeper._beaten = beaten
    c.advance(60)
    assert any("heartbeats died" in reason for reason in c.health("a").reasons)
    assert [len(run.attempts) for run in c.ended("tick")] == [1]


def test_r36_a_wish_that_waits_is_told_of_once(job, cluster):
    """Not every five seconds, by every instance."""
    c = cluster([job(takes=60, when="3600s")], 2)
    c.advance(12)
    c.loop.run_until_complete(Records(c.store).trigger("tick"))
    c.advance(40)
    assert len([event for event in c.heard("skip") if event.request]) == 2
