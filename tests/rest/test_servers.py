"""Two servers on one PostgreSQL: a board is drained over /work/v1, each todo done once, though one is killed."""

import asyncio
import secrets
import signal
import time
from collections import Counter

import httpx2
import pytest
from board_hall import found, open_hall, own_database
from board_server import BoardServer

pytestmark = pytest.mark.servers


@pytest.fixture
def url(postgres_url):
    """A database of this test's own, with the tables and the three."""
    with own_database(postgres_url) as url:
        found(url)
        yield url


class Crew:
    """Workers of one endpoint who ask either server, and the other one when it does not answer."""

    def __init__(self, ports, credential):
        self.ports, self.done, self.again, self.unanswered = ports, Counter(), 0, 0
        headers = {"authorization": f"Bearer {credential}"}
        limits = httpx2.Limits(max_connections=200)
        self.http = httpx2.AsyncClient(headers=headers, timeout=60, limits=limits, trust_env=False)

    async def ask(self, verb, body, place):
        """Ask until there is an answer: a claim carries its request_id, a completion its token."""
        for attempt in range(200):
            port = self.ports[(place + attempt) % len(self.ports)]
            try:
                answer = await self.http.post(f"http://127.0.0.1:{port}/work/v1/{verb}", json=body)
            except httpx2.TransportError:
                self.unanswered += 1
            else:
                if answer.status_code != 503:
                    assert answer.status_code == 200, answer.text
                    return answer.json()
            await asyncio.sleep(0.05)
        raise AssertionError("no server answers any more")

    async def work(self, place):
        """Claim and complete until there is nothing left."""
        me = f"worker-{place}"
        while True:
            asked = {"max": 10, "worker": me, "request_id": secrets.token_hex(16), "lease_ttl_seconds": 600}
            told = await self.ask("claim_next", asked, place)
            if told["empty"]:
                return
            items = [
                {"todo_id": one["todo"]["id"], "lease_token": one["lease_token"], "result": {"by": me}}
                for one in told["claims"]
            ]
            for one in (await self.ask("complete", {"items": items, "worker": me}, place))["items"]:
                assert one["state"] == "done", one
                self.done[one["todo_id"]] += 1
                self.again += one["already"]


async def drain(url, ports, todos, workers):
    """Two servers, one killed when a third is done; what was done, and how long it took."""
    from tenure.board import endpoints, shapes
    from tenure.board import todos as cases

    board = open_hall(url)
    vended = board.write(endpoints.vend, board.alice, name="drained")
    for first in range(0, todos, 100):
        news = [shapes.NewTodo(f"todo {n}") for n in range(first, min(first + 100, todos))]
        board.write(cases.create_many, board.alice, vended.endpoint, news)
    servers = [await BoardServer(url, port).start() for port in ports]
    crew = Crew(ports, vended.credential.reveal())
    try:
        began = time.monotonic()
        working = [asyncio.create_task(crew.work(place)) for place in range(workers)]
        while crew.done.total() < todos // 3 and not any(one.done() for one in working):  # noqa: ASYNC110 - counts only
            await asyncio.sleep(0.01)
        await servers[0].end(signal.SIGKILL)
        await asyncio.gather(*working)
        took = time.monotonic() - began
    finally:
        await crew.http.aclose()
        for server in servers:
            if server.process.poll() is None:
                await server.end()
    states = Counter(row.state for row in board.rows("SELECT state FROM todos"))
    ends = Counter((row.todo, row.end) for row in board.rows('SELECT todo, "end" FROM claims'))
    board.database.shut()
    return crew, states, ends, took


def held(crew, states, ends, todos):
    assert states == {"done": todos}
    assert len(crew.done) == todos
    completed = {todo: times for (todo, end), times in ends.items() if end == "completed"}
    assert completed == dict.fromkeys(crew.done, 1)
    assert ends.total() == todos  # no claim was lost: none had to lapse and be done again


async def test_two_servers_drain_a_board_and_the_killed_one_loses_nothing(url, free_ports):
    """A share of the long drain below: 16 workers and 600 todos."""
    crew, states, ends, took = await drain(url, free_ports, 600, 16)
    print(f"600 todos in {took:.1f} s; unanswered {crew.unanswered}, answered again {crew.again}")
    held(crew, states, ends, 600)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_two_servers_drain_twenty_thousand_todos_with_64_workers(url, free_ports):
    """Each todo is done once, though a server is killed with calls under way."""
    crew, states, ends, took = await drain(url, free_ports, 20_000, 64)
    rate = 20_000 / took
    print(f"20,000 todos in {took:.1f} s, {rate:.0f}/s; unanswered {crew.unanswered}, answered again {crew.again}")
    held(crew, states, ends, 20_000)


@pytest.fixture
def free_ports():
    """Two ports that were free a moment ago."""
    from tenure.serve import listen

    with listen("127.0.0.1", 0) as one, listen("127.0.0.1", 0) as other:
        return [one.getsockname()[1], other.getsockname()[1]]
