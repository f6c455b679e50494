"""Cases from the field that need more than one call: who forgot what it holds, who is warned, who never listens."""

import json

import pytest
from mcp_hall import listening

from tenure.board import endpoints, todos
from tenure.board.shapes import NewTodo


def vend(board, **options):
    return board.write(endpoints.vend, board.alice, **{"name": "worker", **options})


def put(board, vended, count=1):
    for number in range(count):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"todo {number}"))


async def ask(client, verb, **arguments):
    answer = await client.call_tool(verb, arguments)
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


async def test_case_b54_three_clients_one_that_hears_one_that_ignores_and_one_of_the_new_generation(board, served):
    """Whoever hears nothing reads the right number at its next list, and is granted it even if it never reads."""
    vended = vend(board)
    put(board, vended, 3)
    async with (
        listening(served, vended, "handshake") as hears,
        served.client(vended, "handshake") as ignores,
        served.client(vended, "modern") as never_listens,
    ):
        for client in (ignores, never_listens):
            await client.list_tools()
        board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, 4000)
        await hears.told()
        for client in (hears.client, ignores, never_listens):
            (claim,) = (await ask(client, "claim_next"))["claims"]
            assert (claim["lease_ttl_seconds"], claim["lease_ttl_source"]) == (4000, "endpoint")
            tools = {tool.name: tool for tool in (await client.list_tools(cache_mode="refresh")).tools}
            assert "4000 seconds" in tools["claim"].description


async def test_case_b61_a_new_session_finds_the_claims_that_the_last_one_forgot(board, served, generation):
    """By the worker's label, or all that the endpoint holds."""
    vended = vend(board)
    put(board, vended, 3)
    async with served.client(vended, generation) as client:
        mine = (await ask(client, "claim_next", worker="w-1", max=2))["claims"]
        await ask(client, "claim_next", worker="w-2")
    async with served.client(vended, generation) as client:
        found = (await ask(client, "list_todos", claimed_by="w-1"))["todos"]
        assert {one["id"] for one in found} == {one["todo"]["id"] for one in mine}
        assert len((await ask(client, "list_todos", mine=True))["todos"]) == 3
        assert all(one["lease_expires_at"] for one in found)


async def test_case_b62_a_warning_names_the_todo_whose_lease_nears_its_end(board, served, generation):
    """Of two claims the one near its end, in every answer to its worker, and to nobody else (B18)."""
    vended = vend(board)
    put(board, vended, 3)
    async with served.client(vended, generation) as client:
        (short,) = (await ask(client, "claim_next", worker="w", lease_ttl_seconds=100))["claims"]
        (long,) = (await ask(client, "claim_next", worker="w", lease_ttl_seconds=1000))["claims"]
        assert "warnings" not in await ask(client, "list_todos", worker="w")
        board.clock.turn(seconds=85)
        held = {"todo_id": long["todo"]["id"], "lease_token": long["lease_token"]}
        calls = [
            ("list_todos", {"worker": "w"}),
            ("get_todo", {"todo_id": long["todo"]["id"], "worker": "w"}),
            ("claim_next", {"worker": "w", "queues": ["inbox"]}),
            ("heartbeat", {**held, "worker": "w"}),
            ("check_claim", {**held, "worker": "w"}),
            ("add_note", {"todo_id": long["todo"]["id"], "text": "n", "worker": "w"}),
            ("create_todo", {"title": "t", "worker": "w"}),
            ("check_claim", {"todo_id": short["todo"]["id"], "lease_token": short["lease_token"]}),
        ]
        for verb, arguments in calls:
            (warning,) = (await ask(client, verb, **arguments))["warnings"]
            assert (warning["code"], warning["todo_id"]) == ("lease_ending", short["todo"]["id"]), verb
            assert 0 < warning["seconds_left"] <= 15
        for verb, arguments in (("list_todos", {"worker": "another"}), ("list_todos", {})):
            assert "warnings" not in await ask(client, verb, **arguments)


