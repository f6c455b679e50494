"""What the databases make of the statements that must not slow down with depth (notes: techniques 4 and 5)."""

import pytest
import sqlalchemy as sa
from board_hall import found, open_hall
from board_worker import Hands
from deep_board import deepen

from tenure.board import claims, database, reaper, todo_rows
from tenure.board.shapes import Beat, Next

DEAD = 200_000


def plan(board, statement, parameters):
    """The plan of a statement, as text."""
    word = "EXPLAIN" if board.database.postgres else "EXPLAIN QUERY PLAN"
    with board.database.engine.connect() as connection:
        rows = connection.execute(sa.text(f"{word} {statement}"), parameters)
        return "\n".join(str(row[-1]) if not board.database.postgres else row[0] for row in rows)


def select(board, select, of, *, skip=False):
    """A locking SELECT as it is sent."""
    return todo_rows.locking(select, of, skip).text if board.database.postgres else select


@pytest.fixture
def deep(board):
    """200,000 todos, 180,000 of them dead, and statistics from when there were none."""
    hands = Hands(board, board.vend(queues=["inbox", "review", "chat"]))
    if board.database.postgres:
        board.database.writing(lambda tx: tx.execute(sa.text("ANALYZE todos")))
        board.database.writing(lambda tx: tx.execute(sa.text("ANALYZE claims")))
    deepen(board, hands.worker.id, DEAD)
    return hands


def test_b03_a_claim_reads_the_ready_index_in_its_order(deep):
    """Beside 180,000 dead todos and stale statistics: ix_todos_ready, with neither a sort nor a walk of the table."""
    board = deep.board
    wanted = todo_rows.kept_columns(board.database.reading(lambda tx: tx))
    for queues in (1, 3):
        statement = select(board, todo_rows.ready_select(wanted, queues), "todos", skip=True)
        named = {f"q{place}": name for place, name in enumerate(deep.worker.endpoint.queues[:queues])}
        told = plan(board, statement, {"endpoint": deep.worker.id, "limit": 1, "window": 101, **named})
        assert told.count("ix_todos_ready") == queues, told
        assert "Seq Scan" not in told, told
        assert "SCAN todos\n" not in told, told
        assert queues > 1 or not sorts(told), told
    assert len(deep.next().granted) == 1


def sorts(told):
    """The lines that sort; several queues sort the heads of each, which are few."""
    return [line for line in told.splitlines() if line.strip(" ->").startswith(("Sort", "USE TEMP B-TREE"))]


def test_b14_the_reaper_reads_open_claims_alone(deep):
    """Its three looks go by small partial indexes, whatever the number of todos that have ended."""
    board = deep.board
    for text, index in (
        (reaper.LAPSED, "uq_claims_open"), (reaper.RETRY, "ix_todos_retry"), (reaper.WAITING, "ix_todos_waiting"),
    ):  # fmt: skip
        told = plan(board, text, {"now": 1, "limit": 10})
        assert "Seq Scan on todos" not in told, told
        assert index in told or "Seq Scan on claims" in told, told


@pytest.mark.parametrize("empty_url", ["postgres"], indirect=True)
def test_b14_plans_kept_from_when_the_board_was_small_walk_no_table(empty_url, monkeypatch):
    """The plan that a connection keeps is made while a table is small: of todos and claims none is read whole."""
    found(empty_url)
    monkeypatch.setattr(database, "THREADS", 1)  # and so one connection
    board = open_hall(empty_url)
    hands = Hands(board, board.vend())
    for _ in range(8):  # PostgreSQL keeps a plan from the sixth time on, and we prepare from the fourth
        for _ in range(2):
            hands.put()
        beats = [Beat(one.todo.summary.id, one.lease.token.reveal()) for one in hands.next(max=2).granted]
        board.write(claims.heartbeat, hands.worker, beats)
        board.write(claims.complete, hands.worker, [claims.Completion(one.todo_id, one.lease_token) for one in beats])
    plans = kept_plans(board, ("claims", "todos"))
    board.database.shut()
    assert len(plans) >= 4
    for told in plans:
        assert "Seq Scan on todos" not in told, told
        assert "Seq Scan on claims" not in told, told


def kept_plans(board, tables):
    """The plans of the statements that the board's one connection has prepared and that name these tables."""
    with board.database.engine.connect() as connection:
        connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
        prepared = connection.exec_driver_sql(
            "SELECT name, statement, cardinality(parameter_types) AS many FROM pg_prepared_statements"
        ).all()
        return [
            "\n".join(
                row[0] for row in connection.exec_driver_sql(f"EXPLAIN EXECUTE {name}({', '.join(['NULL'] * many)})")
            )
            for name, statement, many in prepared
            if any(f" {table} " in statement for table in tables)
        ]


def statements(board, case, *args):
    """The statements that a use case sends, without BEGIN, COMMIT, notices, and when the credential was last seen."""
    sent = []

    def hear(connection, cursor, statement, *_):
        sent.append(statement)

    sa.event.listen(board.database.engine, "before_cursor_execute", hear)
    try:
        answer = board.write(case, *args)
    finally:
        sa.event.remove(board.database.engine, "before_cursor_execute", hear)
    aside = ("BEGIN", "SELECT pg_notify", "UPDATE credentials SET seen")  # the last at most once a minute
    return answer, [one for one in sent if not one.startswith(aside)]


@pytest.mark.parametrize("count", [1, 50])
def test_b41a_a_batch_costs_as_many_statements_as_one(board, count):
    """The round trips of claim, heartbeat and complete, beside the authentication: two each, whatever the batch."""
    hands = Hands(board, board.vend())
    for _ in range(count):
        hands.put()
    worker = hands.worker
    claimed, sent = statements(board, claims.claim_next, worker, Next(max=count))
    assert len(claimed.granted) == count
    most = 2 if board.database.postgres else 3  # on SQLite, where a statement is no round trip, each table is one
    assert len(sent) <= most, sent
    beats = [Beat(one.todo.summary.id, one.lease.token.reveal()) for one in claimed.granted]
    _, sent = statements(board, claims.heartbeat, worker, beats)
    assert len(sent) == 2, sent
    done = [claims.Completion(one.todo_id, one.lease_token) for one in beats]
    answers, sent = statements(board, claims.complete, worker, done)
    assert {one.state for one in answers} == {"done"}
    assert len(sent) <= most, sent
