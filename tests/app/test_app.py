"""`Tenure` as a service embeds it: started and stopped in every way, asked and told (interface.md)."""

import asyncio
import os
import threading

import pytest

from tenure import ConfigError, NotFound, StoreError, Tenure
from tenure.rules.schedule import every


async def test_async_with_runs_and_stops(app):
    """A job each 100 ms, async on this loop, sync in a thread of its own."""
    threads, loops, both = set(), set(), asyncio.Event()

    @app.every(0.1)
    async def tick(run):
        loops.add(asyncio.get_running_loop())
        if threads:
            both.set()

    @app.every("100ms")
    def tock():
        threads.add(threading.current_thread())

    async with app:
        async with asyncio.timeout(10):
            await both.wait()
        assert app.health().ok
    assert loops == {asyncio.get_running_loop()}
    assert threading.main_thread() not in threads
    assert not app.health().ok


def test_run_in_thread_for_sync_hosts(app):
    """Handlers get a loop of their own; the host goes on."""
    ran = threading.Event()

    @app.every(0.1)
    async def tick():
        ran.set()

    with app.run_in_thread():
        assert ran.wait(10)
        assert app.trigger("tick")


async def test_lifespan_for_asgi(app):
    """Started on entry, stopped on leaving."""
    app.job(name="work")(lambda: None)
    async with app.lifespan()(object()):
        assert app.instance is not None
    assert app.instance is None


async def test_events_reach_listeners_and_iterators(app, event):
    """on(), as a decorator too, and `async for`; unknown names are refused."""
    heard = []

    @app.on("started")
    def started(event):
        heard.append((event.name, threading.current_thread()))

    @app.job()
    async def work():
        pass

    async with app:
        next_success = asyncio.create_task(event(app, "success"))
        await asyncio.sleep(0)
        app.trigger("work")
        success = await next_success
    assert success.job == "work"
    assert heard == [("started", threading.main_thread())]
    with pytest.raises(ConfigError, match="is no event"):
        app.on("strated", print)


async def test_what_can_be_said_without_starting(app, url):
    """trigger, pause, resume and why work in a process that runs nothing; unknown jobs are NotFound."""
    app.every(3600, name="report")(lambda: None)
    async with app:
        async with asyncio.timeout(10):
            await app.instance.started.wait()
    outside = Tenure(url)
    assert outside.pause("report") is True
    assert outside.pause("report") is False
    assert outside.resume("report") is True
    assert len(outside.trigger("report")) == 12
    assert (await outside.why("report", "now-1h")).outcome == "before"
    with pytest.raises(NotFound, match="Did you mean 'report'"):
        outside.trigger("reprot")
    with pytest.raises(ConfigError, match="is no time"):
        await outside.why("report", "yesterday-ish")
    outside.close()


def test_simulate_runs_nothing(app):
    """The slots, in order, clock change and all."""
    app.cron("30 2 * * *", tz="Europe/Berlin", name="night")(lambda: 1 / 0)
    app.every("12h", name="half")(lambda: 1 / 0)
    found = [(job.name, slot.local) for slot, job in app.simulate("2026-03-28T23:00:00Z", 24)]
    assert found == [
        ("half", "2026-03-29T00:00:00"),
        ("night", "2026-03-29T02:30:00"),
        ("half", "2026-03-29T12:00:00"),
    ]


def test_two_jobs_of_one_name_are_refused(app):
    """So is one defined after the start."""
    app.every(1, name="x")(lambda: None)
    with pytest.raises(ConfigError, match="another job already"):
        app.every(2, name="x")(lambda: None)


async def test_r45a_a_forked_child_shares_nothing(app, url):
    """The child of a running app is not started, and is told why it can't use the file; the parent goes on."""
    ran = asyncio.Event()

    @app.every(0.1)
    async def tick():
        ran.set()

    async with app:
        async with asyncio.timeout(10):
            await ran.wait()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                started = app.instance is not None
                with pytest.raises(StoreError, match="open when this process was forked"):
                    app.pause("tick")
                code = 0 if not started else 2
            finally:
                os._exit(code)
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        ran.clear()
        async with asyncio.timeout(10):
            await ran.wait()