async def test_case_b47_a_claim_beyond_the_endpoints_end_is_warned_of(board, served, generation):
    """The answer says when the endpoint ends, and that the lease passes it (B24)."""
    now = board.read(lambda tx, board: tx.now())
    vended = vend(board, expires=now + 2 * 3_600_000, default_lease=86_400)
    put(board, vended)
    async with served.client(vended, generation) as client:
        claimed = await ask(client, "claim_next")
        assert claimed["endpoint_expires_at"] is not None
        codes = {warning["code"] for warning in claimed["warnings"]}
        assert "lease_beyond_endpoint" in codes


async def test_b36_a_worker_clocks_in_and_out_and_sees_why(board, served, generation):
    """Override, else shift, else in; an hour by default, eight at most; only the human sets the shift (B37)."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        assert (await ask(client, "presence"))["presence"] == {"value": "in", "source": "default", "until_at": None}
        out = (await ask(client, "clock_out"))["presence"]
        assert (out["value"], out["source"]) == ("out", "override")
        back = await ask(client, "clock_in")
        assert back["presence"]["value"] == "in"
        hour = await ask(client, "clock_in", **{"for": 8 * 3600})
        assert hour["presence"]["until_at"] > back["presence"]["until_at"]
        refused = await client.call_tool("clock_in", {"for": 8 * 3600 + 1})
        assert refused.structured_content["field"] == "for"
        board.write(endpoints.set_shift, board.alice, vended.endpoint.slug, "TZ=Europe/Berlin Mon-Fri 09:00-18:00")
        told = await ask(client, "presence")
        assert told["presence"]["source"] == "shift"
        assert told["shift"] == "TZ=Europe/Berlin Mon-Fri 09:00-18:00"


async def test_b38a_an_endpoint_makes_and_ends_its_own_webhooks(board, served, generation):
    """The secret is in the answer that makes it and in no other; the ceiling holds."""
    vended = vend(board, webhook_ceiling=1)
    async with served.client(vended, generation) as client:
        made = await ask(client, "create_webhook", name="forge", queue="inbox")
        assert made["secret"].startswith("whsec_")
        listed = await ask(client, "list_webhooks")
        assert [one["id"] for one in listed["webhooks"]] == [made["webhook"]["id"]]
        assert made["secret"] not in json.dumps(listed)
        beyond = await client.call_tool("create_webhook", {"name": "second"})
        assert beyond.structured_content["code"] == "conflict"
        again = await ask(client, "rotate_webhook", webhook_id=made["webhook"]["id"])
        assert again["secret"] != made["secret"]
        await ask(client, "delete_webhook", webhook_id=made["webhook"]["id"])
        assert (await ask(client, "list_webhooks"))["webhooks"] == []


async def test_b12a_a_repeated_request_id_gets_the_same_claim_again(board, served, generation):
    """The same token too; other arguments are a conflict, and so is the id once its claim has ended."""
    vended = vend(board)
    put(board, vended, 2)
    request = {"request_id": "0123456789abcdef"}
    async with served.client(vended, generation) as client:
        (first,) = (await ask(client, "claim_next", **request))["claims"]
        repeated = await ask(client, "claim_next", **request)
        assert repeated["repeated"] is True
        assert repeated["claims"][0]["lease_token"] == first["lease_token"]
        other = await client.call_tool("claim_next", {**request, "max": 2})
        assert other.structured_content["reason"] == "request_id_reused"
        await ask(client, "complete", todo_id=first["todo"]["id"], lease_token=first["lease_token"])
        closed = await client.call_tool("claim_next", request)
        assert closed.structured_content["code"] == "conflict"


@pytest.mark.parametrize("word", ["data", "not instructions"])
async def test_b35_words_for_agents_say_that_what_todos_hold_is_no_instruction(board, served, generation, word):
    """In the instructions, and beside the verbs that show it."""
    async with served.client(vend(board), generation) as client:
        described = {tool.name: tool.description for tool in (await client.list_tools()).tools}
        assert word in client.instructions
        assert all(word in described[verb] for verb in ("list_todos", "get_todo"))
