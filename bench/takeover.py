"""Seconds from SIGKILL of the runner to the next attempt, and from SIGTERM; real processes, on each store."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from rows import Row, p50, percentile
from servers import STORES, Fleet, store

LEASE = 3.0
BEAT = LEASE / 6


def measure(*, quick: bool) -> list[Row]:
    """Three instances, default heartbeat, lease 3 s; who runs is killed at any moment of its heartbeat.

    The stores are measured side by side, for they wait nearly all the time; each by a process of its own, for a fleet
    records what its process asks the rules, and holds it against their laws.
    """
    kills, terms = (3, 3) if quick else (100, 50)
    with ProcessPoolExecutor(len(STORES), get_context("spawn")) as pool:
        return [row for rows in pool.map(partial(_rows, kills=kills, terms=terms), STORES) for row in rows]


def _rows(kind: str, kills: int, terms: int) -> list[Row]:
    killed, beaten = _trials(kind, kills, signal.SIGKILL)
    handed, _ = _trials(kind, terms, signal.SIGTERM)
    worst, late, soon = percentile(killed, 0.99), max(beaten), percentile(handed, 0.99)
    # SQLite tells no other process of a change: there a backup hears of it at its next check.
    bound, goal = (2 * BEAT, "<= 2 beats (1 s)") if kind == "SQLite" else (0.3, "<= 0.3 s")
    return [
        Row(
            f"SIGKILL to takeover, lease 3 s, {kills} trials, {kind}: p99",
            worst,
            "s",
            "<= lease + 0.5 s",
            worst <= LEASE + 0.5,
            {"p50_s": p50(killed), "max_s": max(killed)},
            f"p50 {p50(killed):.2f} s, worst {max(killed):.2f} s",
        ),
        Row(
            f"the same, from the last heartbeat, {kind}: worst",
            late,
            "s",
            "<= lease + 2 beats",
            late <= LEASE + 2 * BEAT,
        ),
        Row(
            f"SIGTERM to hand-over, {terms} trials, {kind}: p99",
            soon,
            "s",
            goal,
            soon <= bound,
            {"p50_s": p50(handed), "max_s": max(handed)},
            f"p50 {p50(handed) * 1e3:.0f} ms, worst {max(handed) * 1e3:.0f} ms",
        ),
    ]


def _trials(kind: str, trials: int, number: int) -> tuple[list[float], list[float]]:
    with store(kind) as url, Fleet(url) as fleet:
        found = fleet.takeovers(
            trials, number, lambda line: print(f"# {kind}, {signal.Signals(number).name} {line}", file=sys.stderr)
        )
    return [since_signal for since_signal, _ in found], [since_beat for _, since_beat in found]
