"""The MCP door for tests: served by real servers on loopback, with the SDK's client in both generations."""

import asyncio
import contextlib
import socket

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost

from tenure.doors.mcp import mcp_app

GENERATIONS = {"handshake": "legacy", "modern": "auto"}


class Served:
    """One server of a board: its MCP door alone, on a port of its own."""

    def __init__(self, board, door, port):
        self.board, self.door, self.port = board, door, port

    def url(self, slug):
        return f"http://127.0.0.1:{self.port}/mcp/{slug}"

    def client(self, vended, generation="handshake", **options):
        """The SDK's own client, as one that knows no more than an endpoint's address and credential."""
        return client_of(self.url(vended.endpoint.slug), vended.credential.reveal(), generation, **options)

    def http(self, vended=None, headers_more=None, **options):
        """A plain HTTP client, with the endpoint's credential if one is given."""
        headers = {"accept": "application/json, text/event-stream", **(headers_more or {})}
        if vended is not None:
            headers["authorization"] = f"Bearer {vended.credential.reveal()}"
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=70, **options)


@contextlib.asynccontextmanager
async def client_of(url, credential, generation="handshake", **options):
    headers = {"authorization": f"Bearer {credential}"}
    async with httpx2.AsyncClient(headers=headers, timeout=70) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=GENERATIONS[generation], **options) as client:
            yield client


@contextlib.asynccontextmanager
async def on_port(app, drain, port=0):
    """Serve an ASGI app on loopback until the block ends; drained first, as by a server that is told to stop."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", timeout_graceful_shutdown=5))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started, 30)
        yield listener.getsockname()[1]
        drain()
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def serving(board, port=0):
    """Serve the MCP door of this board until the block ends."""
    door = mcp_app(board)
    await board.open()
    try:
        async with door.open(), on_port(door, door.drain, port) as found:
            yield Served(board, door, found)
    finally:
        await board.notices.close()


async def until(holds, seconds=10.0):
    """Wait until something that servers or clients bring about holds; it fails when that takes too long."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for happens elsewhere
            await asyncio.sleep(0.01)


class Session:
    """A client with an open stream, and what it was told."""

    def __init__(self):
        self.client, self.heard = None, asyncio.Queue()

    async def told(self, seconds=2.0):
        """Wait for the next notice."""
        await asyncio.wait_for(self.heard.get(), seconds)

    async def silent(self, seconds=0.4):
        """Whether nothing was told, and nothing is for as long as a notice would take."""
        with contextlib.suppress(TimeoutError):
            await self.told(seconds)
            return False
        return True

    async def description(self, verb="claim"):
        """What the client reads of a verb now."""
        tools = (await self.client.list_tools()).tools
        return next(tool.description for tool in tools if tool.name == verb)


@contextlib.asynccontextmanager
async def listening(served, vended, generation):
    """A live session: a GET stream of the handshake generation, a listen stream of the new one."""
    session, open_before = Session(), len(served.door.calls)

    async def heard(message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            session.heard.put_nowait(message)

    async def listen():
        with contextlib.suppress(SubscriptionLost):
            async with session.client.listen(tools_list_changed=True) as stream:
                async for event in stream:
                    session.heard.put_nowait(event)

    options = {"message_handler": heard} if generation == "handshake" else {}
    async with served.client(vended, generation, **options) as session.client:
        task = asyncio.create_task(listen()) if generation == "modern" else None
        await until(lambda: len(served.door.calls) > open_before)
        yield session
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
