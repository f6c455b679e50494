"""Live sessions: how an endpoint's open streams hear that what agents read has changed (B30).

A handshake client listens on a GET stream, one of 2026-07-28 on the answer to `subscriptions/listen`. Both hang on
`changes`, which reads the endpoint with the stream's own credential each time a notice says that it is worth a look:
a notice is a hint, and a credential that opens nothing any more ends its streams.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult
from starlette.types import Receive, Send

from tenure.board.board import Board
from tenure.board.refused import Refused
from tenure.doors.mcp.calls import Call

# Proxies cut what is silent for a minute; cases of the field ask for 20 s or less.
PING_SECONDS: Final = 15.0
# A client that lost its stream is asked to come back after so long: a restart is over by then.
RETRY_MS: Final = 5000
# A reader that has stopped reading isn't waited for.
LAST_WORDS_SECONDS: Final = 1.0
# Each so many pings an endpoint is looked at, although nothing was heard.
LOOK_AGAIN: Final = 4
# While the database is away, what it would say is asked for again so often.
AWAY_SECONDS: Final = 1.0

LIST_CHANGED: Final = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


async def changes(board: Board, call: Call) -> AsyncIterator[int | None]:
    """The endpoint's revision each time agents should read its tools anew; None when nothing came for a ping's time.

    Ends when the call's credential opens its endpoint no more.
    """
    loop = asyncio.get_running_loop()
    seen, pings, over = call.worker.endpoint, 0, math.inf
    with board.notices.ear(("endpoint", seen.id), ("ended", seen.id)) as ear:
        ear.ring()  # what happened since the call was let in is not known
        while True:
            rung = await ear.wait(min(PING_SECONDS, over - loop.time()))
            if not rung and loop.time() < over:
                yield None
                pings += 1
                if pings % LOOK_AGAIN:
                    continue
            try:
                worker = await call.again()
            except Refused as refused:
                if refused.refusal.code == "unauthenticated":
                    return
                await asyncio.sleep(AWAY_SECONDS)
                ear.ring()
                continue
            over = math.inf if worker.lasts_ms is None else loop.time() + worker.lasts_ms / 1000
            now = worker.endpoint
            # Several edits at once may have led back to the lease that was told: whoever listed in between is told.
            if now.lease_revision != seen.lease_revision:
                yield now.revision
            seen = now


async def get_stream(board: Board, call: Call, last_event_id: str | None, receive: Receive, send: Send) -> None:
    """Answer a GET: one stream of notices, whose event ids are the endpoint's revisions."""
    revision = call.worker.endpoint.revision

    async def frame(text: str) -> None:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def frames() -> None:
        missed = last_event_id not in (None, str(revision))
        await frame(f"id: {revision}\nretry: {RETRY_MS}\ndata: {LIST_CHANGED if missed else ''}\n\n")
        async for changed in changes(board, call):
            await frame(": ping\n\n" if changed is None else f"id: {changed}\ndata: {LIST_CHANGED}\n\n")

    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await until_gone(call, frames, receive)
    with anyio.move_on_after(LAST_WORDS_SECONDS):
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_gone(call: Call, run: Callable[[], Awaitable[None]], receive: Receive | None = None) -> None:
    """Run until it ends or the call does, whichever comes first."""
    async with anyio.create_task_group() as tasks:

        async def gone() -> None:
            await call.gone.wait()
            tasks.cancel_scope.cancel()

        async def hangs_up() -> None:
            hear = call.hearing(receive) if receive else None
            while hear and not call.gone.is_set():
                await hear()

        tasks.start_soon(gone)
        tasks.start_soon(hangs_up)
        await run()
        tasks.cancel_scope.cancel()


async def listen(
    board: Board, call: Call, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Answer `subscriptions/listen`: the same notices, in the words of 2026-07-28."""
    bus = InMemorySubscriptionBus()
    stream = ListenHandler(bus)

    async def publish() -> None:
        async for changed in changes(board, call):
            if changed is not None:  # the SDK sends its own pings
                await bus.publish(ToolsListChanged())

    async def publish_until_gone() -> None:
        await until_gone(call, publish)
        stream.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish_until_gone)
        result = await stream(ctx, params)
        tasks.cancel_scope.cancel()
    return result
