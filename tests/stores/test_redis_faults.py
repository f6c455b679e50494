"""What servers do to a store, each fault for real on private servers."""

import asyncio
import contextlib
import os
import signal
import time

import pytest
import redis
from redis_server import fresh_prefix, until, with_options

from tenure.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from tenure.rules import commands as c
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Outcome, Record
from tenure.stores.redis import RedisStore

pytestmark = pytest.mark.servers
# What a user needs, besides the keys and the channel that begin with the prefix.
NEEDED = (
    "+evalsha", "+eval", "+time", "+hget", "+hmget", "+hset", "+hdel", "+zadd", "+zrem", "+zcard", "+zrange",
    "+zrangebyscore", "+zrevrangebyscore", "+zrangebylex", "+del", "+publish", "+subscribe", "+ping",
)  # fmt: skip
DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


@contextlib.asynccontextmanager
async def opened(url, **options):
    """A store, opened and closed; `warnings` is what it said."""
    store = RedisStore(with_options(url, **{"prefix": fresh_prefix(), **options}))
    store.warnings = await store.open()
    try:
        yield store
    finally:
        await store.close()


async def put(store, name="a", body=b"x", **said):
    """One more version of a document; its outcome."""
    found = (await store.read([Ask(name)])).found[0]
    return (await store.commit([Change(name, found.version, body, **said)])).outcomes[0]


async def version(store, name="a"):
    return (await store.read([Ask(name)])).found[0].version


