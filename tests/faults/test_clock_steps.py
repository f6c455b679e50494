"""The clock of the store's machine steps, for the server alone: libfaketime adds an offset that a file names."""

import signal
import tempfile
from pathlib import Path

import pytest
from fleet import Fleet
from redis_server import free_port, fresh_prefix, until, with_options
from store_urls import kinds

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


class Offset:
    """The seconds that a server's clock is ahead; it reads them anew at every look. Monotonic clocks go on."""

    def __init__(self, folder):
        if LIBRARY is None:
            pytest.skip("libfaketime is not there: apt-get install faketime")
        folder.chmod(0o755)
        self.file = folder / "offset"
        self.step(0)
        self.env = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+}\n")
        new.chmod(0o644)
        new.replace(self.file)


@pytest.fixture
def offset():
    with tempfile.TemporaryDirectory(prefix="tenure-clock-") as folder:
        yield Offset(Path(folder))


@pytest.fixture(params=kinds("valkey9", long=("postgres", "redis62")))  # Debian's Redis 7.0 hangs under libfaketime
def url(request, offset):
    """A store on a server of its own, whose clock the test steps."""
    if request.param == "postgres":
        return request.getfixturevalue("private_postgres")(env=offset.env).url
    server = request.getfixturevalue("private")(request.param, port=free_port(), env=offset.env)
    return with_options(server.url, prefix=fresh_prefix())


def test_r33_a_lease_that_a_step_forward_ends(url, offset):
    """A frozen runner is overtaken early: two handlers may be at work, and still the run has one outcome."""
    with Fleet(url, lease="20s", heartbeat=0.5, kind="deaf", block=1) as fleet:
        fleet.steady = False
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        begun = fleet.wait("begin", attempt=1)
        fleet.freeze(begun["name"])
        offset.step(25)
        fleet.wait("effect", attempt=2, within=10)
        fleet.signal(begun["name"], signal.SIGCONT)
        fleet.wait("effect", attempt=1)
        fleet.wait("event", event="lost", name=begun["name"])
        run = fleet.through(wish)
    assert [one.how for one in run.attempts] == ["expired", "success"]


def missed(fleet):
    """How many slots are recorded as missed."""
    marks = fleet.ask(lambda records: records.store.marks("job:work", 0, 1 << 53, 100))
    return sum(mark.count for mark in marks if mark.why == "missed")


def reasons(fleet):
    """Why instances are not well, by their pages."""
    return [reason for page in fleet.ask(lambda records: records.instances()) for reason in page.reasons]


@pytest.mark.long
def test_r33_slots_while_the_stores_clock_steps(url, offset):
    """Forward: what was jumped over is a missed range. Back: nothing repeats, health says so, and it catches up."""
    with Fleet(url, lease="2s", kind="short", every=1, jitter=0) as fleet:
        fleet.steady = False
        for _ in range(2):
            fleet.start()
        fleet.wait("effect")
        fleet.wait("effect")
        offset.step(3600)
        fleet.wait("event", event="clock", why="the store's clock stepped forward")
        until(lambda: missed(fleet) > 3500)
        fleet.news("effect")
        offset.step(0)
        for name in fleet.workers:
            fleet.wait("event", event="clock", why="the store's clock stepped back", name=name)
        began = len(fleet.of("begin"))
        until(lambda: any("went back" in reason for reason in reasons(fleet)))  # pages are written each few seconds
        assert len(fleet.of("begin")) == began
        before = missed(fleet)
        offset.step(3660)
        fleet.news("effect")
        until(lambda: missed(fleet) > before)
    keys = [line["key"] for line in fleet.of("begin")]
    assert len(keys) == len(set(keys))
