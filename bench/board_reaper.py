"""The reaper among 100,000 open claims: how late it is when 1,000 lapse each second, and how fast all at once drain."""

from __future__ import annotations

import time

import sqlalchemy as sa
from boards import Hands, databases, deepen, opened
from rows import Row, percentile

from tenure.board import reaper

_CLAIM = (
    "INSERT INTO claims (id, todo, endpoint, attempt, hash, secret, granted, expires, ttl_seconds, ttl_source)"
    " SELECT 'cl' || substr(id, 3), id, endpoint, 1, id, 's', :now, :now + {expires}, 300, 'server'"
    " FROM todos WHERE ready"
)
_HOLD = "UPDATE todos SET state = 'claimed', ready = false, attempts = 1, claim = 'cl' || substr(id, 3) WHERE ready"


def measure(*, quick: bool) -> list[Row]:
    """On PostgreSQL, where boards are that large."""
    held, seconds = (5_000, 3) if quick else (100_000, 30)
    return [_steady(held, 100 if quick else 1_000, seconds), _mass(held)]


def _held(board: object, count: int, expires: str) -> None:
    """So many open claims, with these expiries."""
    hands = Hands(board, board.vend())
    deepen(board, hands.worker.id, count, every=1)
    with board.database.engine.begin() as connection:
        connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
        now = board.database.reading(lambda tx: tx.now())
        connection.execute(sa.text(_CLAIM.format(expires=expires)), {"now": now})
        connection.execute(sa.text(_HOLD))
    with board.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as plain:
        plain.execute(sa.text("VACUUM ANALYZE todos, claims"))
        plain.execute(sa.text("CHECKPOINT"))


def _steady(held: int, rate: int, seconds: int) -> Row:
    """So many lapse each second, evenly, while the others stay held."""
    with databases("PostgreSQL") as (url,), opened(url) as board:
        lead = 30_000  # until everything is in place
        every = f"{lead} + CAST(substr(id, 4) AS bigint) * 1000 / {rate}"
        _held(board, held, every)
        pause = board.settings.reaper_seconds
        end = time.monotonic() + lead / 1000 + seconds
        while time.monotonic() < end:
            while board.write(reaper.reap).full:
                pass
            time.sleep(pause)
        late = [row[0] / 1000 for row in board.rows("SELECT ended - expires FROM claims WHERE \"end\" = 'lapsed'")]
    worst = percentile(late, 0.99)
    what = f"requeued after its lapse, p99: {held:,} open claims, {rate:,} lapsing a second"
    return Row(what, worst, "s", "<= 2", worst <= 2, {"lapsed": len(late)}, f"{len(late):,} lapsed in {seconds} s")


def _mass(held: int) -> Row:
    """All of them lapse at the same moment."""
    with databases("PostgreSQL") as (url,), opened(url) as board:
        _held(board, held, "1")
        began = time.monotonic()
        while board.write(reaper.reap).full:
            pass
        rate = held / (time.monotonic() - began)
        (left,) = board.rows("SELECT count(*) FROM claims WHERE ended IS NULL")
        assert left[0] == 0
    return Row(f"a mass lapse of {held:,} drains at", rate, "/s", ">= 5,000", rate >= 5_000)
