"""`claim_next` that waits (B32, B38): woken by what becomes ready, ended by revoke, deaf ears and hung-up callers."""

import asyncio
import contextlib
import time

import pytest
from board_worker import Hands

from tenure.board import endpoints, reaper, todos, waiting
from tenure.board.access import worker_by_credential
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo, Next
from tenure.rules.endpoints import ALL


@pytest.fixture
def hands(board):
    """A worker on an endpoint of Alice's."""
    return Hands(board, board.vend(verbs=ALL))


def listening(case):
    """The test as a coroutine, with the board's notices open."""

    def run(hands, *args, **kwargs):
        async def whole():
            await hands.board.open()
            while not hands.board.notices.connected:  # noqa: ASYNC110 - another server's doing
                await asyncio.sleep(0.01)
            try:
                await case(hands, *args, **kwargs)
            finally:
                await hands.board.notices.close()

        asyncio.run(whole())

    run.__name__, run.__doc__ = case.__name__, case.__doc__
    return run


def wait(hands, seconds=20, gone=None, **ask):
    """A waiting call, as a task."""
    credential = hands.vended.credential.reveal()

    def worker_of(tx):
        return worker_by_credential(tx, hands.board, credential)

    return asyncio.ensure_future(waiting.wait_and_claim(hands.board, worker_of, Next(**ask), seconds, gone))


async def do(hands, case, *args, **kwargs):
    """A use case of Alice's."""
    return await hands.board.database.write(case, hands.board, hands.board.alice, *args, **kwargs)


async def put(hands, **new):
    return await do(hands, todos.create, hands.vended.endpoint, NewTodo("a todo", **new))


@contextlib.contextmanager
def by_rings_alone():
    """Who waits looks again when it is told to, and not by itself."""
    usual, waiting.LOOK_SECONDS = waiting.LOOK_SECONDS, 60
    try:
        yield
    finally:
        waiting.LOOK_SECONDS = usual


async def settled(task):
    """Give the task the time to look and to listen; it still waits."""
    await asyncio.sleep(0.3)
    assert not task.done()


@listening
async def test_b32_a_new_todo_wakes_who_waits(hands):
    """Long before the wait, or the next look by itself, is over."""
    with by_rings_alone():
        task = wait(hands, 50)
        await settled(task)
        await put(hands)
        assert len((await asyncio.wait_for(task, 20)).granted) == 1


@listening
async def test_b32_what_is_ready_is_not_waited_for(hands):
    """Neither is nothing, with a wait of 0."""
    assert (await wait(hands, 0)).empty
    await put(hands)
    assert len((await wait(hands)).granted) == 1


@listening
async def test_b32_a_wait_has_an_end(hands):
    """Nothing came: a success, and empty."""
    claimed = await wait(hands, 0.2)
    assert claimed.empty
    assert claimed.now > 0


@listening
async def test_b32_a_wait_is_bounded(hands):
    """0 to 50 seconds."""
    for seconds in (-1, 50.5):
        with pytest.raises(Refused) as refused:
            await wait(hands, seconds)
        assert refused.value.refusal.details["field"] == "wait_seconds"


@listening
async def test_case_b27_a_doorbell_for_many_gives_one_worker(hands):
    """Six wait, one todo comes: one gets it, the others go on waiting."""
    tasks = [wait(hands, 1.5) for _ in range(6)]
    await asyncio.sleep(0.3)
    await put(hands)
    await put(hands, queue="inbox")
    got = await asyncio.gather(*tasks)
    assert sorted(len(one.granted) for one in got) == [0, 0, 0, 0, 1, 1]


@listening
async def test_b05_the_reaper_wakes_who_waits(hands):
    """What lapsed is ready, and somebody waits for it."""
    await put(hands)
    first = await wait(hands, 0, lease_ttl_seconds=60)
    with by_rings_alone():
        task = wait(hands, 50)
        await settled(task)
        hands.board.clock.turn(seconds=61)
        await hands.board.database.write(reaper.reap, hands.board)
        again = await asyncio.wait_for(task, 20)
    assert again.granted[0].todo.summary.id == first.granted[0].todo.summary.id
    assert again.granted[0].attempt == 2


def released(hands, other):
    hands.put()
    granted = hands.take()
    return lambda: hands.release(granted)


def released_on_the_board(hands, other):
    todo_id = hands.put()
    hands.take()
    return lambda: hands.board.write(todos.board_release, hands.human, todo_id)


