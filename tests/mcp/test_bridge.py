"""`tenure mcp`: the SDK's stdio client works on the board through the bridge, in a process of its own."""

import asyncio
import os
import sys

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_hall import GENERATIONS, until

from tenure.board import endpoints, todos
from tenure.board.shapes import NewTodo


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
