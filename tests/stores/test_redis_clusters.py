"""A cluster whose nodes fail and whose slots move, a master replaced by Sentinel, and TLS: on private servers."""

import asyncio
import contextlib
import shutil
import signal
import subprocess
import time

import pytest
from redis_server import Sentinel, free_port, fresh_prefix, slot_of, until, with_options
from sluggish import Sluggish

from tenure.errors import StoreError, StoreUnavailable
from tenure.stores.contract import Ask, Change, Outcome, Record
from tenure.stores.redis import RedisStore
from tenure.stores.redis.documents import bucket_of

pytestmark = pytest.mark.servers
DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


@contextlib.asynccontextmanager
async def opened(url, **options):
    store = RedisStore(with_options(url, **{"prefix": fresh_prefix(), **options}))
    store.warnings = await store.open()
    try:
        yield store
    finally:
        await store.close()


class Load:
    """Changes one document again and again; what was acknowledged must stand, what is unknown may."""

    def __init__(self, store, name):
        self.store, self.name = store, name
        self.acknowledged = self.unknown = 0
        self.errors = []
        self.stopped = False

    async def __aenter__(self):
        self.go()
        return self

    def go(self):
        self.stopped = False
        self.task = asyncio.create_task(self._run())

    async def stop(self):
        self.stopped = True
        await self.task

    async def _run(self):
        while not self.stopped:
            try:
                version = (await self.store.read([Ask(self.name)])).found[0].version
                record = Record(str(version), version, "success", 1, 0, b"x")
                change = Change(self.name, version, b"%d" % version, records=(record,))
            except StoreError as error:
                self.errors.append(error)
                await asyncio.sleep(0.02)
                continue
            try:
                if (await self.store.commit([change])).outcomes == (DONE,):
                    self.acknowledged += 1
            except StoreError as error:
                self.errors.append(error)
                self.unknown += 1

    async def __aexit__(self, *_):
        await self.stop()

    async def more(self, count=20, seconds=15.0):
        """Wait until so many more are acknowledged."""
        wanted = self.acknowledged + count
        async with asyncio.timeout(seconds):
            while self.acknowledged < wanted:  # noqa: ASYNC110 - what is waited for is the servers' doing
                await asyncio.sleep(0.01)

    async def check(self):
        """Nothing that was acknowledged is missing, nothing was done twice."""
        found = (await self.store.read([Ask(self.name)])).found[0]
        assert self.acknowledged <= found.version <= self.acknowledged + self.unknown
        assert len(await self.store.records(self.name, 0, 1 << 40, 1 << 20)) == found.version
        assert all(isinstance(error, StoreUnavailable) for error in self.errors)


@pytest.mark.parametrize(
    "kind", ["valkey9", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("redis62", "redis70"))]
)
async def test_slots_that_move_and_masters_that_change(private, kind):
    """A slot moved under load, a forced failover, a master killed: every acknowledged change stands, once."""
    cluster = await asyncio.to_thread(private, "cluster", kind=kind)
    name = "job:moving"
    slot = slot_of(bucket_of(name))
    async with opened(cluster.url, timeout=2) as store:
        # Keys that exist beside keys that do not, on both sides of a slot that moves.
        beside = [f"{at}" for at in range(4_000) if bucket_of(f"{at}") == bucket_of(name)]
        await store.commit([Change(one, 0, b"x") for one in beside])
        async with Load(store, name) as load:
            await load.more()
            source = cluster.owner(slot)
            target = next(node for node in cluster.masters() if node is not source)

            def half_moved():
                time.sleep(0.2)

            await asyncio.to_thread(cluster.move, slot, source, target, half_moved)
            await load.more()
            assert not load.errors, load.errors[:1]
            assert {one.version for one in (await store.read([Ask(one) for one in beside])).found} == {1}

            master = cluster.owner(slot)
            replica = cluster.replica_of(master)
            await asyncio.to_thread(until, lambda: replica.info("replication")["master_link_status"] == "up")
            replica.run("CLUSTER", "FAILOVER")
            await asyncio.to_thread(until, lambda: replica.info("replication")["role"] == "master")
            await load.more()

            await asyncio.to_thread(until, lambda: master.info("replication").get("master_link_status") == "up")
            await load.stop()  # the kill would lose what the replica has not heard, which is shown elsewhere
            await asyncio.to_thread(until, lambda: _caught_up(replica, master))
            replica.stop()
            master.run("CLUSTER", "FAILOVER", "TAKEOVER")
            load.go()
            await load.more()
        await load.check()


def _caught_up(master, replica):
    return master.info("replication")["master_repl_offset"] == replica.info("replication")["slave_repl_offset"]


async def test_majority_frozen(private):
    """Without a majority of masters every call fails within its time; healed, all goes on by itself."""
    cluster = await asyncio.to_thread(private, "cluster", replicas=0)
    async with opened(cluster.url, timeout=1) as store:
        names = [f"job-{at}" for at in range(50)]
        await store.commit([Change(name, 0, b"x") for name in names])
        frozen = cluster.nodes[1:]
        for node in frozen:
            node.signal(signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable):
                await store.read([Ask(name) for name in names])
            # The node that is left needs a moment to see that it is alone; then it refuses its own keys too.
            mine = next(name for name in names if slot_of(bucket_of(name)) <= 5460)
            async with asyncio.timeout(10):
                while True:
                    began = time.monotonic()
                    try:
                        await store.read([Ask(mine)])
                    except StoreUnavailable as error:
                        assert time.monotonic() - began < 1.5
                        if "cluster is down" in str(error):
                            break
                    await asyncio.sleep(0.05)
        finally:
            for node in frozen:
                node.signal(signal.SIGCONT)
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(StoreUnavailable):
                    reading = await store.read([Ask(name) for name in names])
                    break
                await asyncio.sleep(0.05)
        assert {found.version for found in reading.found} == {1}


