"""ADR-0043 over MCP: every sentence of it that agents can notice, in both generations of the protocol."""

from datetime import datetime

import pytest
from mcp.shared.exceptions import MCPError
from mcp_hall import listening

from tenure.board import endpoints, friends, humans, todos
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo
from tenure.rules.endpoints import ALL, DRAIN, GRANTABLE, OWN

LEASED = ("claim", "claim_next", "heartbeat")


def vend(board, human=None, **options):
    return board.write(endpoints.vend, human or board.alice, **{"name": "worker", **options})


def put(board, endpoint, human=None):
    return board.write(todos.create, human or board.alice, endpoint, NewTodo("work")).todo.summary.id


def edit(board, vended, seconds):
    board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, seconds)


async def ask(client, verb, **arguments):
    """The structured answer of a call that is not refused; absent arguments are left out."""
    given = {name: value for name, value in arguments.items() if value is not None}
    answer = await client.call_tool(verb, given)
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


async def take(board, client, endpoint, verb="claim_next", **arguments):
    """Put a todo and claim it, by either verb; the claim."""
    todo = put(board, endpoint)
    more = {"todo_id": todo} if verb == "claim" else {}
    (claim,) = (await ask(client, verb, **more, **arguments))["claims"]
    assert claim["todo"]["id"] == todo
    return claim


async def leased(board, client, endpoint, verb, call):
    """The lease that a verb grants or extends: its seconds, its source, whether it was clamped."""
    if verb != "heartbeat":
        claim = await take(board, client, endpoint, verb, lease_ttl_seconds=call)
        return claim["lease_ttl_seconds"], claim["lease_ttl_source"], claim["clamped"]
    claim = await take(board, client, endpoint, lease_ttl_seconds=1)
    beat = await beaten(client, claim, call)
    return beat["lease_ttl_seconds"], beat["lease_ttl_source"], beat["clamped"]


async def beaten(client, claim, call=None):
    return await ask(
        client, "heartbeat", todo_id=claim["todo"]["id"], lease_token=claim["lease_token"], lease_ttl_seconds=call
    )


def seconds_between(answer, until="lease_expires_at", since="server_time"):
    return (datetime.fromisoformat(answer[until]) - datetime.fromisoformat(answer[since])).total_seconds()


@pytest.mark.parametrize("verb", LEASED)
async def test_adr_0043_precedence_call_over_endpoint_over_server(board, served, generation, verb):
    """An explicit value wins, clamped to 86400; otherwise the endpoint's default, otherwise the server's 300."""
    unset, set_ = vend(board), vend(board, name="long", default_lease=1800)
    for vended, bare in ((unset, (300, "server", False)), (set_, (1800, "endpoint", False))):
        async with served.client(vended, generation) as client:
            endpoint = vended.endpoint
            assert await leased(board, client, endpoint, verb, None) == bare
            assert await leased(board, client, endpoint, verb, 45) == (45, "call", False)
            assert await leased(board, client, endpoint, verb, 86400) == (86400, "call", False)
            assert await leased(board, client, endpoint, verb, 86401) == (86400, "call", True)


async def test_adr_0043_the_answer_says_what_was_granted(board, served, generation):
    """Expiry, length, source and the server's time stand in claims and heartbeats, and agree."""
    vended = vend(board, default_lease=900)
    async with served.client(vended, generation) as client:
        put(board, vended.endpoint)
        answer = await ask(client, "claim_next")
        (claim,) = answer["claims"]
        assert seconds_between({**claim, **answer}) == claim["lease_ttl_seconds"] == 900
        board.clock.turn(seconds=100)
        beat = await beaten(client, claim)
        assert beat["extended"]
        assert seconds_between(beat) == beat["lease_ttl_seconds"] == 900


async def test_adr_0043_a_bare_heartbeat_never_cuts_a_long_lease_short(board, served, generation):
    """An hour by call and a bare heartbeat: the hour stays, and the answer says that it was not extended."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        claim = await take(board, client, vended.endpoint, lease_ttl_seconds=3600)
        beat = await beaten(client, claim)
        assert beat["lease_expires_at"] == claim["lease_expires_at"]
        assert beat["extended"] is False


async def test_adr_0043_an_edit_applies_to_the_next_call_on_a_live_session(board, served, generation):
    """The next claim and the next bare heartbeat have it; the lease already granted keeps its expiry."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        before = await take(board, client, vended.endpoint)
        edit(board, vended, 7200)
        kept = await ask(client, "check_claim", todo_id=before["todo"]["id"], lease_token=before["lease_token"])
        assert kept["lease_expires_at"] == before["lease_expires_at"]
        assert (await take(board, client, vended.endpoint))["lease_ttl_seconds"] == 7200
        assert (await beaten(client, before))["lease_ttl_seconds"] == 7200
        edit(board, vended, None)
        after = await take(board, client, vended.endpoint)
        assert (after["lease_ttl_seconds"], after["lease_ttl_source"]) == (300, "server")


