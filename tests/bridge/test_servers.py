"""Three servers on one PostgreSQL: schedules under kill -9, and workers through a rolling restart (B49, B50)."""

import asyncio
import itertools
import signal
import time
from collections import Counter

import pytest
from board_hall import found, open_hall, own_database
from board_server import BoardServer
from postgres_server import free_port
from round_robin import RoundRobin

from tenure.board import endpoints, schedules, todos
from tenure.board.shapes import NewTodo
from tenure.client import AsyncBoard

pytestmark = pytest.mark.servers


@pytest.fixture
def hall(postgres_url):
    """A database of this test's own, and a board on it."""
    with own_database(postgres_url) as url:
        found(url)
        board = open_hall(url)
        yield board
        board.database.shut()


async def three(hall):
    servers = [BoardServer(hall.database.url, free_port()) for _ in range(3)]
    await asyncio.gather(*(server.start() for server in servers))
    return servers


async def end(servers):
    for server in servers:
        if server.process.poll() is None:
            await server.end()


@pytest.mark.parametrize(
    "seconds", [10, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(300)])], ids=["short", "long"]
)
@pytest.mark.timeout(120)
async def test_b49_a_slot_each_second_while_servers_are_killed(hall, seconds):
    """A schedule every second on three servers, one killed every 5 s and restarted: one todo for each slot."""
    made = hall.write(endpoints.vend, hall.alice, name="triage")
    servers = await three(hall)
    try:
        raw = {"expression": "1s", "title": "tick {slot}", "overlap": "allow", "catch_up": "1m"}
        hall.write(schedules.add, hall.alice, made.endpoint.slug, "ticks", raw)
        began = time.monotonic()
        moments = itertools.cycle((0.03, 0.08, 0.12, 0.05, 0.1, 0.15))  # while a slot is claimed, fired, ended
        for victim in itertools.cycle(servers):
            await asyncio.sleep(4)
            if time.monotonic() - began >= seconds:
                break
            await asyncio.sleep(1 - time.time() % 1 + next(moments))
            await victim.end(signal.SIGKILL)
            await victim.start()
        last = hall.database.reading(lambda tx: tx.now()) // 1000 * 1000
        slots = await _all_slots(hall, last)
    finally:
        await end(servers)
    of_slot = Counter(row.slot for row in slots)
    assert len(of_slot) >= seconds - 2
    assert set(of_slot.values()) == {1}
    assert sorted(of_slot) == list(range(min(of_slot), max(of_slot) + 1, 1000))
    titles = Counter(row.title for row in hall.rows("SELECT title FROM todos"))
    assert set(titles.values()) == {1}
    print(f"{len(of_slot)} slots, {len(titles)} todos")


async def _all_slots(hall, last):
    """The slots up to `last`, once what a dead server had begun was taken over by another."""
    until = time.monotonic() + 40
    while True:
        rows = [row for row in hall.rows("SELECT slot, todo FROM slots") if row.slot <= last]
        complete = rows and len(rows) == (last - min(row.slot for row in rows)) // 1000 + 1
        if complete or time.monotonic() > until:
            return rows
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    ("workers", "count"),
    [(16, 600), pytest.param(64, 6000, marks=[pytest.mark.long, pytest.mark.timeout(600)])],
    ids=["short", "long"],
)
@pytest.mark.timeout(180)
async def test_b50_a_rolling_restart_under_workers(hall, workers, count):
    """Behind plain round robin: no call fails beyond the client's retry, no claim lapses, no todo is done twice."""
    vended = hall.write(endpoints.vend, hall.alice, name="drain", default_lease=60)
    for _ in range(count // 100):
        hall.write(todos.create_many, hall.alice, vended.endpoint, [NewTodo(title="x") for _ in range(100)])
    servers = await three(hall)
    done = Counter()
    try:
        async with RoundRobin([server.port for server in servers]) as proxy:

            async def work(number):
                async with AsyncBoard(
                    f"http://127.0.0.1:{proxy.port}", credential=vended.credential.reveal(), worker=f"w{number}"
                ) as board:
                    async for todo in board.work(idle_seconds=0):
                        async with todo:
                            done[todo.id] += 1

            crew = asyncio.gather(*(work(number) for number in range(workers)))
            for server in servers:
                await asyncio.sleep(1)
                await server.end(signal.SIGTERM)
                await server.start()
            await crew
    finally:
        await end(servers)
    assert len(done) == count
    assert set(done.values()) == {1}
    ends = Counter(row.end for row in hall.rows('SELECT "end" FROM claims'))
    assert ends == {"completed": count}
