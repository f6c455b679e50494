"""When a lease is renewed, when it is lost, and what came of a todo's end: what both clients share. No I/O, no clock.

Reckoned on this machine's monotonic clock: from before a heartbeat was sent, so that it is never later than the
server's end of the lease. A claim may have waited at the server, so it is reckoned from its answer, less a second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tenure.client import calls
from tenure.client.answers import BoardError, Held, LeaseLost, Refused, Unreachable

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


class Hands:
    """A claimed todo as a task of either client holds it: what it is, and what came of its end."""

    def __init__(self, held: Held, answered: float) -> None:
        self.held = held
        self.result: Any = None
        self.lost: LeaseLost | None = None
        self.ended = self._answered = False
        self._pulse = Pulse(answered - TRIP_SECONDS, held.lease.left_seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.held, name)  # id, title, body, payload, queue, attempt, lease

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Around the call that tells the board of the end."""
        self.ended = True  # also where no answer comes: then nothing else is told by itself, but it may be told again
        try:
            yield
        except Refused as error:
            if error.code == "conflict":
                self.lost = lost(self.held.id, error)
                raise self.lost from error
            self.ended = error.status in calls.LATER
            raise
        except Unreachable:
            raise
        except BaseException:  # cancelled, interrupted, or it could not be sent
            self.ended = False
            raise
        self._answered = True


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
