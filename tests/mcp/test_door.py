"""Who is let in, in which generation, and what everybody else is told."""

import json

import pytest
from mcp.shared.exceptions import MCPError
from mcp_hall import until

from tenure.board import endpoints
from tenure.board.board import BoardSettings
from tenure.board.secrets import draw

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}


def list_tools(request_id=1, **meta):
    """A `tools/list` of the new generation."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/list", "params": {"_meta": envelope}}


def facts(response):
    """All that a stranger could learn from an answer."""
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, headers, response.content


async def test_b27_whatever_opens_nothing_gets_one_401_the_same_bytes(board, served):
    """No credential, another's slug, an unknown slug, a revoked or expired credential and nonsense look alike."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    bobs = board.write(endpoints.vend, board.bob, name="bobs")
    gone = board.write(endpoints.vend, board.alice, name="gone")
    board.write(endpoints.revoke, board.alice, gone.endpoint.slug)
    soon = board.write(endpoints.vend, board.alice, name="soon", expires=board.write(lambda tx, board: tx.now()) + 1000)
    board.clock.turn(seconds=2)

    def bearer(secret):
        return {"authorization": f"Bearer {secret}"}

    own = mine.credential.reveal()
    tries = [
        (mine.endpoint.slug, {}),
        (mine.endpoint.slug, {"authorization": "Bearer"}),
        (mine.endpoint.slug, {"authorization": f"Basic {own}"}),
        (mine.endpoint.slug, bearer(draw("endpoint").reveal())),
        (mine.endpoint.slug, bearer(draw("human").reveal())),
        (mine.endpoint.slug, bearer(own[:-1] + ("0" if own[-1] != "0" else "1"))),
        (mine.endpoint.slug, bearer("x" * 10_000)),
        (bobs.endpoint.slug, bearer(own)),
        ("nobody-2345", bearer(own)),
        (mine.endpoint.id, bearer(own)),
        ("%00", bearer(own)),
        ("a/b", bearer(own)),
        (gone.endpoint.slug, bearer(gone.credential.reveal())),
        (soon.endpoint.slug, bearer(soon.credential.reveal())),
    ]
    async with served.http() as http:
        for method in ("POST", "GET", "DELETE"):
            answers = [
                await http.request(method, f"/mcp/{slug}", headers=headers, json=INITIALIZE) for slug, headers in tries
            ]
            assert {facts(one)[0] for one in answers} == {401}
            first = facts(answers[0])
            assert all(facts(one) == first for one in answers), [facts(one) for one in answers]
            assert first[1]["www-authenticate"] == 'Bearer realm="tenure"'
    assert json.loads(first[2])["code"] == "unauthenticated"


async def test_b27_a_credential_that_opened_its_endpoint_before_gets_the_same_401_once_it_does_not(
    board, served, generation
):
    """Whatever is sent with it: a tool's call, a list, a message that is none, headers that do not agree."""
    headers = {"mcp-protocol-version": "2026-07-28"} if generation == "modern" else {}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "arguments": {}}}
    if generation == "modern":
        call["params"] |= list_tools()["params"]
    names = {"mcp-method": "tools/call", "mcp-name": "whoami"}
    bodies = [
        (call, names),
        (call, {"mcp-method": "tools/list", "mcp-name": "claim"}),
        (call, {**names, "accept": "text/plain"}),
        ({**call, "params": {**call["params"], "name": "no_such_tool"}}, {**names, "mcp-name": "no_such_tool"}),
        (list_tools(), {"mcp-method": "tools/list"}),
        ([], {}),
    ]
    async with served.http() as http:
        unknown = facts(await http.post("/mcp/nobody-2345", json=call))
    before = set()
    for number, (body, more) in enumerate(bodies):
        vended = board.write(endpoints.vend, board.alice, name=f"gone {number}")
        path = f"/mcp/{vended.endpoint.slug}"
        async with served.http(vended) as http:
            assert (await http.post(path, json=call, headers={**headers, **names})).status_code == 200
            before.add((await http.post(path, json=body, headers={**headers, **more})).status_code)
            board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
            assert facts(await http.post(path, json=body, headers={**headers, **more})) == unknown, body
    assert before >= {200, 400, 406}


