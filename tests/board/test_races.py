"""What PostgreSQL lets happen between two statements, or between a snapshot and its lock, made to happen."""

import contextlib
import threading

import pytest
import sqlalchemy as sa
from board_worker import Hands, key

from tenure.board import claims, reaper, todo_rows, todos
from tenure.board.shapes import Beat, NewTodo, Next
from tenure.rules.endpoints import ALL

pytestmark = [
    pytest.mark.servers,
    pytest.mark.parametrize("board_url", ["postgres"], indirect=True),
]
GATE = 552  # the key of an advisory lock


@pytest.fixture
def hands(board):
    """A worker on an endpoint of Alice's."""
    return Hands(board, board.vend(queues=["inbox", "review"], verbs=ALL))


@contextlib.contextmanager
def meanwhile(call, *args):
    """The call runs in a thread; `answers` has what it answered, once the block is over."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call(*args)))
    thread.start()
    try:
        yield answers, thread
    finally:
        thread.join()


def blocked(board, thread):
    """Wait until a statement of another connection waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not board.rows(waiting):
        assert thread.is_alive(), "it did not wait"


def test_b15_a_heartbeat_of_a_closed_claim_waits_for_no_todo(hands):
    """Todos are locked before claims: who holds a claim's lock and then asked for the todo's could meet a deadlock."""
    board = hands.board
    todo_id, granted = hands.put(), hands.take()
    board.clock.turn(seconds=301)
    board.write(reaper.reap)
    hands.take()
    with board.database.engine.begin() as other:
        other.execute(sa.text("SELECT 1 FROM todos WHERE id = :id FOR UPDATE"), {"id": todo_id})
        with meanwhile(board.write, claims.heartbeat, hands.worker, [Beat(*key(granted))]) as (answers, thread):
            thread.join(5)
            waited = thread.is_alive()
            other.rollback()
    assert not waited
    assert answers[0][0].details["reason"] == "taken"


@pytest.mark.parametrize("verb", ["beat", "complete", "claim"])
def test_b15_what_waited_for_a_lock_is_decided_by_the_time_it_got_it(hands, verb):
    """The lease runs out while the call waits: it is lapsed then, whatever the time was when it was sent."""
    board = hands.board
    todo_id, granted = hands.put(), hands.take(60)
    with board.database.engine.begin() as other:
        other.execute(sa.text("SELECT 1 FROM todos, claims WHERE todos.id = :id FOR UPDATE"), {"id": todo_id})
        call = getattr(hands, verb)
        with meanwhile(call, todo_id if verb == "claim" else granted) as (answers, thread):
            blocked(board, thread)
            board.clock.turn(seconds=61)
            released = board.read(lambda tx, _: tx.now())
            other.rollback()
    (answer,) = answers
    told = answer.lease.granted if verb == "claim" else answer.now
    assert told >= released
    attempts = hands.see(todo_id).attempts
    match verb:
        case "beat":
            assert answer.revived
            assert answer.expires == answer.now + 300 * 1_000
        case "complete":
            assert attempts[0].ended == answer.now
        case "claim":
            assert [one.end for one in attempts] == ["lapsed", None]


@pytest.mark.parametrize("moved_to", ["another endpoint", "another queue"])
def test_b26_a_todo_moved_while_it_is_being_claimed_is_not_claimed(hands, monkeypatch, moved_to):
    """Moved after the claim's snapshot and before its lock: the endpoint that had it, or who asked for its queue
    before, does not get it.
    """
    board = hands.board
    other = board.vend(name="other", queues=["inbox", "chat"])
    slugs = {"another endpoint": (other.endpoint, "inbox"), "another queue": (hands.vended.endpoint, "chat")}
    target, queue = slugs[moved_to]
    if target.id == hands.vended.endpoint.id:
        hands = Hands(board, board.vend(name="wide", queues=["inbox", "review", "chat"], verbs=ALL))
        target = hands.vended.endpoint
    todo_id = hands.put(queue="inbox")
    columns = todo_rows.kept_columns
    gate = f", CAST(pg_advisory_xact_lock_shared({GATE}) AS text)"
    monkeypatch.setattr(todo_rows, "kept_columns", lambda tx: columns(tx) + gate)
    ask = Next(queues=("inbox", "review"))
    with board.database.engine.begin() as keeper:
        keeper.execute(sa.text(f"SELECT pg_advisory_xact_lock({GATE})"))
        with meanwhile(board.write, claims.claim_next, hands.worker, ask) as (answers, thread):
            blocked(board, thread)
            board.write(todos.move, board.alice, todo_id, target, queue)
            keeper.rollback()
    assert answers[0].empty
    assert hands.see(todo_id).summary.state == "pending"


def test_b06_the_todo_of_a_key_that_ends_meanwhile_is_made_anew(hands, monkeypatch):
    """It kept the new one out, and had ended when it was looked for: the new one is made, whatever it holds."""
    board = hands.board
    hands.put("before", idempotency_key="k")
    insert = todos.insert

    def insert_then_end(tx, rows):
        made = insert(tx, rows)
        monkeypatch.setattr(todos, "insert", insert)
        hands.complete(hands.take())
        return made

    monkeypatch.setattr(todos, "insert", insert_then_end)
    made = board.write(todos.create, board.alice, hands.vended.endpoint, NewTodo("after", idempotency_key="k"))
    assert (made.existing, made.todo.summary.title, made.todo.summary.state) == (False, "after", "pending")