@pytest.mark.parametrize(
    ("default", "words"),
    [(None, "300 seconds (the server default)"), (2700, "2700 seconds (this endpoint's default)")],
    ids=["unconfigured", "configured"],
)
async def test_adr_0043_instructions_and_descriptions_state_the_effective_default(
    board, served, generation, default, words
):
    """The instructions and the three descriptions say the number, and whose it is; no other description has one."""
    vended = vend(board, default_lease=default)
    async with served.client(vended, generation) as client:
        assert words in client.instructions
        described = {tool.name: tool.description for tool in (await client.list_tools()).tools}
    number, _, whose = words.partition(" seconds ")
    for verb, text in described.items():
        assert ((number in text) and (whose in text)) is (verb in LEASED), (verb, text)


async def test_adr_0043_an_edit_is_told_to_another_live_session_and_to_none_of_another_endpoint(
    board, pair, generation
):
    """A session of the same endpoint, on the other server, gets list_changed and reads the new number."""
    one, two = pair
    mine, other = vend(board), vend(board, name="other")
    async with (
        one.client(mine, generation) as editor,
        listening(two, mine, generation) as session,
        listening(two, other, generation) as stranger,
    ):
        instructions = session.client.instructions
        assert await session.silent()
        await ask(editor, "set_default_lease", default_lease_ttl_seconds=4321)
        await session.told()
        for verb in LEASED:
            assert "4321 seconds" in await session.description(verb)
        assert await stranger.silent()
        assert session.client.instructions == instructions  # fixed when the session began
    async with two.client(mine, generation) as fresh:
        assert "4321 seconds" in fresh.instructions


async def test_adr_0043_get_default_lease_reads_the_effective_default_and_the_bounds(board, served, generation):
    """For an unconfigured endpoint the server's, for a configured one its own."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        for default, effective, source in ((None, 300, "server"), (60, 60, "endpoint"), (86400, 86400, "endpoint")):
            edit(board, vended, default)
            assert await ask(client, "get_default_lease") == {
                "default_lease_ttl_seconds": default,
                "effective_lease_ttl_seconds": effective,
                "effective_lease_ttl_source": source,
                "minimum": 60,
                "maximum": 86400,
            }


async def test_adr_0043_set_default_lease_touches_the_caller_alone(board, served, generation):
    """Every other endpoint, of the same human or another, keeps its own."""
    mine, sister, bobs = vend(board), vend(board, name="sister", default_lease=120), vend(board, board.bob)
    async with served.client(mine, generation) as client:
        told = await ask(client, "set_default_lease", default_lease_ttl_seconds=600)
    assert (told["effective_lease_ttl_seconds"], told["effective_lease_ttl_source"]) == (600, "endpoint")

    def default_of(human, vended):
        return board.read(endpoints.get, human, vended.endpoint.slug).default_lease_ttl_seconds

    assert default_of(board.alice, mine) == 600
    assert default_of(board.alice, sister) == 120
    assert default_of(board.bob, bobs) is None


async def test_adr_0043_set_default_lease_refuses_an_endpoint_argument_and_any_other_key(board, served, generation):
    """It can't be aimed at another; without its one key it is refused as well, and nothing changes."""
    mine, other = vend(board), vend(board, name="other")
    async with served.client(mine, generation) as client:
        for more in ({"endpoint": other.endpoint.slug}, {"endpoint_id": other.endpoint.id}, {"lease_ttl_seconds": 60}):
            answer = await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": 600, **more})
            assert answer.is_error
            assert answer.structured_content["code"] == "invalid_argument"
            assert answer.structured_content["field"] in more
        missing = await client.call_tool("set_default_lease", {})
        assert missing.structured_content["field"] == "default_lease_ttl_seconds"
    for vended in (mine, other):
        assert board.read(endpoints.get, board.alice, vended.endpoint.slug).default_lease_ttl_seconds is None


