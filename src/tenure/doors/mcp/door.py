"""The ASGI app of `/mcp/{slug}`: who may come in, in which generation of the protocol, and who answers.

Sessions are kept nowhere: every POST carries the credential that says who asks, so that any server answers any of
them and a restart loses none. The session id that handshake clients want is drawn and forgotten; it has no authority,
and only tells apart which of an endpoint's calls a cancellation means. Verbs stand in `doors/wire`, words in `words`.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Collection, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types import INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenure.board.access import UNAUTHENTICATED
from tenure.board.board import Board
from tenure.board.buckets import spend
from tenure.board.refused import Refused
from tenure.doors.mcp import streams, tools
from tenure.doors.mcp.calls import DEAF, Call, Calls
from tenure.doors.wire.refusals import PROBLEM, STATUS, problem
from tenure.doors.wire.strict import NotJson, parse
from tenure.rules.refusal import Refusal

BODY_BYTES: Final = 4 * 1024 * 1024
TOO_LARGE: Final = Refusal("payload_too_large", f"A request may have {BODY_BYTES} bytes at most.")
SESSION: Final = b"mcp-session-id"
REMEMBERED: Final = 10_000

_SLUG: Final = re.compile(r".*/mcp/([^/]+)/?")
_BEARER: Final = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
# A message of JSON-RPC, or one of ASGI.
Message = MutableMapping[str, Any]
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Door:
    """The MCP door of one server. `async with door.open():` around its serving; `drain()` before it stops."""

    def __init__(self, board: Board, version: str, hosts: Collection[str]) -> None:
        self._board = board
        self.calls = Calls(board)
        self._guard = TransportSecurityMiddleware(allowed(board.settings.public_url, hosts))
        server = tools.server(board, version)
        # What waits is answered by a stream, which tells when its client hangs up; the rest by one JSON body, at less
        # than half the cost.
        self._quick = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
        self._waiting = StreamableHTTPSessionManager(server, stateless=True)
        self._known: OrderedDict[str, str] = OrderedDict()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """What must run while requests are answered."""
        async with self._quick.run(), self._waiting.run():
            yield

    def drain(self) -> None:
        """End all streams and waiting calls, the latter with a clean "nothing". This server stops."""
        self.calls.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        # Blanks around a header's value are no part of it (RFC 9110); the server hands them on.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        try:
            # Host and Origin first, then the credential: whoever has none learns nothing more.
            if (stranger := await self._guard.validate_request(Request(scope))) is not None:
                await stranger(scope, receive, send)
            else:
                await self._answer(self._call(scope), scope, receive, send)
        except Refused as refused:
            await refusal_response(refused.refusal)(scope, receive, send)
        except _NoMessage as error:
            await _error(None, error.code, str(error))(scope, receive, send)

    def _call(self, scope: Scope) -> Call:
        headers = Headers(scope=scope)
        path, given = _SLUG.fullmatch(scope["path"]), headers.getlist("authorization")
        bearer = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        if path is None or bearer is None:
            raise Refused(UNAUTHENTICATED)
        modern = headers.get("mcp-protocol-version") not in (None, *HANDSHAKE_PROTOCOL_VERSIONS)
        return Call(self._board, bearer[1], path[1], modern=modern)

    async def _answer(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await self._post(call, scope, receive, send)
            return
        await call.identify()
        if scope["method"] != "GET" or call.modern:
            await Response(status_code=405, headers={"allow": "GET, POST"})(scope, receive, send)
            return
        await spend(self._board, "worker", call.endpoint_id)
        self._hears()
        with self.calls.opened(call):
            last = Headers(scope=scope).get("last-event-id")
            await streams.get_stream(self._board, call, last, receive, send)

    async def _post(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        call.endpoint_id = self._known.get(call.key, "")
        if not call.endpoint_id:  # of a credential that is new here nothing is read before it is known
            await call.identify()
            self._remember(call)
        try:
            body = await _body(receive)
            message = _message(body)
        except (Refused, _NoMessage):
            await call.identify()
            raise
        session = Headers(scope=scope).get("mcp-session-id", "")
        async with contextlib.AsyncExitStack() as stack:
            if session and not call.modern and tools.waits(message):
                # Before anything is awaited, so that a cancellation that came right behind overtakes nothing.
                await stack.enter_async_context(self.calls.cancellable(call, session, message.get("id")))
            if not tools.quick(message):  # a tool that is answered at once reads by itself what the credential opens
                worker = await call.identify()
                if call.modern and tools.declines_modern(self._board, worker.endpoint):
                    await _unsupported(message, scope)(scope, receive, send)
                    return
                if message.get("method") != "tools/call":  # which is counted as the verb that it is
                    await spend(self._board, "worker", call.endpoint_id)
            scope = {**scope, tools.CALL: call}
            await self._hand_on(call, message, scope, _replay(body, call.hearing(receive)), send)

    async def _hand_on(self, call: Call, message: Message, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the message to the SDK; but a cancellation is for us, who find the call on whatever server."""
        session, params = Headers(scope=scope).get("mcp-session-id", ""), message.get("params")
        if not call.modern and message.get("method") == "notifications/cancelled" and "id" not in message:
            if session and isinstance(params, dict):
                await self.calls.cancel(call, session, params.get("requestId"))
            await Response(status_code=202)(scope, receive, send)
        elif not tools.waits(message):
            unless_denied = self._unless_denied(call, message, scope, receive, send)
            await self._quick.handle_request(scope, receive, _with_session(message, unless_denied))
        else:
            if message["method"] != "tools/call":
                self._hears()
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(self.calls.opened(call))
                except Refused as refused:
                    if message["method"] != "tools/call":
                        raise
                    call.refused = refused.refusal  # a model can mend that, and hears it as the tool's result (B34)
                await self._waiting.handle_request(scope, receive, send)

    def _unless_denied(self, call: Call, message: Message, scope: Scope, receive: Receive, send: Send) -> Send:
        """For a tool that is answered at once: its answer, or what is said to who may not ask for one."""

        async def sent(part: Message) -> None:
            if part["type"] == "http.response.start" and not call.read:  # the SDK refused what it was sent
                try:
                    await call.identify()
                except Refused as refused:
                    call.denied = refused.refusal
            if call.denied is None and not call.declined:
                await send(part)
            elif part["type"] == "http.response.start":
                self._known.pop(call.key, None)
                instead = refusal_response(call.denied) if call.denied is not None else _unsupported(message, scope)
                await instead(scope, receive, send)

        return sent

    def _hears(self) -> None:
        """Refuse to open a stream that would be told of nothing."""
        if not self._board.notices.connected:
            raise Refused(DEAF)

    def _remember(self, call: Call) -> None:
        """Remember in whose bucket the calls with this credential are counted. It opens nothing."""
        self._known[call.key] = call.endpoint_id
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


