"""`claim_next` that waits: woken by a todo, and ended for nobody's sake by whatever ends the interest in it (B32)."""

import asyncio
import contextlib
import json
import secrets
import socket
import time

import pytest
from mcp_hall import GENERATIONS, serving, until

from tenure.board import endpoints, todos
from tenure.board.shapes import Filters, NewTodo

MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "claim_next"}


def vend(board, **options):
    return board.write(endpoints.vend, board.alice, **{"name": "worker", **options})


def put(board, vended):
    return board.write(todos.create, board.alice, vended.endpoint, NewTodo("work")).todo.summary.id


def state_of(board, todo):
    return board.read(todos.get, board.alice, todo).summary.state


def call_of(generation, **arguments):
    """A `claim_next` as it goes over the wire: headers and message."""
    params = {"name": "claim_next", "arguments": arguments}
    if generation == "modern":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (MODERN if generation == "modern" else {}), message


def result_of(response):
    """The result in an answer, a JSON body or an event stream."""
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line[6:] for line in text.splitlines() if line.startswith("data: ") and len(line) > 6)
    return json.loads(text)["result"]["structuredContent"]


async def wait_with(served, client, generation, seconds):
    """A client's `claim_next` once it waits at the server, beside the stream that a handshake client has open."""
    streams = int(generation == "handshake")
    await until(lambda: len(served.door.calls) == streams)
    waiting = asyncio.create_task(client.call_tool("claim_next", {"wait_seconds": seconds}))
    await until(lambda: len(served.door.calls) > streams)
    return waiting


async def test_b32_a_waiting_call_is_woken_by_a_todo_put_through_another_server(board, pair, generation):
    """At once: it does not wait for its deadline, nor for the next look."""
    one, two = pair
    vended = vend(board)
    async with one.client(vended, generation) as client:
        waiting = await wait_with(one, client, generation, 50)
        todo = await two.board.database.write(todos.create, two.board, board.alice, vended.endpoint, NewTodo("work"))
        answer = await asyncio.wait_for(waiting, 4)
    (claim,) = answer.structured_content["claims"]
    assert claim["todo"]["id"] == todo.todo.summary.id


async def test_b32_nothing_to_do_is_a_success_and_says_empty(board, served, generation):
    """At once without a wait, at the deadline with one."""
    async with served.client(vend(board), generation) as client:
        for wait in (0, 1):
            answer = await client.call_tool("claim_next", {"wait_seconds": wait})
            assert not answer.is_error
            assert answer.structured_content["empty"] is True
            assert answer.structured_content["claims"] == []


@pytest.mark.parametrize("wait", [-1, 51, 1.5, "5", True])
async def test_b32_wait_seconds_out_of_bounds_is_refused(board, served, generation, wait):
    """0 to 50, whole."""
    async with served.client(vend(board), generation) as client:
        answer = await client.call_tool("claim_next", {"wait_seconds": wait})
    assert answer.structured_content["code"] == "invalid_argument"
    assert answer.structured_content["field"] == "wait_seconds"


async def test_b32_a_cancelled_call_ends_and_claims_nothing(board, pair, generation):
    """The client gives up; by the handshake's rules its word may come to the other server."""
    one, two = pair
    vended = vend(board)
    if generation == "modern":
        async with one.client(vended, generation) as client:
            waiting = await wait_with(one, client, generation, 50)
            waiting.cancel()
            await until(lambda: not len(one.door.calls))
    else:
        _, message = call_of(generation, wait_seconds=50)
        session = {"mcp-session-id": "a-session-that-no-server-knows"}
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        path = f"/mcp/{vended.endpoint.slug}"
        async with one.http(vended, headers_more=session) as here, two.http(vended, headers_more=session) as there:
            waiting = asyncio.create_task(here.post(path, json=message))
            await until(lambda: len(one.door.calls) == 1)
            other = {**cancelled, "params": {"requestId": 2}}
            assert (await there.post(path, json=other)).status_code == 202
            stranger = await there.post(path, json=cancelled, headers={"mcp-session-id": "another"})
            assert stranger.status_code == 202
            await asyncio.sleep(0.3)
            assert not waiting.done()
            assert (await there.post(path, json=cancelled)).status_code == 202
            answer = await asyncio.wait_for(waiting, 1)
            assert result_of(answer)["empty"] is True
    todo = put(board, vended)
    await asyncio.sleep(0.2)
    assert state_of(board, todo) == "pending"


