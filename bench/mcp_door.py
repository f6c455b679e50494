"""A claim over MCP, in both generations, against the same over /work/v1 and against the SDK's own server with an empty
tool; one caller and sixteen at once. The servers are processes of their own, the calls are made in turns.

`python bench/mcp_door.py serve URL` is such a server. (Not `mcp.py`: that would hide the SDK.)
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from rows import Row, p50, percentile

GOAL = 1.3
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Way(NamedTuple):
    """One way to call: a name, the request's head and body."""

    name: str
    request: bytes


def measure(*, quick: bool) -> list[Row]:
    """On each database."""
    from boards import KINDS

    return [row for kind in KINDS for row in _rows(kind, 60 if quick else 600)]


def _rows(kind: str, count: int) -> list[Row]:
    from board_hall import SECRET
    from boards import Hands, databases, opened, stock

    with databases(kind) as (url,), opened(url) as board:
        hands = Hands(board, board.vend())
        stock(hands, 3 * 2 * count + 200)
        vended = hands.vended
        server = subprocess.Popen([sys.executable, __file__, "serve", url, SECRET], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            ways = _ways(vended.endpoint.slug, vended.credential.reveal())
            taken = asyncio.run(_all(port, ways, count))
        finally:
            server.terminate()
            server.wait(30)
    return [row for at_once in (1, 16) for row in _told(kind, at_once, taken)]


def _told(kind: str, at_once: int, taken: dict[tuple[str, int], list[float]]) -> list[Row]:
    rows = []
    for generation in ("handshake", "modern"):
        claim, empty = taken[f"claim, {generation}", at_once], taken[f"empty, {generation}", at_once]
        work = taken["claim, /work/v1", at_once]
        ratio = p50(claim) / p50(empty)
        told = ", ".join(
            f"{name} p50 {p50(one) * 1e3:.1f} p99 {percentile(one, 0.99) * 1e3:.1f} ms"
            for name, one in (("claim", claim), ("empty tool", empty), ("/work/v1", work))
        )
        what = f"a claim over MCP / the SDK's empty tool, p50, {generation}, {at_once} at once: {kind}"
        goal, reached = (f"<= {GOAL}", ratio <= GOAL) if at_once == 1 else ("", None)
        rows.append(Row(what, ratio, "x", goal, reached, {"to_work": p50(claim) / p50(work)}, told))
    return rows


def _ways(slug: str, credential: str) -> list[Way]:
    def tool(name: str, generation: str) -> dict[str, Any]:
        meta = {"_meta": MODERN} if generation == "modern" else {}
        params = {"name": name, "arguments": {}, **meta}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    def headers(name: str, generation: str) -> dict[str, str]:
        if generation == "handshake":
            return {"mcp-protocol-version": "2025-11-25"}
        return {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}

    bearer = {"authorization": f"Bearer {credential}"}
    ways = [Way("claim, /work/v1", _request("/work/v1/claim_next", {}, bearer))]
    for generation in ("handshake", "modern"):
        claim, empty = tool("claim_next", generation), tool("empty", generation)
        more = headers("claim_next", generation)
        ways.append(Way(f"claim, {generation}", _request(f"/mcp/{slug}", claim, {**bearer, **more})))
        ways.append(Way(f"empty, {generation}", _request("/empty", empty, headers("empty", generation))))
    return ways


def _request(path: str, body: Any, headers: dict[str, str]) -> bytes:
    raw = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        "accept: application/json, text/event-stream",
        "content-type: application/json",
        f"content-length: {len(raw)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


async def _all(port: int, ways: list[Way], count: int) -> dict[tuple[str, int], list[float]]:
    taken: dict[tuple[str, int], list[float]] = {}
    for at_once in (1, 16):
        callers = [[await Connection.open(port) for _ in range(at_once)] for _ in ways]
        for place, way in enumerate(ways):  # nothing is measured that was not warm
            await asyncio.gather(*(one.call(way.request) for one in callers[place]))
            taken[way.name, at_once] = []
        for _ in range(max(1, count // at_once)):
            for place, way in enumerate(ways):
                times = await asyncio.gather(*(one.call(way.request) for one in callers[place]))
                taken[way.name, at_once] += times
        for connections in callers:
            for one in connections:
                one.close()
    return taken


class Connection:
    """A connection that is kept; a client that costs next to nothing itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def call(self, request: bytes) -> float:
        """Send it and read the whole answer; how many seconds that took."""
        began = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        body = await self._body(head.lower())
        took = time.perf_counter() - began
        assert head.startswith(b"HTTP/1.1 200"), (head, body)
        assert b'"empty":true' not in body.replace(b" ", b""), "there was nothing to claim"
        assert b'"isError":true' not in body, body
        return took

    async def _body(self, head: bytes) -> bytes:
        if b"transfer-encoding: chunked" not in head:
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            return await self._reader.readexactly(length)
        body = b""
        while size := int((await self._reader.readline()).strip(), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
        return body

    def close(self) -> None:
        self._writer.close()


# --- the server -------------------------------------------------------------------------------------------


async def serve(url: str, secret: str) -> None:
    """A whole board as it is served, and beside it the SDK's server with one empty tool, as the SDK sets it up."""
    import mcp_types as types
    import uvicorn
    from mcp.server.lowlevel.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from tenure.board.board import Board, BoardSettings, Rate
    from tenure.board.database import Database
    from tenure.board.secrets import ring_of
    from tenure.serve import Site

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="empty", input_schema={"type": "object"})])

    async def call_tool(_ctx: Any, _params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="{}")], structured_content={})

    empty = Server("empty", on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(empty, stateless=True)
    site = Site(Board(Database(url), ring_of(secret), BoardSettings(mcp_era="both", worker=Rate(1e6, 10**6))))

    async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        await (manager.handle_request if scope["path"] == "/empty" else site)(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
    async with site.open(), manager.run():
        print(listening.getsockname()[1], flush=True)
        await server.serve(sockets=[listening])


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1] / "tests" / "helpers")
    if sys.argv[1] == "serve":
        import uvloop

        uvloop.run(serve(*sys.argv[2:]))
