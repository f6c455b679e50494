"""Behind plain round robin, and behind a proxy that keeps an answer back until it is whole."""

import asyncio
import contextlib
import itertools
import json
from types import SimpleNamespace

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_hall import GENERATIONS, until

from tenure.board import endpoints, todos
from tenure.board.shapes import Filters, NewTodo


@contextlib.asynccontextmanager
async def proxy(*ports, whole=False):
    """A proxy that gives each connection to the next server; `whole`: an answer is kept back until its end."""
    turns, tasks, counts = itertools.cycle(ports), set(), dict.fromkeys(ports, 0)

    async def pipe(reader, writer, *, whole=False):
        kept = b""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if whole:
                    kept += data
                else:
                    writer.write(data)
                    await writer.drain()
            writer.write(kept)
            await writer.drain()
        writer.close()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        port = next(turns)
        counts[port] += 1
        upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(pipe(reader, to_upstream), pipe(upstream, writer, whole=whole))
        finally:
            writer.close()
            to_upstream.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield SimpleNamespace(port=server.sockets[0].getsockname()[1], counts=counts)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        server.close()


@contextlib.asynccontextmanager
async def client_through(port, vended, generation, **options):
    """The SDK's client with a new connection for each request, so that each may meet another server."""
    headers = {"authorization": f"Bearer {vended.credential.reveal()}"}
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(headers=headers, timeout=70, limits=limits) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp/{vended.endpoint.slug}", http_client=http)
        async with Client(transport, mode=GENERATIONS[generation], **options) as client:
            yield client


async def test_two_servers_behind_plain_round_robin_need_no_sticky_routing(board, pair, generation):
    """Each request may meet either server: todos are drained once each, notices heard, cancellations found."""
    one, two = pair
    vended = board.write(endpoints.vend, board.alice, name="worker")
    for number in range(6):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"todo {number}"))
    heard = asyncio.Event()

    async def on_message(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with (
        proxy(one.port, two.port) as middle,
        client_through(middle.port, vended, generation, message_handler=on_message) as client,
    ):
        while claims := (await client.call_tool("claim_next", {})).structured_content["claims"]:
            facts = {"todo_id": claims[0]["todo"]["id"], "lease_token": claims[0]["lease_token"]}
            for verb in ("heartbeat", "check_claim", "complete"):
                assert not (await client.call_tool(verb, facts)).is_error
        if generation == "handshake":
            board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, 900)
            await asyncio.wait_for(heard.wait(), 2)
        streams = len(one.door.calls) + len(two.door.calls)
        for _ in range(2):  # the call at one server, and what cancels it at the other
            waiting = asyncio.create_task(client.call_tool("claim_next", {"wait_seconds": 50}))
            await until(lambda: len(one.door.calls) + len(two.door.calls) > streams)
            waiting.cancel()
            await until(lambda: len(one.door.calls) + len(two.door.calls) == streams)
        assert all(count >= 10 for count in middle.counts.values()), middle.counts
    ended = board.read(todos.list_page, board.alice, Filters(), None, 100).items
    assert [(one.shown, one.attempts) for one in ended] == [("done", 1)] * 6


async def test_case_b59_a_wait_survives_a_proxy_that_keeps_answers_back(board, served, generation):
    """What it can't stream it gives at the end: the wait is answered as soon as there is a todo."""
    vended = board.write(endpoints.vend, board.alice, name="worker")
    params = {"name": "claim_next", "arguments": {"wait_seconds": 50}}
    headers = {
        "authorization": f"Bearer {vended.credential.reveal()}",
        "accept": "application/json, text/event-stream",
        "connection": "close",
    }
    if generation == "modern":
        version, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
        params["_meta"] = {version: "2026-07-28", capabilities: {}}
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "claim_next"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with proxy(served.port, whole=True) as middle, httpx2.AsyncClient(timeout=70) as http:
        url = f"http://127.0.0.1:{middle.port}/mcp/{vended.endpoint.slug}"
        waiting = asyncio.create_task(http.post(url, json=message, headers=headers))
        await until(lambda: len(served.door.calls) == 1)
        put = board.database.write(todos.create, board, board.alice, vended.endpoint, NewTodo("work"))
        todo = (await put).todo.summary.id
        answer = await asyncio.wait_for(waiting, 4)
    text = answer.text
    if "event-stream" in answer.headers["content-type"]:
        text = next(line[6:] for line in text.splitlines() if line.startswith("data: {"))
    (claim,) = json.loads(text)["result"]["structuredContent"]["claims"]
    assert claim["todo"]["id"] == todo