async def test_b20_a_client_that_only_looks_at_its_tools_was_seen(board, served, generation):
    """Its first call shows on the endpoint's page, although nothing it asked for writes."""
    vended = board.write(endpoints.vend, board.alice, name="looker")
    async with served.client(vended, generation) as client:
        await client.list_tools()
        await until(lambda: board.read(endpoints.get, board.alice, vended.endpoint.slug).seen is not None)


async def test_b27_two_authorization_headers_are_none(board, served):
    """Which of two credentials counts would be for a proxy to choose: neither does."""
    vended = board.write(endpoints.vend, board.alice, name="mine")
    own = ("authorization", f"Bearer {vended.credential.reveal()}")
    async with served.http() as http:
        answer = await http.post(f"/mcp/{vended.endpoint.slug}", headers=[own, own], json=INITIALIZE)
    assert answer.status_code == 401


async def test_case_b41_a_session_id_carries_no_authority(board, served, generation):
    """A's session id with B's credential is B, and without a credential nobody."""
    a = board.write(endpoints.vend, board.alice, name="a", verbs=("claim",))
    b = board.write(endpoints.vend, board.bob, name="b", verbs=("release",))
    async with served.http() as http:
        opened = await http.post(
            f"/mcp/{a.endpoint.slug}",
            json=INITIALIZE,
            headers={"authorization": f"Bearer {a.credential.reveal()}"},
        )
        session = opened.headers["mcp-session-id"]
        headers = {"mcp-session-id": session} | (MODERN if generation == "modern" else {})
        as_b = {**headers, "authorization": f"Bearer {b.credential.reveal()}"}
        assert (await http.post(f"/mcp/{a.endpoint.slug}", json=list_tools(), headers=as_b)).status_code == 401
        assert (await http.post(f"/mcp/{a.endpoint.slug}", json=list_tools(), headers=headers)).status_code == 401
        own = await http.post(f"/mcp/{b.endpoint.slug}", json=list_tools(), headers=as_b)
        names = [tool["name"] for tool in own.json()["result"]["tools"]]
        assert "release" in names
        assert "claim" not in names


async def test_case_b44_a_session_that_was_opened_before_the_revoke_opens_no_stream_after_it(board, served):
    """Its id is no ticket: the credential is looked up as each stream begins."""
    vended = board.write(endpoints.vend, board.alice, name="mine")
    path = f"/mcp/{vended.endpoint.slug}"
    async with served.http(vended) as http:
        opened = await http.post(path, json=INITIALIZE)
        ticket = {"mcp-session-id": opened.headers["mcp-session-id"]}
        async with http.stream("GET", path, headers=ticket) as before:
            assert before.status_code == 200
        board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
        assert (await http.get(path, headers=ticket)).status_code == 401


async def test_case_b42_a_rotated_credential_lives_during_its_overlap(board, served, generation):
    """A session goes on with the old credential while it overlaps, and ends with it."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    async with served.client(vended, generation) as client:
        board.write(endpoints.rotate, board.alice, vended.endpoint.slug, 60)
        assert (await client.call_tool("whoami", {})).structured_content["endpoint"]["slug"] == vended.endpoint.slug
        board.clock.turn(seconds=61)
        with pytest.raises(MCPError):
            await client.call_tool("whoami", {})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 200),
    ],
)
async def test_b51_host_and_origin_are_checked_in_both_generations(board, served, generation, headers, status):
    """A page of another site that was pointed here by a name is refused before anything else."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    more = MODERN if generation == "modern" else {}
    body = list_tools() if generation == "modern" else INITIALIZE
    async with served.http(vended) as http:
        answer = await http.post(f"/mcp/{vended.endpoint.slug}", json=body, headers={**more, **headers})
        assert answer.status_code == status
        if status != 200:
            stream = await http.get(f"/mcp/{vended.endpoint.slug}", headers=headers)
            assert stream.status_code == status


