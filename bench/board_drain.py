"""Todos drained in process, batches of 50, beside PGQueuer and beside pgbench with the same statements, in one run.

All drain the same PostgreSQL in turns, durably unless a row says otherwise; a machine that is busy slows all.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from boards import Hands, databases, found, open_hall, opened, own_database, stock
from peer import ADAPTERS, PeerError, peers
from rows import Row, p50
from servers import Postgres, postgres, wheel

from tenure.board import claims
from tenure.board.access import worker_by_credential
from tenure.board.shapes import Completion, Next

BATCH, THREADS, ROUNDS = 50, 2, 3


def measure(*, quick: bool) -> list[Row]:
    """The rate of a drain, and of single claims."""
    count = 1_000 if quick else 10_000
    with databases("SQLite") as (url,), opened(url) as board:
        alone = _drain(board, count, BATCH, THREADS)
    with postgres() as server:
        rows = [_beside_pgqueuer(server, count, ""), _beside_pgbench(server, 300 if quick else 2_000)]
    with postgres(synchronous_commit="off") as server:
        return [*rows, _beside_pgqueuer(server, count, ", synchronous_commit=off"), _row(alone)]


def _row(rate: float) -> Row:
    return Row("todos claimed and completed, batches of 50: SQLite", rate, "/s", "", None)


def _drain(board: Any, count: int, batch: int, threads: int) -> float:
    """Claim and complete all of them, authenticating in each transaction as a door does; todos a second."""
    hands = Hands(board, board.vend())
    stock(hands, count)
    credential = hands.vended.credential.reveal()

    def as_worker(case: Callable[..., Any], *args: Any) -> Any:
        return board.database.writing(lambda tx: case(tx, board, worker_by_credential(tx, board, credential), *args))

    def work() -> int:
        done = 0
        while granted := as_worker(claims.claim_next, Next(max=batch)).granted:
            items = [Completion(one.todo.summary.id, one.lease.token.reveal()) for one in granted]
            done += sum(one.state == "done" for one in as_worker(claims.complete, items))
        return done

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(lambda _: work(), range(threads)))
    assert total == count, (total, count)
    return count / (time.perf_counter() - began)


def _beside_pgqueuer(server: Postgres, count: int, setting: str) -> Row:
    peer = next(one for one in peers() if one.name == "pgqueuer")
    ours, theirs = [], []
    what = f"todos drained in batches of {BATCH} / jobs that PGQueuer drains: PostgreSQL{setting}"
    try:
        peer.prepare()
        for _ in range(ROUNDS):
            with own_database(server.url) as url:
                theirs.append(_pgqueuer(peer.python, url, count))
            with own_database(server.url) as url:
                found(url)
                with opened(url) as board:
                    ours.append(_drain(board, count, BATCH, THREADS))
    except PeerError as error:
        return Row(what, None, remark=str(error))
    ratio = p50(ours) / p50(theirs)
    told = f"{p50(ours):,.0f}/s beside {p50(theirs):,.0f}/s, medians of {ROUNDS}"
    return Row(what, ratio, "x", ">= 1", ratio >= 1, {"ours": ours, "theirs": theirs}, told)


def _pgqueuer(python: str, url: str, count: int) -> float:
    command = [python, str(ADAPTERS / "pgqueuer_drain.py"), str(count), str(BATCH)]
    env = {**os.environ, "PEER_URL": url, "PEER_MARKS": os.devnull}
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    if told.returncode:
        raise PeerError(told.stderr.strip().splitlines()[-1][:160])
    return float(told.stdout.split()[-1])


# --- the same statements, sent by pgbench -----------------------------------------------------------------


def _beside_pgbench(server: Postgres, count: int) -> Row:
    """One worker, one todo at a time: claim and complete through the use cases, and as recorded statements."""
    with own_database(server.url) as url:
        found(url)
        board = open_hall(url)
        ours = [_drain(board, count, 1, 1) for _ in range(ROUNDS)]
        hands = Hands(board, board.vend())
        stock(hands, (ROUNDS + 1) * count)
        script = _recorded(board, hands)
        board.database.shut()
        alone = [_pgbench(url, script, count) for _ in range(ROUNDS)]
    ratio = p50(ours) / p50(alone)
    told = f"{p50(ours):,.0f}/s beside {p50(alone):,.0f}/s, medians of {ROUNDS}, one connection each"
    return Row("claim and complete one by one / the same statements by pgbench", ratio, "x", ">= 0.5", ratio >= 0.5,
               {"ours": ours, "pgbench": alone}, told)  # fmt: skip


def _recorded(board: Any, hands: Hands) -> str:
    """The statements of one claim and one completion as pgbench sends them: what the todo decides is a variable."""
    sent: list[tuple[str, Any]] = []

    def hear(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    credential = hands.vended.credential.reveal()
    event = (board.database.engine, "before_cursor_execute", hear)
    board.write(lambda tx, _: worker_by_credential(tx, board, credential))  # so that it was seen just now
    sa.event.listen(*event)
    (granted,) = board.database.writing(
        lambda tx: claims.claim_next(tx, board, worker_by_credential(tx, board, credential), Next())
    ).granted
    token = granted.lease.token.reveal()
    board.database.writing(
        lambda tx: claims.complete(
            tx, board, worker_by_credential(tx, board, credential), [Completion(granted.todo.summary.id, token)]
        )
    )
    sa.event.remove(*event)
    return _script(sent, granted)


def _script(sent: list[tuple[str, Any]], granted: Any) -> str:
    """Each transaction ends with its notice. The todo picked is the variable :id, and its claim is named after it."""
    todo, claim = granted.todo.summary.id, granted.lease.claim_id
    lines = ["BEGIN;"]
    for statement, parameters in sent:
        text = statement % {name: _literal(value) for name, value in parameters.items()}
        text = " ".join(text.split()).replace(claim, "cl_:id").replace(todo, ":id")
        digest = re.search(r"[0-9a-f]{64}", text.partition("claims")[2])
        if digest and "hash" in text and "credentials" not in text:
            text = text.replace(digest[0], ":id")
        picked = "SKIP LOCKED" in text
        lines.append(text + (" \\gset" if picked else ";"))
        if "pg_notify" in text:
            lines += ["COMMIT;", "BEGIN;"]
    return "\n".join([*lines[:-1]]) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "ARRAY[" + ", ".join(map(_literal, value)) + "]"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _pgbench(url: str, script: str, count: int) -> float:
    """Pairs a second. pgbench puts variables into the text, also between quotes; so the server plans each anew."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = [str(Path(wheel()) / "pgbench"), "-n", "-t", str(count), "-f", file.name, url]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found_rate = re.search(r"tps = ([\d.]+)", told.stdout)
    if told.returncode or found_rate is None:
        raise RuntimeError(told.stderr[-2000:])
    return float(found_rate[1])
