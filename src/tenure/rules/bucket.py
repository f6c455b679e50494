"""A bucket of calls, as the generic cell rate algorithm keeps it: one time per bucket, and no refilling.

The stored time is the theoretical arrival: when the bucket would be full again. A call of some cost is allowed if that
time, moved on by the cost, lies no further ahead than the burst. Refused calls change nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Taken(NamedTuple):
    """Whether the call may go on, how many more may follow at once, and after how long to try again (0: now)."""

    allowed: bool
    remaining: int
    retry_after_ms: int
    arrival: int  # what is to be stored


def take(arrival: int | None, now: int, per_second: float, burst: int, cost: int = 1) -> Taken:
    """Take `cost` from a bucket. A stored time beyond what a burst explains is a clock that went back: it is cut."""
    step = 1000 / per_second
    full = burst * step
    at = min(max(arrival or 0, now), now + math.ceil(full))
    after = at + cost * step
    if after - now <= full:
        stored = math.ceil(after)
        return Taken(True, int((full - (stored - now)) / step), 0, stored)
    # Never more than a burst: what costs more than the bucket holds will never be allowed.
    return Taken(False, int((full - (at - now)) / step), max(math.ceil(after - full - now), 1), at)