async def test_an_endpoint_that_says_handshake_declines_the_new_generation(board, served):
    """Its clients fall back, and hear of edits then; the endpoint's word stands over the server's."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    board.write(endpoints.set_era, board.alice, vended.endpoint.slug, "handshake")
    call = {**list_tools(41), "method": "tools/call"}
    call["params"] |= {"name": "whoami", "arguments": {}}
    calls = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "whoami"}
    async with served.http(vended) as http:
        for body, headers in ((list_tools(41), MODERN), (call, calls), (call, calls)):
            answer = await http.post(f"/mcp/{vended.endpoint.slug}", json=body, headers=headers)
            assert answer.status_code == 400
            error = answer.json()
            assert error["id"] == 41
            assert error["error"]["code"] == -32022
            assert error["error"]["data"]["requested"] == "2026-07-28"
            assert "2025-11-25" in error["error"]["data"]["supported"]
            assert "2026-07-28" not in error["error"]["data"]["supported"]
    async with served.client(vended, "modern") as client:
        assert client.protocol_version == "2025-11-25"


async def test_an_endpoint_that_says_both_answers_the_new_generation_on_a_server_that_does_not(board, served):
    """The server's setting is only for endpoints that have none."""
    object.__setattr__(board, "settings", BoardSettings())
    vended = board.write(endpoints.vend, board.alice, name="w")
    async with served.client(vended, "modern") as client:
        assert client.protocol_version == "2025-11-25"
    board.write(endpoints.set_era, board.alice, vended.endpoint.slug, "both")
    async with served.client(vended, "modern") as client:
        assert client.protocol_version == "2026-07-28"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\u0000"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"x":' * 4000 + b"1" + b"}" * 4001,
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"id":1}',
        b"\xff\xfe",
    ],
)
async def test_what_is_no_message_is_refused_without_harm(board, served, generation, body):
    """Text that two readers may read in two ways, batches and nonsense are HTTP 400 and a JSON-RPC error."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    headers = {"content-type": "application/json"} | (MODERN if generation == "modern" else {})
    async with served.http(vended) as http:
        answer = await http.post(f"/mcp/{vended.endpoint.slug}", content=body, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] in (-32700, -32600, -32602)
        assert (await http.post(f"/mcp/{vended.endpoint.slug}", json=INITIALIZE)).status_code == 200


async def test_b43_a_body_of_4_mib_passes_and_one_byte_more_does_not(board, served, generation):
    """With a length header and in chunks alike; the first is read, and refused for what it says."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    headers = {"content-type": "application/json"} | (MODERN if generation == "modern" else {})
    limit = 4 * 1024 * 1024

    def body(size):
        return json.dumps("x" * (size - 2)).encode()

    async def chunks(raw):
        for start in range(0, len(raw), 65536):
            yield raw[start : start + 65536]

    async with served.http(vended) as http:
        for size, status in ((limit, 400), (limit + 1, 413)):
            for content in (body(size), chunks(body(size))):
                answer = await http.post(f"/mcp/{vended.endpoint.slug}", content=content, headers=headers)
                assert answer.status_code == status


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "OPTIONS"])
async def test_other_methods_are_405(board, served, method):
    """There is no session to end."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    async with served.http(vended) as http:
        answer = await http.request(method, f"/mcp/{vended.endpoint.slug}")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


async def test_b16_a_database_that_is_away_is_503_and_never_401(board, served):
    """Nobody is told that their credential is wrong because it could not be looked up."""
    vended = board.write(endpoints.vend, board.alice, name="w")

    def away(*_args, **_kwargs):
        raise Refused(UNAVAILABLE)

    from tenure.board.database import UNAVAILABLE
    from tenure.board.refused import Refused

    board.database.reading = away
    async with served.http(vended) as http:
        answer = await http.post(f"/mcp/{vended.endpoint.slug}", json=INITIALIZE)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["code"] == "unavailable"
