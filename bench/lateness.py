"""How late a job due each second starts, with jitter 0, in one instance, with real time."""

from __future__ import annotations

import asyncio
import tempfile
import time

from rows import Row, p50, percentile

from tenure import Run, Tenure


def measure(*, quick: bool) -> list[Row]:
    """One job, one instance, one start a second."""
    seconds = 8 if quick else 60
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        late, slots = asyncio.run(_late(f"sqlite:///{folder}/t.db", seconds))
    doubled = len(slots) - len(set(slots))
    skipped = (max(slots) - min(slots)) // 1_000 + 1 - len(set(slots))
    worst = max(late)
    return [
        Row(
            "slot to start, a job due each second, p50",
            p50(late),
            "ms",
            "<= 5 ms",
            p50(late) <= 5,
            {"starts": len(slots), "p99_ms": percentile(late, 0.99)},
        ),
        Row("the same, worst", worst, "ms", "<= 30 ms", worst <= 30),
        Row("the same, slots skipped or doubled", skipped + doubled, "", "0", skipped + doubled == 0),
    ]


async def _late(url: str, seconds: int) -> tuple[list[float], list[int]]:
    late: list[float] = []
    slots: list[int] = []
    app = Tenure(url, jitter=0)

    @app.every("1s")
    async def tick(run: Run) -> None:
        late.append(time.time() * 1000 - run.slot_ms)
        slots.append(run.slot_ms)

    async with app:
        await asyncio.sleep(seconds + 0.5)
    return late, slots
