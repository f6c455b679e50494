"""Endpoints under concurrency: an end waits for what has begun, edits don't block workers, nobody deadlocks."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from tenure.board import access, buckets, claims, endpoints, friends, humans, reaper, signing_in, tables, todos
from tenure.board.board import Rate
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo, Next

PATIENCE = 0.3  # seconds to see that somebody waits


def authenticated(board, vended, step):
    """A call as a door makes it: credential, then the step, in one transaction that writes."""

    def case(tx, board):
        return step(tx, access.worker_by_credential(tx, board, vended.credential.reveal()))

    return board.write(case)


def test_b25_a_revoke_waits_for_the_calls_that_have_begun_and_ends_their_claims(board):
    """A worker is let in, then the revoke begins: it comes after the claim, and the claim is closed as revoked."""
    vended = board.vend()
    board.write(todos.create, board.alice, vended.endpoint, NewTodo("work"))
    revoked = threading.Event()

    def revoke():
        board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
        revoked.set()

    thread = threading.Thread(target=revoke)

    def step(tx, worker):
        thread.start()
        assert not revoked.wait(PATIENCE)
        return claims.claim_next(tx, board, worker, Next())

    assert len(authenticated(board, vended, step).granted) == 1
    thread.join(10)
    (row,) = board.rows(tables.claims)
    assert (row.end, row.ended is not None) == ("revoked", True)
    with pytest.raises(Refused):
        authenticated(board, vended, lambda *_: None)


@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b25_a_revoke_may_take_as_long_as_its_todos_need(board):
    """However many there are: the bound on a statement is for calls that many make, and would refuse it for ever."""
    vended = board.vend()
    todo_id = board.write(todos.create, board.alice, vended.endpoint, NewTodo("work")).todo.summary.id

    def revoke(tx, board):
        tx.execute(sa.text("SET LOCAL statement_timeout = '1s'"))
        body = "'BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END'"
        tx.execute(sa.text(f"CREATE FUNCTION pg_temp.slow() RETURNS trigger LANGUAGE plpgsql AS {body}"))
        tx.execute(sa.text("CREATE TRIGGER slow AFTER UPDATE ON todos EXECUTE FUNCTION pg_temp.slow()"))
        endpoints.revoke(tx, board, board.alice, vended.endpoint.slug)
        tx.execute(sa.text("DROP TRIGGER slow ON todos"))

    board.write(revoke)
    assert board.read(todos.get, board.alice, todo_id).summary.shown == "dead"


@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b25_a_revoke_waits_for_nobody_who_stands_still(board, monkeypatch):
    """Who holds one of its todos for ever keeps neither the revoke nor the reaper: refused, it may be asked again."""
    monkeypatch.setattr(todos, "STATEMENT_SECONDS", 1)
    vended = board.vend()
    board.write(todos.create, board.alice, vended.endpoint, NewTodo("work"))
    with board.database.engine.connect() as other, other.begin():
        other.execute(sa.text("SELECT id FROM todos FOR UPDATE"))
        with pytest.raises(Refused) as refused:
            board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
    assert refused.value.refusal.code == "unavailable"
    board.write(endpoints.revoke, board.alice, vended.endpoint.slug)


def test_b25_once_a_revoke_is_answered_nobody_claims(board):
    """Eight workers drain while it is revoked: after the answer no claim is granted, and none stays open."""
    vended = board.vend()
    for number in range(30):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"work {number}"))
    answered, late = threading.Event(), []

    def drain():
        while True:
            after = answered.is_set()
            try:
                claimed = authenticated(board, vended, lambda tx, worker: claims.claim_next(tx, board, worker, Next()))
            except Refused as refused:
                return refused.refusal.code
            if after:
                late.append(claimed)

    with ThreadPoolExecutor(8) as threads:
        workers = [threads.submit(drain) for _ in range(8)]
        board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
        answered.set()
        assert {worker.result(20) for worker in workers} == {"unauthenticated"}
    assert late == []
    assert [row for row in board.rows(tables.claims) if row.ended is None] == []


@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b22_an_edit_waits_for_no_worker(board):
    """A worker's call is open; the human edits the default lease meanwhile, and it is done before the call ends."""
    vended = board.vend()

    def step(_tx, _worker):
        edited = board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, 600)
        return edited.default_lease_ttl_seconds

    assert authenticated(board, vended, step) == 600


