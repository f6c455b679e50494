"""The scheduler's stores that the page shows: the one given by `--runs`, and the board's own with its schedules."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tenure.app import Tenure
from tenure.board.access import Human
from tenure.scheduler.records import Records

T = TypeVar("T")
Owned = Callable[[Human], Coroutine[Any, Any, frozenset[str]]]
# Pause, resume or trigger a job for a human: (who, job, which of the three).
Steer = Callable[[Human, str, str], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Source:
    """One store. `key` stands in addresses. `owned`: which of its jobs a human may see; None: all of them, anyone.

    steer: how its jobs are paused, where that is not the store's own business: a schedule is paused on the board.
    """

    key: str
    title: str
    app: Tenure
    owned: Owned | None = None
    steer: Steer | None = None

    async def ask(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        """Put a question to the store's records."""
        return await self.app.ask(question)

    async def may_see(self, human: Human, job: str) -> bool:
        """Whether there is, for this human, a job of that name."""
        owned = None if self.owned is None else await self.owned(human)
        names = await self.ask(lambda records: records.names())
        return job in names and (owned is None or job in owned)
