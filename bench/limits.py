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
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import hiredis
from claim import BareSQLite
from claiming import JOBS, SLOT, Claimer
from rows import Row, p50
from servers import Postgres, Server, postgres, store, valkey, wheel

from tenure.scheduler.ledger import Order
from tenure.stores.contract import Ask, Change
from tenure.stores.postgres.statements import NEVER, Statements
from tenure.stores.redis.documents import Call, commit_calls, read_calls

AT_ONCE = 16
TOGETHER = 1_000


@dataclass(frozen=True)
class Limit:
    """What the tool did: seconds of a claim, one at a time, and claims a second by sixteen clients."""

    tool: str
    p50: float
    rate: float


def measure(*, quick: bool) -> list[Row]:
    """Tool and Tenure in turns, on one server."""
    scale = 1 if quick else 5
    with postgres() as server:
        rows = asyncio.run(_rows("PostgreSQL", server.url, lambda: _pgbench(server, scale), scale))
    with valkey() as server:
        rows += asyncio.run(_rows("Valkey", server.url, lambda: _on_valkey(server, 4_000 * scale), scale))
    with store("SQLite") as url:
        rows += asyncio.run(_rows("SQLite", url, lambda: _bare_loop(url, 200 * scale), scale))
    return rows


async def _rows(kind: str, url: str, tool: Callable[[], Limit], scale: int) -> list[Row]:
    claimer = await Claimer.open(url)
    await claimer.define("limit", JOBS * AT_ONCE)
    limit = await asyncio.to_thread(tool)
    for n in range(JOBS + 100 * scale):
        await claimer.claim(n)
    many = await _rate(claimer, await claimer.define("many", 400 * scale))
    batched = await _batched(claimer, await claimer.define("batch", TOGETHER * scale))
    again = await asyncio.to_thread(tool)
    await claimer.close()
    rate = (limit.rate + again.rate) / 2
    alone = p50([limit.p50, again.p50])
    what = f"{kind}, claims a second"
    rows = [
        Row(
            f"a claim / the same statements by {limit.tool}, p50: {kind}",
            p50(claimer.known) / alone,
            "x",
            remark=f"{p50(claimer.known) * 1e3:.2f} ms against {alone * 1e3:.2f} ms",
        ),
        Row(f"{what}: {AT_ONCE} tasks / {limit.tool}", many / rate, "x", remark=f"{many:,.0f} against {rate:,.0f}"),
        Row(
            f"{what}: {TOGETHER:,} jobs due together / {limit.tool}",
            batched / rate,
            "x",
            remark=f"{batched:,.0f} against {rate:,.0f}",
        ),
    ]
    return rows


async def _rate(claimer: Claimer, orders: list[Order]) -> float:
    """Claims a second of several tasks, one job at a time each."""
    waiting = iter(orders)

    async def task() -> None:
        for order in waiting:
            await claimer.ledger.ask_one(order.job, order.command)

    begin = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(AT_ONCE)))
    return len(orders) / (time.perf_counter() - begin)


async def _batched(claimer: Claimer, orders: list[Order]) -> float:
    """Claims a second where a thousand jobs are due at one instant, again and again."""
    begin = time.perf_counter()
    for first in range(0, len(orders), TOGETHER):
        await claimer.ledger.ask(orders[first : first + TOGETHER])
    return len(orders) / (time.perf_counter() - begin)


# --- PostgreSQL -------------------------------------------------------------------------------------------


def _pgbench(server: Postgres, seconds: int) -> Limit:
    """Our two statements, as they stand in the code; each client has jobs of its own."""
    ours = Statements("public", "tenure_")
    name, body = "('job:limit-' || :n)", "'\\x" + "79" * 250 + "'::bytea"
    read = ours.page.replace("%s", name, 1).replace("%s", f"'{SLOT}'", 1)
    values = {"name": name, "version": ":r_version", "deadline": str(NEVER), "body": body}
    put = re.sub(r"%\((\w+)\)[sb]", lambda found: values[found[1]], ours.put)
    script = f"\\set n random(:client_id * {JOBS}, :client_id * {JOBS} + {JOBS - 1})\n{_line(read)} \\gset r_\n{_line(put)};\n"
    alone, _ = _run_pgbench(server, script, 1, seconds)
    _, rate = _run_pgbench(server, script, AT_ONCE, seconds)
    return Limit("pgbench", alone, rate)


def _line(statement: str) -> str:
    return " ".join(statement.split())


def _run_pgbench(server: Postgres, script: str, clients: int, seconds: int) -> tuple[float, float]:
    """Seconds of a claim, p50, and claims a second."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "claim.sql").write_text(script)
        command = [str(wheel() / "pgbench"), "-n", "-M", "extended", "-c", str(clients), "-j", "1", "-T", str(seconds)]
        command += ["-l", "--log-prefix", "log", "-f", "claim.sql", server.url]
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        taken = [int(line.split()[2]) / 1e6 for log in Path(folder).glob("log*") for line in log.open()]
    return p50(taken), float(re.search(r"tps = ([\d.]+)", told)[1])  # type: ignore[index]


# --- Valkey -----------------------------------------------------------------------------------------------


def _on_valkey(server: Server, count: int) -> Limit:
    """Our two scripts. What a claim writes is written again and again under the version that it was read under."""
    with server.client() as client:
        for call in _calls("0"):
            client.script_load(call.script.source)
    tool = shutil.which("redis-benchmark")
    if tool is None:
        return _loop(server, count)
    alone = [_benchmark(tool, server, call, 1, count) for call in _calls("__rand_int__")]
    many = [_benchmark(tool, server, call, AT_ONCE, count) for call in _calls("__rand_int__")]
    return Limit("redis-benchmark", sum(p50 for p50, _ in alone), 1 / sum(1 / rate for _, rate in many))


def _calls(number: str) -> list[Call]:
    name = f"job:limit-{number}"
    ((read, _),) = read_calls("tenure", [Ask(name, (str(SLOT),))], apart=False)
    ((commit, _),) = commit_calls("tenure", [Change(name, 0, b"y" * 250, NEVER)], apart=False)
    return [read, commit]


def _benchmark(tool: str, server: Server, call: Call, clients: int, count: int) -> tuple[float, float]:
    arguments = [one if isinstance(one, str) else one.decode() for one in call.arguments]
    command = [tool, "-s", server.socket, "-c", str(clients), "-n", str(count), "-r", "1000000000", "--csv"]
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
            sent = [hiredis.pack_command(("EVALSHA", call.script.sha, *call.arguments)) for call in _calls(f"x{n}")]
            begin = time.perf_counter()
            for command in sent:
                plain.sendall(command)
                reader = hiredis.Reader()
                while (reply := reader.gets()) is False:
                    reader.feed(plain.recv(65_536))
                assert not isinstance(reply, Exception), reply
            taken.append(time.perf_counter() - begin)
    return Limit("a bare loop", p50(taken), len(taken) / sum(taken))


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
    return Limit("a bare loop", p50(taken), len(taken) / sum(taken))
