"""Several real instances in processes of their own, from now until a common end."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

WORKER = Path(__file__).with_name("worker.py")


def only_slot(seconds: float) -> tuple[int, str]:
    """An instant so far ahead, and the interval of a job for which it is the only slot for years."""
    slot = math.ceil((time.time() + seconds) / 10) * 10
    return slot, f"{slot // 10}s"


@dataclass(frozen=True)
class Told:
    """What one instance saw; worker.py says what the fields mean."""

    ready: float
    starts: list[tuple[int, float]]
    calls: list[float]
    cpu: float

    def between(self, begin: float, end: float) -> int:
        """Its calls for jobs meanwhile."""
        return sum(begin <= at < end for at in self.calls)


class Instances:
    """So many of them. Use it as a context manager: it ends those that it started."""

    def __init__(self, count: int, url: str, **asked: Any) -> None:
        command = [sys.executable, str(WORKER), url, json.dumps(asked)]
        self._begin = asked["begin"]
        self._started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]

    def told(self) -> list[Told]:
        """Wait for the end of all, and hear them."""
        heard = [Told(**json.loads(process.communicate()[0])) for process in self._started]
        late = max(one.ready for one in heard) - self._begin
        assert late < 0, f"an instance was up {late:.1f} s after the measurement had begun"
        return heard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
