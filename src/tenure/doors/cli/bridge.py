"""The stdio bridge: MCP messages, one a line, between a client without HTTP and the board's `/mcp/{slug}`.

It understands of a message only what HTTP needs to carry it: which generation of the protocol it is of, and whether
it is a request. Everything else passes through. What the board can't be asked is answered in its place, so that no
request stays without an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2

from tenure.client.calls import authorization

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
SESSION: Final = "mcp-session-id"
PARSE_ERROR, CONNECTION_CLOSED, REFUSED = -32700, -32000, -32001

# A waiting claim_next is answered within 50 s, and streams ping each 15 s.
TIMEOUT: Final = httpx2.Timeout(75, connect=5)
# A server that restarts is back by then: a message that never reached it is sent again for so long.
PATIENCE_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 5.0

Message = dict[str, Any]


class Bridge:
    """One client's conversation. `put` takes each message for the client, `say` a sentence for people."""

    def __init__(self, url: str, credential: str, put: Callable[[str], None], say: Callable[[str], None]) -> None:
        self.url, self._put, self._say = url, put, say
        headers = {**authorization(credential), "accept": "application/json, text/event-stream"}
        self._http = httpx2.AsyncClient(headers=headers, timeout=TIMEOUT, trust_env=False)
        # What the handshake settled; a modern client has none.
        self._handshake: dict[str, str] = {}
        self._open: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Carry messages until the client has no more."""
        async with self._http:
            async for line in lines:
                if line.strip():
                    self._take(line)
            tasks = [*self._open.values(), *self._others]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._put(_error(None, PARSE_ERROR, "A line must be one JSON-RPC message."))
            return
        if self._closes(message):
            return
        task = asyncio.create_task(self._carry(message))
        if "id" in message and "method" in message:
            key = json.dumps(message["id"])
            self._open[key] = task
            task.add_done_callback(lambda _: self._open.pop(key, None))
        else:
            self._keep(task)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def _closes(self, message: Message) -> bool:
        """A modern client cancels by closing its request: the line that says so becomes that."""
        if message.get("method") != "notifications/cancelled" or self._handshake:
            return False
        task = self._open.get(json.dumps(_params(message).get("requestId")))
        if task is not None:
            task.cancel()
        return True

    async def _carry(self, message: Message) -> None:
        expects = "id" in message and "method" in message
        try:
            body = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except ValueError as error:  # NaN, or half of a surrogate pair
            if expects:
                self._put(_error(message["id"], PARSE_ERROR, f"The message can't be sent as JSON: {error}."))
            return
        try:
            await self._send(message, body, expects=expects)
        except Exception as error:  # noqa: BLE001 - whatever it was, no request stays without an answer
            if expects:
                why = f"The board at {self.url} did not answer ({type(error).__name__}). Is it running? Try again."
                self._put(_error(message["id"], CONNECTION_CLOSED, why))

    async def _send(self, message: Message, body: bytes, *, expects: bool) -> None:
        headers = {"content-type": "application/json", **self._headers(message)}
        ends = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                async with self._http.stream("POST", self.url, content=body, headers=headers) as response:
                    await self._answer(message, response, expects=expects)
                return
            except (httpx2.ConnectError, httpx2.ConnectTimeout):  # it never arrived
                if asyncio.get_running_loop().time() >= ends:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)

    def _headers(self, message: Message) -> dict[str, str]:
        version = (_params(message).get("_meta") or {}).get(VERSION_KEY)
        if version is None:
            return {} if message.get("method") == "initialize" else self._handshake
        method, name = message.get("method"), _params(message).get("name")
        return {"mcp-protocol-version": str(version), "mcp-method": str(method)} | (
            {"mcp-name": str(name)} if method == "tools/call" else {}
        )

    async def _answer(self, message: Message, response: httpx2.Response, *, expects: bool) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            answered = False
            try:
                async for event in httpx2.EventSource(response):
                    if event.data:
                        answered |= '"id"' in event.data and json.loads(event.data).get("id") == message.get("id")
                        self._put(event.data)
            except httpx2.TransportError:
                if not answered:  # one answer is all that a request has
                    raise
            if expects and not answered:
                self._put(_error(message["id"], CONNECTION_CLOSED, "The board closed the answer before its end."))
            return
        body = await response.aread()
        if not expects:
            return
        answer = _json(body)
        if "jsonrpc" not in answer:
            detail = answer.get("detail") or f"The board answered with status {response.status_code}."
            if response.status_code == 401:
                self._say(f"{detail} The address or the credential of the endpoint is wrong, or it has ended.")
            self._put(_error(message["id"], REFUSED, str(detail)))
            return
        if message.get("method") == "initialize" and "result" in answer:
            self._settle(answer["result"], response)
        self._put(json.dumps({**answer, "id": message["id"]}, ensure_ascii=False))

    def _settle(self, result: Message, response: httpx2.Response) -> None:
        """Remember what the handshake settled, and listen for notices from then on."""
        self._handshake = {"mcp-protocol-version": str(result.get("protocolVersion", ""))}
        if SESSION in response.headers:
            self._handshake[SESSION] = response.headers[SESSION]
            self._keep(asyncio.create_task(self._listen()))

    async def _listen(self) -> None:
        """The board's notices, for as long as the client is there; a stream that broke is opened again."""
        last: dict[str, str] = {}
        while True:
            try:
                async with self._http.stream("GET", self.url, headers={**self._handshake, **last}) as response:
                    if response.status_code in (401, 405):
                        return
                    async for event in httpx2.EventSource(response):
                        last = {"last-event-id": event.id} if event.id else last
                        if event.data:
                            self._put(event.data)
            except httpx2.TransportError:
                pass
            await asyncio.sleep(RETRY_SECONDS)


async def lines_of(read_line: Callable[[], bytes]) -> AsyncIterator[str]:
    """Lines from a blocking reader; an empty one is the end. Its thread holds up nobody's end: it is a daemon."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            while line := read_line():
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="tenure mcp stdin", daemon=True).start()
    while line := await lines.get():
        yield line.decode("utf-8", "replace")


def _params(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _json(body: bytes) -> Message:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _error(request_id: Any, code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})