def needed_done(hands, other):
    hands.put("waits", depends_on=(hands.put("needed"),))
    granted = hands.take()
    return lambda: hands.complete(granted)


def tried_again(hands, other):
    todo_id = hands.put()
    hands.fail(hands.take())
    return lambda: hands.board.write(todos.retry, hands.human, todo_id)


def due_again(hands, other):
    hands.put()
    hands.fail(hands.take())
    hands.board.clock.turn(minutes=1)
    return lambda: hands.board.write(reaper.reap)


def time_has_come(hands, other):
    hands.put(not_before=hands.board.read(lambda tx, _: tx.now()) + 1_000)
    hands.board.clock.turn(seconds=1)
    return lambda: hands.board.write(reaper.reap)


def moved_here(hands, other):
    todo_id = other.put()
    return lambda: hands.board.write(todos.move, hands.human, todo_id, hands.vended.endpoint)


WAYS = (released, released_on_the_board, needed_done, tried_again, due_again, time_has_come, moved_here)


@listening
async def test_b32_whatever_makes_a_todo_ready_rings_who_waits(hands):
    """Each way to `ready`: the ear of that endpoint rings, and another's does not."""
    board = hands.board
    other = Hands(board, board.vend(name="other"))
    for way in WAYS:
        step = await asyncio.to_thread(way, hands, other)
        await asyncio.sleep(0.3)  # what was told of the preparation has been heard
        with (
            board.notices.ear(("todo", hands.vended.endpoint.id)) as ear,
            board.notices.ear(("todo", other.vended.endpoint.id)) as strange,
        ):
            await asyncio.to_thread(step)
            assert await ear.wait(5), way.__name__
            assert not await strange.wait(0), way.__name__
        (granted,) = await asyncio.to_thread(lambda: hands.next(max=9).granted)
        await asyncio.to_thread(hands.complete, granted)


@listening
async def test_b25_a_revoke_ends_a_wait_at_once(hands):
    """With the one 401; by the ring, not by the next look of the call's own."""
    with by_rings_alone():
        task = wait(hands, 50)
        await settled(task)
        await do(hands, endpoints.revoke, hands.vended.endpoint.slug)
        with pytest.raises(Refused) as refused:
            await asyncio.wait_for(task, 20)
    assert refused.value.refusal.code == "unauthenticated"


@listening
async def test_b25_a_deaf_server_ends_its_waits(hands):
    """The notice connection has been gone for a second: nothing is claimed by who may have been revoked meanwhile."""
    task = wait(hands)
    await settled(task)
    for step in tuple(hands.board.notices.on_deaf):
        step()
    assert (await asyncio.wait_for(task, 1)).empty
    assert hands.board.notices.on_deaf == []


@listening
async def test_b25_a_wait_that_begins_while_deaf_ends_as_soon(hands):
    """It looks: what is ready is claimed, and else there is nothing, within the silence and not at the deadline."""
    await hands.board.notices.close()
    hands.board.notices.deaf = True
    assert (await asyncio.wait_for(wait(hands, 50), 5)).empty
    await put(hands)
    assert len((await wait(hands, 50)).granted) == 1


@listening
async def test_b38_while_out_nobody_is_woken(hands):
    """Out: a new todo wakes nobody; at its deadline the call looks once more, and may pull."""
    await do(hands, endpoints.set_presence, hands.vended.endpoint.slug, "out")
    task = wait(hands, 1.2)
    await settled(task)
    await put(hands)
    await settled(task)
    assert len((await task).granted) == 1


@listening
async def test_b38_who_comes_in_is_woken(hands):
    """What has waited meanwhile is claimed at once."""
    await do(hands, endpoints.set_presence, hands.vended.endpoint.slug, "out")
    with by_rings_alone():
        task = wait(hands, 50)
        await settled(task)
        await put(hands)
        await settled(task)
        await do(hands, endpoints.set_presence, hands.vended.endpoint.slug, "in")
        assert len((await asyncio.wait_for(task, 20)).granted) == 1


@listening
async def test_b38_who_comes_in_once_more_is_woken(hands):
    """Came in, was out again by the shift, and comes in as before: until when is all that is new in the row."""
    slug = hands.vended.endpoint.slug
    away = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[(time.gmtime().tm_wday + 3) % 7]
    await do(hands, endpoints.set_shift, slug, f"TZ=UTC {away} 09:00-10:00")
    await do(hands, endpoints.set_presence, slug, "in", 60)
    hands.board.clock.turn(seconds=61)
    with by_rings_alone():
        task = wait(hands, 50)
        await settled(task)
        await put(hands)
        await settled(task)
        await do(hands, endpoints.set_presence, slug, "in", 60)
        assert len((await asyncio.wait_for(task, 20)).granted) == 1