async def test_b32_a_cancellation_right_behind_its_call_does_not_overtake_it(board, served, monkeypatch):
    """The call is still asking whose credential it carries when the client gives it up."""
    vended = vend(board)
    path, (_, message) = f"/mcp/{vended.endpoint.slug}", call_of("handshake", wait_seconds=50)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    began, go_on, read = asyncio.Event(), asyncio.Event(), served.board.database.read

    async def slow_once(*arguments):
        if not began.is_set():
            began.set()
            await go_on.wait()
        return await read(*arguments)

    async with served.http(vended, headers_more={"mcp-session-id": "known"}) as client:
        await client.post(path, json=cancelled)  # from here on it is known whose credential this is
        monkeypatch.setattr(served.board.database, "read", slow_once)
        waiting = asyncio.create_task(client.post(path, json=message))
        await began.wait()
        assert (await client.post(path, json=cancelled)).status_code == 202
        go_on.set()
        assert result_of(await asyncio.wait_for(waiting, 20))["empty"] is True


async def test_b34_a_call_beyond_the_limit_is_refused_as_the_tools_result(board, served, generation, monkeypatch):
    """A model can wait with fewer, and is told so; the protocol's errors are for programs."""
    monkeypatch.setattr("tenure.doors.mcp.calls.OPEN_LIMIT", 0 if generation == "modern" else 1)
    async with served.client(vend(board), generation) as client:
        await until(lambda: len(served.door.calls) == int(generation == "handshake"))
        answer = await client.call_tool("claim_next", {"wait_seconds": 5})
    assert answer.is_error
    assert answer.structured_content["code"] == "rate_limited"


async def test_b32_only_the_same_endpoint_can_cancel(board, served):
    """Session and request id of another's call are of no use."""
    mine, other = vend(board), vend(board, name="other")
    _, message = call_of("handshake", wait_seconds=50)
    session = {"mcp-session-id": "known"}
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    async with served.http(mine, headers_more=session) as a, served.http(other, headers_more=session) as b:
        waiting = asyncio.create_task(a.post(f"/mcp/{mine.endpoint.slug}", json=message))
        await until(lambda: len(served.door.calls) == 1)
        assert (await b.post(f"/mcp/{other.endpoint.slug}", json=cancelled)).status_code == 202
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await a.post(f"/mcp/{mine.endpoint.slug}", json=cancelled)
        await asyncio.wait_for(waiting, 1)


async def test_b25_a_revoke_ends_a_waiting_call_within_a_second_on_the_other_server(board, pair, generation):
    """With a refusal as its result: the credential is no longer valid."""
    one, two = pair
    vended = vend(board)
    async with one.client(vended, generation) as client:
        waiting = await wait_with(one, client, generation, 50)
        began = time.monotonic()
        await two.board.database.write(endpoints.revoke, two.board, board.alice, vended.endpoint.slug)
        answer = await waiting
        assert time.monotonic() - began < 1
    assert answer.is_error
    assert answer.structured_content["code"] == "unauthenticated"


