"""Live sessions hear of an edit: the streams of that endpoint, on every server, and nobody else's (B30)."""

import asyncio
import contextlib

import pytest
from mcp_hall import listening, until

from tenure.board import endpoints

# Long enough for a notice to have come, if there were one.
SILENCE_SECONDS = 0.4


def edit(board, vended, seconds):
    board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, seconds)


async def test_b30_an_edit_reaches_every_live_session_of_its_endpoint_on_both_servers(board, pair, generation):
    """Each hears of it within two seconds and reads the new number; another endpoint's session hears nothing."""
    one, two = pair
    mine = board.write(endpoints.vend, board.alice, name="mine")
    other = board.write(endpoints.vend, board.alice, name="other")
    bobs = board.write(endpoints.vend, board.bob, name="bobs")
    async with (
        listening(one, mine, generation) as here,
        listening(two, mine, generation) as there,
        listening(two, other, generation) as elsewhere,
        listening(one, bobs, generation) as strange,
    ):
        edit(board, mine, 1800)
        await here.told()
        await there.told()
        for session in (here, there):
            for verb in ("claim", "claim_next", "heartbeat"):
                assert "1800 seconds" in await session.description(verb)
                assert "this endpoint's default" in await session.description(verb)
        assert await elsewhere.silent()
        assert await strange.silent()
        assert await here.silent()


async def test_b30_the_same_value_again_is_silent_and_a_reset_is_not(board, served, generation):
    """The same stored value tells nobody; null to 300 changes whose it is, and is told; other settings are silent."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with listening(served, mine, generation) as session:
        assert await session.silent()
        edit(board, mine, None)
        board.write(endpoints.set_display_name, board.alice, mine.endpoint.slug, "Another name")
        board.write(endpoints.set_presence, board.alice, mine.endpoint.slug, "out")
        assert await session.silent()
        edit(board, mine, 300)
        await session.told()
        assert "300 seconds (this endpoint's default)" in await session.description()
        edit(board, mine, 300)
        assert await session.silent()
        edit(board, mine, None)
        await session.told()
        assert "300 seconds (the server default)" in await session.description()


async def test_b30_an_edit_there_and_back_is_told(board, served, generation):
    """Who listed in between the two has the wrong number: whether they were folded or not, there is a notice."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with listening(served, mine, generation) as session:
        edit(board, mine, 900)
        edit(board, mine, None)
        await session.told()


async def test_b25_a_revoke_ends_the_streams_of_its_endpoint_on_both_servers(board, pair, generation):
    """And of no other."""
    one, two = pair
    mine = board.write(endpoints.vend, board.alice, name="mine")
    other = board.write(endpoints.vend, board.alice, name="other")
    async with (
        listening(one, mine, generation),
        listening(two, mine, generation),
        listening(two, other, generation),
    ):
        doors = {one.door, two.door}
        assert sum(len(door.calls) for door in doors) == 3
        board.write(endpoints.revoke, board.alice, mine.endpoint.slug)
        await until(lambda: sum(len(door.calls) for door in doors) == 1)


async def test_b21_a_rotated_credential_ends_its_streams(board, served, generation):
    """Without an overlap at once."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with listening(served, mine, generation):
        board.write(endpoints.rotate, board.alice, mine.endpoint.slug, 0)
        await until(lambda: not len(served.door.calls))


async def test_b21_a_stream_ends_with_the_overlap_of_its_credential(board, served, generation):
    """Nobody rings then; the new credential's stream goes on."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with listening(served, mine, generation):
        new = board.write(endpoints.rotate, board.alice, mine.endpoint.slug, 1)
        async with listening(served, new, generation):
            await until(lambda: len(served.door.calls) == 1, 8)


async def test_b30_what_agents_do_not_read_is_told_to_none(board, served, generation):
    """Not when a rotation or an edit of its generation makes the server look, whatever else was edited before."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with listening(served, mine, generation) as session:
        for name in ("one", "two"):
            board.write(endpoints.set_display_name, board.alice, mine.endpoint.slug, name)
        board.write(endpoints.rotate, board.alice, mine.endpoint.slug, 3600)
        board.write(endpoints.set_era, board.alice, mine.endpoint.slug, "both")
        assert await session.silent()


async def events(stream):
    """The events of a raw GET stream, as dictionaries."""
    event = {}
    async for line in stream.aiter_lines():
        if not line and event:
            yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            event[name] = value.strip()


@contextlib.asynccontextmanager
async def raw_stream(served, vended, last_event_id=None):
    headers = {"last-event-id": last_event_id} if last_event_id is not None else {}
    async with (
        served.http(vended) as http,
        http.stream("GET", f"/mcp/{vended.endpoint.slug}", headers=headers) as stream,
    ):
        yield stream, events(stream)


async def test_b30_a_stream_that_comes_back_with_an_older_id_gets_one_notice(board, served):
    """Its id is of before the edit that it missed; with the newest id there is nothing to tell."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    async with raw_stream(served, mine) as (_, told):
        first = await anext(told)
        assert first["data"] == ""
    edit(board, mine, 900)
    for last, expected in ((first["id"], "notifications/tools/list_changed"), ("nonsense", "list_changed")):
        async with raw_stream(served, mine, last) as (_, told):
            again = await anext(told)
            assert expected in again["data"]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(told), SILENCE_SECONDS)
    async with raw_stream(served, mine, again["id"]) as (_, told):
        assert (await anext(told))["data"] == ""
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(told), SILENCE_SECONDS)


