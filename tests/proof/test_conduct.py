"""The laws of conduct: a world without trouble keeps them all, and each is broken by hand once.

Those that a planted fault breaks are met in `test_simulate.py` too; here is what no one fault in the code can do alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tenure.proof.conduct import LAWS, Case
from tenure.proof.sometimes import met
from tenure.proof.witness import Line, Tenancy, Witness
from tenure.proof.workload import at_work
from tenure.proof.world import World
from tenure.rules.job import Attempt
from tenure.rules.job import Run as Unfinished
from tenure.rules.lease import Lease
from tenure.rules.schedule import every
from tenure.scheduler.jobs import define
from tenure.scheduler.run import Run

END = 150.0


@pytest.fixture
def case():  # type: ignore[no-untyped-def]
    """Two instances, a job of every minute that takes seven seconds, and nothing goes wrong."""
    world = World(1, Witness)

    async def perform(run: Run) -> None:
        await at_work(world.witness, run, 7, deaf=False)

    job = define("tick", every(60_000), perform, {"jitter": 0})
    world.deploys = lambda _: [job]
    world.peace = 0.0
    with world.open():
        for role in "ab":
            world.start(role, [job])
        world.loop.run(asyncio.sleep(END))
        yield Case(world, END)


def test_a_world_without_trouble_keeps_every_law(case: Case) -> None:
    """And two slots were run in it, each once."""
    assert {name: list(law(case)) for name, law in LAWS.items()} == {name: [] for name in LAWS}
    assert [one.how for one in case.witness.tenancies.values()] == ["success", "success"]
    assert set(met(case)) >= {"won by schedule", "store: done", "event: won"}


def _first(case: Case) -> Tenancy:
    return next(iter(case.witness.tenancies.values()))


def _at_work_at_once(case: Case) -> None:
    one = _first(case)
    one.left = 100.0
    case.by_run[one.key].append(replace(one, number=2, begun=70.0, left=80.0))


def _told_twice(case: Case) -> None:
    case.witness.lines.append(
        next(line for line in case.witness.lines if (line.node, line.what) == (_first(case).runner, "success"))
    )


def _piled_up(case: Case) -> None:
    case.world.lives[0].link.most_flying = 99


def _unfinished(case: Case) -> None:
    told = case.witness.told["job:tick"]
    one = _first(case)
    lapsed = case.world.start_ms
    attempt = Attempt(1, "t", "a", "schedule", 1, lapsed, lapsed)
    run = Unfinished(one.key[1], "", Lease("t", "a", lapsed), 30_000, "skip", 0, (attempt,))
    told.job = told.job._replace(runs=(run,))


def _silent(case: Case) -> None:
    one = _last(case)
    one.renewed, one.over, one.how = 20.0, None, ""
    case.by_run[one.key] = [one]


def _last(case: Case) -> Tenancy:
    """One for which no newer slot comes before the end."""
    one = list(case.witness.tenancies.values())[-1]
    for other in list(case.witness.tenancies.values())[:-1]:
        del case.witness.tenancies[other.token]
    later = case.world.start_ms + 3_600_000
    one.key = ("tick", later, "")
    return one


def _given_back(case: Case) -> None:
    one = _last(case)
    one.over, one.how = 30.0, "handed over"
    case.by_run[one.key] = [one]


def _works_on(case: Case) -> None:
    one = _first(case)
    one.left, one.over = None, 70.0


def _orphan(case: Case) -> None:
    one = _first(case)
    one.tries, one.over, one.how = 0, None, ""


def _no_outcome(case: Case) -> None:
    case.witness.ends.clear()


def _not_ready(case: Case) -> None:
    case.world.lives[0].instance.started.clear()


def _watches_for_ever(case: Case) -> None:
    case.world.lives[0].instance.keeper.watch(
        case.jobs["tick"], case.world.start_ms - 600_000, "", None, gone_until=0.0
    )


def _late(case: Case) -> None:
    _first(case).won += 9


def _taken_from_the_well(case: Case) -> None:
    _first(case).how = "taken over"


def _failed_by_stopping(case: Case) -> None:
    node = case.world.lives[0]
    node.stopping = True
    line = Line(100.0, node.name, "failed", "tick", 1, "", 1, "error=LeaseLost: this instance is stopping.")
    case.witness.lines.append(line)


def _without_a_record(case: Case) -> None:
    case.world.site.store._shelves["job:tick"].history.clear()


BROKEN: dict[str, Callable[[Case], None]] = {
    "S22": _at_work_at_once, "S23": _told_twice, "S24": _piled_up, "L1": _unfinished, "L2": _silent,
    "L3": _given_back, "L4": _works_on, "L5": _orphan, "L6": _no_outcome, "L7": _not_ready, "L8": _watches_for_ever,
    "I8": _late, "R23": _taken_from_the_well, "R27": _failed_by_stopping, "R11": _without_a_record,
}  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
def test_each_law_of_conduct_can_be_broken(case: Case, law: str) -> None:
    """A law that nothing breaks guards nothing."""
    BROKEN[law](case)
    assert list(LAWS[law](case))


@pytest.mark.parametrize("law", ["L2", "L3", "L5", "R23", "I8"])
def test_an_instance_in_trouble_owes_nothing(case: Case, law: str) -> None:
    """The same histories, with the store away all that time."""
    BROKEN[law](case)
    case.world.trouble("store", "stalled")
    case.world.troubles = [replace(one, begin=0.0, end=END) for one in case.world.troubles]
    assert list(LAWS[law](case)) == []


def test_a_win_that_its_runner_never_heard_of_was_lost_when_its_lease_ran_out(case: Case) -> None:
    """R23, seed 539005003918: a storm took the answer, and a manual run kept all from taking over until long after."""
    one = _first(case)
    assert one.lease_ms is not None
    one.how, one.begun, one.over = "taken over", None, one.won + one.lease_ms / 1000 + 30
    assert list(LAWS["R23"](case))
    case.world.trouble(one.runner, "storm")
    case.world.troubles = [replace(one_, begin=0.0, end=one.won + 1.0) for one_ in case.world.troubles]
    assert list(LAWS["R23"](case)) == []
    one.begun = one.won  # who knows of it and is well again renews it
    assert list(LAWS["R23"](case))


def test_what_was_refused_just_now_is_watched_until_its_next_look(case: Case) -> None:
    """L8, seed 8162527706740: a slot is caught up at a resume just before the end, and refused beside a manual run."""
    _watches_for_ever(case)
    node = case.world.lives[0]
    line = Line(END - 5, node.name, "skip", "tick", case.world.start_ms - 600_000, "", 0, "why=overlap")
    case.witness.lines.append(line._replace(at=10.0))
    assert list(LAWS["L8"](case))
    case.witness.lines.append(line)
    assert list(LAWS["L8"](case)) == []
