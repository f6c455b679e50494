"""Claims beside the limit of the store: the same statements, sent by the server's own tool, without Python.

One at a time, p50 against p50; and claims a second: of sixteen tasks at once, and of a thousand jobs due together,
against sixteen clients of the tool. PostgreSQL: pgbench. Valkey: redis-benchmark, else a bare loop on its socket.
SQLite: a bare loop of a read and an update, for there one writer is all there is.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import hiredis
from claim import BareSQLite
from claiming import JOBS, SLOT, Claimer
from rows import Row, p50
from servers import Postgres, Server, postgres, store, valkey, wheel

from tenure.rules import commands as c
from tenure.scheduler.ledger import Answered, Order
from tenure.stores.contract import Ask, Change
from tenure.stores.postgres.statements import NEVER, Statements
from tenure.stores.redis.documents import Call, commit_calls, read_calls

ROUNDS = 3
AT_ONCE = 16
TOGETHER = 1_000


@dataclass(frozen=True)
class Limit:
    """What the tool did: seconds of a claim, one at a time, and claims a second as `at_once` says."""

    tool: str
    at_once: str
    p50: float
    rate: float


def measure(*, quick: bool) -> list[Row]:
    """Tool and Tenure in turns, on one server."""
    scale = 1 if quick else 4
    with postgres() as server:
        rows = asyncio.run(_rows("PostgreSQL", server.url, lambda: _pgbench(server, scale), scale))
    with valkey() as server:
        rows += asyncio.run(_rows("Valkey", server.url, lambda: _on_valkey(server, 4_000 * scale), scale))
    with store("SQLite") as url:
        rows += asyncio.run(_rows("SQLite", url, lambda: _bare_loop(url, 200 * scale), scale))
    return rows


async def _rows(kind: str, url: str, tool: Callable[[], Limit], scale: int) -> list[Row]:
    """The median of a few rounds; in each the tool comes first, then ours, so that both see the same machine."""
    claimer = await Claimer.open(url)
    await claimer.define("limit", JOBS * AT_ONCE)
    alone, many, together = [], [], []
    for round_ in range(ROUNDS):
        limit = await asyncio.to_thread(tool)
        count = JOBS + 50 * scale
        for n in range(round_ * count, (round_ + 1) * count):
            await claimer.claim(n)
        alone.append((p50(claimer.taken[-50 * scale :]) * 1e3, limit.p50 * 1e3))
        many.append((await _rate(claimer, await claimer.define(f"many-{round_}", 200 * scale)), limit.rate))
        batch = await claimer.define(f"together-{round_}", TOGETHER * scale)
        together.append((await _batched(claimer, batch), limit.rate))
    await claimer.close()
    second = f"{kind}, claims a second"
    return [
        _row(f"a claim / the same statements by {limit.tool}, p50: {kind}", alone, "{:.2f} ms"),
        _row(f"{second}: {AT_ONCE} tasks / {limit.at_once}", many, "{:,.0f}"),
        _row(f"{second}: {TOGETHER:,} jobs due together / {limit.at_once}", together, "{:,.0f}"),
    ]


def _row(what: str, pairs: list[tuple[float, float]], spelled: str) -> Row:
    ours, limit = sorted(pairs, key=lambda pair: pair[0] / pair[1])[len(pairs) // 2]
    told = f"{spelled.format(ours)} against {spelled.format(limit)}"
    return Row(what, ours / limit, "x", detail={"rounds": pairs}, remark=told)


async def _rate(claimer: Claimer, orders: list[Order]) -> float:
    """Claims a second of several tasks, one job at a time each."""
    waiting = iter(orders)

    async def task() -> None:
        for order in waiting:
            _won(await claimer.ledger.ask_one(order.job, order.command))

    begin = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(AT_ONCE)))
    return len(orders) / (time.perf_counter() - begin)


async def _batched(claimer: Claimer, orders: list[Order]) -> float:
    """Claims a second where a thousand jobs are due at one instant, again and again."""
    begin = time.perf_counter()
    for first in range(0, len(orders), TOGETHER):
        _won(*await claimer.ledger.ask(orders[first : first + TOGETHER]))
    return len(orders) / (time.perf_counter() - begin)


def _won(*answered: Answered) -> None:
    assert all(isinstance(one.answer, c.Won) for one in answered)


# --- PostgreSQL -------------------------------------------------------------------------------------------


def _pgbench(server: Postgres, seconds: int) -> Limit:
    """Our two statements, as they stand in the code; each client has jobs of its own."""
    ours = Statements("public", "tenure_")
    # The colon is spelled otherwise, for pgbench takes what follows one for a variable even inside a text.
    name, body = "(E'job\\x3alimit-' || :n::text)", "'\\x" + "79" * 250 + "'::bytea"
    read = ours.page.replace("%s", name, 1).replace("%s", f"'{SLOT}'", 1)
    values = {"name": name, "version": ":r_version", "deadline": str(NEVER), "body": body}
    put = re.sub(r"%\((\w+)\)[sb]", lambda found: values[found[1]], ours.put)
    draw = f"\\set n random(:client_id * {JOBS}, :client_id * {JOBS} + {JOBS - 1})"
    script = f"{draw}\n{_line(read)} \\gset r_\n{_line(put)};\n"
    before = _versions(server)
    alone, _, some = _run_pgbench(server, script, 1, seconds)
    _, rate, more = _run_pgbench(server, script, AT_ONCE, seconds)
    assert _versions(server) - before == some + more  # each of its claims was one
    return Limit("pgbench", f"pgbench, {AT_ONCE} clients", alone, rate)


def _versions(server: Postgres) -> int:
    return int(server.sql("SELECT sum(version) FROM tenure_documents WHERE name LIKE 'job:limit-%%'")[0][0])


def _line(statement: str) -> str:
    return " ".join(statement.split())


def _run_pgbench(server: Postgres, script: str, clients: int, seconds: int) -> tuple[float, float, int]:
    """Seconds of a claim, p50, claims a second, and claims."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "claim.sql").write_text(script)
        command = [str(wheel() / "pgbench"), "-n", "-M", "extended", "-c", str(clients), "-j", "1", "-T", str(seconds)]
        command += ["-l", "--log-prefix", "log", "-f", "claim.sql", server.url]
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        taken = [int(line.split()[2]) / 1e6 for log in Path(folder).glob("log*") for line in log.open()]
    return p50(taken), float(re.search(r"tps = ([\d.]+)", told)[1]), len(taken)