def test_only_chosen_jobs(app):
    """start(only=...) runs those; an unknown one is named."""
    app.every(1, name="x")(lambda: None)
    with pytest.raises(NotFound, match="It defines: x"):
        asyncio.run(app.start(only=["y"]))


def test_case_r36_the_bound_is_known_at_definition(app):
    """Each job can say the longest it takes from a dead runner's last heartbeat to the takeover."""
    app.every(60, name="x", lease=30, heartbeat=5)(lambda: None)
    app.every(60, name="y", lease=None)(lambda: None)
    assert app.jobs["x"].takeover_ms == 40_000
    assert app.jobs["y"].takeover_ms is None


def test_case_r34_a_deadline_shorter_than_the_loop_may_lag_is_warned_of(app):
    """max_late under a second: a warning at definition, not a lost slot."""
    app.every(60, name="x", max_late=0.5)(lambda: None)
    assert "max_late=500ms" in app.jobs["x"].warnings[0]


async def test_case_r49_a_sync_handler_that_blocks_stops_no_other(app):
    """A blocking sync job runs in its thread; the other job's slots are claimed on time."""
    release, late, enough = threading.Event(), [], asyncio.Event()

    @app.every("1h", name="slow", catch_up="2h")
    def slow():
        release.wait(30)

    @app.every(0.2)
    async def quick(run):
        import time

        late.append(time.time() * 1000 - run.slot_ms)
        if len(late) == 10:
            enough.set()

    async with app:
        app.trigger("slow")
        async with asyncio.timeout(20):
            await enough.wait()
        release.set()
    assert max(late) < 1_000


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_r30_a_handler_cannot_take_the_loop_down(app, event, raised):
    """Whatever it raises fails the run, and nothing else."""

    @app.job()
    async def work():
        raise raised

    async with app:
        failed = asyncio.create_task(event(app, "failed"))
        await asyncio.sleep(0)
        app.trigger("work")
        assert (await failed).detail["error"].startswith(raised.__name__)


async def test_r30a_the_timeout_counts_from_when_the_handler_runs(url, event):
    """With one thread, the second sync run waits for it, and its timeout with it."""
    one = Tenure(url, jitter=0, threads=1)
    release = threading.Event()
    one.job(name="first")(lambda: release.wait(10))
    one.job(name="second", timeout=0.3)(lambda: None)
    seen = []
    one.on("*", lambda event: seen.append((event.name, event.job)))
    async with one:
        first = asyncio.create_task(event(one, "started"))
        await asyncio.sleep(0)
        one.trigger("first")
        await first
        won = asyncio.create_task(event(one, "won"))
        second = asyncio.create_task(event(one, "success", within=20))
        await asyncio.sleep(0)
        one.trigger("second")
        await won
        await asyncio.to_thread(threading.Event().wait, 0.5)
        assert ("started", "second") not in seen
        release.set()
        await second
    assert ("overdue", "second") not in seen


async def test_a_warning_of_many_jobs_is_logged_once(app, caplog):
    """With the names of all whose it is."""
    for name in ("a", "b"):
        app.cron("30 2 * * *", tz="Europe/Berlin", name=name)(lambda: None)
    async with app:
        pass
    (said,) = [one.getMessage() for one in caplog.records if "clocks in Europe/Berlin" in one.getMessage()]
    assert said.startswith("a, b: clocks in Europe/Berlin go from")


async def test_events_end_when_the_app_stops(app):
    """A reader that came before the start hears all from then on, and its loop ends by itself after stop()."""
    app.job(name="work")(lambda: None)

    async def read(*name):
        return [event.name async for event in app.events(*name)]

    readers = [asyncio.create_task(read()), asyncio.create_task(read("success"))]
    await asyncio.sleep(0)
    async with app:
        done = asyncio.Event()
        app.on("success", lambda _: done.set())
        app.trigger("work")
        async with asyncio.timeout(10):
            await done.wait()
    async with asyncio.timeout(5):
        everything, successes = await asyncio.gather(*readers)
    assert {"won", "started", "success"} <= set(everything)
    assert successes == ["success"]
    with pytest.raises(ConfigError, match="is no event"):
        await anext(app.events("strated"))


