"""The reaper: lapses, retries, times that come, endpoints that expire, and what is kept no longer."""

import asyncio
import threading

import pytest
import sqlalchemy as sa
from board_hall import open_hall
from board_worker import Hands

from tenure.board import reaper, tables, todos, vending
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo

S = 1_000


@pytest.fixture
def hands(board):
    """A worker on an endpoint of Alice's."""
    return Hands(board, board.vend())


def reap(board):
    return board.write(reaper.reap)


def test_b13_a_lapsed_lease_is_requeued(hands):
    """At once when it has lapsed, not a millisecond before; its place in the order is its age, as it was."""
    first, _ = hands.put("first"), hands.put("second")
    hands.take(60)
    hands.board.clock.turn(seconds=59)
    assert reap(hands.board).lapsed == 0
    hands.board.clock.turn(seconds=1)
    assert reap(hands.board).lapsed == 1
    assert hands.take().todo.summary.id == first


def test_b05_a_failed_todo_is_tried_again_when_due(hands):
    """30 s, doubling to 15 minutes, with jitter of a fifth at most."""
    hands.put(failures_cap=9)
    for base in (30, 60, 120, 240, 480, 900, 900):
        answer = hands.fail(hands.take())
        assert base * S <= answer.retry_at - answer.now <= base * 1.2 * S
        hands.board.clock.turn(seconds=base - 1)
        assert reap(hands.board).retried == 0
        hands.board.clock.turn(seconds=base * 0.2 + 2)
        assert reap(hands.board).retried == 1


def test_b03_a_todo_is_ready_when_its_time_has_come(hands):
    """Ready since then, so that it stands behind what has waited longer."""
    later = hands.put("later", not_before=hands.board.write(lambda tx, _: tx.now()) + 60 * S)
    other = hands.put("other")
    hands.board.clock.turn(seconds=61)
    assert reap(hands.board).woken == 1
    assert [one.todo.summary.id for one in hands.next(max=2).granted] == [other, later]


def test_b24_an_expired_endpoint_ends_as_a_revoked_one(board):
    """Claims close as `expired`, live todos die with that reason, within a round of the reaper."""
    hands = Hands(board, board.vend(expires=board.write(lambda tx, _: tx.now()) + 3_600 * S))
    held, waiting = hands.put(), hands.put()
    hands.take(7_200)
    board.clock.turn(hours=1)
    assert board.write(vending.expire_due) == 1
    assert hands.see(held).attempts[0].end == "expired"
    assert hands.see(waiting).summary.reason == "Its endpoint has expired."