def test_b31_workers_that_set_one_default_at_once_do_not_deadlock(board):
    """All are let in with the row kept, then each wants to change it: one after the other, every revision counted."""
    vended, gate = board.vend(), threading.Barrier(4 if board.database.postgres else 1)

    def setting(value):
        def step(tx, worker):
            gate.wait(10)
            return endpoints.set_default_lease(tx, board, worker, value)

        return authenticated(board, vended, step)

    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(setting, [100, 200, 300, 400]))) == 4
    assert board.read(endpoints.get, board.alice, vended.endpoint.slug).revision == 5


def test_b39_an_end_from_both_sides_at_once_is_one_end(board, bobs_pass):
    """Alice and Bob end it in the same moment: one succeeds, the other is told that it has ended."""

    def end(human):
        try:
            return board.write(friends.end, human, bobs_pass.friendship.id).state
        except Refused as refused:
            return refused.refusal.code

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(end, [board.alice, board.bob])) == ["conflict", "ended"]


@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b39_an_end_that_meets_an_approval_leaves_no_endpoint_behind(board, monkeypatch):
    """Alice approves after Bob's withdrawal has looked: it is refused, and the friendship can be ended whole."""
    code = board.read(humans.friend_code, board.alice)
    asked = board.write(friends.request, board.bob, code, queues=["review"], verbs=["claim"])
    get = friends.get

    def approved_meanwhile(*args):
        seen = get(*args)
        monkeypatch.undo()
        board.write(friends.approve, board.alice, asked.id, agent="friends")
        return seen

    monkeypatch.setattr(friends, "get", approved_meanwhile)
    assert board.refused(friends.end, board.bob, asked.id).details == {"state": "approved"}
    board.write(friends.end, board.bob, asked.id)
    assert [endpoint.state for endpoint in board.read(endpoints.list_all, board.alice)] == ["revoked"]


def test_b39_two_collects_at_once_mint_one_credential(board):
    """The second is told that it was collected."""
    code = board.read(humans.friend_code, board.alice)
    asked = board.write(friends.request, board.bob, code, queues=["review"], verbs=["claim"])
    board.write(friends.approve, board.alice, asked.id, agent="friends")

    def collect(_):
        try:
            return bool(board.write(friends.collect, board.bob, asked.id).credential)
        except Refused as refused:
            return refused.refusal.details["reason"]

    with ThreadPoolExecutor(2) as threads:
        assert sorted(map(str, threads.map(collect, range(2)))) == ["True", "collected"]
    assert len(board.rows(tables.credentials)) == 1


def test_b43_a_bucket_that_is_pruned_while_it_is_spent_from_forgets_nothing_that_counts(board):
    """Calls and pruning at once: never more than the burst, and no call fails."""
    rate = Rate(0.001, 50)

    def spend(number):
        if number % 5 == 0:
            board.write(buckets.prune)
        return board.write(buckets.take, "x", rate).allowed

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(spend, range(90))) == 50


def test_b7_the_reaper_prunes_what_is_over_of_buckets_links_and_sessions(board):
    """With the rest, in the same round."""
    board.write(buckets.take, "x", Rate(1, 10))
    board.write(signing_in.by_link, board.write(signing_in.link_for, "alice").reveal())
    board.clock.turn(hours=12)
    board.write(reaper.prune)
    assert [board.rows(table) for table in (tables.buckets, tables.links, tables.sessions)] == [[], [], []]
