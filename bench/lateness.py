"""How late a job due each second starts: on one instance without jitter, on three and ten with the default one."""

from __future__ import annotations

import math
import os
import tempfile
import time

from instances import Instances
from rows import Row, p50, percentile
from servers import PREFIX, STORES, store

JITTER_MS = 250


def measure(*, quick: bool) -> list[Row]:
    """One job; one start a second."""
    seconds = 8 if quick else 60
    rows = [row for kind in STORES for row in _alone(kind, seconds)]
    return rows + [_several(kind, count, seconds) for kind in STORES[1:] for count in (3, 10)]


def _alone(kind: str, seconds: int) -> list[Row]:
    late, wrong, disk = _late(kind, 1, seconds, "0")
    who = f"a job due each second, one instance, jitter 0, {kind}"
    middle, worst = p50(late), max(late)
    detail = {"starts": len(late), "p99_ms": percentile(late, 0.99), "fsync_p50_ms": disk}
    # Valkey answers before the disk has it, every second.
    told = (
        ""
        if kind == "Valkey"
        else f"one commit to the disk included; a bare fsync between the slots: p50 {disk:.2f} ms"
    )
    return [
        Row(f"{who}: slot to start, p50", middle, "ms", "<= 5 ms", middle <= 5, detail, told),
        Row(f"{who}: worst of {seconds}", worst, "ms", "<= 30 ms", worst <= 30),
        Row(f"{who}: slots skipped or doubled", wrong, "", "0", wrong == 0),
    ]


def _several(kind: str, count: int, seconds: int) -> Row:
    late, wrong, _ = _late(kind, count, seconds, f"{JITTER_MS}ms")
    assert wrong == 0, f"{wrong} slots skipped or doubled"
    goal = JITTER_MS / 4 + 10
    what = f"a job due each second, {count} instances, jitter {JITTER_MS} ms, {kind}: slot to start, p50"
    told = f"worst {max(late):.0f} ms; none of {seconds} skipped or doubled"
    return Row(what, p50(late), "ms", f"<= {goal:.1f} ms", p50(late) <= goal, remark=told)


def _late(kind: str, count: int, seconds: int, jitter: str) -> tuple[list[float], int, float]:
    """Milliseconds after its slot of each start, how many slots had none or two, and those of a bare fsync, p50."""
    with store(kind) as url:
        begin = math.ceil(time.time()) + 4 + count
        # The last slot's start is heard too.
        with Instances(count, url, jobs=1, every="1s", jitter=jitter, begin=begin, end=begin + seconds + 0.9) as all_:
            disk = _fsyncs(begin, seconds)
            starts = [start for one in all_.told() for start in one.starts if start[0] < (begin + seconds) * 1_000]
    slots = [slot for slot, _ in starts]
    skipped, doubled = seconds - len(set(slots)), len(slots) - len(set(slots))
    return [late for _, late in starts], skipped + doubled, disk


def _fsyncs(begin: float, seconds: int) -> float:
    """Milliseconds that the disk takes for a small write, p50; asked in the middle between two slots."""
    taken = []
    with tempfile.TemporaryFile(prefix=PREFIX) as file:
        for n in range(seconds):
            time.sleep(max(0.0, begin + n + 0.5 - time.time()))
            file.write(bytes(4_096))
            file.flush()
            before = time.perf_counter()
            os.fsync(file.fileno())
            taken.append((time.perf_counter() - before) * 1e3)
    return p50(taken)
