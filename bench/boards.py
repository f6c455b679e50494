"""Boards of a measurement's own, opened with the helpers of the tests: one human, one endpoint, many todos."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from board_hall import found, open_hall, own_database
from board_worker import Hands
from deep_board import deepen
from servers import PREFIX, postgres

__all__ = ["KINDS", "Hands", "databases", "deepen", "found", "open_hall", "opened", "own_database", "stock"]

KINDS = ("SQLite", "PostgreSQL")


@contextmanager
def databases(kind: str, count: int = 1) -> Iterator[list[str]]:
    """The URLs of fresh boards, all on one server."""
    if kind == "SQLite":
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            urls = [f"sqlite:///{folder}/board_{number}.db" for number in range(count)]
            for url in urls:
                found(url)
            yield urls
        return
    with postgres() as server, own_database(server.url) as first, own_database(server.url) as second:
        urls = [first, second][:count]
        for url in urls:
            found(url)
        yield urls


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """A board on this database."""
    board = open_hall(url)
    try:
        yield board
    finally:
        board.database.shut()


def stock(hands: Hands, count: int) -> None:
    """Put `count` ready todos on the endpoint, through the use case."""
    from tenure.board import todos
    from tenure.board.shapes import NewTodo

    news = [NewTodo(f"todo {number}", payload={"number": number}) for number in range(min(500, count))]
    for _ in range(0, count, len(news)):
        hands.board.write(todos.create_many, hands.human, hands.vended.endpoint, news)
