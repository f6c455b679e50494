"""The MCP door, served for tests by real servers on loopback, and the clients of both generations."""

import asyncio
import contextlib
import socket

import httpx2
import pytest
import uvicorn
from board_hall import open_hall
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tenure.board.board import BoardSettings
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

    def http(self, vended=None, **options):
        """A plain HTTP client, with the endpoint's credential if one is given."""
        headers = {"accept": "application/json, text/event-stream"}
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
async def serving(board, port=0):
    """Serve the door of this board until the block ends; it drains first, as a server that is told to stop."""
    door = mcp_app(board)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        config = uvicorn.Config(door, lifespan="off", log_level="error", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        await board.open()
        try:
            async with door.open():
                task = asyncio.create_task(server.serve(sockets=[listener]))
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await asyncio.sleep(0.01)
                yield Served(board, door, listener.getsockname()[1])
                door.drain()
                server.should_exit = True
                await task
        finally:
            await board.notices.close()


@pytest.fixture(params=GENERATIONS)
def generation(request):
    """Which of the protocol's two generations a client speaks."""
    return request.param


@pytest.fixture
def board(board_url):
    """A board of this test's own that answers both generations of the protocol, on SQLite and on PostgreSQL."""
    board = open_hall(board_url, BoardSettings(mcp_era="both"))
    yield board
    board.database.shut()


@pytest.fixture
async def served(board):
    """One server of a board, on SQLite and on PostgreSQL. Clients of both generations may come."""
    async with serving(board) as one:
        yield one


@pytest.fixture
async def pair(board, board_url):
    """Two servers of one board: on PostgreSQL two boards, on SQLite two doors of the one that there may be."""
    second = open_hall(board_url, board.settings, board.clock) if board.database.postgres else board
    async with serving(board) as one, serving(second) as two:
        yield one, two
    if second is not board:
        second.database.shut()
