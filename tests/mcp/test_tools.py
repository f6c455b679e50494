"""Tools as a credential sees and calls them: what is granted, in strict schemas, with answers a model can use."""

import json
import re

import pytest
from mcp.shared.exceptions import MCPError

from tenure.board import endpoints, todos
from tenure.board.shapes import NewTodo
from tenure.rules.endpoints import ALL, DRAIN, OWN, PRODUCE, SELF


def vend(board, human=None, **options):
    return board.write(endpoints.vend, human or board.alice, **{"name": "w", **options})


def put(board, vended, title="t", **fields):
    """A todo on the endpoint, put there by its human."""
    return board.write(todos.create, board.alice, vended.endpoint, NewTodo(title, **fields)).todo.summary.id


async def names_of(client):
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("verbs", [DRAIN, PRODUCE, OWN, ALL, ("claim",), ()])
async def test_case_b57_the_list_equals_the_grants(board, served, generation, verbs):
    """What is listed may be called, what is not is an unknown tool; self verbs are always there."""
    vended = vend(board, verbs=verbs)
    async with served.client(vended, generation) as client:
        listed = await names_of(client)
        assert listed == [*verbs, *SELF]
        for name in (*ALL, *SELF):
            if name in listed:
                await client.call_tool(name, {})  # a refusal of its arguments at most
            else:
                with pytest.raises(MCPError) as refused:
                    await client.call_tool(name, {})
                assert (refused.value.code, refused.value.message) == (-32602, f"Unknown tool: {name}")
        instructions = client.instructions
    named = set(re.findall(r"[a-z_]+", instructions)) & {*ALL} - {"claim"}  # which is also what one holds
    assert named <= {*verbs}, "the instructions speak of what may not be called"
    assert ("lease_token" in instructions) == any(verb in verbs for verb in ("claim", "claim_next"))


async def test_b27_an_ungranted_tool_answers_as_an_unknown_one(board, served, generation):
    """Code and sentence are the same but for the name that was asked for."""
    async with served.client(vend(board, verbs=("claim",)), generation) as client:
        for name in ("complete", "no_such_verb", "", "Claim", "x" * 128):
            with pytest.raises(MCPError) as refused:
                await client.call_tool(name, {})
            assert refused.value.code == -32602
            assert refused.value.message == f"Unknown tool: {name}"
            assert refused.value.data is None


@pytest.mark.parametrize(
    "wrong",
    [
        ("claim_next", {"lease_ttl": 60}, "lease_ttl", "lease_ttl_seconds"),
        ("claim_next", {"endpoint": "other-2345"}, "endpoint", None),
        ("claim", {"todo_id": "td_1", "lease_seconds": 60}, "lease_seconds", "lease_ttl_seconds"),
        ("heartbeat", {"todo_id": "a", "lease_token": "b", "ttl": 1}, "ttl", "lease_ttl_seconds"),
        ("set_default_lease", {"default_lease_ttl_seconds": 60, "endpoint": "x"}, "endpoint", None),
        ("get_default_lease", {"endpoint": "x"}, "endpoint", None),
        ("whoami", {"who": 1}, "who", None),
    ],
)
async def test_case_b52_an_unknown_key_is_refused_with_the_right_name(board, served, generation, wrong):
    """`invalid_argument` names the key and the one that was meant; nothing happens."""
    verb, arguments, named, meant = wrong
    vended = vend(board)
    put(board, vended)
    async with served.client(vended, generation) as client:
        answer = await client.call_tool(verb, arguments)
        assert answer.is_error
        told = answer.structured_content
        assert told["code"] == "invalid_argument"
        assert told["field"] == named
        assert told.get("did_you_mean") == meant
        assert (await client.call_tool("list_todos", {"state": "claimed"})).structured_content["todos"] == []
    assert board.read(endpoints.get, board.alice, vended.endpoint.slug).default_lease_ttl_seconds is None


@pytest.mark.parametrize("verb", ["claim", "claim_next", "heartbeat"])
async def test_b9_a_lease_is_a_whole_number_of_1_or_more(board, served, generation, verb):
    """Anything else is `invalid_argument`, and nothing is claimed or extended."""
    vended = vend(board)
    todo = put(board, vended)
    arguments = {"claim": {"todo_id": todo}, "claim_next": {}, "heartbeat": {"todo_id": todo, "lease_token": "tl_x"}}
    async with served.client(vended, generation) as client:
        for value in (0, -1, 1.5, 60.0, "60", True, [60], {}):
            answer = await client.call_tool(verb, {**arguments[verb], "lease_ttl_seconds": value})
            assert answer.is_error, value
            assert answer.structured_content["code"] == "invalid_argument"
            assert answer.structured_content["field"] == "lease_ttl_seconds"
    assert board.read(todos.get, board.alice, todo).summary.state == "pending"