async def test_sentinel(private, tmp_path):
    """The master is found through Sentinel; when it is killed, the store goes on with the one that replaces it."""
    master = private(port=free_port())
    replica = private(port=free_port(), replicaof=("127.0.0.1", str(master.port)))
    await asyncio.to_thread(until, lambda: replica.info("replication")["master_link_status"] == "up")
    sentinel = Sentinel(tmp_path, master.port)
    try:
        sentinel.start()
        dead = free_port()
        url = f"redis+sentinel://127.0.0.1:{dead},127.0.0.1:{sentinel.port}/main"
        with pytest.raises(StoreUnavailable, match="knows no master of 'other'"):
            async with opened(f"redis+sentinel://127.0.0.1:{sentinel.port}/other"):
                pass
        async with opened(url, timeout=2) as store, Load(store, "a") as load:
            await load.more()
            await load.stop()
            await asyncio.to_thread(until, lambda: _caught_up(master, replica))
            master.stop()
            load.go()
            await load.more(seconds=25)
            await load.stop()
            await load.check()
            assert replica.info("replication")["role"] == "master"
    finally:
        sentinel.stop()


async def test_a_sentinel_that_hangs_does_not_take_every_call(private):
    """One that accepts and is silent may take the whole time of a call; the next may begin with another."""
    server = private(port=free_port())

    async def name_it(reader, writer):
        while await reader.read(1_000):
            port = str(server.port)
            writer.write(f"*2\r\n$9\r\n127.0.0.1\r\n${len(port)}\r\n{port}\r\n".encode())
        writer.close()

    async with Sluggish() as silent, await asyncio.start_server(name_it, "127.0.0.1", 0) as sentinel:
        there = sentinel.sockets[0].getsockname()[1]
        store = RedisStore(f"redis+sentinel://127.0.0.1:{silent.port},127.0.0.1:{there}/main", timeout=0.6)
        for _ in range(40):  # of two the right one is drawn first
            with contextlib.suppress(StoreUnavailable):
                await store.open()
                break
        assert (await store.read([Ask("a")])).found[0].version == 0
        await store.close()


async def test_tls(private, tmp_path):
    """With TLS the server's certificate is checked; nobody falls back to plain."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make certificates")
    ca, cert, key = _certificates(tmp_path)
    port = free_port()
    server = private("redis70", tls_port=str(port), tls_cert_file=cert, tls_key_file=key, tls_ca_cert_file=ca)
    url = f"rediss://127.0.0.1:{port}"
    await asyncio.to_thread(until, lambda: server.info("server"))
    async with opened(url, ssl_ca_certs=ca, ssl_certfile=cert, ssl_keyfile=key) as store:
        assert (await store.commit([Change("a", 0, b"x")])).outcomes == (DONE,)
    async with opened(f"redis://127.0.0.1:{port}", tls=1, ssl_ca_certs=ca, ssl_certfile=cert, ssl_keyfile=key):
        pass
    with pytest.raises(StoreUnavailable, match="certificate"):
        async with opened(url):
            pass
    with pytest.raises(StoreUnavailable):
        async with opened(f"redis://127.0.0.1:{port}", timeout=0.5):
            pass


def _certificates(folder):
    """A certificate that signs itself, for 127.0.0.1."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, cert, key


class Nodes:
    """Servers whose clocks differ: each bucket is on a node of its own, ahead by what `ahead` says of the name."""

    apart = True

    def __init__(self, ahead):
        self.ahead, self.sent = {bucket_of(name): ms for name, ms in ahead.items()}, []

    async def run(self, calls, _until, _wait=None):
        from tenure.stores.redis.documents import SLOTS
        from tenure.stores.redis.servers import Answer

        self.sent.append(len(calls))
        now = 1_000_000
        answers = []
        for call in calls:
            ahead = next((ms for bucket, ms in self.ahead.items() if SLOTS[bucket] == call.slot), 0)
            told = [0] if call.writes else [[b"1", b"x", [], [], None, None]]
            answers.append(Answer([now + ahead, *told], None))
        return answers


async def test_clocks_of_nodes_that_differ():
    """A reading over nodes has the smallest time; what it was decided on for a node ahead of that is not sent."""
    store = RedisStore("redis+cluster://nowhere")
    store._servers = nodes = Nodes({"ahead": 500, "a": 0})
    reading = await store.read([Ask("a"), Ask("ahead")])
    assert reading.now == 1_000_000
    deadline = reading.now + 2_000
    changes = [Change("a", 1, b"y", deadline=deadline), Change("ahead", 1, b"y", deadline=deadline)]
    nodes.sent.clear()
    assert (await store.commit(changes)).outcomes == (DONE, EXPIRED)
    assert nodes.sent == [1]
    # Read again, alone, by its own node's clock, it goes through.
    assert (await store.read([Ask("ahead")])).now == 1_000_500
    assert (await store.commit(changes[1:])).outcomes == (DONE,)
