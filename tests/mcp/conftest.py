"""Boards with an MCP door, one server or two, and the two generations of the protocol."""

import pytest
from board_hall import open_hall
from mcp_hall import GENERATIONS, serving

from tenure.board.board import BoardSettings


@pytest.fixture(params=GENERATIONS)
def generation(request):
    """Which of the protocol's two generations a client speaks."""
    return request.param


@pytest.fixture
def board(board_url):
    """A board of this test's own that answers both generations of the protocol, on SQLite and on PostgreSQL."""
    board = open_hall(board_url, BoardSettings(mcp_era="both"))
    yield board
    board.database.shut()


@pytest.fixture
async def served(board):
    """One server of a board, on SQLite and on PostgreSQL. Clients of both generations may come."""
    async with serving(board) as one:
        yield one


@pytest.fixture
async def pair(board, board_url):
    """Two servers of one board: on PostgreSQL two boards, on SQLite two doors of the one that there may be."""
    second = open_hall(board_url, board.settings, board.clock) if board.database.postgres else board
    async with serving(board) as one, serving(second) as two:
        yield one, two
    if second is not board:
        second.database.shut()
