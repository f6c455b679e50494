"""When a lease is renewed, and when it is lost: the arithmetic that both clients share. No I/O, no clock.

Reckoned on this machine's monotonic clock: from before a heartbeat was sent, so that it is never later than the
server's end of the lease. A claim may have waited at the server, so it is reckoned from its answer, less a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenure.client.answers import BoardError, LeaseLost, Refused

# Of the lease's length, what passes between two heartbeats.
SHARE: Final = 3
# How long the answer to a claim may have been on its way.
TRIP_SECONDS: Final = 1.0


class Pulse:
    """One lease as its holder reckons it."""

    def __init__(self, asked: float, left_seconds: float) -> None:
        self.renewed(asked, left_seconds)

    def renewed(self, asked: float, left_seconds: float) -> None:
        """A claim or heartbeat that was sent at `asked` was granted, with so many seconds to run."""
        self.ends = asked + left_seconds
        self.next = asked + left_seconds / SHARE

    def left(self, now: float) -> float:
        """Seconds until the lease may have lapsed."""
        return self.ends - now

    def missed(self, now: float) -> None:
        """A heartbeat found no answer: the next one comes when a tenth of what is left has passed."""
        self.next = now + max(0.2, self.left(now) / 10)


def lost(todo: str, error: BoardError | None) -> LeaseLost:
    """What the holder hears: the board's words, or that the lease may have lapsed unseen."""
    if isinstance(error, Refused):
        return LeaseLost(f"{todo}: {error}")
    return LeaseLost(f"{todo}: the board could not be reached for the whole lease, so another may hold it by now.")


def words(error: BaseException) -> str:
    """Why a todo failed whose body raised this."""
    return f"{type(error).__name__}: {error}"


def unheld(todo: str, told: Mapping[str, Any]) -> LeaseLost:
    """What `check_claim` told a holder that is none any more."""
    words = {
        "lapsed": "its lease has lapsed",
        "taken": "its lease lapsed, and another worker holds it now",
        "finished": "it has ended",
        "taken_by_operator": "its human took it over",
        "released_by_operator": "its human gave it back",
    }
    return LeaseLost(f"{todo}: {words.get(str(told.get('reason')), 'the claim has ended')}.")
