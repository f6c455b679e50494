"""A thousand jobs due at one instant, on one instance and on ten: calls to the store, and how late they start."""

from __future__ import annotations

from instances import Instances, only_slot
from rows import Row, p50, percentile
from servers import STORES, store

# The handlers run on meanwhile, and heartbeats are far away: each call for a job is one of a claim.
WINDOW = 15.0
HELD = {"takes": WINDOW, "lease": "24h", "heartbeat": "4h"}


def measure(*, quick: bool) -> list[Row]:
    """On each store; ten instances where several machines may share it."""
    jobs = 200 if quick else 1_000
    rows = [row for kind in STORES for row in _rows(kind, jobs, 1, 4)]
    return rows + [row for kind in STORES[1:] for row in _rows(kind, jobs, 10, 8)]


def _rows(kind: str, jobs: int, count: int, goal: int) -> list[Row]:
    late, calls = _slot(kind, jobs, count)
    assert len(late) == jobs, f"{len(late)} starts of {jobs} jobs"
    who = f"{jobs:,} jobs due at one instant, {count} instance{'s' * (count > 1)}, {kind}"
    p99 = percentile(late, 0.99)
    told = f"p50 {p50(late):.0f} ms, the last {max(late):.0f} ms"
    return [
        Row(f"{who}: slot to start, p99", p99, "ms", "< 2,000 ms", p99 < 2_000, {"p50_ms": p50(late)}, told),
        Row(
            f"{who}: calls of one instance for all its claims",
            max(calls),
            "",
            f"<= {goal}",
            max(calls) <= goal,
            {"calls": calls},
            "" if count == 1 else f"lost races included; of the ten: {', '.join(map(str, sorted(calls)))}",
        ),
    ]


def _slot(kind: str, jobs: int, count: int) -> tuple[list[float], list[int]]:
    """One slot of all jobs: how late each started, and the calls of each instance until all had."""
    with store(kind) as url:
        slot, every = only_slot(8 + 2.5 * count)
        with Instances(count, url, jobs=jobs, every=every, begin=slot - 1, end=slot + WINDOW, **HELD) as all_:
            told = all_.told()
    late = [ms for one in told for at, ms in one.starts if at == slot * 1_000]
    # Who loses a race hears of it no later than the winner starts; half a second more, for a busy machine.
    return late, [one.between(slot, slot + max(late) / 1e3 + 0.5) for one in told]
