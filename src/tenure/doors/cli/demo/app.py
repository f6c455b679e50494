"""The application that the instances of `tenure demo` run: one job, whose run takes longer than its lease."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Final

from tenure import Run, Tenure
from tenure.doors.cli.demo.plan import read

STEPS: Final = 18
PLAN: Final = read()

app = Tenure(lease=PLAN.lease_ms / 1000, history=1_000)


@app.every(PLAN.interval_ms / 1000, name=PLAN.job, jitter=PLAN.jitter_ms / 1000)
async def letters(run: Run) -> dict[str, int]:
    """Write a few letters, and post them at the end: posting is the effect that must happen once."""
    for step in range(1, STEPS + 1):
        run.check()
        _note(run, "wrote", step)
        run.progress(step, STEPS, "letters")
        if await run.lost.within(PLAN.work_ms / STEPS / 1000):
            run.check()  # raises: this instance stops, or has lost the lease
    run.check()
    _note(run, "posted", STEPS)
    return {"letters": STEPS}


def _note(run: Run, what: str, step: int) -> None:
    """One line in the work file, at the moment of the deed; short appends of several processes don't mix."""
    told = {"at": time.time_ns() // 1_000_000, "run": run.key, "attempt": run.attempt, "what": what, "step": step}
    line = json.dumps({**told, "runner": run.runner}).encode() + b"\n"
    file = os.open(PLAN.work_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def _end_with_parent() -> None:
    """The stage holds the other end of our stdin: when it is gone, so are we, however it went."""
    sys.stdin.buffer.read()
    os._exit(1)


threading.Thread(target=_end_with_parent, name="demo-parent", daemon=True).start()