async def eventually(attempt, seconds=10.0):
    """What it answers once the store can be reached again."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await attempt()
            except StoreError:
                await asyncio.sleep(0.02)


def calls_of(server, command):
    return server.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"]


class Relay:
    """Stands between a store and a server; while it `swallows`, an answer ends the connection instead of arriving."""

    def __init__(self, path):
        self.path, self.swallows = path, False
        self.ends, self.tasks = [], []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def _joined(self, reader, writer):
        up_reader, up_writer = await asyncio.open_unix_connection(self.path)
        self.ends += (writer, up_writer)
        pipes = self._pipe(reader, up_writer, False), self._pipe(up_reader, writer, True)
        self.tasks += map(asyncio.create_task, pipes)

    async def _pipe(self, source, target, answers):
        while (data := await source.read(65_536)) and not (answers and self.swallows):
            target.write(data)
        target.close()

    async def __aexit__(self, *_):
        self.server.close()
        for end in self.ends:
            end.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.mark.parametrize("kind", ["redis62", "redis70", "valkey9"])
async def test_scripts_flushed(private, kind):
    """A server that has forgotten the scripts is sent them again, within the same call."""
    server = private(kind)
    async with opened(server.url) as store:
        assert await put(store) is DONE
        server.run("SCRIPT", "FLUSH")
        assert await put(store) is DONE
        server.run("SCRIPT", "FLUSH")
        many = [Change(f"job-{at}", 0, b"x") for at in range(1_200)]
        assert set((await store.commit(many)).outcomes) == {DONE}
        assert await version(store) == 2


@pytest.mark.parametrize("kind", ["redis62", "redis70", "valkey9"])
async def test_out_of_memory(private, kind):
    """Without memory a commit changes nothing and says so; reads go on, and writes once there is memory again."""
    server = private(kind)
    async with opened(server.url) as store:
        assert await put(store) is DONE
        server.run("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreFull, match="memory limit"):
            await put(store, records=(Record("1", 1, "success", 2, 0, b"x"),))
        assert await version(store) == 1
        assert await store.records("a", 0, 9, 9) == ()
        server.run("CONFIG", "SET", "maxmemory", "0")
        assert await put(store) is DONE


async def test_warnings_when_opened(private):
    """Eviction, missing persistence and replicas that need not copy anything are told; a sound server is not."""
    async with opened(private(maxmemory_policy="allkeys-lru").url) as store:
        policy, disk = store.warnings
        assert "allkeys-lru" in policy
        assert "nothing is written to disk" in disk
    async with opened(private(save="3600 1").url) as store:
        assert "snapshots only" in store.warnings[0]
    async with opened(private(appendonly="yes").url) as store:
        assert store.warnings == ()


async def test_replicas(private):
    """A replica is refused; a master that was demoted is read, not written; one without its master is unavailable."""
    from redis_server import free_port

    master = private(port=free_port(), appendonly="yes")
    replica = private(port=free_port(), appendonly="yes", replicaof=("127.0.0.1", str(master.port)))
    until(lambda: replica.info("replication")["master_link_status"] == "up")
    with pytest.raises(StoreReadOnly, match=f"a replica of 127.0.0.1:{master.port}"):
        async with opened(replica.url):
            pass
    async with opened(master.url) as store:
        assert "min-replicas-to-write" in store.warnings[0]
        assert await put(store) is DONE
        master.run("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreReadOnly, match="is a replica"):
            await put(store)
        assert await version(store) == 1
        master.run("CONFIG", "SET", "replica-serve-stale-data", "no")
        with pytest.raises(StoreUnavailable, match="lost its master"):
            await version(store)


@pytest.mark.parametrize("kind", ["redis62", "redis70", "valkey9"])
async def test_too_few_replicas(private, kind):
    """A master that must have replicas and has none refuses, and nothing is changed."""
    server = private(kind)
    async with opened(server.url) as store:
        assert await put(store) is DONE
        server.run("CONFIG", "SET", "min-replicas-to-write", "1")
        with pytest.raises(StoreUnavailable, match="min-replicas-to-write"):
            await put(store)
        server.run("CONFIG", "SET", "min-replicas-to-write", "0")
        assert await version(store) == 1


async def test_replicas_waited_for(private):
    """With wait_replicas a commit that too few replicas have is of unknown outcome; one that enough have is done."""
    from redis_server import free_port

    master = private(port=free_port())
    async with opened(master.url, wait_replicas=1, timeout=0.6) as store:
        with pytest.raises(StoreUnavailable, match=r"0 of the 1 replicas .* have acknowledged"):
            await put(store)
        assert await version(store) == 1  # it stands all the same: that is what unknown means
        assert (await store.commit([Change("a", 7, b"x")])).outcomes == (RACED,)
        replica = private(port=free_port(), replicaof=("127.0.0.1", str(master.port)))
        until(lambda: replica.info("replication")["master_link_status"] == "up")
        assert await put(store) is DONE


async def test_restarted(private):
    """A server that was restarted between two calls is met by the next as if nothing had happened."""
    server = private(appendonly="yes", appendfsync="always")
    async with opened(server.url) as store:
        assert await put(store) is DONE
        server.stop()
        with pytest.raises(StoreUnavailable):
            await version(store)
        server.start()
        assert await put(store) is DONE
        assert await version(store) == 2


async def test_a_server_that_never_answers():
    """A server that accepts and says nothing costs one timeout, no more."""
    over = asyncio.Event()

    async def say_nothing(reader, writer):
        await reader.read(1_000_000)
        while not reader.at_eof():
            await reader.read(1_000_000)
        writer.close()
        over.set()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"did not answer within 0.3 s"):
        async with opened(f"redis://127.0.0.1:{port}", timeout=0.3):
            pass
    assert time.monotonic() - began < 1.0
    await asyncio.wait_for(over.wait(), 5)  # our end was closed
    silent.close()


async def test_frozen_server_and_a_late_write(private):
    """What a frozen server is asked it does when it wakes: after its deadline that changes nothing."""
    server = private()
    async with opened(server.url, timeout=0.3) as store:
        assert await put(store) is DONE
        now = (await store.read([])).now
        with server.frozen():
            began = time.monotonic()
            changes = [Change("late", 0, b"x", deadline=now + 600), Change("free", 0, b"x")]
            calls = [asyncio.create_task(store.commit([change])) for change in changes]
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(answer, StoreUnavailable)
            assert time.monotonic() - began < 1.0
            await asyncio.sleep(0.7)
        await eventually(lambda: version(store))
        assert await version(store, "late") == 0
        # Without a deadline it lands: that is why decisions have one.
        assert await version(store, "free") == 1


async def test_a_pause_of_writes(private):
    """A server that holds writes back for a moment, as at a hand-over to its replica, is waited for."""
    server = private()
    async with opened(server.url) as store:
        assert await put(store) is DONE
        server.run("CLIENT", "PAUSE", "300", "WRITE")
        began = time.monotonic()
        assert await put(store) is DONE
        assert time.monotonic() - began > 0.2


async def test_an_answer_that_was_lost(private):
    """A commit whose answer was lost is of unknown outcome and is not sent a second time."""
    server = private()
    async with Relay(server.socket) as relay, opened(relay.url) as store:
        await store.read([])
        assert await put(store) is DONE
        before = calls_of(server, "evalsha")
        relay.swallows = True
        with pytest.raises(StoreUnavailable, match="not known whether"):
            await store.commit([Change("a", 1, b"lost")])
        relay.swallows = False
        assert await version(store) == 2
        assert calls_of(server, "evalsha") == before + 2  # the commit, and this read


async def test_connections_killed(private):
    """Connections that died while idle are noticed before a commit is sent on them."""
    server = private()
    async with opened(server.url) as store:
        await asyncio.gather(*(put(store, f"job-{at}") for at in range(5)))
        for _ in range(3):
            server.run("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0.02)
            assert await put(store) is DONE


async def test_password_changed(private):
    """A wrong password, none, and one too many are refused in a sentence that shows none."""
    server = private(requirepass="hunter2")
    path = server.socket
    async with opened(f"unix://:hunter2@{path}") as store:
        assert "hunter2" not in store.url
        assert await put(store) is DONE
        with server.client(password="hunter2") as client:  # noqa: S106 - of this server alone
            client.config_set("requirepass", "other")
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.05)
        with pytest.raises(StoreError, match="refuses our user name or password") as told:
            await put(store)
        assert "hunter2" not in str(told.value)
    with pytest.raises(StoreError, match="asks for a password"):
        async with opened(f"unix://{path}"):
            pass
    with pytest.raises(StoreError, match="refuses our user name or password"):
        async with opened(f"unix://somebody:hunter2@{path}"):
            pass


@pytest.mark.parametrize("kind", ["redis62", "redis70", "valkey9"])
async def test_users_with_few_rights(private, kind):
    """A user needs the scripts' commands, keys and channel; what is missing is named, and nothing is half done."""
    server = private(kind)
    more = ("+multi", "+exec", "+persist") if kind == "redis62" else ()
    server.run("ACL", "SETUSER", "few", "on", ">pw", "resetchannels", "~tenure:*", "&tenure:*", *NEEDED, *more)
    url = f"unix://few:pw@{server.socket}"
    async with opened(url, prefix="tenure") as store:
        assert any("INFO" in warning for warning in store.warnings)
        assert await put(store, records=(Record("1", 1, "success", 2, 0, b"x"),)) is DONE
        server.run("ACL", "SETUSER", "few", "-hset")
        with pytest.raises(StoreError, match="does not allow our user"):
            await put(store)
        assert await version(store) == 1
        server.run("ACL", "SETUSER", "few", "+hset", "resetchannels")
        assert await eventually(lambda: put(store, hint=True)) is DONE  # a hint may be lost, a change may not
    async with opened(url, prefix="tenure") as store:
        assert any("publish" in warning for warning in store.warnings)
    for lacking in ("hdel", "zrem", "del"):
        server.run("ACL", "SETUSER", "few", f"-{lacking}")
        with pytest.raises(StoreError, match="does not allow our user"):
            async with opened(url, prefix="tenure"):
                pass
        server.run("ACL", "SETUSER", "few", f"+{lacking}")
    with pytest.raises(StoreError, match="does not allow our user"):
        async with opened(url, prefix="other"):
            pass


