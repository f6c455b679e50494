"""A story of runs for pictures: a takeover, a hand-over, a failure, one alive, and slots that were skipped."""

from tenure.rules.job import Attempt
from tenure.scheduler.records import RunView, Timeline
from tenure.stores.contract import Mark

BEGIN = 1_796_040_000_000  # 2026-11-30T12:00:00Z
TOLD = {"every_ms": 4_000, "heartbeat_ms": 500}


def at(seconds):
    """So many seconds into the story, in milliseconds."""
    return BEGIN + round(seconds * 1000)


def attempt(  # noqa: PLR0917 - a row of a table: what is where is plain
    number, runner, started, renewed, beats, ended=None, how=None, reason="schedule"
):
    end = None if ended is None else at(ended)
    return Attempt(number, f"token{number}", runner, reason, number, at(started), at(renewed), beats, end, how)


def run(slot, status, *attempts, ended=None, lease_until=None, request=""):
    return RunView(
        "letters",
        at(slot),
        request,
        status,
        attempts,
        3_000,
        None if lease_until is None else at(lease_until),
        None if ended is None else at(ended),
    )


def mark(slot, why="overlap", until=None, count=1):
    return Mark(at(slot), at(slot if until is None else until), count, why, "", at(slot), "api-3")


TAKEN_OVER = run(
    0,
    "success",
    attempt(1, "api-1", 0.1, 2.1, 4, 5.1, "expired"),
    attempt(2, "api-2", 5.4, 9.4, 8, 9.9, "success", "takeover"),
    ended=9.9,
)
HANDED_OVER = run(
    12,
    "success",
    attempt(1, "api-2", 12.1, 13.6, 3, 14.0, "handed-over"),
    attempt(2, "api-1", 14.4, 18.4, 8, 18.9, "success", "takeover"),
    ended=18.9,
)
FAILED = run(20, "failed", attempt(1, "api-3", 20.1, 20.6, 1, 21.0, "failed"), ended=21.0)
ALIVE = run(24, "running", attempt(1, "api-3", 24.1, 25.6, 3), lease_until=28.6)


def timeline(*runs, since=-1, until=29, now=26, marks=(), told=TOLD):
    return Timeline("letters", at(since), at(until), at(now), tuple(runs), tuple(marks), told)


STORY = timeline(TAKEN_OVER, HANDED_OVER, FAILED, ALIVE, marks=(mark(4, until=8, count=2), mark(16)))
