"""A store that is opened once per process, by whoever needs it first, and again in a forked child."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from tenure.stores.contract import Store


class OneStore:
    """`make` gives the store, not opened yet. Everything here is for the loop that opens it."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self._pid = 0
        self._store: Store | None = None
        self._warnings: tuple[str, ...] | None = None
        self._opening = asyncio.Lock()

    @property
    def used(self) -> bool:
        """Whether it was made in this process."""
        return self._store is not None and self._pid == os.getpid()

    def store(self) -> Store:
        """The store, opened or not."""
        if self._store is None or self._pid != os.getpid():
            self._store, self._warnings, self._pid = self._make(), None, os.getpid()
            self._opening = asyncio.Lock()
        return self._store

    async def opened(self) -> tuple[Store, tuple[str, ...]]:
        """The store, open, and what it warned of. Raises StoreError; may be asked again then."""
        store = self.store()
        async with self._opening:
            if self._warnings is None:
                self._warnings = await store.open()
        return store, self._warnings

    async def close(self) -> None:
        """Give it back; the next use makes it anew."""
        if self.used and self._store is not None and self._warnings is not None:
            await self._store.close()
        self._store = self._warnings = None
