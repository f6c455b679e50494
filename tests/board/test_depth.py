"""How deep a board was over the last day, counted from the times of todos and claims."""

from __future__ import annotations

from tenure.board import claims, depth, endpoints, todos
from tenure.board.shapes import Completion, NewTodo, Next
from tenure.rules.instant import DAY


def test_depth_follows_what_happened(board):
    """A todo is live from its making to its end, and held while a claim is open; another human's never count."""
    made = board.write(endpoints.vend, board.alice, name="reviewer")
    board.write(todos.create, board.alice, made.endpoint, NewTodo("one"))
    board.write(todos.create, board.alice, made.endpoint, NewTodo("two"))
    theirs = board.write(endpoints.vend, board.bob, name="theirs")
    board.write(todos.create, board.bob, theirs.endpoint, NewTodo("not hers"))
    board.clock.turn(hours=6)
    worker = board.worker(made)
    (got,) = board.write(claims.claim_next, worker, Next(lease_ttl_seconds=86_400)).granted
    board.clock.turn(hours=6)
    done = Completion(got.todo.summary.id, got.lease.token.reveal(), None)
    board.write(claims.complete, worker, [done])
    board.clock.turn(hours=6)
    found = board.read(depth.over_time, board.alice)
    assert len(found) == depth.POINTS + 1
    assert found[-1].at - found[0].at == DAY
    told = [(one.live, one.held) for one in found]
    assert [one for place, one in enumerate(told) if place == 0 or one != told[place - 1]] == [
        (0, 0), (2, 0), (2, 1), (1, 0),
    ]  # fmt: skip
    assert found[-1][1:] == (1, 0)


def test_what_is_older_than_the_day_counts_from_its_beginning(board):
    """A todo that has waited for days is there at every time; one that ended before is at none."""
    made = board.write(endpoints.vend, board.alice, name="reviewer")
    board.write(todos.create, board.alice, made.endpoint, NewTodo("old"))
    gone = board.write(todos.create, board.alice, made.endpoint, NewTodo("gone")).todo.summary.id
    board.write(todos.cancel, board.alice, gone)
    board.clock.turn(days=3)
    assert {(one.live, one.held) for one in board.read(depth.over_time, board.alice)} == {(1, 0)}
