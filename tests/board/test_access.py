"""Who asks, and what they reach."""

import pytest

from tenure.board import access
from tenure.board.refused import Refused
from tenure.board.secrets import draw


@pytest.mark.parametrize("secret", ["", "tenure_human_", "x" * 10_000, "tenure_human_" + "0" * 49, "\0", "\ud800"])
def test_b27_what_is_no_token_is_refused_without_a_word_about_why(board, secret):
    """A badly spelled token gets the answer of an unknown one."""
    with pytest.raises(Refused) as wrong:
        board.read(access.human_by_token, secret)
    with pytest.raises(Refused) as unknown:
        board.read(access.human_by_token, draw("human").reveal())
    assert wrong.value.refusal == unknown.value.refusal == access.UNAUTHENTICATED


def test_the_three_are_there(board):
    """Every board of the hall knows Alice, Bob and Charlie."""
    assert {board.alice.name, board.bob.name, board.charlie.name} == {"alice", "bob", "charlie"}
