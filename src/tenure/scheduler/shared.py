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

    async def until(self, boot: float, changed: asyncio.Event | None = None) -> None:
        """Sleep until the boot clock shows `boot`, at most a nap, or until `changed` is set."""
        seconds = min(NAP, max(0.0001, (boot - self.clock.boot()) / 1000))
        if changed is None:
            await asyncio.sleep(seconds)
            return
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            pass
        changed.clear()
