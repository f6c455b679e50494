"""What every use case may need beside its transaction: settings, secrets and notices, opened and closed together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tenure.board.database import Database
from tenure.board.notices import Notices
from tenure.board.secrets import Ring
from tenure.rules.bucket import Taken


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket: so many calls a second in the long run, so many at once."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class BoardSettings:
    """The board's settings (B43 and others), with their defaults."""

    writes: Rate = Rate(5, 20)
    reads: Rate = Rate(20, 40)
    worker: Rate = Rate(200, 400)
    own_settings: Rate = Rate(1, 10)
    sign_in_account: Rate = Rate(5 / 60, 5)
    sign_in_address: Rate = Rate(20 / 60, 20)
    retention_days: int = 30
    slots_days: int = 90
    session_hours: int = 12
    requests_hours: int = 24
    reaper_seconds: float = 0.5
    mcp_era: str = "handshake"
    public_url: str = "http://127.0.0.1:8420"


@dataclass(frozen=True)
class Board:
    """An open board. `await board.database.write(use_case, board, caller, ...)` is how every door calls it."""

    database: Database
    ring: Ring
    settings: BoardSettings = field(default_factory=BoardSettings)
    notices: Notices = field(init=False)
    # Calls that were taken from workers' buckets in advance; touched on the server's loop alone (buckets.py).
    spare: dict[str, int] = field(init=False, default_factory=dict)
    refills: dict[str, asyncio.Future[Taken]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notices", Notices(self.database))

    async def open(self) -> None:
        """Begin to hear notices."""
        await self.notices.open()

    async def close(self) -> None:
        """Close every connection."""
        await self.notices.close()
        await self.database.close()