def asking(vended, generation, method, params):
    """A POST whose answer is a stream, as each generation spells it."""
    headers = {}
    if generation == "modern":
        meta = "io.modelcontextprotocol/"
        params = {**params, "_meta": {f"{meta}protocolVersion": "2026-07-28", f"{meta}clientCapabilities": {}}}
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": params.get("name", "")}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return {"url": f"/mcp/{vended.endpoint.slug}", "json": message, "headers": headers}


@pytest.fixture
def impatient(monkeypatch):
    """Pings each fifth of a second, where ordinary ones come within 20 s: ours, and those of the SDK."""
    from mcp.server import _streamable_http_modern as modern
    from sse_starlette import EventSourceResponse as Sse

    from tenure.doors.mcp import streams

    for place, name in ((streams, "PING_SECONDS"), (modern, "_SSE_PING_INTERVAL"), (Sse, "DEFAULT_PING_INTERVAL")):
        assert 0 < getattr(place, name) <= 20
        monkeypatch.setattr(place, name, 0.2)


@pytest.mark.usefixtures("impatient")
async def test_case_b59_the_first_event_comes_at_once_and_silence_is_broken_within_20_s(board, served, generation):
    """Proxies that buffer are told not to; those that cut idle streams hear a ping."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    asked = {"method": "GET", "url": f"/mcp/{mine.endpoint.slug}"}
    if generation == "modern":
        params = {"notifications": {"toolsListChanged": True}}
        asked = {"method": "POST", **asking(mine, generation, "subscriptions/listen", params)}
    async with served.http(mine) as http, http.stream(**asked) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["x-accel-buffering"] == "no"
        assert "no-transform" in stream.headers["cache-control"]
        lines = stream.aiter_lines()
        async with asyncio.timeout(5):
            assert not (await anext(lines)).startswith(":"), "a ping came before the first event"
            while (await anext(lines)) != ": ping":
                pass


@pytest.mark.usefixtures("impatient")
async def test_case_b59_a_waiting_call_is_never_silent_for_20_s(board, served, generation):
    """Its answer is a stream too, and says that it is alive until there is one."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    asked = asking(mine, generation, "tools/call", {"name": "claim_next", "arguments": {"wait_seconds": 50}})
    async with served.http(mine) as http, http.stream("POST", **asked) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        async with asyncio.timeout(5):
            pings = 0
            async for line in stream.aiter_lines():
                pings += line.startswith(": ping")
                if pings == 2:
                    break


async def test_limits_an_endpoint_has_so_many_streams_and_no_more(board, served, monkeypatch):
    """One too many is 429 and says what to do; another endpoint is not concerned."""
    from tenure.doors.mcp import calls

    monkeypatch.setattr(calls, "OPEN_LIMIT", 2)
    mine = board.write(endpoints.vend, board.alice, name="mine")
    other = board.write(endpoints.vend, board.alice, name="other")
    async with raw_stream(served, mine) as (_, one), raw_stream(served, mine) as (_, two):
        await anext(one)
        await anext(two)
        async with raw_stream(served, mine) as (refused, _):
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
        async with raw_stream(served, other) as (fine, _):
            assert fine.status_code == 200


async def test_b25_a_server_that_can_not_hear_for_a_second_ends_its_streams(board, served, generation, monkeypatch):
    """What was revoked meanwhile it doesn't know; and it opens no stream until it hears again."""
    mine = board.write(endpoints.vend, board.alice, name="mine")
    notices = served.board.notices
    async with listening(served, mine, generation):
        for name in ("_trust", "_deafen"):  # the connection itself is well, and would say so
            monkeypatch.setattr(notices, name, lambda: None)
        notices.connected = False
        for step in notices.on_deaf:
            step()
        await until(lambda: not len(served.door.calls))
        async with raw_stream(served, mine) as (refused, _):
            assert refused.status_code == 503
        notices.connected = True
        async with raw_stream(served, mine) as (fine, _):
            assert fine.status_code == 200
