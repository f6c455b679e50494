"""What really happened in a demo, counted from the store's records and from the handlers' own file."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenure.rules.instant import iso

if TYPE_CHECKING:
    from tenure.rules.schedule import Schedule
    from tenure.scheduler.records import Timeline

# Why a slot was not run, and rightly: said in the store by whoever was refused.
RIGHTLY = ("overlap", "paused")


@dataclass(frozen=True, slots=True)
class Truth:
    """The counts. Takeovers from the last heartbeat on, hand-overs from the release on; milliseconds."""

    succeeded: int
    skipped: int
    posted: int
    twice: tuple[str, ...]
    lost: tuple[str, ...]
    at_once: int
    takeovers_ms: tuple[int, ...]
    handovers_ms: tuple[int, ...]


def count(told: Timeline, schedule: Schedule, since: int, until: int, work_file: Path) -> Truth:
    """`since` to `until`: the slots that had to be dealt with."""
    lines = _lines(work_file)
    posted = Counter(line["run"] for line in lines if line["what"] == "posted")
    succeeded = {run.slot: run for run in told.runs if run.status == "success"}
    accepted = Counter({run.key: sum(one.how == "success" for one in run.attempts) for run in told.runs})
    twice = sorted(key for key in {*posted, *accepted} if posted[key] > 1 or accepted[key] > 1)
    lost = []
    slot = schedule.next(since - 1)
    while slot is not None and slot.at_ms <= until:
        run = succeeded.get(slot.at_ms)
        rightly = any(mark.slot <= slot.at_ms <= mark.until and mark.why in RIGHTLY for mark in told.marks)
        started = any(one.slot == slot.at_ms for one in told.runs)
        if not (posted[run.key] if run is not None else rightly and not started):
            lost.append(iso(slot.at_ms))
        slot = schedule.next(slot.at_ms)
    skipped = sum(mark.count for mark in told.marks if mark.why in RIGHTLY)
    return Truth(
        len(succeeded), skipped, sum(posted.values()), tuple(twice), tuple(lost), _at_once(lines),
        *_changes_of_hands(told),
    )  # fmt: skip


def _lines(file: Path) -> list[dict[str, Any]]:
    """What the handlers wrote; a line cut off by a kill is no line."""
    lines = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def _at_once(lines: list[dict[str, Any]]) -> int:
    """How many pairs of attempts worked at the same time, by the times at which they did something."""
    times: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for line in lines:
        times[str(line["run"]), int(line["attempt"])].append(int(line["at"]))
    spans = [(min(each), max(each)) for each in times.values()]
    return sum(first[0] <= second[1] and second[0] <= first[1] for first, second in combinations(spans, 2))


def _changes_of_hands(told: Timeline) -> tuple[tuple[int, ...], tuple[int, ...]]:
    taken, handed = [], []
    for run in told.runs:
        for before, after in zip(run.attempts, run.attempts[1:], strict=False):
            if before.how == "handed-over" and before.ended is not None:
                handed.append(after.started - before.ended)
            else:
                taken.append(after.started - before.renewed)
    return tuple(taken), tuple(handed)
