"""The laws of instances, asked of a whole history once its world has ended: S20 to S24, L1 to L8, I7 to I8a.

They speak of what was promised to whom: an instance that was up, and reached a store that was there, owes what the
rules say; one that was in trouble owes nothing. Those asked at every step stand in `laws.py` and `witness.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from tenure.proof.witness import Key, Tenancy, name_of
from tenure.proof.world import Node, World
from tenure.rules.job import EMPTY, run_id
from tenure.scheduler.jobs import Job

# How long after some trouble an instance, or the store, may need until all is as it was, in seconds.
SETTLED: Final = 16.0
# What a check, a retry and the grid may take beyond a bound, in seconds.
SLACK: Final = 1.0
# How long a claim may take where nothing is the matter, in seconds; and how long a handler may take to begin.
PROMPT: Final = 2.0
CALLS: Final = 24
TASKS: Final = 40
# Told once of each attempt.
ONCE: Final = frozenset(("won", "takeover", "lost", "success", "failed", "handed-over", "abandoned"))

Law = Callable[["Case"], Iterator[str]]


class Case:
    """One world that has ended, and what the laws ask about it."""

    def __init__(self, world: World, end: float) -> None:
        self.world, self.end, self.witness = world, end, world.witness
        self.jobs: dict[str, Job] = {job.name: job for job in world.deploys(0)}
        self.later_jobs: dict[str, Job] = {job.name: job for job in world.deploys(1)}
        self.by_run: defaultdict[Key, list[Tenancy]] = defaultdict(list)
        for one in self.witness.tenancies.values():
            self.by_run[one.key].append(one)

    def well(self, node: Node, begin: float, end: float) -> bool:
        """Whether that instance was up, reached the store, and was in no trouble, all that time and before it."""
        if node.born > begin - SETTLED or (node.died is not None and node.died < end):
            return False
        return end <= self.end and self.untroubled(node.name, begin, end) and self.untroubled("store", begin, end)

    def untroubled(self, where: str, begin: float, end: float) -> bool:
        """Whether nothing was the matter there."""
        return all(one.end < begin - SETTLED or one.begin > end for one in self.world.troubles if one.where == where)

    def somebody(self, begin: float, end: float, but: str = "") -> Node | None:
        """An instance that was well all that time."""
        return next((one for one in self.world.lives if one.name != but and self.well(one, begin, end)), None)

    def newer(self, key: Key, end: float) -> bool:
        """Whether a newer slot of the job came, so that nothing is owed to this one."""
        job, slot, request = key
        if any(one.key[0] == job and one.won <= end and one.key[1] > slot for one in self.witness.tenancies.values()):
            return True
        schedule = self.jobs[job].schedule
        due = schedule.next(slot) if schedule is not None and not request else None
        shown = self.world.start_ms + int(end * 1000) + max(skew for _, skew in self.world.site.skews)
        return due is not None and due.at_ms <= shown

    def beside(self, one: Tenancy, begin: float, end: float) -> bool:
        """Whether another run of its job was under way then, so that it may have had to wait."""
        return any(
            other.key[0] == one.key[0] and other.key != one.key and other.won <= end and (other.over or end) >= begin
            for other in self.witness.tenancies.values()
        )

    def bound(self, job: str) -> float:
        """Two heartbeats, in seconds."""
        return 2 * max(self.jobs[job].heartbeat_ms, self.later_jobs[job].heartbeat_ms) / 1000

    def slots(self, job: str) -> list[int]:
        """The slots of a job from its registration until shortly before the end."""
        return slots(self.world, self.jobs[job], self.world.site.now() - int(SETTLED * 1000))


def slots(world: World, job: Job, until: int) -> list[int]:
    """The slots of a job from when it was first known to a time of the store."""
    told = world.witness.told.get(job.document)
    since = told.job.since(job.schedule.identity) if told is not None and job.schedule is not None else None
    if job.schedule is None or since is None:
        return []
    found: list[int] = []
    slot = job.schedule.next(since)
    while slot is not None and slot.at_ms <= until:
        found.append(slot.at_ms)
        slot = job.schedule.next(slot.at_ms)
    return found


def spoken(world: World) -> set[tuple[str, int]]:
    """All slots of which the store has an outcome: a run, ended or not, or a mark that says why there was none."""
    found: set[tuple[str, int]] = set()
    for job in world.deploys(0):
        told = world.witness.told.get(job.document)
        shelf = world.site.store._shelves.get(job.document)  # noqa: SLF001 - what is asked here no store is asked
        if told is None or shelf is None:
            continue
        known = {run.slot for run in told.job.runs}
        known |= {slot for name, slot, request in world.witness.ends if name == job.name and not request}
        known |= {
            slot
            for mark in shelf.marks
            if not mark.request
            for slot in slots(world, job, mark.until)
            if mark.slot <= slot
        }
        found |= {(job.name, slot) for slot in known}
    return found


def s22(case: Case) -> Iterator[str]:
    """S22. Handlers of two attempts of a run overlap at most a heartbeat and a call; one may stand still or be deaf."""
    for key, attempts in case.by_run.items():
        for first, second in pairwise(attempts):
            if first.begun is None or second.begun is None or first.deaf or key[0] in case.witness.patient:
                continue
            left = case.end if first.left is None else first.left
            allowed = case.bound(key[0]) / 2 + 5.0 + SLACK
            well = case.untroubled(first.runner, first.won, left) or _only_cut(case, first, left)
            if left - second.begun > allowed and well and case.untroubled("store", first.won, left):
                yield f"attempts {first.number} and {second.number} of {name_of(key)} were at work at once for too long"


def _only_cut(case: Case, first: Tenancy, left: float) -> bool:
    """Whether all that was the matter with the runner was its way to the store: that is no excuse."""
    return all(
        "cut" in one.what or "lost" in one.what or one.what == "storm"
        for one in case.world.troubles
        if one.where == first.runner and one.begin <= left and one.end >= first.won
    )


def s23(case: Case) -> Iterator[str]:
    """S23. What becomes of an attempt is told once; where the store forgot it, it may be another one."""
    told = Counter(one[1:7] for one in case.witness.lines if one.what in ONCE and one.node != "store")
    forgotten = {one.key for one in case.witness.tenancies.values() if one.how == "forgotten"}
    for line, count in told.items():
        if count > 1 and (line[2], line[3], line[4]) not in forgotten:
            yield f"{line[0]} told {line[1]} of {line[2]} {line[3]}, attempt {line[5]}, {count} times"


def s24(case: Case) -> Iterator[str]:
    """S24. Calls do not pile up."""
    for node in case.world.lives:
        if node.link.most_flying > CALLS:
            yield f"{node.name} had {node.link.most_flying} calls under way at once"


def l1(case: Case) -> Iterator[str]:
    """L1. In peace no run stays unfinished that nobody holds, longer than its takeover takes or a newer slot needs."""
    now = case.world.site.now()
    for name, job in case.jobs.items():
        interval = job.schedule.smallest_gap_ms() if job.schedule is not None else 0
        told = case.witness.told.get(job.document)
        for run in told.job.runs if told is not None else ():
            lapsed = now - max(run.lease.until, case.world.start_ms + int(case.world.peace * 1000))
            if not run.lease.live(now) and lapsed > case.bound(name) * 1000 + interval + 1000 * SETTLED:
                yield f"run {run.id} of {name} is held by nobody for {lapsed / 1000:.0f} s, and has not ended"


def l2(case: Case) -> Iterator[str]:
    """L2, I7. A run whose runner fell silent is taken over in time, while a backup is well."""
    for key, attempts in case.by_run.items():
        for one, after in zip(attempts, [*attempts[1:], None], strict=True):
            if one.lease_ms is None or one.how in ("handed over", "unsure", "forgotten"):
                continue
            due = one.renewed + one.lease_ms / 1000 + case.bound(key[0]) + SLACK
            came = after.won if after is not None else one.over
            if came is not None and came <= due:
                continue
            backup = case.somebody(one.renewed, due, but=one.runner)
            if backup is not None and not case.newer(key, due) and not case.beside(one, one.renewed, due):
                silent = f"attempt {one.number} of {name_of(key)} at {one.runner} fell silent at {one.renewed:.1f} s"
                yield f"{silent}, and {backup.name} did not take over"


def l3(case: Case) -> Iterator[str]:
    """L3, R22. A run that was given back is started again, or ended, within two heartbeats, while a backup is well."""
    for key, attempts in case.by_run.items():
        for one, after in zip(attempts, [*attempts[1:], None], strict=True):
            if one.over is None or one.how not in ("handed over", "unsure"):
                continue
            due = one.over + case.bound(key[0]) + SLACK
            ended = case.witness.ends.get(key, (case.end + 1, ""))[0]
            came = min(ended, after.won if after is not None else case.end + 1)
            if came <= due or case.newer(key, due) or case.beside(one, one.over, due):
                continue
            if case.somebody(one.over, due, but=one.runner):
                yield f"attempt {one.number} of {name_of(key)} was {one.how} at {one.over:.1f} s, and nobody took over"


def l4(case: Case) -> Iterator[str]:
    """L4. In peace no handler works on an attempt that is over, unless it is deaf."""
    for one in case.witness.working():
        if one.over is None or one.deaf or one.lease_ms is None:
            continue
        if case.end - max(one.over, case.world.peace) > case.bound(one.key[0]) + SLACK + SETTLED:
            yield f"attempt {one.number} of {name_of(one.key)} is over since {one.over:.1f} s, and its handler works"


def l5(case: Case) -> Iterator[str]:
    """L5, I8a. A claim that was won is run by its winner once that one is well: no lease is an orphan."""
    nodes = {node.name: node for node in case.world.lives}
    for one in case.witness.tenancies.values():
        if one.tries or one.how in ("forgotten", "handed over") or nodes[one.runner].stopping:
            continue
        over = min(case.end if one.over is None else one.over, one.won + (one.lease_ms or 0) / 1000)
        troubled = [
            t.end
            for t in case.world.troubles
            if t.where in (one.runner, "store") and t.begin <= over and t.end >= one.won
        ]
        well = max([one.won, *(end + SETTLED for end in troubled)])
        if well + PROMPT < over and case.well(nodes[one.runner], well + 0.001, well + PROMPT):
            yield f"{one.runner} won attempt {one.number} of {name_of(one.key)} at {one.won:.1f} s, and did not run it"


def l6(case: Case) -> Iterator[str]:
    """L6, R36a. Every slot of the schedule has an outcome."""
    told = spoken(case.world)
    for name in case.jobs:
        for slot in case.slots(name):
            if (name, slot) not in told and (name, slot) not in case.world.unspoken:
                yield f"nothing is told of slot {slot} of {name}"


def l7(case: Case) -> Iterator[str]:
    """L7. In peace every instance is ready again."""
    for node in case.world.alive():
        for reason in node.instance.health().reasons:
            if any(words in reason for words in ("can't be reached", "not started", "not turned")):
                yield f"{node.name}: {reason}"


def l8(case: Case) -> Iterator[str]:
    """L8. Tasks and watches do not grow without end."""
    tasks = len(asyncio.all_tasks(case.world.loop))
    if tasks > TASKS * len(case.world.lives):
        yield f"{tasks} tasks are left of {len(case.world.lives)} lives"
    now = case.world.site.now()
    for node in case.world.alive():
        for name, slot, request in node.instance.keeper.watches:
            job = case.jobs[name]
            told = case.witness.told.get(job.document)
            document = told.job if told is not None else EMPTY
            both = (job, case.later_jobs[name])
            late = max(one.bound_ms if request else one.max_late_ms for one in both)  # a wish waits longer (R36)
            old: float = now - slot - late - 10_000
            ended = case.witness.ends.get((name, slot, request), (0.0, ""))[0]
            old = min(old, 1000 * (case.end - max(ended, _last_told(case, node, (name, slot, request)))))
            waiting = document.find(slot, request) or any(wish.id == request for wish in document.requests)
            if not waiting and old > 1000 * SETTLED + 1000 * case.bound(name):
                yield f"{node.name} still watches run {slot} of {name}, which is no more"


def _last_told(case: Case, node: Node, key: Key) -> float:
    """When the instance last spoke of this run: until its next look, what it has just been refused is watched too."""
    lines = (one for one in case.witness.lines if one.node == node.name and one.what in ("backup", "skip"))
    return max((one.at for one in lines if (one.job, one.slot, one.request) == key), default=0.0)


def i8(case: Case) -> Iterator[str]:
    """I8. A due slot is claimed at once while an instance and the store are well, unless a mark says why not."""
    told = spoken(case.world)
    first: dict[tuple[str, int], Tenancy] = {}
    for one in case.witness.tenancies.values():
        if one.number == 1 and not one.key[2]:
            first.setdefault(one.key[:2], one)
    for name, job in case.jobs.items():
        jitter = max(job.jitter_ms, case.later_jobs[name].jitter_ms) / 1000
        for slot in case.slots(name):
            due = case.world.site.shown(slot)
            if due is None or case.somebody(due, due + jitter + PROMPT) is None:
                continue
            won = first.get((name, slot))
            if (name, slot) not in told and (name, slot) not in case.world.unspoken:
                yield f"slot {slot} of {name} was claimed by nobody"
            elif won is not None and won.won > due + jitter + PROMPT and not _refused_first(case, name, slot):
                yield f"slot {slot} of {name} was claimed {won.won - due:.1f} s after it was due"


def _refused_first(case: Case, job: str, slot: int) -> bool:
    """Whether a claim was refused before one was won: a mark is no state (R12)."""
    return any(one.what == "skip" and (one.job, one.slot) == (job, slot) for one in case.witness.lines)


def r23(case: Case) -> Iterator[str]:
    """R23. Nobody takes over from an instance that is well.

    One whose handler never began may not know of its win: the answer was lost until the lease had run out, and another
    run of the job stood in the way of all until long after. So it is asked how the runner was while that lease lasted.
    """
    nodes = {node.name: node for node in case.world.lives}
    for one in case.witness.tenancies.values():
        if one.over is None or one.how not in ("taken over", "interrupted") or one.lease_ms is None:
            continue
        end = one.over if one.begun is not None else min(one.over, one.renewed + one.lease_ms / 1000)
        if case.well(nodes[one.runner], end - one.lease_ms / 1000, end) and not nodes[one.runner].stopping:
            attempt = f"attempt {one.number} of {name_of(one.key)}"
            yield f"{attempt} was {one.how} at {one.over:.1f} s, but {one.runner} was well"


def r27(case: Case) -> Iterator[str]:
    """R27. A handler that raised because stop() told it to is handed over, not failed; without a lease it can't be."""
    stopping = {node.name for node in case.world.lives if node.stopping}
    unleased = {(one.key, one.number) for one in case.witness.tenancies.values() if one.lease_ms is None}
    for line in case.witness.lines:
        if line.what != "failed" or line.node not in stopping or "stopping" not in line.told:
            continue
        if ((line.job, line.slot, line.request), line.attempt) not in unleased:
            yield f"{line.node} told attempt {line.attempt} of {line.job} {line.slot} as failed: {line.told}"


def r11(case: Case) -> Iterator[str]:
    """R11. What has ended is in the history, until it is pruned."""
    shelves = case.world.site.store._shelves  # noqa: SLF001 - as above
    for job, slot, request in case.witness.ends:
        run = run_id(slot, request)
        if run not in shelves[f"job:{job}"].history and (job, run) not in case.witness.pruned:
            yield f"run {run} of {job} has ended, and there is no record of it"


LAWS: Final[Mapping[str, Law]] = {
    "S22": s22, "S23": s23, "S24": s24, "L1": l1, "L2": l2, "L3": l3, "L4": l4, "L5": l5, "L6": l6, "L7": l7,
    "L8": l8, "I8": i8, "R11": r11, "R23": r23, "R27": r27,
}  # fmt: skip


def check(case: Case) -> None:
    """Ask all of them; the witness keeps the first breach."""
    for name, law in LAWS.items():
        if case.witness.breach is None:
            for sentence in law(case):
                case.witness.broken(name, sentence)