async def test_somebodys_script_that_does_not_end(private):
    """A server that is busy with a script is busy, not gone."""
    server = private("redis70")
    server.run("CONFIG", "SET", "busy-reply-threshold", "50")
    async with opened(server.url) as store:
        assert await put(store) is DONE
        with server.client() as client:
            spinning = asyncio.create_task(asyncio.to_thread(_spin, client))
            await asyncio.sleep(0.3)
            with pytest.raises(StoreBusy, match="SCRIPT KILL"):
                await version(store)
            server.run("SCRIPT", "KILL")
            await spinning
        assert await put(store) is DONE


def _spin(client):
    with contextlib.suppress(redis.RedisError):
        client.eval("while true do end", 0)


async def test_keys_that_are_not_ours(private):
    """Something of another kind under one of our keys is told, and the document is as it was."""
    server = private()
    async with opened(server.url, prefix="p") as store:
        assert await put(store) is DONE
        (key,) = server.run("KEYS", "p:*:d:a")
        server.run("SET", key.replace(":d:", ":h:"), "something else")
        with pytest.raises(StoreCorrupt, match="another"):
            await put(store, records=(Record("1", 1, "success", 2, 0, b"x"),))
        assert await version(store) == 1


async def test_the_wrong_kind_of_url(private):
    """A cluster's node under redis://, a single server under redis+cluster://: each is told how to write it."""
    from redis_server import free_port

    node = private(port=free_port(), cluster_enabled="yes", cluster_config_file="nodes.conf")
    with pytest.raises(StoreError, match=r"redis\+cluster://"):
        async with opened(node.url):
            pass
    single = private(port=free_port())
    with pytest.raises(StoreError, match="redis:// instead"):
        async with opened(f"redis+cluster://127.0.0.1:{single.port}"):
            pass


