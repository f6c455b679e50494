"""Questions that gather while the one before is under way, and then go to the store together."""

from __future__ import annotations

import asyncio

from tenure.errors import StoreError
from tenure.rules import commands as c
from tenure.scheduler.ledger import Answered, Ledger, Order


class Lane:
    """One call at a time; all that was asked meanwhile shares the next: group commit without a timer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._queue: list[tuple[Order, asyncio.Future[Answered]]] = []
        self._pump: asyncio.Task[None] | None = None

    async def ask(self, job: str, command: c.Command) -> Answered:
        """The answer to one command; raises StoreError as the ledger does."""
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._queue.append((Order(job, command), future))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._queue:
            taken, self._queue = self._queue, []
            try:
                answers = await self._ledger.ask([order for order, _ in taken])
            except StoreError as error:
                _fail(taken, error)
            except Exception as error:  # noqa: BLE001 - one question that can't be asked fails alone
                if len(taken) == 1:
                    _fail(taken, error)
                else:
                    await asyncio.gather(*(self._alone(one) for one in taken))
            else:
                for (_, future), answer in zip(taken, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)

    async def _alone(self, one: tuple[Order, asyncio.Future[Answered]]) -> None:
        order, future = one
        try:
            answered = await self._ledger.ask_one(order.job, order.command)
        except Exception as error:  # noqa: BLE001 - it is handed to who asked
            _fail([one], error)
        else:
            if not future.done():
                future.set_result(answered)


def _fail(taken: list[tuple[Order, asyncio.Future[Answered]]], error: Exception) -> None:
    for _, future in taken:
        if not future.done():
            future.set_exception(error)
