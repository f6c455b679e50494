"""The scheduler's stores that the page shows: the one given by `--runs`, and the board's own with its schedules."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tenure.app import Tenure
from tenure.board.access import Human
from tenure.scheduler.records import PREFIX, Records

T = TypeVar("T")
Versions = tuple[tuple[str, int], ...]
Titles = Callable[[Human], Coroutine[Any, Any, Mapping[str, str]]]
Owned = Callable[[Human], Coroutine[Any, Any, frozenset[str]]]
# Pause, resume or trigger a job for a human: (who, job, which of the three).
Steer = Callable[[Human, str, str], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Source:
    """One store. `key` stands in addresses. `owned`: which of its jobs a human may see; None: all of them, anyone.

    steer: how its jobs are paused, where that is not the store's own business: a schedule is paused on the board.
    titles: what a human calls its jobs, where that is not what the store calls them.
    """

    key: str
    title: str
    app: Tenure
    owned: Owned | None = None
    steer: Steer | None = None
    titles: Titles | None = None

    async def ask(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        """Put a question to the store's records."""
        return await self.app.ask(question)

    async def titles_for(self, human: Human) -> Mapping[str, str]:
        """What this human calls the jobs that are not called by their own names."""
        return {} if self.titles is None else await self.titles(human)

    async def visible(self, human: Human, found: Versions) -> Versions:
        """The versions of what this human may see: of all that is no job, and of their jobs."""
        if self.owned is None:
            return found
        owned = await self.owned(human)
        return tuple(
            (name, version)
            for name, version in found
            if not name.startswith(PREFIX) or name.removeprefix(PREFIX) in owned
        )

    async def may_see(self, human: Human, job: str) -> bool:
        """Whether there is, for this human, a job of that name."""
        owned = None if self.owned is None else await self.owned(human)
        names = await self.ask(lambda records: records.names())
        return job in names and (owned is None or job in owned)
