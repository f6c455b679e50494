"""A bucket of calls, as the generic cell rate algorithm keeps it: one time per bucket, and no refilling.

The stored time is the theoretical arrival, when the bucket would be full again. A call is allowed if that time, moved
on by its cost, lies no further ahead than the burst. Refused calls change nothing. Inside, all is whole microseconds:
a rate that milliseconds can't divide would lose calls to rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Taken(NamedTuple):
    """Whether the call may go on, how many more may follow at once, and after how long to try again (0: now)."""

    allowed: bool
    remaining: int
    retry_after_ms: int
    arrival_us: int  # what is to be stored


def take(arrival_us: int | None, now: int, per_second: float, burst: int, cost: int = 1) -> Taken:
    """Take `cost` from a bucket. A stored time beyond what a burst explains is a clock that went back: it is cut."""
    now_us, step = now * 1000, math.ceil(1_000_000 / per_second)
    full = burst * step
    ahead = min(max((arrival_us or 0) - now_us, 0), full)
    after = ahead + cost * step
    if after <= full:
        return Taken(True, (full - after) // step, 0, now_us + after)
    return Taken(False, (full - ahead) // step, -((full - after) // 1000), now_us + ahead)
