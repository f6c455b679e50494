"""Notices over a connection that fails in the worst way: nothing arrives any more, and nobody says so (B25)."""

import asyncio
import time

import pytest
from proxy import ANSWERS, BOTH, Proxy, target_of, through

from tenure.board.database import Database
from tenure.board.notices import ASK_SECONDS, SILENCE_SECONDS, Notices


async def until(true, seconds):
    """Wait until it is true, at most so long."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - another server's doing
            await asyncio.sleep(0.01)


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("lost", [BOTH, (ANSWERS,)], ids=["both ways", "answers"])
def test_b25_a_connection_that_is_swallowed_is_deaf_within_the_silence(board, lost):
    """No error tells of it: the server finds it out by itself, says so once, and hears again when it can."""
    proxy = Proxy(target_of(board.database.url))
    database = Database(through(proxy, board.database.url))
    asyncio.run(_swallowed(board, proxy, lost, Notices(database)))
    database.shut()
    proxy.close()


async def _swallowed(board, proxy, lost, notices):
    deafened = []
    notices.on_deaf.append(lambda: deafened.append(time.monotonic()))
    await notices.open()
    await until(lambda: notices.connected, 10)
    await asyncio.sleep(2 * SILENCE_SECONDS)
    assert not deafened  # quiet is not deaf
    proxy.lose(*lost)
    began = time.monotonic()
    await until(lambda: deafened, 20)
    assert deafened[0] - began >= SILENCE_SECONDS - ASK_SECONDS
    assert (notices.connected, notices.deaf) == (False, True)
    proxy.heal()
    with notices.ear(("todo", "one")) as ear:
        await until(lambda: notices.connected and not notices.deaf, 20)
        assert await ear.wait(5)  # something may have been missed
        await board.database.write(lambda tx: tx.notify("todo", "one"))
        assert await ear.wait(5)
    assert len(deafened) == 1
    await notices.close()


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
async def test_b47_what_is_gathered_is_told_also_after_it_once_could_not_be(board, board_url, monkeypatch):
    """Whatever it was, it ends no more than that one: boards stay live."""
    failed = asyncio.Event()

    async def write(*_):
        failed.set()
        raise RuntimeError

    await board.notices.open()
    try:
        await until(lambda: board.notices.connected, 10)
        with monkeypatch.context() as broken:
            broken.setattr(board.database, "write", write)
            board.database.gather(("board", "lost"))
            await failed.wait()
        with board.notices.ear(("board", "x")) as ear:
            board.database.gather(("board", "x"))
            assert await ear.wait(10)
    finally:
        await board.notices.close()
