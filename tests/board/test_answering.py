"""A PostgreSQL that keeps its connections and says nothing: nobody waits for it without end (B16)."""

import time

import pytest
from board_hall import open_hall
from proxy import ANSWERS, Proxy, target_of, through

from tenure.board import endpoints, engines
from tenure.board.refused import Refused


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("how", ["read", "write"])
def test_b16_an_answer_that_never_comes_is_not_waited_for(board_url, monkeypatch, how):
    """The call is told that the database is away, its thread is free again, and so is the place in the pool."""
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(engines, "BUSY_SECONDS", 2)
    proxy = Proxy(target_of(board_url))
    board = open_hall(through(proxy, board_url))
    call = getattr(board, how)
    try:
        call(endpoints.list_all, board.alice)
        proxy.lose(ANSWERS)
        began = time.monotonic()
        with pytest.raises(Refused) as refused:
            call(endpoints.list_all, board.alice)
        assert refused.value.refusal.code == "unavailable"
        assert time.monotonic() - began < 30  # without the bound: never
        proxy.heal()
        assert call(endpoints.list_all, board.alice) == []
        assert board.database.engine.pool.checkedout() == 0
    finally:
        proxy.heal()
        board.database.shut()
        proxy.close()


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b25_what_may_take_long_is_waited_for_longer_than_the_rest(board_url, monkeypatch):
    """And the next who gets that connection has no more patience than anybody."""
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 1.0)
    board = open_hall(board_url)

    def long(tx):
        tx.unhurried()
        tx.connection.exec_driver_sql("SELECT pg_sleep(2)")

    def hasty(tx):
        tx.connection.exec_driver_sql("SELECT pg_sleep(2)")

    try:
        board.database.writing(long)
        with pytest.raises(Refused):
            board.database.writing(hasty)
    finally:
        board.database.shut()