async def test_r45a_forked(private):
    """A forked child is refused, and its parent goes on."""
    server = private()
    async with opened(server.url) as store:
        assert await put(store) is DONE
        child = os.fork()
        if child == 0:
            said = []
            for ask in (store.read([]), store.open()):
                try:
                    ask.send(None)
                except StoreError as error:
                    said.append("forked" in str(error))
            os._exit(0 if said == [True, True] else 1)
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1]) == 0
        assert await put(store) is DONE


async def test_r43_a_failover_that_lost_acknowledged_writes(private):
    """The weaker promise: a slot may run twice, and its record stays one."""
    from redis_server import free_port

    master = private(port=free_port())
    replica = private(port=free_port(), replicaof=("127.0.0.1", str(master.port)))
    until(lambda: replica.info("replication")["master_link_status"] == "up")
    prefix, slot = fresh_prefix(), 1_000
    claim = [c.Claim(slot, f"token-{at}", f"node-{at}", 30_000, 3, 10**13, "skip", "schedule", True) for at in (1, 2)]
    async with opened(master.url, prefix=prefix) as store:
        ledger = Ledger(store, StoreClock(SystemClock()))
        await ledger.ask_one("job", c.Pause())  # reaches the replica
        await ledger.ask_one("job", c.Resume())
        until(lambda: master.run("WAIT", 1, 100) == 1)
        with replica.frozen():
            # Else what the master has sent waits in the frozen replica's socket.
            master.run("CLIENT", "KILL", "TYPE", "replica")
            assert isinstance((await ledger.ask_one("job", claim[0])).answer, c.Won)
            await ledger.ask_one("job", c.Finish(slot, "token-1", "success"))
            assert len(await store.records("job:job", 0, 9_999, 9)) == 1
            master.stop()
        replica.run("REPLICAOF", "NO", "ONE")
    async with opened(replica.url, prefix=prefix) as store:
        ledger = Ledger(store, StoreClock(SystemClock()))
        assert await store.records("job:job", 0, 9_999, 9) == ()  # acknowledged, and gone
        assert isinstance((await ledger.ask_one("job", claim[1])).answer, c.Won)  # so the slot runs a second time
        await ledger.ask_one("job", c.Finish(slot, "token-2", "success"))
        assert [record.run for record in await store.records("job:job", 0, 9_999, 9)] == [str(slot)]


async def test_hints_after_a_restart(private):
    """Who watches hears of changes again after the server was away, and the watch ends when the store is closed."""
    server = private(appendonly="yes")
    async with opened(server.url) as store:
        heard = []

        async def listen():
            async for names in store.watch():
                heard.extend(names)

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        server.stop()
        server.start()
        async with asyncio.timeout(10):
            while "loud" not in heard:
                await eventually(lambda: put(store, "loud", hint=True))
                await asyncio.sleep(0.05)
    await asyncio.wait_for(listener, 5)


async def test_killed_while_writing(private):
    """What was acknowledged before a kill -9 stands after the restart, with appendfsync always."""
    server = private(appendonly="yes", appendfsync="always")
    async with opened(server.url, timeout=2) as store:
        acknowledged = 0

        async def write():
            nonlocal acknowledged
            for at in range(100_000):
                await store.commit([Change("a", at, b"%d" % at)])
                acknowledged = at + 1

        writer = asyncio.create_task(write())
        await asyncio.sleep(0.2)
        server.signal(signal.SIGKILL)
        with pytest.raises(StoreUnavailable):
            await writer
        server.process.wait(5)
        server.start()
        assert acknowledged <= await version(store) <= acknowledged + 1