# --- Valkey -----------------------------------------------------------------------------------------------


def _on_valkey(server: Server, count: int) -> Limit:
    """Our two scripts, on documents of which each is current for every commit."""
    with server.client() as client:
        for n in range(JOBS):
            read, commit = _calls(f"{n:012}")
            client.hset(read.arguments[1], mapping={"v": 1, "b": b"y" * 250})
            client.script_load(read.script.source)
            client.script_load(commit.script.source)
            told = client.evalsha(commit.script.sha, *commit.arguments)
            assert told[1:] == [0], told  # done
    tool = shutil.which("redis-benchmark")
    if tool is None:
        return _loop(server, count)
    alone = [_benchmark(tool, server, call, 1, count) for call in _calls("__rand_int__")]
    many = [_benchmark(tool, server, call, AT_ONCE, count) for call in _calls("__rand_int__")]
    return Limit(
        "redis-benchmark",
        f"redis-benchmark, {AT_ONCE} clients",
        sum(middle for middle, _ in alone),
        1 / sum(1 / rate for _, rate in many),
    )


def _calls(number: str) -> list[Call]:
    name = f"job:limit-{number}"
    ((read, _),) = read_calls("tenure", [Ask(name, (str(SLOT),))], apart=False)
    ((commit, _),) = commit_calls("tenure", [Change(name, 1, b"y" * 250, NEVER)], apart=False)
    # The version that it leaves is the one that it found.
    written = commit.arguments.index(name) + 1
    arguments = [*commit.arguments[:written], "1", *commit.arguments[written + 1 :]]
    return [read, replace(commit, arguments=arguments)]


def _benchmark(tool: str, server: Server, call: Call, clients: int, count: int) -> tuple[float, float]:
    arguments = [one if isinstance(one, str) else one.decode() for one in call.arguments]
    command = [tool, "-s", server.socket, "-c", str(clients), "-n", str(count), "-r", str(JOBS), "--csv"]
    told = subprocess.run(
        [*command, "EVALSHA", call.script.sha, *arguments], check=True, capture_output=True, text=True
    ).stdout
    head, figures = (line.split(",") for line in told.splitlines()[-2:])
    row = {name.strip('"'): figure.strip('"') for name, figure in zip(head, figures, strict=True)}
    return float(row["p50_latency_ms"]) / 1e3, float(row["rps"])


def _loop(server: Server, count: int) -> Limit:
    """Without the tool: one client, which sends bytes and waits for the reply."""
    taken = []
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(server.socket)
        for n in range(count):
            sent = [
                hiredis.pack_command(("EVALSHA", call.script.sha, *call.arguments))
                for call in _calls(f"{n % JOBS:012}")
            ]
            begin = time.perf_counter()
            for command in sent:
                plain.sendall(command)
                reader = hiredis.Reader()
                while (reply := reader.gets()) is False:
                    reader.feed(plain.recv(65_536))
                assert not isinstance(reply, Exception), reply
            taken.append(time.perf_counter() - begin)
    return Limit("a bare loop", "a bare loop", p50(taken), len(taken) / sum(taken))


# --- SQLite -----------------------------------------------------------------------------------------------


def _bare_loop(url: str, count: int) -> Limit:
    async def opened() -> BareSQLite:
        return await BareSQLite.open(url)

    plain = asyncio.run(opened())
    taken = []
    for n in range(count):
        begin = time.perf_counter()
        plain.now(f"job-{n % JOBS}")
        taken.append(time.perf_counter() - begin)
    asyncio.run(plain.close())
    return Limit("a bare loop", "a bare loop", p50(taken), len(taken) / sum(taken))
