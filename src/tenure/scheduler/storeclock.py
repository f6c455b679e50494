"""The store's clock as an instance knows it: bounds on its distance from the instance's own (R32).

Each answer says that the store's clock read `now` at some moment between sending and receiving. The
distance lies in the intersection of all that was heard; where it is empty, the store's clock has stepped.
"""

from __future__ import annotations

from typing import Final

from tenure.scheduler.seams import Clock

# Clocks drift apart: an old bound is worth less with every millisecond (200 parts in a million).
DRIFT: Final = 2e-4


class StoreClock:
    """An estimate of the store's time, in milliseconds, from its answers."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.known = False
        self._low = self._high = self._at = 0.0
        self.went_back_until: float | None = None

    def observe(self, sent: float, received: float, now: int) -> float:
        """Hear an answer, with the boot times of asking and receiving. Returns a step of the store's clock, else 0."""
        low, high = now - received, now + 1 - sent
        if not self.known:
            self.known, self._low, self._high, self._at = True, low, high, received
            return 0.0
        slack = (received - self._at) * DRIFT
        old_low, old_high = self._low - slack, self._high + slack
        self._at = received
        if low > old_high or high < old_low:
            step = low - old_high if low > old_high else high - old_low
            if step < 0:
                self.went_back_until = max(old_low + received, self.went_back_until or 0.0)
            self._low, self._high = low, high
            return step
        self._low, self._high = max(low, old_low), min(high, old_high)
        return 0.0

    def now(self) -> float:
        """The store's time that has surely come; the wall clock's before the first answer."""
        if not self.known:
            return self.clock.wall()
        return self.clock.boot() + self._low

    def boot_of(self, store_ms: float) -> float:
        """The boot time at which the store's clock has surely reached `store_ms`."""
        return store_ms - (self._low if self.known else self.clock.wall() - self.clock.boot())

    def behind(self) -> bool:
        """Whether the store's clock went back and has not caught up with what it had shown (R33)."""
        if self.went_back_until is not None and self.now() >= self.went_back_until:
            self.went_back_until = None
        return self.went_back_until is not None

    def offset(self) -> float:
        """How far the instance's wall clock is from the store's, in milliseconds: positive where it is ahead."""
        return self.clock.wall() - (self.clock.boot() + (self._low + self._high) / 2) if self.known else 0.0
