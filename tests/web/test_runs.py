"""Runs: what a store's pages tell, and pause, resume and trigger."""

from __future__ import annotations

import html
import re

import pytest
from web_filling import Store
from web_pages import forms

from tenure.rules.schedule import cron, every
from tenure.scheduler.overview import overview


@pytest.fixture
def store(site):
    """The site's store of runs."""
    return Store(site)


def look(site):
    return site.app.ask_now(overview)


def told(page):
    """The page's text, without markup."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text)))


# --- what needs an eye ------------------------------------------------------------------------------------


def test_a_healthy_store_has_nothing_to_look_at(site, store):
    """Its last slot ran, nothing failed."""
    store.jobs["tick"] = site.tell_job("tick", every(3_600_000))
    store.ran("tick", store.now() // 3_600_000 * 3_600_000, "api-1")
    seen = look(site)
    assert (seen.late, seen.failing, seen.stuck, seen.silent) == ((), (), (), ())


def test_late_failing_and_stuck(site, store):
    """A slot that nobody took, a failure, a lease that ran out: each is one concern of the right kind."""
    now = store.now()
    for name in ("late", "failing", "stuck"):
        store.jobs[name] = site.tell_job(name, every(86_400_000), lease="500ms", heartbeat="100ms", tiny=True)
    slot = now // 86_400_000 * 86_400_000
    store.known_since("late", slot - 1)
    store.ran("failing", slot, "api-1", ("ValueError", "no", ""))
    store.claim("stuck", slot, "api-2")
    store.until("stuck", lambda run: run.status == "expired")
    seen = look(site)
    assert [one.name for one in seen.late] == ["late"]
    assert [(one.name, one.says) for one in seen.failing] == [("failing", "ValueError: no")]
    assert [one.name for one in seen.stuck] == ["stuck"]
    assert "nobody has taken over yet" in seen.stuck[0].says


def test_a_paused_job_is_not_late(site, store):
    """Nor one that is running, nor one whose schedule was first seen after its slot."""
    for name in ("paused", "new"):
        store.jobs[name] = site.tell_job(name, every(86_400_000))
    store.known_since("paused", 0)
    site.app.pause("paused")
    assert look(site).late == ()


# --- pages ------------------------------------------------------------------------------------------------


def test_the_page_of_a_job(site, store, alice):
    """Schedule in words, next slots with the night of the clock change, options, and each run with its link."""
    store.jobs["report"] = site.tell_job("report", cron("30 2 * * *", "Europe/Berlin"), catch_up="1h")
    store.ran("report", store.now() - 5_000, "api-1")
    page = alice.get("/runs/runs/job?name=report")
    text = told(page)
    assert "At 02:30 every day, Europe/Berlin time" in text
    assert "02:30 does not exist: runs at 03:" in text
    assert "catch up 1h" in text
    assert "No instance is running it" in text
    assert 'class="picture timeline"' in page.text
    link = re.search(r'href="(/runs/runs/run\?[^"]+)"', page.text)[1]
    run = alice.get(html.unescape(link))
    assert "report@" in told(run)
    assert '"lines": 42' in html.unescape(run.text)


def test_a_run_is_drawn_alone(site, store, alice):
    """The page of a run shows its own attempts, not those that lie beside them in time."""
    store.jobs["tick"] = site.tell_job("tick", every(1_000))
    slot = store.now() // 1_000 * 1_000 - 5_000
    for number in range(4):
        store.ran("tick", slot + 1_000 * number, f"api-{number}")
    page = alice.get(f"/runs/runs/run?name=tick&slot={slot}").text
    assert page.count('class="bar success"') == 2  # the attempt, and its sign in the legend
    assert "api-3" not in page


def test_why_is_answered_on_the_page(site, alice):
    """The same sentence as `tenure job why`; a time that is none is refused beside its field."""
    site.tell_job("tick", every(60_000))
    assert "is no slot of tick" in told(alice.get("/runs/runs/job?name=tick&at=now-90s"))
    page = alice.get("/runs/runs/job?name=tick&at=soon")
    assert any("at" in one["invalid"] for one in forms(page.text))
    assert "99999999999d" in alice.get("/runs/runs/job?name=tick&at=now-99999999999d").text


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ("since=soon", "is no time"), ("until=never", "is no time"),
        ("since=now&until=now-1h", "is not before the end"),
        ("since=now-2000000d", "is out of reach"), ("until=0001-01-01", "is out of reach"),
        ("at=now-2000000d", "is out of reach"), ("at=0001-01-01T00:00:00%2B10:00", "is out of reach"),
        ("at=9999-12-31T23:59:59-10:00", "is out of reach"),
    ],
)  # fmt: skip
def test_a_window_that_is_none_is_refused(site, alice, window, says):
    """What is wrong is said, and the page is shown with its own window."""
    site.tell_job("tick", every(60_000))
    page = alice.get(f"/runs/runs/job?name=tick&{window}")
    assert page.status_code == 200
    assert says in told(page)


def test_steering(site, alice):
    """Pause, resume and trigger reach the store; what was so already says so."""
    site.tell_job("tick", every(60_000))
    job = "/runs/runs/job?name=tick"
    assert alice.post("/runs/runs/pause", name="tick").status_code == 303
    assert "Paused since" in told(alice.get(job))
    again = alice.post("/runs/runs/pause", name="tick")
    assert "That was so already" in told(alice.get(again.headers["location"]))
    assert alice.post("/runs/runs/resume", name="tick").status_code == 303
    assert alice.post("/runs/runs/trigger", name="tick").status_code == 303
    assert "1 triggered, not claimed yet" in told(alice.get(job))
    lines = site.board.rows("SELECT action, subject, subject_id FROM audit WHERE subject = 'job' ORDER BY id")
    assert [tuple(one) for one in lines] == [(word, "job", "tick") for word in ("pause", "pause", "resume", "trigger")]


def test_unknown_things_are_one_page(site, alice):
    """A store, job or run that is not there, and a name that could be none."""
    site.tell_job("tick", every(60_000))
    paths = (
        "/runs/other", "/runs/runs/job?name=none", "/runs/runs/job", "/runs/runs/job?name=%00",
        "/runs/runs/job?name=" + "x" * 300, "/runs/runs/run?name=tick&slot=1", "/runs/runs/run?name=tick&slot=-1",
        "/runs/runs/run?name=tick&slot=" + "9" * 40, "/runs/runs/run?name=none&slot=1",
    )  # fmt: skip
    answers = {path: alice.get(path) for path in paths}
    assert {answer.status_code for answer in answers.values()} == {404}
    assert len({answer.content for answer in answers.values()}) == 1


def test_two_stores_are_listed(site, alice):
    """With more than one store there is a page that names them."""
    from dataclasses import replace

    sources = site._doors.web.state.sources
    sources["second"] = replace(sources["runs"], key="second", title="the second")
    page = alice.get("/runs")
    assert 'href="/runs/runs"' in page.text
    assert 'href="/runs/second"' in page.text


def test_no_store_is_an_empty_state(site, alice):
    """The page says how to start the board with one."""
    site._doors.web.state.sources.clear()
    assert "tenure board --runs" in alice.get("/runs").text


def test_a_store_that_is_away(site, alice):
    """The overview says so and shows the rest; the store's own page says what to do."""
    from tenure.errors import StoreUnavailable

    async def away(question):
        raise StoreUnavailable("the store can't be reached")

    site.app.ask = away
    assert "the store can't be reached" in told(alice.get("/"))
    assert alice.get("/runs/runs").status_code == 503


def test_a_schedule_is_called_by_its_own_name(site, store, alice):
    """Not by the id that its job has; and what starts it is a command of schedules."""

    async def titles(human):
        return {"schedule sc_1": "nightly-triage"}

    site.own_runs(None, titles)
    store.jobs["schedule sc_1"] = site.tell_job("schedule sc_1", every(3_600_000))
    page = alice.get("/runs/runs/job?name=schedule sc_1")
    assert "<h1>nightly-triage</h1>" in page.text
    assert "tenure schedule trigger nightly-triage" in told(page)
    slot = store.now() // 3_600_000 * 3_600_000
    store.ran("schedule sc_1", slot, "api-1", ("ValueError", "no", ""))
    for path in ("/runs/runs", "/", f"/runs/runs/run?name=schedule sc_1&slot={slot}"):
        page = alice.get(path)
        assert "nightly-triage" in told(page), path
