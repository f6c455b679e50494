"""The few connections that a store holds.

They are held, not fetched for each call from a pool: fetching costs as much as a statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from tenure.stores.postgres.connecting import Link, Server
from tenure.stores.postgres.refusals import closed, exhausted, lost, refusal

T = TypeVar("T")


class Links:
    """Up to so many connections, each used by one call at a time; made when needed and kept.

    `keep` false: given back after each use, as a user's pool wants it.
    """

    def __init__(self, server: Server, count: int, keep: bool = True) -> None:
        self._server, self.count, self._keep = server, count, keep
        self.where = server.where
        self._turns = asyncio.Semaphore(count)
        self._free: list[Link] = []
        self._closed = False

    async def run(self, work: Callable[[Link], Awaitable[T]], again: bool = False) -> T:
        """Do the work on a connection. `again`: do it once more where a kept one turns out to be broken.

        Raises StoreError.
        """
        async with self._turns:
            while True:
                kept = bool(self._free)
                try:
                    async with self._used(await self._taken()) as link:
                        return await work(link)
                except psycopg.Error as error:
                    if not (again and kept and lost(error)):
                        raise refusal(error, self.where) from error
                    again = False

    @asynccontextmanager
    async def _used(self, link: Link) -> AsyncIterator[Link]:
        try:
            yield link
        except psycopg.Error as error:
            if lost(error):
                link.pgconn.finish()
                await self.drop()  # a server that went took all of them
            raise
        finally:
            await self._give(link)

    async def lend(self, until: float) -> Link:
        """A connection for a transaction, to be given back by `back`; by the loop's time `until`.

        Raises StoreBusy where none gets free, TimeoutError where none can be made in time, StoreError.
        """
        try:
            async with asyncio.timeout_at(until):
                await self._turns.acquire()
        except TimeoutError:
            raise exhausted(self.where, self.count) from None
        try:
            async with asyncio.timeout_at(until):
                return await self._taken()
        except BaseException:
            self._turns.release()
            raise

    async def back(self, link: Link) -> None:
        """Take back what was lent."""
        try:
            await self._give(link)
        finally:
            self._turns.release()

    async def _taken(self) -> Link:
        if self._closed:
            raise closed(self.where)
        while self._free:
            link = self._free.pop()
            if not link.closed:
                return link
            await self._server.dismiss(link)
        return await self._server.connect()

    async def _give(self, link: Link) -> None:
        idle = not link.closed and link.info.transaction_status == TransactionStatus.IDLE
        if self._keep and idle and not self._closed:
            self._free.append(link)
        else:
            await self._server.dismiss(link, broken=not idle)

    async def drop(self) -> None:
        """Close those that nobody uses."""
        links, self._free = self._free, []
        for link in links:
            await self._server.dismiss(link, broken=True)

    async def close(self) -> None:
        """Close all; one that is in use is closed when it is given back."""
        self._closed = True
        links, self._free = self._free, []
        for link in links:
            await self._server.dismiss(link)
