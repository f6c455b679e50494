"""Server-sent events: hints that a page looks different, for as long as the session lasts."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import time
from pathlib import Path

import httpx2
import pytest

from tenure.board import endpoints, signing_in
from tenure.board.refused import Refused
from tenure.doors.web import assets, live
from tenure.rules.refusal import Refusal
from tenure.rules.schedule import every


class Stream:
    """One open stream, read event by event."""

    def __init__(self, response):
        self.response, self.lines = response, response.iter_lines()

    def event(self):
        """The name of the next event; None at the end. Comments and other lines are passed over."""
        for line in self.lines:
            if line.startswith("event: "):
                return line.removeprefix("event: ")
        return None


@pytest.fixture
def listen(site):
    """`listen(cookie)`: an open stream of whose session that is."""
    with contextlib.ExitStack() as stack:

        def open_stream(cookie, path="/live/board", **headers):
            client = stack.enter_context(httpx2.Client(base_url=site.url, timeout=30))
            client.cookies.set("tenure-session", cookie)
            return Stream(stack.enter_context(client.stream("GET", path, headers=headers)))

        yield open_stream


def test_a_change_is_told(site, listen):
    """A page is told to look once when it comes, and when its human's board has changed."""
    stream = listen(site.session("alice"))
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    assert stream.event() == "changed"
    site.board.write(endpoints.vend, site.board.alice, name="mine")
    assert stream.event() == "changed"


def test_b26_anothers_changes_are_not_told(site, listen, monkeypatch):
    """What Bob does leaves Alice's stream quiet."""
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.3)
    stream = listen(site.session("alice"))
    assert stream.event() == "changed"
    site.board.write(endpoints.vend, site.board.bob, name="of bob")
    assert {line for line in itertools.islice(stream.lines, 8) if line} <= {"data: 1", ": quiet"}


def test_a_stream_ends_with_its_session(site, listen):
    """Within a second of the session's end, told that it is over."""
    stream = listen(site.session())
    assert stream.event() == "changed"
    mine = site.board.read(signing_in.sessions, site.board.alice)[0].id
    began = time.monotonic()
    site.board.write(signing_in.end_session, site.board.alice, mine)
    assert stream.event() == "over"
    assert stream.event() is None
    assert time.monotonic() - began < live.QUIET_SECONDS  # not by the next look at the clock, but by the ring


def test_a_stream_of_runs_ends_with_its_session_too(site, listen, monkeypatch):
    """Though what it tells of is no board: signing out rings there as well."""
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.3)
    stream = listen(site.session(), "/live/runs/runs")
    while next(stream.lines) != ": quiet":
        pass
    monkeypatch.setattr(live, "QUIET_SECONDS", 60)  # longer than the test's client waits
    mine = site.board.read(signing_in.sessions, site.board.alice)[0].id
    site.board.write(signing_in.end_session, site.board.alice, mine)
    assert stream.event() == "over"


def test_b16_a_stream_ends_without_a_fault_while_the_database_is_away(site, listen, monkeypatch, caplog):
    """Whose it is can't be told any more: it ends, so that the page comes back, and the log has no traceback."""
    stream = listen(site.session())
    assert stream.event() == "changed"

    async def away(*_asked):
        raise Refused(Refusal("unavailable", "The database is away."))

    monkeypatch.setattr(site.board.database, "read", away)
    site.board.notices.hear([("board", site.board.alice.id)])
    assert stream.event() is None
    assert not [line for line in caplog.records if line.exc_info]


def test_a_stream_ends_with_its_server(site, listen):
    """Without a word, so that the page comes back by itself."""
    stream = listen(site.session())
    assert stream.event() == "changed"
    site.cut_streams()
    assert stream.event() is None


def test_streams_are_for_the_signed_in(site, listen):
    """401 without a session; 404 for a store that is not there."""
    assert listen("").response.status_code == 401
    assert listen(site.session(), "/live/runs/none").response.status_code == 404


def test_case_b44_what_opened_a_stream_opens_none_once_it_was_revoked(site, listen):
    """The session's cookie is looked up as each stream begins: there is no ticket that would outlive it."""
    cookie = site.session()
    assert listen(cookie).event() == "changed"
    mine = site.board.read(signing_in.sessions, site.board.alice)[0].id
    site.board.write(signing_in.end_session, site.board.alice, mine)
    assert [listen(cookie, path).response.status_code for path in ("/live/board", "/live/runs/runs")] == [401, 401]


def test_streams_are_bounded(site, listen, monkeypatch):
    """Beyond so many of one human there is a 429; another human has their own."""
    monkeypatch.setattr(live, "STREAMS", 3)
    cookie = site.session()
    open_ones = [listen(cookie) for _ in range(3)]
    assert [stream.event() for stream in open_ones] == ["changed"] * 3
    assert listen(cookie).response.status_code == 429
    assert site._doors.metrics.registry.get_sample_value("tenure_open_calls") == 3
    assert listen(site.session("bob")).event() == "changed"


def test_a_store_of_runs_is_watched(site, listen, monkeypatch):
    """A change of a job rings, though nobody sends a notice."""
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    site.tell_job("tick", every(60_000))
    stream = listen(site.session(), "/live/runs/runs")
    assert stream.event() == "changed"
    for step in (site.app.pause, site.app.resume):
        step("tick")
        assert stream.event() == "changed"


def test_b26_changes_of_others_jobs_are_not_told(site, listen, monkeypatch):
    """Where jobs have owners a stream rings for those of its human alone."""
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(live, "QUIET_SECONDS", 1)

    async def owned(human):
        return frozenset({f"schedule sc_{human.name}s"})

    site.own_runs(owned)
    for name in ("alice", "bob"):
        site.tell_job(f"schedule sc_{name}s", every(60_000))
    stream = listen(site.session(), "/live/runs/runs")
    while next(stream.lines) != ": quiet":
        pass
    site.app.pause("schedule sc_bobs")
    assert {line for line in itertools.islice(stream.lines, 4) if line} == {": quiet"}
    site.app.pause("schedule sc_alices")
    assert stream.event() == "changed"


def test_vendored_files_are_as_they_were_published():
    """Each file of others is the one whose checksum stands beside it."""
    folder = Path(assets.__file__).with_name("static")
    told = re.findall(r"\| (\S+) \|.*\| ([0-9a-f]{64}) \|", (folder / "VENDORED.md").read_text(encoding="utf-8"))
    assert {name for name, _ in told} == {"htmx.min.js", "hx-sse.min.js", "tinykeys.umd.js"}
    for name, checksum in told:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name


def test_assets_change_their_address_with_what_is_in_them(stranger):
    """The present address may be kept for ever, any other not; a file that is not there is missing."""
    for name, asset in assets.ASSETS.items():
        kept = stranger.get(assets.address(name))
        assert kept.content == asset.body
        assert "immutable" in kept.headers["cache-control"]
        assert stranger.get(f"/static/old/{name}").headers["cache-control"] == "no-cache"
    assert stranger.get("/static/x/none.css").status_code == 404
    assert stranger.get("/static/x/..%2fapp.py").status_code == 404
