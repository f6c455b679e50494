"""Seconds from SIGKILL of the runner to the next attempt, and from SIGTERM; real processes on one SQLite file."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from rows import Row, p50, percentile

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from fleet import Fleet

LEASE = 3.0
BEAT = LEASE / 6


def measure(*, quick: bool) -> list[Row]:
    """Three instances, default heartbeat, lease 3 s; who runs is killed at any moment of its heartbeat."""
    kills, terms = (3, 3) if quick else (50, 20)
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        killed, beaten = _trials(f"sqlite:///{folder}/kill.db", kills, signal.SIGKILL)
        handed, _ = _trials(f"sqlite:///{folder}/term.db", terms, signal.SIGTERM)
    worst = percentile(killed, 0.99)
    late = max(beaten)
    return [
        Row(
            f"SIGKILL to takeover, lease 3 s, {kills} trials, p99",
            worst,
            "s",
            "<= lease + 0.5 s",
            worst <= LEASE + 0.5,
            {"p50_s": p50(killed), "max_s": max(killed)},
        ),
        Row("last heartbeat to takeover, worst", late, "s", "<= lease + 2 beats", late <= LEASE + 2 * BEAT),
        Row(
            f"SIGTERM to hand-over, {terms} trials, p99",
            percentile(handed, 0.99),
            "s",
            "<= 2 beats (1 s)",
            percentile(handed, 0.99) <= 2 * BEAT,
            {"p50_s": p50(handed), "max_s": max(handed)},
        ),
    ]


def _trials(url: str, trials: int, number: int) -> tuple[list[float], list[float]]:
    with Fleet(url) as fleet:
        found = fleet.takeovers(trials, number, lambda line: print(f"# {line}", file=sys.stderr, flush=True))
    return [since_signal for since_signal, _ in found], [since_beat for _, since_beat in found]