async def test_b32_a_server_that_drains_ends_it_with_a_clean_nothing(board, generation):
    """The client sees an ordinary empty answer, and asks again."""
    vended = vend(board)
    headers, message = call_of(generation, wait_seconds=50)
    async with contextlib.AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(board))
        http = await stack.enter_async_context(served.http(vended))
        waiting = asyncio.create_task(http.post(f"/mcp/{vended.endpoint.slug}", json=message, headers=headers))
        await until(lambda: len(served.door.calls) == 1)
        served.door.drain()
        answer = await asyncio.wait_for(waiting, 1)
        assert answer.status_code == 200
        assert result_of(answer)["empty"] is True
        late = await http.post(f"/mcp/{vended.endpoint.slug}", json=message, headers=headers)
        assert result_of(late)["empty"] is True


async def test_b38_while_out_a_waiting_call_is_not_woken_and_looks_once_more_at_its_deadline(board, served, generation):
    """Presence changes what wakes, never what may be pulled."""
    vended = vend(board)
    async with served.client(vended, generation) as client:
        await client.call_tool("clock_out", {})
        waiting = await wait_with(served, client, generation, 3)
        await asyncio.sleep(0.3)
        began = time.monotonic()
        put(board, vended)
        answer = await waiting
        assert time.monotonic() - began > 1
        assert len(answer.structured_content["claims"]) == 1
        put(board, vended)
        assert len((await client.call_tool("claim_next", {})).structured_content["claims"]) == 1


def hang_up(raw):
    """Close a connection as a killed process does: what is unread is answered by a reset."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    raw.close()


async def waiting_raw(served, vended, generation, **arguments):
    """A waiting `claim_next` on a socket of its own, which can be torn."""
    headers, message = call_of(generation, wait_seconds=50, **arguments)
    body = json.dumps(message).encode()
    lines = [
        f"POST /mcp/{vended.endpoint.slug} HTTP/1.1",
        f"host: 127.0.0.1:{served.port}",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"authorization: Bearer {vended.credential.reveal()}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    raw = socket.socket()
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, ("127.0.0.1", served.port))
    await loop.sock_sendall(raw, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return raw


async def killed_workers(board, served, generation, times):
    """Kill so many workers inside their wait, some as a todo comes; how many claims were made for nobody."""
    vended = vend(board, name=f"killed-{generation}")
    for number in range(times):
        request_id = secrets.token_hex(16) if number % 2 else None
        more = {} if request_id is None else {"request_id": request_id}
        raw = await waiting_raw(served, vended, generation, **more)
        await until(lambda: len(served.door.calls) == 1, 10)
        if request_id is None:  # it is gone before there is anything
            hang_up(raw)
            await until(lambda: not len(served.door.calls), 10)
            todo = put(board, vended)
        else:  # in the same moment
            todo = await asyncio.to_thread(put, board, vended)
            hang_up(raw)
            await until(lambda: not len(served.door.calls), 10)
        headers, again = call_of(generation, **more)
        async with served.http(vended) as http:
            answer = await http.post(f"/mcp/{vended.endpoint.slug}", json=again, headers=headers)
        (claim,) = result_of(answer)["claims"]
        assert claim["todo"]["id"] == todo
        ended = board.read(todos.get, board.alice, todo)
        lost = [one for one in ended.attempts if one.ended is None and one.id != ended.summary.claim_id]
        assert not lost
        if request_id is None:
            assert claim["attempt"] == 1, "it was claimed for a worker that had gone before"
        async with served.client(vended, generation) as client:
            done = {"todo_id": todo, "lease_token": claim["lease_token"]}
            assert not (await client.call_tool("complete", done)).is_error
    assert board.read(todos.list_page, board.alice, Filters(states=("claimed",))).items == ()


async def test_b32_a_worker_killed_inside_its_wait_leaves_no_claim_for_nobody(board, served, generation):
    """A share of the long proof: torn connections before and beside the coming of a todo."""
    await killed_workers(board, served, generation, 8)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("generation", GENERATIONS)
async def test_b32_two_hundred_workers_killed_inside_their_wait_leave_no_claim_for_nobody(board, served, generation):
    """The whole of it, in each generation and on both databases."""
    await killed_workers(board, served, generation, 200)
