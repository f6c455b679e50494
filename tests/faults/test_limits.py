"""The server reaches a limit, or forgets what it may forget, while instances hold runs."""

import contextlib
import signal
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from fleet import Fleet
from redis_server import Server, free_port, fresh_prefix, with_options
from small_disk import can_mount, mounted

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]
EVERYWHERE = ["valkey9", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("redis62", "redis70"))]


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_r43_scripts_are_flushed_all_the_time(private, kind):
    """They are sent again within each call: nobody calls the store down, and the run is one attempt."""
    server = private(kind, port=free_port())
    with Fleet(with_options(server.url, prefix=fresh_prefix()), lease="1s", takes=2) as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        fleet.wait("begin")
        while not fleet.of("effect"):
            server.run("SCRIPT", "FLUSH")
            time.sleep(0.01)
        run = fleet.through(wish)
    assert (run.status, len(run.attempts)) == ("success", 1)
    assert not fleet.of("event", event="store-down")


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_r43_the_memory_limit_is_reached(private, kind):
    """No heartbeat is taken: the handler stops in time. Once there is memory again the next attempt is won."""
    server = private(kind, port=free_port())
    with Fleet(with_options(server.url, prefix=fresh_prefix()), lease="1s") as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        begun = fleet.wait("begin")
        fleet.harm()
        server.run("CONFIG", "SET", "maxmemory", "1")
        down = fleet.wait("event", event="store-down", name=begun["name"])
        fleet.wait("end", token=begun["token"])
        time.sleep(1)
        server.run("CONFIG", "SET", "maxmemory", "0")
        run = fleet.through(wish)
    assert "memory limit" in down["why"]
    assert [one.how for one in run.attempts][1:] == ["success"]


@pytest.fixture
def disk():
    """A disk of 150 MB that PostgreSQL's user may write to, and what fills it up."""
    if not can_mount():
        pytest.skip("a full disk needs a file system of its own, and so root with the right to mount")
    with tempfile.TemporaryDirectory(prefix="tenure-disk-") as place:
        Path(place).chmod(0o755)
        with mounted(Path(place) / "disk", "150m") as folder:
            folder.chmod(0o755)
            yield folder


def fill(disk):
    """Write until nothing more goes on it; the file that is in the way."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    return ballast


@pytest.mark.long
@pytest.mark.parametrize("kind", ["valkey9", "redis62", "redis70"])
def test_r43_a_disk_that_is_full(kind, disk):
    """The server takes no writes: the handler stops in time. Given room it goes on, without a restart."""
    server = Server(kind, disk / "server", free_port(), appendonly="yes")
    url = with_options(server.url, prefix=fresh_prefix())
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        server.start()
        fleet = stack.enter_context(Fleet(url, lease="1s"))
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        begun = fleet.wait("begin")
        fleet.harm()
        ballast = fill(disk)
        fleet.wait("event", event="store-down", name=begun["name"])
        fleet.wait("end", token=begun["token"])
        ballast.unlink()
        run = fleet.through(wish)
    assert [one.how for one in run.attempts][1:] == ["success"]


@pytest.mark.long
def test_r44_a_disk_that_is_full_for_data(private_postgres, disk):
    """What fits is written, heartbeats too; the finish with its long result is sent again until there is room."""
    server = private_postgres(disk / "server")
    with Fleet(server.url, lease="2s", kind="bulky", takes=2) as fleet:
        fleet.start()
        fleet.registered(1)
        wish = fleet.trigger()
        fleet.wait("begin")
        ballast = fill(disk)
        down = fleet.wait("event", event="store-down")
        time.sleep(1)
        assert all(run.ended is None for run in fleet.runs())
        ballast.unlink()
        run = fleet.through(wish)
    assert "No space" in down["why"]
    assert (run.status, len(run.attempts), len(run.result)) == ("success", 1, 60_000)


@pytest.mark.long
def test_r44_a_disk_that_is_full_for_the_log(private_postgres, disk):
    """The server stops itself, the handler stops in time; given room and started again it has all it acknowledged."""
    server = private_postgres(disk / "server")
    with Fleet(server.url, lease="1s") as fleet:
        for _ in range(2):
            fleet.start()
        fleet.registered(2)
        wish = fleet.trigger()
        begun = fleet.wait("begin")
        fleet.harm()
        while not fleet.of("end", token=begun["token"]):
            ballast = fill(disk)  # each time: a server that stops itself leaves a little room
            with contextlib.suppress(psycopg.Error):
                server.sql("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000)), pg_switch_wal()")
        time.sleep(1)
        ballast.unlink()
        server.stop(signal.SIGQUIT)
        server.start()
        run = fleet.through(wish)
    assert [one.how for one in run.attempts][1:] == ["success"]
