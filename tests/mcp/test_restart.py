"""A server is ended and started again under live sessions and waiting calls: nobody loses anything (real processes)."""

import asyncio
import contextlib
import itertools

import pytest
from board_server import BoardServer
from mcp.client.subscriptions import SubscriptionLost
from mcp_hall import client_of
from postgres_server import free_port

from tenure.board import endpoints, todos
from tenure.board.shapes import Filters, NewTodo

# Live sessions, waiting calls, open claims: a share for each run, and the whole of it for `make prove`.
SIZES = [pytest.param((10, 5, 3), id="10"), pytest.param((50, 20, 10), id="50", marks=pytest.mark.long)]


class Listener:
    """A client with a live session, which listens again when its stream ends, as a worker's runtime does."""

    def __init__(self, up):
        self.client, self.told, self._up = None, 0, up

    async def heard(self, message):
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.told += 1

    async def listen(self):
        """Listen again each time the stream ends; not at a closed door, which the SDK's client does not survive."""
        while True:
            await self._up.wait()
            with contextlib.suppress(SubscriptionLost):
                async with self.client.listen(tools_list_changed=True) as stream:
                    async for _ in stream:
                        self.told += 1
            await asyncio.sleep(0.1)


async def sessions(stack, server, up, *, vended, generation, count):
    """So many live sessions, one client each."""
    url, credential = f"http://127.0.0.1:{server.port}/mcp/{vended.endpoint.slug}", vended.credential.reveal()
    made = []
    for _ in range(count):
        one = Listener(up)
        options = {"message_handler": one.heard} if generation == "handshake" else {}
        one.client = await stack.enter_async_context(client_of(url, credential, generation, **options))
        await one.client.list_tools()  # else the SDK lists after its first call, when the server may be away
        if generation == "modern":
            task = asyncio.create_task(one.listen())
            stack.callback(task.cancel)
        made.append(one)
    return made


async def all_told(made, first_seconds):
    """Edit the default until every session has heard of an edit; streams come back when their clients like."""
    before = [one.told for one in made]
    async with asyncio.timeout(30):
        for lease in itertools.count(first_seconds):
            await made[0].client.call_tool("set_default_lease", {"default_lease_ttl_seconds": lease})
            await asyncio.sleep(0.5)
            if all(one.told > told for one, told in zip(made, before, strict=True)):
                return


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sizes", SIZES)
async def test_restart_under_live_streams_and_waiting_calls_loses_nothing(board, board_url, generation, sizes):
    """The next call of every client works, streams come back, claims keep their expiry; nothing is lost or doubled."""
    try:
        await restarted(board, board_url, generation, sizes)
    except ExceptionGroup as group:  # one within the other for each client: what it was is enough
        raise leaf(group) from None


def leaf(error):
    """The first exception inside the groups, without what led there."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    error.__context__ = error.__cause__ = None
    return error


async def restarted(board, board_url, generation, sizes):
    """The server is ended and started again under so many live sessions, waiting calls and open claims."""
    live, waiting, held = sizes
    vended = board.write(endpoints.vend, board.alice, name="worker")
    for number in range(held):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"held {number}"))
    server = await BoardServer(board_url, free_port()).start()
    try:
        async with contextlib.AsyncExitStack() as stack:
            up = asyncio.Event()
            up.set()
            made = await sessions(stack, server, up, vended=vended, generation=generation, count=live)
            await all_told(made, 1000)
            holder = made[0].client
            claims = (await holder.call_tool("claim_next", {"max": held})).structured_content["claims"]
            assert len(claims) == held
            waits = [
                asyncio.create_task(one.client.call_tool("claim_next", {"wait_seconds": 50})) for one in made[-waiting:]
            ]
            await asyncio.sleep(1)
            assert not any(task.done() for task in waits)

            await server.prepare()
            up.clear()
            took = await server.end()
            print(f"{generation}: SIGTERM to exit {took:.2f} s under {live} streams and {waiting} waits")
            assert server.process.returncode == 0
            assert took < 5, "it was cut off: something did not end by itself"
            for answer in await asyncio.gather(*waits):
                assert answer.structured_content["empty"] is True

            await server.start()
            up.set()
            answers = await asyncio.gather(*(one.client.call_tool("whoami", {}) for one in made))
            assert all(one.structured_content["endpoint"]["slug"] == vended.endpoint.slug for one in answers)
            for claim in claims:
                kept = await holder.call_tool(
                    "check_claim", {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"]}
                )
                assert kept.structured_content["held"] is True
                assert kept.structured_content["lease_expires_at"] == claim["lease_expires_at"]
            await all_told(made, 2000)
            for claim in claims:
                done = {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"]}
                assert not (await holder.call_tool("complete", done)).is_error
        ended = board.read(todos.list_page, board.alice, Filters(), None, 100).items
        assert [(one.shown, one.attempts) for one in ended] == [("done", 1)] * held
    finally:
        await server.end()


@pytest.mark.servers
@pytest.mark.timeout(300)
async def test_kill_9_of_one_server_loses_no_claim(board, board_url, generation):
    """What was granted before is held after, by the next server's word."""
    vended = board.write(endpoints.vend, board.alice, name="worker")
    todo = board.write(todos.create, board.alice, vended.endpoint, NewTodo("held")).todo.summary.id
    server = await BoardServer(board_url, free_port()).start()
    url = f"http://127.0.0.1:{server.port}/mcp/{vended.endpoint.slug}"
    credential = vended.credential.reveal()
    async with client_of(url, credential, generation) as client:
        (claim,) = (await client.call_tool("claim_next", {})).structured_content["claims"]
        await server.prepare()
        await server.end(how=9)
    await server.start()
    try:
        async with client_of(url, credential, generation) as client:
            done = await client.call_tool("complete", {"todo_id": todo, "lease_token": claim["lease_token"]})
            assert done.structured_content["state"] == "done"
    finally:
        await server.end()