class _NoMessage(Exception):
    """The body is no message of JSON-RPC: why, and with which code that is answered."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def allowed(public_url: str, more: Collection[str]) -> TransportSecuritySettings:
    """The hosts and origins that may be named: this machine's own, and those that the board is known by."""
    public = urlsplit(public_url)
    names = (*LOOPBACK, public.hostname or "", *more)
    hosts = [form for name in names for form in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def refusal_response(refusal: Refusal) -> Response:
    """A refusal as an HTTP answer: before a request is understood there is no tool's result to put it in."""
    headers = {}
    if refusal.code == "unauthenticated":
        headers["www-authenticate"] = 'Bearer realm="tenure"'
    if "retry_after_seconds" in refusal.details:
        headers["retry-after"] = str(refusal.details["retry_after_seconds"])
    return Response(json.dumps(problem(refusal)), STATUS[refusal.code], headers, PROBLEM)


def _message(body: bytes) -> Message:
    """The message that the body spells. Raises _NoMessage."""
    try:
        message = parse(body)
    except NotJson as error:
        raise _NoMessage(PARSE_ERROR, f"Parse error: the body {error}.") from None
    if not isinstance(message, dict):
        raise _NoMessage(INVALID_REQUEST, "The body must be one JSON-RPC message.")
    return message


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            raise Refused(TOO_LARGE)
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out the body that was read, and then what comes after it."""
    first: deque[Message] = deque([{"type": "http.request", "body": body, "more_body": False}])

    async def replayed() -> Message:
        return first.popleft() if first else await receive()

    return replayed


def _with_session(message: Message, send: Send) -> Send:
    """For the answer to `initialize`: a session id, without which handshake clients open no stream."""
    if message.get("method") != "initialize":
        return send

    async def sent(part: Message) -> None:
        if part["type"] == "http.response.start" and part["status"] == 200:
            headers = [*part["headers"], (SESSION, secrets.token_hex(16).encode())]
            part = {**part, "headers": headers}
        await send(part)

    return sent


def _error(request_id: Any, code: int, message: str, data: Any = None) -> Response:
    """A JSON-RPC error that is answered with HTTP 400."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return Response(
        json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}), 400, media_type="application/json"
    )


def _unsupported(message: Message, scope: Scope) -> Response:
    """What makes a client of the new generation fall back to the handshake, in which it hears of edits."""
    known = message.get("id") if isinstance(message.get("id"), str | int) else None
    requested = Headers(scope=scope).get("mcp-protocol-version")
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": requested}
    return _error(known, UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