async def test_adr_0043_bounds_of_set_default_lease_are_refused_outside_and_never_clamped(board, served, generation):
    """59 and 86401 are refused like every wrong type, 60 and 86400 are taken, null resets."""
    mine = vend(board, default_lease=777)
    async with served.client(mine, generation) as client:
        for value in (59, 86401, 0, -1, 60.0, 60.5, "60", True, []):
            answer = await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": value})
            board.clock.turn(seconds=2)  # its bucket fills by one a second
            assert answer.is_error, value
            assert answer.structured_content["code"] == "invalid_argument"
            assert (answer.structured_content["minimum"], answer.structured_content["maximum"]) == (60, 86400)
            assert (await ask(client, "get_default_lease"))["default_lease_ttl_seconds"] == 777
        for value in (60, 86400):
            told = await ask(client, "set_default_lease", default_lease_ttl_seconds=value)
            assert told["default_lease_ttl_seconds"] == value
        reset = await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": None})
        assert reset.structured_content["effective_lease_ttl_source"] == "server"


async def test_adr_0043_the_floor_holds_for_the_default_only(board, served, generation):
    """A worker may pass a shorter lease on one call."""
    vended = vend(board, default_lease=60)
    async with served.client(vended, generation) as client:
        assert (await take(board, client, vended.endpoint, lease_ttl_seconds=1))["lease_ttl_seconds"] == 1


async def test_adr_0043_the_two_verbs_are_allowlisted_and_granted_by_default(board, served, generation):
    """They stand beside the webhook verbs; a human who wants the lease to be theirs alone withholds the write."""
    assert {"get_default_lease", "set_default_lease", "create_webhook"} <= set(OWN) <= set(ALL)
    basics, without = vend(board), vend(board, name="without", verbs=(*DRAIN, "get_default_lease"))
    async with served.client(basics, generation) as client:
        assert not (await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": 60})).is_error
    async with served.client(without, generation) as client:
        assert not (await client.call_tool("get_default_lease", {})).is_error
        with pytest.raises(MCPError) as refused:
            await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": 60})
        assert refused.value.message == "Unknown tool: set_default_lease"


async def test_adr_0043_an_endpoint_vended_without_the_verbs_has_the_default_all_the_same(board, served, generation):
    """Its human sets it, and it applies, is described and is granted."""
    old = vend(board, verbs=DRAIN)
    edit(board, old, 1234)
    async with served.client(old, generation) as client:
        assert "1234 seconds (this endpoint's default)" in client.instructions
        assert (await take(board, client, old.endpoint))["lease_ttl_seconds"] == 1234


async def test_adr_0043_the_verbs_are_not_grantable_to_a_friend_whose_claims_have_the_approvers_default(
    board, served, generation
):
    """A friend's endpoint is on the approver's agent: its settings are the approver's."""
    assert not set(OWN) & set(GRANTABLE)
    code = board.read(humans.friend_code, board.alice)
    with pytest.raises(Refused, match="set_default_lease"):
        board.write(
            friends.request, board.bob, code=code, queues=("inbox",), verbs=("claim", "set_default_lease"), reason="r"
        )
    asked = board.write(friends.request, board.bob, code=code, queues=("inbox",), verbs=DRAIN, reason="r")
    (seen,) = [one for one in board.read(friends.list_all, board.alice) if one.state == "requested"]
    approved = board.write(friends.approve, board.alice, seen.id, agent="helpers")
    collected = board.write(friends.collect, board.bob, asked.id)
    board.write(endpoints.edit_lease, board.alice, approved.slug, 5400)
    endpoint = board.read(endpoints.get, board.alice, approved.slug)
    friend = endpoints.Vended(endpoint, collected.credential)
    async with served.client(friend, generation) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert not listed & set(OWN)
        assert "5400 seconds (this endpoint's default)" in client.instructions
        assert (await take(board, client, endpoint))["lease_ttl_seconds"] == 5400


async def test_adr_0043_board_claims_keep_their_fixed_five_minutes(board, served, generation):
    """They are a human's, whatever the endpoint's default; no worker can extend or end them."""
    vended = vend(board, default_lease=7200)
    todo = put(board, vended.endpoint)
    claimed = board.write(todos.board_claim, board.alice, todo)
    assert claimed.lease.ttl_seconds == 300
    async with served.client(vended, generation) as client:
        for verb in ("heartbeat", "complete", "release"):
            answer = await client.call_tool(verb, {"todo_id": todo, "lease_token": "tl_" + "0" * 43})
            assert answer.structured_content["code"] == "conflict"
        assert (await ask(client, "claim_next"))["empty"]
    assert board.read(todos.get, board.alice, todo).summary.expires == claimed.lease.expires