def test_b14_reapers_share_the_work(board, board_url):
    """Two servers reap at once: each lapse is counted once."""
    hands = Hands(board, board.vend())
    for _ in range(60):
        hands.put()
    hands.next(60, max=60)
    board.clock.turn(seconds=61)
    other = open_hall(board_url, clock=board.clock)
    found = []
    threads = [
        threading.Thread(target=lambda one=one: found.append(one.write(reaper.lapse, 20)))
        for one in (board, other, board, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while left := board.write(reaper.lapse):
        found.append(left)
    other.database.shut()
    assert sum(found) == 60
    assert {row.lapses for row in board.rows(tables.todos)} == {1}


def test_b14_a_heartbeat_that_races_the_reaper_wins_or_loses_whole(hands):
    """Whichever was first: revived and still claimed, or refused and pending; never half of either."""
    for _ in range(15):
        todo_id = hands.put(lapses_cap=99)
        granted = hands.take(60)
        hands.board.clock.turn(seconds=61)
        answers = []
        threads = [
            threading.Thread(target=lambda granted=granted, answers=answers: answers.append(hands.beat(granted))),
            threading.Thread(target=reap, args=(hands.board,)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        summary = hands.see(todo_id).summary
        if getattr(answers[0], "revived", False):
            assert (summary.state, summary.lapses) == ("claimed", 0)
            hands.complete(granted)
        else:
            assert answers[0].details["reason"] == "lapsed"
            assert (summary.state, summary.lapses) == ("pending", 1)
            hands.complete(hands.take())


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b14_the_reaper_leaves_out_what_is_held(board):
    """A row that another transaction holds is not waited for; SQLite's one writer meets none."""
    hands = Hands(board, board.vend())
    one, two = hands.put(), hands.put()
    hands.next(60, max=2)
    board.clock.turn(seconds=61)
    with board.database.engine.begin() as held:
        held.execute(sa.text("SELECT 1 FROM todos WHERE id = :id FOR UPDATE"), {"id": one})
        assert reap(board).lapsed == 1
        assert hands.see(two).summary.state == "pending"
    assert reap(board).lapsed == 1


def test_b07_what_ended_long_ago_is_pruned(hands):
    """After 30 days, with its claims and notes; live ones never."""
    done, live = hands.put("done"), hands.put("live", priority=-9)
    hands.complete(hands.take())
    hands.do(todos.add_note, done, "a note")
    hands.board.clock.turn(days=29)
    assert hands.board.write(reaper.prune) == 0
    hands.board.clock.turn(days=1)
    assert hands.board.write(reaper.prune) == 1
    assert [row.id for row in hands.board.rows(tables.todos)] == [live]
    assert hands.board.rows(tables.claims) == hands.board.rows(tables.notes) == []


def test_b07_what_a_live_todo_depends_on_is_kept(hands):
    """Until that has ended too; then both go."""
    needed = hands.put("needed", failures_cap=1)
    waits = hands.put("waits", depends_on=(needed,))
    hands.fail(hands.take())
    hands.board.clock.turn(days=40)
    assert hands.board.write(reaper.prune) == 0
    hands.board.write(todos.cancel, hands.board.alice, waits)
    assert hands.board.write(reaper.prune) == 1
    hands.board.clock.turn(days=31)
    assert hands.board.write(reaper.prune) == 1
    assert hands.board.rows(tables.todos) == hands.board.rows(tables.dependencies) == []


def test_b12a_requests_are_remembered_for_a_day(hands):
    """Then the same id is a new request."""
    hands.put(), hands.put()
    first = hands.take(request_id="r" * 16)
    hands.board.clock.turn(hours=23)
    hands.board.write(reaper.prune)
    assert len(hands.board.rows(tables.requests)) == 1
    hands.board.clock.turn(hours=1)
    hands.board.write(reaper.prune)
    again = hands.take(request_id="r" * 16)
    assert again.lease.claim_id != first.lease.claim_id


def test_b14_the_loop_lives_through_an_outage(hands, monkeypatch):
    """A round that fails is tried again; what is due is then put into effect."""
    board = hands.board
    todo_id = hands.put()
    hands.take(60)
    board.clock.turn(seconds=61)
    rounds = []
    whole = reaper.reap

    def failing(tx, one, *args):
        rounds.append(1)
        if len(rounds) == 1:
            raise sa.exc.OperationalError("SELECT", {}, Exception("gone"))
        return whole(tx, one, *args)

    monkeypatch.setattr(reaper, "reap", failing)

    async def run():
        task = asyncio.create_task(reaper.Reaper(board).run())
        while board.read(todos.get, board.alice, todo_id).summary.state != "pending":  # noqa: ASYNC110 - a database
            await asyncio.sleep(0.02)
        task.cancel()

    asyncio.run(run())
    assert len(rounds) >= 2


@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b14_an_endpoint_that_is_slow_to_end_keeps_nobody_waiting(hands):
    """Somebody holds a todo of one that has expired: what has lapsed elsewhere is requeued all the same."""
    board, now = hands.board, hands.board.write(lambda tx, _: tx.now())
    held = Hands(board, board.vend(name="ending", expires=now + 3_600 * S)).put()
    lapsed = hands.put()
    hands.take(60)
    board.clock.turn(hours=2)

    async def run():
        task = asyncio.create_task(reaper.Reaper(board).run())
        async with asyncio.timeout(30):
            while board.read(todos.get, board.alice, lapsed).summary.state != "pending":  # noqa: ASYNC110 - a database
                await asyncio.sleep(0.02)
        task.cancel()

    with board.database.engine.connect() as other, other.begin():
        other.execute(sa.text("SELECT id FROM todos WHERE id = :id FOR UPDATE"), {"id": held})
        asyncio.run(run())


def test_b14_pruning_keeps_nobody_waiting(hands, monkeypatch):
    """However much there is to prune, what is due is put into effect after each batch of it."""
    done, over = [], asyncio.Event()

    def prune(tx, board):
        done.append("prune")
        return reaper.BATCH if len(done) < 8 else 0

    def reap_nothing(tx, board):
        done.append("reap")
        if len(done) > 8:
            over.loop.call_soon_threadsafe(over.set)
        return reaper.Reaped()

    monkeypatch.setattr(reaper, "prune", prune)
    monkeypatch.setattr(reaper, "reap", reap_nothing)

    async def run():
        over.loop = asyncio.get_running_loop()
        task = asyncio.create_task(reaper.Reaper(hands.board).run())
        await over.wait()
        task.cancel()

    asyncio.run(run())
    assert done[:8] == ["reap", "prune"] * 4


def test_case_b27_two_ticks_at_once_give_one_worker(hands):
    """Eight workers ask in the same instant, by next and by id: one claim."""
    todo_id = hands.put()
    claims = []

    def ask(by_id):
        try:
            claims.append([hands.claim(todo_id)] if by_id else list(hands.next().granted))
        except Refused as refused:
            claims.append(refused.refusal.details["reason"])

    threads = [threading.Thread(target=ask, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = [one for one in claims if isinstance(one, list) and one]
    assert len(granted) == 1
    assert {one for one in claims if isinstance(one, str)} <= {"taken"}
    assert len(hands.board.rows(tables.claims)) == 1


def test_case_b37_32_writers_meet_no_lock_error(hands):
    """They queue: every one of them is answered."""
    errors, ids = [], []

    def write(number):
        try:
            for turn in range(3):
                ids.append(hands.put(f"{number}.{turn}"))
                for granted in hands.next().granted:  # none, if others were quicker with all that it sees
                    hands.complete(granted)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=write, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for granted in hands.next(max=100).granted:
        hands.complete(granted)
    assert {row.state for row in hands.board.rows(tables.todos)} == {"done"}
    assert len(set(ids)) == len(hands.board.rows(tables.claims)) == 96


def test_b02_a_dependent_made_while_its_need_is_completed_is_never_stuck(hands):
    """Who makes it and who completes meet at the needed todo's lock: either sees the other."""
    for _ in range(10):
        needed = hands.put()
        granted = hands.take()
        made = []

        def depend(needed=needed, made=made):
            new = NewTodo("waits", depends_on=(needed,))
            made.append(hands.board.write(todos.create, hands.board.alice, hands.vended.endpoint, new))

        threads = [threading.Thread(target=depend), threading.Thread(target=hands.complete, args=(granted,))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        summary = hands.see(made[0].todo.summary.id).summary
        assert (summary.state, summary.shown, summary.blockers) == ("pending", "pending", 0)
        hands.complete(hands.take())