async def test_an_iterator_of_events_that_is_closed_listens_no_more(app):
    """Its listener is gone from the app and from the instance."""
    app.job(name="work")(lambda: None)
    async with app:
        before = len(app.instance.events._listeners)
        events = app.events()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(events)
        await events.aclose()
        assert len(app.instance.events._listeners) == before


async def test_b49_a_job_put_and_dropped_at_once_is_there_for_all_or_for_none(app):
    """Whichever comes first, once or many times: what the application says it defines is what its instance runs."""
    await app.start()
    for number in range(10):
        steps = [app.put_job("x", every(1000), lambda: None), app.drop_job("x")]
        await asyncio.gather(
            *(steps if number % 2 else steps[::-1]), app.put_job("y", every(1000 + number), lambda: None)
        )
        assert set(app.jobs) == set(app.instance.jobs)
        assert app.jobs["y"] is app.instance.jobs["y"]
    await app.stop()


async def test_r27_two_stops_are_one_and_an_impatient_one_changes_nothing(app):
    """Called twice at once, or given up on: the instance stops once, and in an orderly way."""
    app.job(name="work")(lambda: None)
    await app.start()
    instance = app.instance
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.0001):
            await app.stop(5)
    await asyncio.gather(app.stop(5), app.stop(1))
    assert instance.stopped
    assert app.instance is None


async def test_r27_stop_does_not_wait_for_a_lock_that_others_hold(app, tmp_path):
    """Somebody keeps the file's write lock: stop() ends within its timeout and two seconds."""
    import sqlite3
    import time

    app.job(name="work")(lambda: None)
    await app.start()
    other = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    await app.stop(1)
    assert time.monotonic() - begin <= 3.5  # what a busy machine adds included
    other.execute("ROLLBACK")
    other.close()


async def test_i8a_a_loop_closed_without_stop_gives_back_what_it_wins(url, event):
    """The user's loop is gone: another instance runs the job, and health() says why this one does not."""
    deserted = Tenure(url, jitter=0, lease="2s", name="deserted")
    ran = []

    @deserted.every(0.3, name="work")
    async def work(run):
        ran.append(run.runner)

    await asyncio.to_thread(lambda: asyncio.run(deserted.start()))
    other = Tenure(url, jitter=0, lease="2s", name="other")
    seen = asyncio.Event()

    @other.every(0.3, name="work")
    async def work_too(run):
        if run.runner == "other":
            seen.set()

    async with other, asyncio.timeout(20):
        await seen.wait()
        told = asyncio.create_task(event(other, "started"))
        while deserted.health().ok:
            await told
            told = asyncio.create_task(event(other, "started"))
        told.cancel()
    assert "closed" in deserted.health().reasons[0]
    await deserted.stop(0)


class Counting:
    """A store that counts the calls by which runs are won."""

    def __init__(self, store):
        self._store = store
        self.asked, self.won, self.ended = [], [], 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def read(self, asks):
        if not self.ended and any(ask.runs and ask.before is None for ask in asks):
            self.asked.append(len(asks))
        return await self._store.read(asks)

    async def commit(self, changes):
        verdict = await self._store.commit(changes)
        wins = [one for one in changes if one.body and b'"schedule"' in one.body and not one.records]
        self.ended += sum(len(one.records) for one in changes)
        if wins:
            self.won.append(len(wins))
        return verdict


async def test_r41_a_thousand_jobs_due_at_once_on_sqlite(url):
    """One read asks for them all, and at most three commits win them."""
    from tenure.stores.opening import store_from_url

    store = Counting(store_from_url(url))
    app, started, release = Tenure(store, jitter=0), set(), asyncio.Event()
    enough = asyncio.Event()

    async def work(run):
        started.add(run.job)
        if len(started) == 1_000:
            enough.set()
        await release.wait()

    for n in range(1_000):
        app.every(4, name=f"job-{n:04}")(work)
    async with app:
        async with asyncio.timeout(40):
            await enough.wait()
        asked, won = list(store.asked), list(store.won)
        release.set()
    assert asked[0] == 1_000
    assert sum(won) == 1_000
    assert len(won) <= 3
