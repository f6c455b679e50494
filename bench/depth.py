"""A claim beside a million records of history, against one beside a thousand; taken in turns."""

from __future__ import annotations

import asyncio

import psycopg
from claiming import Claimer, fill
from rows import Row, p50, percentile
from servers import STORES, store


def measure(*, quick: bool) -> list[Row]:
    """On each store, the deep and the shallow one on the same server."""
    return [_row(kind, 20_000 if quick else 1_000_000, 150 if quick else 1_500) for kind in STORES]


def _row(kind: str, depth: int, count: int) -> Row:
    with store(kind) as url:
        shallow, deep = asyncio.run(_turns(kind, url, depth, count))
    ratio = percentile(deep, 0.99) / percentile(shallow, 0.99)
    detail = {"p50_ratio": p50(deep) / p50(shallow), "p99_ms": percentile(deep, 0.99) * 1e3}
    what = f"a claim beside {depth:,} records / beside 1,000, p99: {kind}"
    told = f"p99 {percentile(deep, 0.99) * 1e3:.2f} ms; the ratio of the medians is {detail['p50_ratio']:.2f}"
    return Row(what, ratio, "x", "<= 1.5", ratio <= 1.5, detail, told)


async def _turns(kind: str, url: str, depth: int, count: int) -> tuple[list[float], list[float]]:
    claimers = []
    for records in (1_000, depth):
        # `prefix` sets them apart on every store.
        claimer = await Claimer.open(url, prefix=f"of_{records}_")
        if kind == "PostgreSQL":
            await _fill_quickly(url, f"of_{records}_", records)
        else:
            await fill(claimer.store, records)
        claimers.append(claimer)
    for n in range(count):
        for claimer in claimers if n % 2 else claimers[::-1]:
            await claimer.claim(n)
    for claimer in claimers:
        await claimer.close()
    return claimers[0].known, claimers[1].known


async def _fill_quickly(url: str, prefix: str, records: int) -> None:
    async with await psycopg.AsyncConnection.connect(url) as plain:
        rows = "SELECT 'job:job-' || n %% 50, '-' || n, -n, 'success', 0, 0, repeat('x', 200)::bytea"
        put = f"INSERT INTO {prefix}history {rows} FROM generate_series(1, %s::int) n"
        await plain.execute(put, (records,))
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as plain:
        await plain.execute("CHECKPOINT")  # or the measurement would pay for the filling
