"""What the offices of one instance share: its clocks, its chance, its stage, its voice."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tenure.scheduler.events import Event, Events
from tenure.scheduler.seams import Chance, Clock, Stage
from tenure.scheduler.storeclock import StoreClock

# No sleep is longer than this, so that waking from suspend is noticed: loop timers stop meanwhile (R28a).
NAP: Final = 1.0


class Shared:
    """One per instance."""

    def __init__(self, clock: Clock, chance: Chance, stage: Stage, events: Events) -> None:
        self.clock, self.chance, self.stage, self.events = clock, chance, stage, events
        self.store_clock = StoreClock(clock)
        self._warned: dict[str, float] = {}

    def emit(
        self, name: str, job: str = "", slot: int | None = None, request: str = "", attempt: int = 0, **detail: Any
    ) -> None:
        """Tell an event, stamped with the store's time."""
        now = round(self.store_clock.now())
        self.events.emit(Event(name, now, self.events.runner, job, slot, request, attempt, detail))

    def warn(self, sentence: str) -> None:
        """Tell people something, at most once a minute for the same sentence."""
        boot = self.clock.boot()
        if boot - self._warned.get(sentence, -60_000.0) >= 60_000:
            self._warned[sentence] = boot
            self.emit("warning", says=sentence)

    async def until(self, boot: float, alarm: Alarm | None = None) -> None:
        """Sleep until the boot clock shows `boot`, at most a nap, or until the alarm rings."""
        seconds = min(NAP, max(0.0001, (boot - self.clock.boot()) / 1000))
        if alarm is None:
            await asyncio.sleep(seconds)
        else:
            await alarm.within(seconds)


class Alarm:
    """Wakes the one task that waits for it, also if it rang before. An Event with a timeout costs thrice as much."""

    def __init__(self) -> None:
        self._rang = False
        self._waiting: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Ring; from the loop that it is waited for on."""
        self._rang = True
        if self._waiting is not None:
            _wake(self._waiting)

    async def within(self, seconds: float) -> None:
        """Wait until it rings, at most so long."""
        if not self._rang:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(seconds, _wake, self._waiting)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        self._rang = False


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
