"""An instance's own page in the store: who it is, when it was last seen, what it holds."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final

from tenure.errors import StoreError
from tenure.rules.instant import HOUR
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.shared import Shared
from tenure.stores.contract import Ask, Change

# With each of the watchman's rounds, which come every five seconds; a little less, or some would come too early.
EVERY: Final = 4_500.0
# An instance that was not seen for this long is shown as silent; after KEPT its page is removed by others, at once if
# it had no jobs: nothing waits for it.
SILENT: Final = 15_000
KEPT: Final = 24 * HOUR
PREFIX: Final = "instance:"


def default_name(token: str) -> str:
    """Host, pid and a random part: unique per process start (R45a)."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{token[:6]}"


class Presence:
    """Writes the page every five seconds; failing to is no harm."""

    def __init__(self, shared: Shared, ledger: Ledger, version: str, facts: Callable[[], dict[str, Any]]) -> None:
        self.shared, self.ledger, self._facts = shared, ledger, facts
        self.document = PREFIX + shared.events.runner
        self._base = {"host": socket.gethostname(), "pid": os.getpid(), "version": version}
        self._started: int | None = None
        self._next = 0.0

    async def write(self, *, now: bool = False) -> None:
        """Write the page if it is time."""
        boot = self.shared.clock.boot()
        if boot < self._next and not now:
            return
        self._next = boot + EVERY
        reading = await self.ledger.store.read([Ask(self.document)])
        self._started = self._started or reading.now
        told = {**self._base, "started": self._started, "seen": reading.now, **self._facts()}
        body = json.dumps(told, separators=(",", ":")).encode()
        await self.ledger.store.commit([Change(self.document, reading.found[0].version, body)])

    async def remove(self) -> None:
        """Take the page away: this instance has ended in an orderly way."""
        try:
            reading = await self.ledger.store.read([Ask(self.document)])
            await self.ledger.store.commit([Change(self.document, reading.found[0].version, None, delete=True)])
        except StoreError:
            pass  # it will be shown as silent, and removed by others in a day

    async def sweep(self) -> None:
        """Remove the pages of instances that nobody needs to hear of any more."""
        names = await self.ledger.store.names(PREFIX)
        reading = await self.ledger.store.read([Ask(name) for name in names])
        pages = [
            (name, found.version, json.loads(found.body))
            for name, found in zip(names, reading.found, strict=True)
            if found.body is not None
        ]
        gone = [
            Change(name, version, None, delete=True)
            for name, version, told in pages
            if reading.now - told["seen"] > (KEPT if told["jobs"] else SILENT)
        ]
        if gone:
            await self.ledger.store.commit(gone)
