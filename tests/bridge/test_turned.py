"""Ten minutes of a schedule each second on three instances, one killed each five seconds: turned time, a real board."""

import asyncio
from collections import Counter

import pytest

from tenure.board import endpoints, schedules
from tenure.bridge import OPTIONS, job_name
from tenure.rules.instant import instant
from tenure.scheduler.jobs import define

START = "2026-01-01T00:59:59.500Z"


@pytest.mark.timeout(300)
def test_b49_ten_minutes_of_slots_while_instances_are_killed(board, tenure_cluster):
    """Six hundred slots, each one todo, though a hundred and twenty instances died, some between todo and record.

    A run that a newer slot left interrupted is made up for, as the bridge does it.
    """
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    raw = {"expression": "1s", "title": "tick", "overlap": "allow"}
    made = board.write(schedules.add, board.alice, slug, "ticks", raw)

    async def fire(run):
        await asyncio.sleep(0.2)
        board.write(schedules.fire, made.id, run.slot_ms)
        await asyncio.sleep(0.2)  # who dies here has made the todo, and its run is started again

    job = define(job_name(made.id), made.plan.schedule, fire, OPTIONS)
    cluster = tenure_cluster([job], 3, start=START)
    made_up = 0
    for turn in range(120):
        cluster.advance(5 + 0.1 * (turn % 5 - 2))  # at each moment of a run, and between two
        victim = "abc"[turn % 3]
        cluster.kill(victim)
        cluster.start(victim)
        made_up = make_up(board, made.id, cluster, made_up)
    cluster.advance(20)
    make_up(board, made.id, cluster, made_up)
    first = instant("2026-01-01T01:00:00Z", 0)
    slots = Counter(row.slot for row in board.rows("SELECT slot FROM slots WHERE outcome = 'todo'"))
    wanted = range(first, first + 600_000, 1000)
    assert [slot for slot in wanted if slots[slot] != 1] == []
    assert len(board.rows("SELECT id FROM todos")) == len(slots) >= 600
    assert made_up > 0, "nobody died in the middle of a run: the test is too tame"
    print(f"{len(slots)} slots, each one todo; {made_up} of them were interrupted and made up for")


def make_up(board, schedule_id, cluster, before):
    """Fire what was interrupted since the last time; how many were heard of in all."""
    heard = cluster.heard("interrupted")
    for event in heard[before:]:
        board.write(schedules.fire, schedule_id, event.slot)
    return len(heard)