@listening
async def test_b32_nothing_is_claimed_for_who_has_gone(hands):
    """The caller hangs up, or the server drains: an empty answer, and the todo stays ready for others."""
    gone = asyncio.Event()
    task = wait(hands, gone=gone.wait())
    await settled(task)
    gone.set()
    assert (await asyncio.wait_for(task, 1)).empty
    await put(hands)
    (lane,) = await do(hands, todos.counts)
    assert (lane.shown, lane.total) == ("pending", 1)


@listening
async def test_b32_a_claim_made_in_the_moment_of_going_is_given_back(hands):
    """Gone before the look was over: rolled back, or released; the todo is ready either way."""
    await put(hands)
    loop = asyncio.get_running_loop()
    gone = loop.create_future()
    gone.set_result(None)
    assert (await wait(hands, gone=gone)).empty
    (lane,) = await do(hands, todos.counts)
    assert lane.shown == "pending"


@listening
async def test_b32_a_claim_whose_caller_has_gone_is_given_back_without_the_verb(hands):
    """Gone after the commit, at an endpoint that may not release: the server gives it back, and counts nothing."""
    board = hands.board
    bare = Hands(board, board.vend(name="bare", verbs=["claim_next"]))
    todo_id = await asyncio.to_thread(bare.put)
    gone, write = asyncio.get_running_loop().create_future(), board.database.write

    async def write_then_go(case, *args, **kwargs):
        answer = await write(case, *args, **kwargs)
        if not gone.done():
            gone.set_result(None)
            await asyncio.sleep(0.05)  # those who wait for it are told
        return answer

    board.database.write = write_then_go
    assert (await wait(bare, gone=gone)).empty
    seen = await asyncio.to_thread(bare.see, todo_id)
    assert (seen.summary.state, seen.summary.failures, seen.attempts[0].end) == ("pending", 0, "released")


@listening
async def test_b12a_a_claim_with_a_request_id_is_told_when_the_server_stops_in_that_moment(hands):
    """It is not given back, for whoever hung up asks again; and whoever is still there must not hear "nothing"."""
    await put(hands)
    board, gone = hands.board, asyncio.get_running_loop().create_future()
    write = board.database.write

    async def write_then_stop(case, *args, **kwargs):
        answer = await write(case, *args, **kwargs)
        if not gone.done():
            gone.set_result(None)
            await asyncio.sleep(0.05)
        return answer

    board.database.write = write_then_stop
    claimed = await wait(hands, gone=gone, request_id="0123456789abcdef")
    board.database.write = write
    assert len(claimed.granted) == 1
    again = await wait(hands, 0, request_id="0123456789abcdef")
    assert (again.repeated, again.granted[0].lease.token) == (True, claimed.granted[0].lease.token)


@listening
async def test_b32_a_cancelled_call_claims_nothing(hands):
    """A task that was cancelled while its look ran in a thread leaves nothing claimed."""
    for _ in range(5):
        task = wait(hands)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await put(hands)
    await asyncio.sleep(0.2)
    (lane,) = await do(hands, todos.counts)
    assert lane.shown == "pending"


@listening
async def test_b32_a_call_that_is_cancelled_while_its_claim_is_committed_gives_it_back(hands):
    """The commit can't be taken back, and nobody is there any more to be told of it."""
    await put(hands)
    board, committed, told = hands.board, asyncio.Event(), asyncio.Event()
    write = board.database.write

    async def write_slowly(case, *args, **kwargs):
        answer = await write(case, *args, **kwargs)
        committed.set()
        await told.wait()
        return answer

    board.database.write = write_slowly
    task = wait(hands)
    await committed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    board.database.write = write
    told.set()
    async with asyncio.timeout(5):
        while (await do(hands, todos.counts))[0].shown != "pending":  # noqa: ASYNC110 - the database tells
            await asyncio.sleep(0.01)


@listening
async def test_b50_another_server_hears_that_a_board_looks_different(hands):
    """A claim is told within half a second, gathered with others; on SQLite, which has one server, at once."""
    board = hands.board
    with board.notices.ear(("board", board.alice.id)) as ear:
        await put(hands)
        assert await ear.wait(5)
        await wait(hands, 0)
        assert await ear.wait(5)
