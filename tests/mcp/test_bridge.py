"""`tenure mcp`: the SDK's stdio client works on the board through the bridge, in a process of its own."""

import asyncio
import json
import os
import sys

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_hall import GENERATIONS, serving, until
from postgres_server import free_port

from tenure.board import endpoints, todos
from tenure.board.shapes import NewTodo
from tenure.doors.cli.bridge import Bridge


def bridged(served, vended, generation, credential=None, **options):
    """The SDK's client, with the bridge as its server."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tenure", "mcp", vended.endpoint.slug, "--url", f"http://127.0.0.1:{served.port}"],
        env={**os.environ, "TENURE_ENDPOINT_CREDENTIAL": credential or vended.credential.reveal()},
    )
    return Client(stdio_client(parameters), mode=GENERATIONS[generation], **options)


async def test_a_client_without_http_works_through_the_bridge(board, served, generation):
    """Lists, claims, completes, hears of an edit, and gives up a waiting call that claims nothing then."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    board.write(todos.create, board.alice, vended.endpoint, NewTodo("first"))
    heard = asyncio.Event()

    async def on_message(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with bridged(served, vended, generation, message_handler=on_message) as client:
        assert client.protocol_version == ("2025-11-25" if generation == "handshake" else "2026-07-28")
        assert "300 seconds" in client.instructions
        (claim,) = (await client.call_tool("claim_next", {})).structured_content["claims"]
        ended = await client.call_tool(
            "complete", {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"], "result": {"ok": True}}
        )
        assert ended.structured_content["state"] == "done"
        if generation == "handshake":
            await until(lambda: len(served.door.calls))
            board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, 900)
            await asyncio.wait_for(heard.wait(), 2)
        streams = len(served.door.calls)
        waiting = asyncio.create_task(client.call_tool("claim_next", {"wait_seconds": 40}))
        await until(lambda: len(served.door.calls) > streams)
        waiting.cancel()
        await until(lambda: len(served.door.calls) == streams)
        todo = board.write(todos.create, board.alice, vended.endpoint, NewTodo("second")).todo.summary.id
    assert board.read(todos.get, board.alice, todo).summary.state == "pending"


async def test_the_bridge_says_what_is_wrong_instead_of_falling_silent(board, served):
    """A credential that opens nothing: the client's first request is answered with why, and so is any later one."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    with pytest.raises(ExceptionGroup) as failed:
        async with bridged(served, vended, "handshake", credential="tenure_endpoint_wrong"):
            pass
    (error,) = failed.value.exceptions
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, MCPError)
    assert "credential" in str(error)


async def test_the_bridge_outlives_a_restart_and_answers_what_is_no_message(board, vended_bridge):
    """Lines that are no message, messages of a wrong shape, and a board that is away for a while: each is answered."""
    process, served_again = vended_bridge
    wrong = [b"nonsense", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":[1]}}']
    for line in wrong:
        process.stdin.write(line + b"\n")
        answer = json.loads(await asyncio.wait_for(process.stdout.readline(), 10))
        assert "error" in answer
    process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n')
    waiting = asyncio.create_task(process.stdout.readline())
    await asyncio.sleep(1)
    assert not waiting.done()
    async with served_again():
        answer = json.loads(await asyncio.wait_for(waiting, 20))
        assert answer["id"] == 2
        assert answer["result"]["tools"]
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 10) == 0


@pytest.fixture
async def vended_bridge(board):
    """The bridge as a process, to a board that is not there yet; and how to have it there."""
    vended = board.write(endpoints.vend, board.alice, name="w")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tenure", "mcp", vended.endpoint.slug, "--url", f"http://127.0.0.1:{port}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TENURE_ENDPOINT_CREDENTIAL": vended.credential.reveal()},
    )  # fmt: skip
    yield process, lambda: serving(board, port)
    if process.returncode is None:
        process.kill()
        await process.wait()


class Cut(httpx2.AsyncByteStream):
    """An answer as a stream, after which the connection breaks."""

    def __init__(self, data):
        self.data = data

    async def __aiter__(self):
        yield b"event: message\ndata: " + self.data + b"\n\n"
        raise httpx2.ReadError("cut")


async def test_the_bridge_answers_each_request_once_and_says_which_is_no_json():
    """A connection that breaks after the answer is no second one; NaN is the message's fault, not the board's.

    What only looks like an answer is nobody's message.
    """
    answers, streams = [], [Cut(b'{"jsonrpc":"2.0","id":1,"result":{}}'), Cut(b'{"id": what')]
    bridge = Bridge("http://board.example/mcp/a", "c", answers.append, answers.append)
    stream = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=stream, stream=streams.pop(0)))
    bridge._http = httpx2.AsyncClient(transport=transport)

    async def lines():
        yield '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'
        await until(lambda: not bridge._open)
        yield '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"x":NaN}}'
        await until(lambda: not bridge._open)
        yield '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}'
        await until(lambda: not bridge._open)

    await bridge.run(lines())
    first, second, third = map(json.loads, answers)
    assert (first["id"], first["result"]) == (1, {})
    assert (second["id"], second["error"]["code"]) == (2, -32700)
    assert "can't be sent as JSON" in second["error"]["message"]
    assert (third["id"], third["error"]["code"]) == (3, -32000)
