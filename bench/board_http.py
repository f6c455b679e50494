"""Claim and complete over /work/v1 against a bare FastAPI route pair that does nothing; one worker and sixteen at once.

Both stand in one server process. The calls are made in turns. `python bench/board_http.py serve URL` is such a server.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rows import Row, p50, percentile

GOAL = 0.5


def measure(*, quick: bool) -> list[Row]:
    """On each database."""
    from boards import KINDS

    return [row for kind in KINDS for row in _rows(kind, 60 if quick else 480)]


def _rows(kind: str, count: int) -> list[Row]:
    from board_hall import SECRET
    from boards import Hands, databases, opened, stock

    with databases(kind) as (url,), opened(url) as board:
        hands = Hands(board, board.vend())
        stock(hands, 3 * count + 200)
        command = [sys.executable, __file__, "serve", url, SECRET]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            taken = asyncio.run(_all(port, hands.vended.credential.reveal(), count))
        finally:
            server.terminate()
            server.wait(30)
    rows = []
    for at_once in (1, 16):
        ours, bare = taken["ours", at_once], taken["bare", at_once]
        ratio = sum(bare) / sum(ours)
        told = (
            f"claim + complete p50 {p50(ours) * 1e3:.1f} p99 {percentile(ours, 0.99) * 1e3:.1f} ms, "
            f"bare pair p50 {p50(bare) * 1e3:.1f} p99 {percentile(bare, 0.99) * 1e3:.1f} ms"
        )
        what = f"rate of claim + complete over /work/v1 / of a bare FastAPI pair, {at_once} at once: {kind}"
        rows.append(Row(what, ratio, "x", f">= {GOAL}", ratio >= GOAL, {"p50_s": p50(ours)}, told))
    return rows


async def _all(port: int, credential: str, count: int) -> dict[tuple[str, int], list[float]]:
    taken: dict[tuple[str, int], list[float]] = {}
    for at_once in (1, 16):
        callers = [await Caller.open(port, credential) for _ in range(at_once)]
        for name, pair in (("ours", Caller.work), ("bare", Caller.bare)):
            await asyncio.gather(*(pair(one) for one in callers))  # nothing is measured that was not warm
            taken[name, at_once] = []
        for _ in range(max(1, count // at_once)):
            for name, pair in (("ours", Caller.work), ("bare", Caller.bare)):
                taken[name, at_once] += await asyncio.gather(*(pair(one) for one in callers))
        for one in callers:
            one.close()
    return taken


class Caller:
    """A worker on a connection that is kept; it costs next to nothing itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, credential: str) -> None:
        self._reader, self._writer, self._credential = reader, writer, credential

    @classmethod
    async def open(cls, port: int, credential: str) -> Caller:
        return cls(*await asyncio.open_connection("127.0.0.1", port), credential)

    async def work(self) -> float:
        """Claim a todo and complete it; how many seconds that took."""
        began = time.perf_counter()
        (claim,) = (await self._post("/work/v1/claim_next", {}))["claims"]
        done = {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"], "result": {"ok": True}}
        assert (await self._post("/work/v1/complete", done))["state"] == "done"
        return time.perf_counter() - began

    async def bare(self) -> float:
        """The same two calls of routes that do nothing."""
        began = time.perf_counter()
        told = await self._post("/bare/claim_next", {})
        await self._post("/bare/complete", {"todo_id": told["todo_id"], "result": {"ok": True}})
        return time.perf_counter() - began

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        raw = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer {self._credential}\r\ncontent-length: {len(raw)}\r\n\r\n"
        self._writer.write(head.encode() + raw)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        told = await self._reader.readexactly(length)
        assert answer.startswith(b"http/1.1 200"), told
        return json.loads(told)

    def close(self) -> None:
        self._writer.close()


# --- the server -------------------------------------------------------------------------------------------


async def serve(url: str, secret: str) -> None:
    """A whole board as it is served, and beside it two routes as FastAPI makes them."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    from tenure.board.board import Board, BoardSettings, Rate
    from tenure.board.database import Database
    from tenure.board.secrets import ring_of
    from tenure.serve import Site

    class Claim(BaseModel):
        max: int = 1

    class Complete(BaseModel):
        todo_id: str
        result: Any = None

    bare = FastAPI(openapi_url=None)
    bare.post("/bare/claim_next")(_claim_of(Claim))
    bare.post("/bare/complete")(_complete_of(Complete))
    site = Site(Board(Database(url), ring_of(secret), BoardSettings(worker=Rate(1e6, 10**6))))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (bare if scope["path"].startswith("/bare/") else site)(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
    async with site.open():
        print(listening.getsockname()[1], flush=True)
        await server.serve(sockets=[listening])


def _claim_of(model: Any) -> Any:
    async def claim(body: model) -> dict[str, Any]:
        return {"todo_id": "td_1", "title": "a todo", "attempt": body.max}

    claim.__annotations__["body"] = model
    return claim


def _complete_of(model: Any) -> Any:
    async def complete(body: model) -> dict[str, Any]:
        return {"todo_id": body.todo_id, "state": "done"}

    complete.__annotations__["body"] = model
    return complete


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1] / "tests" / "helpers")
    if sys.argv[1] == "serve":
        import uvloop

        uvloop.run(serve(*sys.argv[2:]))
