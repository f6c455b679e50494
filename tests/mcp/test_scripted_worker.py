"""A worker that knows nothing but an endpoint's address and credential finds out the rest, and drains its todos."""

from mcp_hall import client_of

from tenure.board import endpoints, reaper, todos
from tenure.board.shapes import Filters, NewTodo

TODOS = 10


class ScriptedWorker:
    """It reads instructions, tools and answers, and nothing else; todos are done in the order they come."""

    def __init__(self, client):
        self.client, self.done, self.conflicts = client, [], []

    async def begin(self):
        """What the server says of itself must name all that it takes to work."""
        assert "claim_next" in self.client.instructions
        assert "lease_token" in self.client.instructions
        self.tools = {tool.name: tool.input_schema for tool in (await self.client.list_tools()).tools}

    async def call(self, tool, **given):
        """Call a tool with those of the facts that its schema asks for."""
        schema = self.tools[tool]
        missing = set(schema.get("required", [])) - set(given)
        assert not missing, f"{tool} needs {missing}, which no answer has told"
        asked = {name: value for name, value in given.items() if name in schema["properties"]}
        return await self.client.call_tool(tool, asked)

    async def work(self, interruption=None):
        """Claim until there is nothing; `interruption` happens in the middle of one of them."""
        while claims := (await self.call("claim_next")).structured_content["claims"]:
            (claim,) = claims
            facts = {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"]}
            if interruption is not None and interruption.concerns(claim["todo"]["title"]):
                interruption.happen(claim)
            else:
                assert not (await self.call("heartbeat", **facts)).is_error
            result = {"read": claim["todo"]["payload"]}
            answer = await self.call("complete", **facts, result=result)
            if answer.is_error:
                assert answer.structured_content["code"] == "conflict"
                self.conflicts.append((claim["todo"]["title"], answer.structured_content["reason"]))
            else:
                self.done.append(claim["todo"]["title"])


class Interruption:
    """Two of the todos go wrong under the worker: one's lease lapses and is requeued, one is taken by its human."""

    def __init__(self, board):
        self._board, self._left = board, {"todo 3": self._lapse, "todo 6": self._take}

    def concerns(self, title):
        return title in self._left

    def happen(self, claim):
        self._left.pop(claim["todo"]["title"])(claim)

    def _lapse(self, claim):
        self._board.clock.turn(seconds=claim["lease_ttl_seconds"] + 1)
        self._board.write(reaper.lapse)

    def _take(self, claim):
        self._board.write(todos.board_claim, self._board.alice, claim["todo"]["id"])
        self._board.write(todos.board_release, self._board.alice, claim["todo"]["id"], "another go")


async def test_a_worker_that_knows_only_address_and_credential_drains_ten_todos(board, served, generation):
    """One lapse and one conflict among them: it is told each time, goes on, and every todo ends done, once."""
    vended = board.write(endpoints.vend, board.alice, name="worker", default_lease=600)
    for number in range(TODOS):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"todo {number}", payload={"n": number}))
    url, credential = served.url(vended.endpoint.slug), vended.credential.reveal()
    async with client_of(url, credential, generation) as client:
        worker = ScriptedWorker(client)
        await worker.begin()
        await worker.work(Interruption(board))
    assert worker.conflicts == [("todo 3", "lapsed"), ("todo 6", "taken_by_operator")]
    assert sorted(worker.done) == sorted(f"todo {number}" for number in range(TODOS))
    ended = board.read(todos.list_page, board.alice, Filters(), None, 100).items
    assert {one.shown for one in ended} == {"done"}
    detail = {one.title: board.read(todos.get, board.alice, one.id) for one in ended}
    assert [one.end for one in detail["todo 3"].attempts] == ["lapsed", "completed"]
    assert detail["todo 3"].attempts[0].late["result"] == {"read": {"n": 3}}
    assert detail["todo 0"].result == {"read": {"n": 0}}
