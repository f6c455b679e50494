"""The states of a run, found by asking the rules: every arrow here is a step that `decide` really took.

Two slots, two modes of overlap, two attempts that count. A state of the search is a document; two documents in
which both runs look the same are searched once. Knows no instance and no store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from tenure.rules import commands as c
from tenure.rules.instant import MINUTE, SECOND
from tenure.rules.job import EMPTY, Job, Overlap, Past, run_id
from tenure.rules.runs import decide

OLDER: Final = 0
NEWER: Final = 1
NOW: Final = 10
LEASE: Final = 30 * SECOND
MAX_ATTEMPTS: Final = 2
DEEPEST: Final = 9
UNBORN: Final = "[*]"
ENDS: Final = ("success", "failed", "interrupted", "claimed")


class World(NamedTuple):
    """A document, its ended runs, and the store's clock."""

    job: Job = EMPTY
    past: tuple[Past, ...] = ()
    now: int = NOW

    def state(self, slot: int) -> str:
        """What the run of that slot is; `expired` and `released` are seen, not stored."""
        for past in self.past:
            if past.slot == slot:
                return past.status
        run = self.job.find(slot, "")
        if run is None:
            return UNBORN
        if run.lease.live(self.now):
            return "running"
        return "released" if run.lease.released else "expired"

    def looks(self) -> tuple[object, ...]:
        """All that the search tells worlds apart by."""
        runs = [self.job.find(slot, "") for slot in (OLDER, NEWER)]
        seen = [(len(run.attempts), run.handed) if run else None for run in runs]
        return self.state(OLDER), self.state(NEWER), *seen, self.job.newest, self.job.overlap

    def asked(self, command: c.Claim | c.Heartbeat | c.Finish | c.Release) -> tuple[World, c.Answer]:
        """The world after one command, and its answer."""
        past = next((one for one in self.past if one.id == run_id(command.slot)), None)
        decision = decide(self.job, command, self.now, past)
        return World(decision.job, (*self.past, *decision.ended), self.now), decision.answer


class Arrow(NamedTuple):
    """One step that a run took."""

    before: str
    after: str
    label: str


def arrows() -> list[Arrow]:
    """Every way in which the older run can change, in the order in which the search meets it."""
    found: dict[Arrow, None] = {}
    first = World()
    queue, known = deque([(first, 0)]), {first.looks()}
    while queue:
        world, depth = queue.popleft()
        for label, after in _steps(world):
            before, then = world.state(OLDER), after.state(OLDER)
            if before != then or (label.startswith("heartbeat") and after.job != world.job):
                found[Arrow(before, then, label)] = None
            if depth < DEEPEST and after.looks() not in known:
                known.add(after.looks())
                queue.append((after, depth + 1))
    return list(found)


def _steps(world: World) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, and what to call it if the older run changes by it."""
    run = world.job.find(OLDER, "")
    if run is not None and run.lease.live(world.now):
        yield "the lease runs out", world._replace(now=run.lease.until)
    for overlap in ("skip", "allow"):
        for slot in (OLDER, NEWER):
            after, answer = world.asked(_claim(world, slot, overlap, LEASE))
            yield _of_claim(world, slot, answer), after
    if world.looks() == World().looks():
        after, _ = world.asked(_claim(world, OLDER, "skip", None))
        yield "a claim of a job with lease=None wins", after
    if run is None:
        return
    token = run.attempts[-1].token
    before = "heartbeat" if run.lease.live(world.now) else "heartbeat, if nobody came first"
    yield before, world.asked(c.Heartbeat(OLDER, token))[0]
    yield "finish, success", world.asked(c.Finish(OLDER, token, "success"))[0]
    yield "finish, failed", world.asked(c.Finish(OLDER, token, "failed"))[0]
    yield "released by stop(), not counted", world.asked(c.Release(OLDER, token, counts=False))[0]
    yield "released by an unsure runner, counted", world.asked(c.Release(OLDER, token, counts=True))[0]


def _claim(world: World, slot: int, overlap: Overlap, lease_ms: int | None) -> c.Claim:
    token = f"t{slot}-{world.job.fence + 1}"
    return c.Claim(slot, token, "a", lease_ms, MAX_ATTEMPTS, MINUTE, overlap, "schedule", create=True)


def _of_claim(world: World, slot: int, answer: c.Answer) -> str:
    if slot == NEWER:
        return "a newer run is won"
    if isinstance(answer, c.Won):
        return "a claim wins attempt 1" if answer.attempt == 1 else "a claim wins the next attempt"
    newer_won = world.job.newest is not None and world.job.newest > OLDER
    return "a claim, but a newer run was won" if newer_won else "a claim, but the attempts are used up"


def diagram() -> str:
    """The picture, as mermaid."""
    lines = ["```mermaid", "stateDiagram-v2"]
    grouped: dict[tuple[str, str], list[str]] = {}
    for before, after, label in arrows():
        grouped.setdefault((before, after), []).append(label)
    for (before, after), labels in grouped.items():
        lines += [f"  {before} --> {after}: {label}" for label in labels]
    reached = {after for _, after in grouped}
    lines += [f"  {end} --> [*]" for end in ENDS if end in reached]
    return "\n".join([*lines, "```"])
