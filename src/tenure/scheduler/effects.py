"""`run.transaction()`: the handler's own writes, fenced by the run's token in the same transaction (R39)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Literal

from tenure.errors import ConfigError, LeaseLost, StoreCorrupt, StoreUnavailable, TransactionTooLong
from tenure.rules import commands as c
from tenure.rules.instant import span_words
from tenure.rules.job import run_id
from tenure.rules.runs import decide
from tenure.scheduler.ledger import Ledger, change_of
from tenure.scheduler.run import SENTENCES, Holding, run_key
from tenure.scheduler.shared import Shared
from tenure.stores.contract import Ask, Change, Transaction

# How long the smallest lease in the store is remembered, in milliseconds.
REMEMBERED: Final = 60_000.0
DEFAULT_LEASE: Final = 30_000


class Effects:
    """What runs may ask of their instance; see `scheduler.run.Deeds`."""

    def __init__(self, shared: Shared, ledger: Ledger) -> None:
        self.shared, self.ledger = shared, ledger
        self.loop: asyncio.AbstractEventLoop | None = None
        self._smallest: tuple[float, int] | None = None
        self.putter: Callable[[str, Mapping[str, Any]], str] | None = None

    def put(self, key: str, fields: Mapping[str, Any]) -> str:
        if self.putter is None:
            raise ConfigError("put", fields.get("title"), "has no board to put a todo on: no application started it.")
        return self.putter(key, fields)

    def on_engine(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        if self.loop is None or self.loop.is_closed():
            work.close()
            raise LeaseLost("this instance has stopped; the run can't write any more.")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def begin(self, holding: Holding) -> Transaction:
        if holding.job.lease_ms is None:
            raise ConfigError(
                "lease", None, "keeps no lease, so nothing can fence a transaction; give the job a lease."
            )
        if not holding.held():
            raise LeaseLost(f"{_name(holding)}: {SENTENCES.get(holding.why or 'unsure')}.")
        return await self.ledger.store.begin(await self._limit_ms() / 1000)

    async def _limit_ms(self) -> float:
        """A sixth of the smallest lease of the store's jobs: a transaction may hold the one lock of a file (R39)."""
        boot = self.shared.clock.boot()
        if self._smallest is None or boot - self._smallest[0] > REMEMBERED:
            names = await self.ledger.store.names("job:")
            _, pages = await self.ledger.pages([Ask(name) for name in names])
            leases = [run.lease_ms for page in pages for run in page.job.runs if run.lease_ms]
            leases += [told for page in pages if (told := _told_lease(page.job.definition))]
            self._smallest = boot, min(leases, default=DEFAULT_LEASE)
        return self._smallest[1] / 6

    async def undo(self, holding: Holding, transaction: Transaction) -> None:
        try:
            await transaction.rollback()
        except TransactionTooLong as error:
            raise await self._too_long(_name(holding)) from error

    async def _too_long(self, name: str) -> TransactionTooLong:
        limit = span_words(round(await self._limit_ms()))
        return TransactionTooLong(
            f"{name}: the transaction was held longer than {limit} (a sixth of the smallest lease in this store) "
            f"and was rolled back; nothing was written. Make it shorter, or the lease longer."
        )

    async def settle(self, holding: Holding, transaction: Transaction, finish: bool, result: Any) -> None:
        name = _name(holding)
        ask = Ask(holding.job.document, (run_id(holding.slot, holding.request),))
        change: Change | None = None
        try:
            reading = await transaction.read(ask)
            page = self.ledger.page(ask.name, reading.found[0])
            run = page.job.find(holding.slot, holding.request)
            if run is None or not run.lease.held_by(holding.token) or holding.why in ("lost", "abandoned"):
                await transaction.rollback()
                raise self._lost(holding, f"{name}: {SENTENCES['lost']}; nothing of the transaction was written.")
            if finish:
                command = c.Finish(holding.slot, holding.token, "success", holding.request, result)
                decision = decide(page.job, command, reading.now)
                change = change_of(ask.name, reading.found[0].version, decision.job, reading.now, [decision])
                holding.closing = True
            if not await transaction.commit(change):
                holding.closing = False
                raise await self._not_current(holding)
            holding.recorded = finish
        except TransactionTooLong as error:
            holding.closing = False
            raise await self._too_long(name) from error
        except StoreCorrupt:
            await transaction.rollback()
            raise
        except StoreUnavailable:
            # The commit's outcome is not known: nothing is believed before its change can't land any more.
            if change is not None:
                self.ledger.doubt(change)
            if not finish or await self._standing(holding) != "success":
                holding.closing = False
                raise
            holding.recorded = True

    async def _not_current(self, holding: Holding) -> LeaseLost | StoreUnavailable:
        """Why a commit was refused: the run changed hands, or it only came too late."""
        name = _name(holding)
        if await self._standing(holding) == "held":
            return StoreUnavailable(f"{name}: the commit came too late and was rolled back; try the transaction again.")
        return self._lost(holding, f"{name}: the run changed hands; nothing of the transaction was written.")

    async def _standing(self, holding: Holding) -> Literal["held", "success", "lost", "unknown"]:
        """How the run stands now; `success` only where this very attempt is recorded so."""
        place = holding.slot, holding.token
        try:
            answer = (await self.ledger.ask_one(holding.job.name, c.Heartbeat(*place, holding.request))).answer
            if isinstance(answer, c.Refused) and answer.status == "success":
                # Whose success? The end of a run that has ended changes nothing, and is right for its own token alone.
                finish = c.Finish(*place, "success", holding.request)
                answer = (await self.ledger.ask_one(holding.job.name, finish)).answer
        except StoreUnavailable:
            return "unknown"
        if isinstance(answer, c.Finished):
            return "success"
        return "lost" if isinstance(answer, c.Refused) else "held"

    def _lost(self, holding: Holding, sentence: str) -> LeaseLost:
        if holding.why != "lost":
            holding.abort("lost", cancel=False)
            self.shared.emit("lost", holding.job.name, holding.slot, holding.request, holding.attempt)
        return LeaseLost(sentence)


def _name(holding: Holding) -> str:
    return f"{run_key(*holding.key)}, attempt {holding.attempt}"


def _told_lease(definition: Any) -> int | None:
    return json.loads(definition.told).get("lease_ms") if definition is not None else None
