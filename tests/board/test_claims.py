"""Claims as workers take, keep and end them, on SQLite and on PostgreSQL."""

import pytest

from tenure.board import claims, endpoints, todos
from tenure.board.access import worker_by_credential
from tenure.board.shapes import Beat, Completion, Next, NewTodo
from tenure.rules.endpoints import ALL


@pytest.fixture
def hands(board):
    """A worker's calls on an endpoint of Alice's."""
    vended = board.write(endpoints.vend, board.alice, name="reviewer", queues=["inbox", "review"], verbs=ALL)
    board.endpoint = vended.endpoint
    return vended


def test_the_road(board):
    vended = board.write(endpoints.vend, board.alice, name="reviewer", queues=["inbox", "review"], verbs=ALL)
    made = board.write(todos.create, board.alice, vended.endpoint, NewTodo("one", payload={"a": 1}))

    def do(case, *args, **kwargs):
        return board.database.writing(
            lambda tx: case(tx, board, worker_by_credential(tx, board, vended.credential.reveal()), *args, **kwargs)
        )

    claimed = do(claims.claim_next, Next(worker_label="a"))
    assert [one.todo.summary.id for one in claimed.granted] == [made.todo.summary.id]
    one = claimed.granted[0]
    assert one.todo.payload == {"a": 1}
    assert do(claims.claim_next, Next()).empty
    token = one.lease.token.reveal()
    beat = do(claims.heartbeat, [Beat(made.todo.summary.id, token)])
    print(beat)
    print(do(claims.check_claim, made.todo.summary.id, token))
    print(do(claims.complete, [Completion(made.todo.summary.id, token, {"x": 1})]))
    print(do(claims.complete, [Completion(made.todo.summary.id, token, {"x": 1})]))
    print(board.read(todos.get, board.alice, made.todo.summary.id))
    print(board.read(todos.list_page, board.alice))
    print(board.read(todos.counts, board.alice))