async def test_b9_the_schema_of_a_lease_says_integer_minimum_1_and_no_maximum(board, served):
    """What is clamped is no error, so the schema doesn't forbid it; its text states the cap alone (B29)."""
    async with served.client(vend(board, default_lease=1234)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for verb in ("claim", "claim_next", "heartbeat"):
        lease = tools[verb].input_schema["properties"]["lease_ttl_seconds"]
        assert (lease["type"], lease["minimum"]) == ("integer", 1)
        assert "maximum" not in lease
        assert "86400" in lease["description"]
        assert "1234" not in lease["description"]


async def test_b28_every_schema_forbids_extra_keys(board, served, generation):
    """The schema says so, in both generations, for all tools there are."""
    async with served.client(vend(board), generation) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == {*ALL, *SELF}
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    assert all(tool.input_schema["type"] == "object" for tool in tools)


async def test_b34_answers_and_refusals_are_structured_and_the_same_json_is_the_text(board, served, generation):
    """A refusal has code and message; hosts that show only text lose nothing."""
    vended = vend(board)
    put(board, vended, "Grüße ✓")
    async with served.client(vended, generation) as client:
        good = await client.call_tool("claim_next", {})
        bad = await client.call_tool("claim", {"todo_id": "td_unknown"})
    for answer, is_error in ((good, False), (bad, True)):
        assert answer.is_error is is_error
        (text,) = answer.content
        assert json.loads(text.text) == answer.structured_content
    assert bad.structured_content["code"] == "not_found"
    assert bad.structured_content["message"]
    assert good.structured_content["claims"][0]["todo"]["title"] == "Grüße ✓"


async def test_b26_anothers_todo_answers_as_one_that_never_was(board, served, generation):
    """By every verb that takes a todo's id."""
    mine, bobs = vend(board), vend(board, board.bob, name="b")
    todo = board.write(todos.create, board.bob, bobs.endpoint, NewTodo("secret")).todo.summary.id
    more = {
        "get_todo": {},
        "claim": {},
        "heartbeat": {"lease_token": "tl_x"},
        "check_claim": {"lease_token": "tl_x"},
        "complete": {"lease_token": "tl_x"},
        "fail": {"lease_token": "tl_x", "reason": "r"},
        "release": {"lease_token": "tl_x"},
        "add_note": {"text": "n"},
    }
    async with served.client(mine, generation) as client:
        for verb, arguments in more.items():
            others = await client.call_tool(verb, {"todo_id": todo, **arguments})
            unknown = await client.call_tool(verb, {"todo_id": todo[:-1] + "zz"[0], **arguments})
            assert others.is_error
            assert others.structured_content == unknown.structured_content, verb


async def test_annotations_say_what_reads_repeats_and_destroys(board, served, generation):
    """A host may let reads pass unasked, and ask before what can't be taken back."""
    async with served.client(vend(board), generation) as client:
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    reads = {name for name, hint in hints.items() if hint.read_only_hint}
    assert reads == {
        "list_todos", "get_todo", "check_claim", "get_default_lease", "list_webhooks", "whoami", "presence",
    }  # fmt: skip
    assert not any(hints[name].destructive_hint for name in ("claim", "claim_next", "heartbeat", "release", *reads))
    assert all(hints[name].destructive_hint for name in ("complete", "fail", "cancel_todo", "delete_webhook"))
    assert all(hints[name].idempotent_hint for name in ("heartbeat", "complete", "fail", "release"))
    assert not any(hints[name].idempotent_hint for name in ("claim", "claim_next", "create_todo", "add_note"))
    assert not any(hint.open_world_hint for hint in hints.values())


async def test_case_b56_a_list_is_private_and_stale_at_once(board, served):
    """So that no cache gives one endpoint's list to another, nor an old one to the same."""
    vended = vend(board)
    async with served.client(vended, "modern") as client:
        listed = await client.list_tools()
        assert (listed.ttl_ms, listed.cache_scope) == (0, "private")
        discovered = await client.session.discover()
        assert (discovered.ttl_ms, discovered.cache_scope) == (0, "private")


async def test_sizes_a_drain_endpoint_costs_a_model_little(board, served, generation):
    """Tools take 2,500 tokens of 4 characters at most, instructions 400, a list of todos 4 KB."""
    vended = vend(board, verbs=DRAIN, queues=("inbox", "reviews"), default_lease=86400)
    for number in range(30):
        put(board, vended, f"{number} {'A title that is as long as a title may be ' * 5}"[:200])
    async with served.client(vended, generation) as client:
        tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]
        size = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False))
        listed = await client.call_tool("list_todos", {})
        instructions = client.instructions
    assert len(tools) == len(DRAIN) + len(SELF)
    assert size <= 2500 * 4, size
    assert len(instructions) <= 400 * 4
    assert len(listed.content[0].text.encode()) <= 4096, len(listed.content[0].text.encode())
    assert len(listed.structured_content["todos"]) == 20
    assert all(len(todo["title"]) <= 80 for todo in listed.structured_content["todos"])


async def test_b43_workers_calls_are_counted_and_settings_apart(board, served, generation):
    """Past the burst a call is refused with when to come back; set_default_lease has a bucket of its own (B31)."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        answers = [await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": 60}) for _ in range(12)]
        refused = [one.structured_content for one in answers if one.is_error]
        assert 1 <= len(refused) <= 2
        assert refused[0]["code"] == "rate_limited"
        assert refused[0]["retry_after_seconds"] >= 1
        assert not (await client.call_tool("get_default_lease", {})).is_error
