"""Several real processes on one file: writing together, killed, forked."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from tenure.stores.contract import Ask, Change, Found, Outcome

HEAD = """
import asyncio, gc, os, sys, time, traceback
from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Outcome, Record
from tenure.stores.sqlite import SqliteStore
"""


@pytest.fixture
def script(tmp_path):
    """Starts a Python process that runs some lines, with the store's URL in `url`."""
    started = []

    def start(lines, *arguments):
        body = f"{HEAD}url = 'sqlite:///{tmp_path}/a.db'\n{textwrap.dedent(lines)}"
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", body, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


async def ended(process):
    """What a process printed; it must have ended well."""
    told, _ = await asyncio.to_thread(process.communicate, timeout=50)
    assert process.returncode == 0, told
    return told


async def test_r45_processes_write_together(opened, script):
    """Four processes add to one document and to their own at once: nothing is lost, nothing comes twice."""
    lines = """
    async def main(me):
        store = SqliteStore(url)
        await store.open()
        for step in range(30):
            await store.commit([Change(f"own-{me}", step, b"x")])
            while True:
                found = (await store.read([Ask("sum")])).found[0]
                change = Change("sum", found.version, b"%d" % (int(found.body or 0) + 1))
                if (await store.commit([change])).outcomes == (Outcome.DONE,):
                    break
        await store.close()
    asyncio.run(main(sys.argv[1]))
    """
    processes = [script(lines, number) for number in range(4)]
    for process in processes:
        await ended(process)
    async with opened() as store:
        assert (await store.read([Ask("sum")])).found[0] == Found(120, b"120")
        assert {(await store.read([Ask(f"own-{at}")])).found[0].version for at in range(4)} == {30}
        assert store._reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_r45_hints_reach_another_process(opened, script):
    """A change in one process is told by the watch of another, within a fraction of a second."""
    lines = """
    async def main():
        store = SqliteStore(url)
        await store.open()
        watch = store.watch()
        first = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.02)
        print("watching", flush=True)
        async with asyncio.timeout(20):
            print(*await first, flush=True)
        await watch.aclose()
        await store.close()
    asyncio.run(main())
    """
    async with opened() as store:
        process = script(lines)
        assert await asyncio.to_thread(process.stdout.readline) == "watching\n"
        await store.commit([Change("released", 0, b"1", hint=True)])
        assert (await ended(process)).strip() == "released"


async def test_r45_killed_with_the_lock(opened, script):
    """A process that is killed while it holds the lock, half of its writes done, leaves neither behind."""
    lines = """
    async def main():
        store = SqliteStore(url)
        await store.open()
        transaction = await store.begin(60.0)
        transaction.connection.execute("CREATE TABLE mine (x)")
        transaction.connection.execute("UPDATE tenure_documents SET version = 77")
        print("locked", flush=True)
        await asyncio.sleep(60)
    asyncio.run(main())
    """
    async with opened() as store:
        await store.commit([Change("a", 0, b"1")])
        process = script(lines)
        assert await asyncio.to_thread(process.stdout.readline) == "locked\n"
        commit = asyncio.create_task(store.commit([Change("a", 1, b"2")]))
        assert not (await asyncio.wait({commit}, timeout=0.1))[0]
        process.send_signal(signal.SIGKILL)
        assert (await commit).outcomes == (Outcome.DONE,)
        assert (await store.read([Ask("a")])).found[0] == Found(2, b"2")


async def test_r45_killed_at_any_moment(opened, script, tmp_path):
    """Writers that are killed at random moments have lost nothing that was acknowledged."""
    lines = """
    async def main(me):
        store = SqliteStore(url)
        await store.open()
        step = 0
        while True:
            record = Record(str(step), step, "success", 0, 0, me.encode())
            verdict = await store.commit([Change(me, step, b"%d" % step, records=(record,))])
            assert verdict.outcomes == (Outcome.DONE,)
            step += 1
            print(step, flush=True)
    asyncio.run(main(sys.argv[1]))
    """
    acknowledged = {}
    async with opened() as store:
        for round_ in range(6):
            processes = {f"{round_}.{at}": script(lines, f"{round_}.{at}") for at in range(2)}
            for process in processes.values():
                await asyncio.to_thread(process.stdout.readline)
            await asyncio.sleep(0.03 * round_)
            for name, process in processes.items():
                process.kill()
                told, _ = await asyncio.to_thread(process.communicate)
                acknowledged[name] = max([1, *(int(line) for line in told.split())])
        for name, steps in acknowledged.items():
            found = (await store.read([Ask(name, runs=tuple(map(str, range(steps))))])).found[0]
            assert found.version >= steps
            assert len(found.past) == steps
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        assert shell.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
async def test_r45a_a_forked_child_is_refused(opened, script):
    """A child that uses its parent's store gets one clear error, ends well, and disturbs nobody.

    Forked once in peace, then again and again while commits are under way: a child must not wait for a lock that a
    thread of the parent held at the fork, nor close what the parent uses.
    """
    lines = """
    async def child(store, transaction, quiet):
        change = Change("a", 0, b"x")
        for call in (store.read([Ask("a")]), store.commit([change]), store.begin(1.0), transaction.commit(None)):
            try:
                await call
            except StoreError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("it was answered")
        try:
            transaction.connection.execute("SELECT 1")
        except StoreError:
            pass
        else:
            raise AssertionError("it was run")
        await store.close()
        try:
            await SqliteStore(url).open()
        except StoreError as error:
            assert "fork" in str(error), error
        else:
            raise AssertionError("a file that the parent has open was opened again")
        if not quiet:
            return
        own = SqliteStore(url.replace("a.db", "child.db"))
        await own.open()
        assert (await own.commit([Change("a", (await own.read([Ask("a")])).found[0].version, b"x")])).outcomes
        await own.close()

    async def main():
        store, other = SqliteStore(url), SqliteStore(url)
        await store.open()
        await other.open()
        transaction = await store.begin(30.0)
        await transaction.rollback()
        for round_ in range(30):
            if round_ % 2:
                transaction = await other.begin(30.0)
            names = [f"{round_}.{at}" for at in range(40)] if round_ else []
            busy = [asyncio.ensure_future(store.commit([Change(name, 0, b"x")])) for name in names]
            await asyncio.sleep(0)
            time.sleep(0.0002 * (round_ % 10))
            pid = os.fork()
            if pid == 0:
                asyncio.events._set_running_loop(None)
                asyncio.set_event_loop(None)
                try:
                    asyncio.new_event_loop().run_until_complete(child(store, transaction, not busy))
                    store._reader = store._writer._connection = transaction.connection = transaction._guarded = None
                    gc.collect()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    sys.stderr.flush()
                    os._exit(1)
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    break
                await asyncio.sleep(0.01)
            assert os.waitstatus_to_exitcode(status) == 0, status
            if round_ % 2:
                transaction.connection.execute("CREATE TABLE IF NOT EXISTS mine (x)")
                assert await transaction.commit(Change("t", round_ // 2, b"x"))
            await asyncio.gather(*busy)
        assert len(await store.names("")) == 29 * 40 + 1
        await store.close()
        await other.close()
        print("well")
    asyncio.run(main())
    """
    async with opened() as store:
        assert (await ended(script(lines))).strip().endswith("well")
        assert len(await store.names("")) == 29 * 40 + 1
        assert store._reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
