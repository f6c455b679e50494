"""B10: the bounds of the default lease, on every path that a use case has, and in the CHECK."""

import pytest
from lease_bounds import VALUES, by_check, by_rules, table

from tenure.board import endpoints, tables
from tenure.board.refused import Refused


def by_case(board, call):
    """Whether a use case takes the value and stores it as it is."""

    def taken(value):
        try:
            endpoint = call(value)
        except Refused as refused:
            return refused.refusal.details["field"] != "default_lease_ttl_seconds"
        stored = {row.id: row.default_lease_ttl_seconds for row in board.rows(tables.endpoints)}
        assert stored[endpoint.id] == value
        return True

    return taken


def columns(board):
    """Each path of the use cases, by name."""
    vended = board.vend()
    worker = board.worker(vended)

    def own(value):
        board.write(endpoints.set_default_lease, worker, value)
        return vended.endpoint

    return {
        "rules": by_rules,
        "CHECK": by_check(board, vended.endpoint.id),
        "vend": by_case(board, lambda value: board.vend(default_lease=value).endpoint),
        "edit": by_case(
            board, lambda value: board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, value)
        ),
        "own": by_case(board, own),
    }


def test_b10_every_path_takes_what_is_within_the_bounds_and_refuses_the_rest(board):
    """Never clamped, on no path, and the CHECK says the same where nothing stands before it."""
    paths = columns(board)
    print("\n" + table(paths))
    for value, expected in VALUES:
        assert {name: column(value) for name, column in paths.items()} == dict.fromkeys(paths, expected), value


@pytest.mark.parametrize("value", [59, 86_401])
def test_b10_a_refused_edit_changes_nothing(board, value):
    """The row is as it was, with its revision, and nobody is told."""
    vended = board.vend(default_lease=600)
    before = board.rows(tables.endpoints), board.rows(tables.audit)
    board.refused(endpoints.edit_lease, board.alice, vended.endpoint.slug, value)
    assert (board.rows(tables.endpoints), board.rows(tables.audit)) == before
