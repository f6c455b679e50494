"""The protocol's server: the tools that an endpoint's credential may see and call, each a thin call of a use case.

Everything is computed from the endpoint as it stood when the request was let in; nothing is registered, so nothing
can be stale. Arguments are judged by the models of `doors/wire`: the SDK judges none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from tenure.board.access import Endpoint, Worker
from tenure.board.board import Board
from tenure.board.buckets import spend
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.mcp import streams, words
from tenure.doors.mcp.calls import Call
from tenure.doors.wire.own import OWN_VERBS
from tenure.doors.wire.refusals import fault
from tenure.doors.wire.verb import Verb, granted, read
from tenure.doors.wire.verb import call as call_verb
from tenure.doors.wire.verbs import VERBS
from tenure.rules.endpoints import SELF

Context = ServerRequestContext[Any, Any]

# Where the door leaves a request's call in its ASGI scope.
CALL: Final = "tenure.call"
# Lists are the caller's own and stale at once: they change with an edit (B27).
PRIVATE: Final = CacheHint(ttl_ms=0, scope="private")
NAME_SHOWN: Final = 128
CATALOGUE: Final[Mapping[str, Verb]] = {**VERBS, **OWN_VERBS}


class BoardServer(Server[dict[str, Any]]):
    """The SDK's server, which tells handshake clients that the list of tools may change."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


def server(board: Board, version: str) -> BoardServer:
    """The server that answers for every endpoint of the board."""

    async def list_tools(ctx: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return listed(_call(ctx).worker.endpoint)

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        return await called(board, _call(ctx), params.name, params.arguments or {})

    async def listen(ctx: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        return await streams.listen(board, _call(ctx), ctx, params)

    made = BoardServer(
        "tenure",
        version=version,
        title="Tenure board",
        cache_hints={"tools/list": PRIVATE, "server/discover": PRIVATE},
        get_tool_input_schema=lambda name: schema(name) if name in CATALOGUE else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=listen,
    )
    made.middleware.append(instructed)
    return made


async def instructed(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Give the answers that open a session the instructions of the endpoint that opens it."""
    result = await call_next(ctx)
    if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
        result["instructions"] = words.instructions(_call(ctx).worker.endpoint)
    return result


def listed(endpoint: Endpoint) -> ListToolsResult:
    """What this endpoint may call, in the words that hold for it now."""
    tools = [
        Tool(
            name=verb,
            description=words.description(verb, endpoint),
            input_schema=schema(verb),
            annotations=_annotations(verb),
        )
        for verb in (*endpoint.verbs, *SELF)
    ]
    return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


class Declined(Exception):
    """The call is of a generation of the protocol that its endpoint does not speak."""


def declines_modern(board: Board, endpoint: Endpoint) -> bool:
    """Whether clients of the new generation are to fall back to the handshake, in which they hear of edits."""
    return (endpoint.mcp_era or board.settings.mcp_era) == "handshake"


async def called(board: Board, call: Call, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
    """Call a verb. What a model can mend is a result; an unknown or ungranted verb a program must mend (B27, B34)."""
    shown = name if len(name) <= NAME_SHOWN else f"{name[:NAME_SHOWN]}…"
    unknown = MCPError(INVALID_PARAMS, f"Unknown tool: {shown}")

    def worker_of(tx: Tx) -> Worker:
        worker = call.opens(tx)
        if call.modern and declines_modern(board, worker.endpoint):
            raise Declined
        if name not in CATALOGUE or not granted(worker, name):
            raise unknown
        return worker

    if call.refused is not None and granted(call.worker, name):
        return _result(fault(call.refused), is_error=True)
    verb = CATALOGUE.get(name)
    gone = asyncio.ensure_future(call.gone.wait())
    try:
        await spend(board, "own_settings" if name in words.SETS_OWN else "worker", call.endpoint_id)
        if verb is None:
            await board.database.read(worker_of)
            raise unknown
        return _result(await call_verb(board, verb, worker_of, read(verb.arguments, arguments), gone))
    except Refused as refused:
        if refused.refusal.code == "unauthenticated":
            call.denied = refused.refusal
        return _result(fault(refused.refusal), is_error=True)
    except Declined:
        call.declined = True
        raise unknown from None
    finally:
        gone.cancel()


def waits(message: Mapping[str, Any]) -> bool:
    """Whether the answer to this message may take a while: it is streamed then, and its client's leaving is heard."""
    match message:
        case {"method": "subscriptions/listen"}:
            return True
        case {"method": "tools/call", "params": {"name": "claim_next", "arguments": {"wait_seconds": wait}}}:
            return bool(wait)
        case _:
            return False


def quick(message: Mapping[str, Any]) -> bool:
    """Whether the message calls a tool that is answered at once."""
    return message.get("method") == "tools/call" and "id" in message and not waits(message)


@cache
def schema(verb: str) -> dict[str, Any]:
    """The schema of a verb's arguments, without the titles and the null branches of what may be left out anyway."""
    full = CATALOGUE[verb].arguments.model_json_schema()
    required = full.get("required", [])
    return {
        "type": "object",
        "properties": {name: _slim(value, optional=name not in required) for name, value in full["properties"].items()},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _slim(value: Mapping[str, Any], *, optional: bool) -> dict[str, Any]:
    kept = {key: one for key, one in value.items() if key != "title" and not (key == "default" and one is None)}
    if optional and "anyOf" in kept:
        branches = [one for one in kept.pop("anyOf") if one != {"type": "null"}]
        kept = {**branches[0], **kept} if len(branches) == 1 else {**kept, "anyOf": branches}
    return kept


def _annotations(verb: str) -> ToolAnnotations:
    """Hints for the host, without those that say what is assumed of a tool anyway."""
    if verb in words.READS:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ToolAnnotations(
        destructive_hint=verb in words.DESTRUCTIVE,
        idempotent_hint=True if verb in words.REPEATABLE else None,
        open_world_hint=False,
    )


def _result(answer: Mapping[str, Any], *, is_error: bool = False) -> CallToolResult:
    """The answer as structured content, and the same JSON as text: some hosts show their model only the one."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(text=text)], structured_content=dict(answer), is_error=is_error)


def _call(ctx: Context) -> Call:
    request: Any = ctx.request  # Starlette's, always there over HTTP
    call: Call = request.scope[CALL]
    return call
