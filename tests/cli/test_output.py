"""How things look: colour only where it is seen, tables that fit, wide letters, and nothing that moves a cursor."""

from __future__ import annotations

import io

import pytest

from tenure.doors.cli.output import Cell, Look, columns, look, pairs, table, wrap
from tenure.doors.cli.wording import clean
from tenure.rules.times import about, away

NARROW = Look(colour=False, unicode=True, width=40)
WIDE = Look(colour=False, unicode=True, width=None)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self, terminal: bool = True) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        raise OSError


@pytest.mark.parametrize(
    ("env", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_when_there_is_colour(monkeypatch, env, terminal, colour):
    """On a terminal, unless NO_COLOR or a dumb one; elsewhere only by CLICOLOR_FORCE."""
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert look(Terminal(terminal)).colour is colour


def test_a_table():
    """Columns are as wide as their longest cell; no line ends in spaces."""
    assert table(("job", "status", ""), [("a", Cell("success", "good"), ""), ("long-name", "-", "x")], WIDE) == [
        "job        status",
        "a          success",
        "long-name  -        x",
    ]


def test_a_table_that_does_not_fit():
    """On a narrow terminal each row becomes a title with what it says flowing below, within the width."""
    row = ("letters", "Every 10 seconds, counted from 1970-01-01 00:00 UTC", "success, 3s ago", "-")
    lines = table(("job", "schedule", "last", "on"), [row], NARROW)
    assert lines == [
        "letters",
        "  schedule Every 10 seconds, counted",
        "  from 1970-01-01 00:00 UTC",
        "  last success, 3s ago   on -",
    ]
    assert all(len(line) <= 40 for line in lines)


def test_pairs_wrap_below_themselves():
    """A long value goes on below its beginning."""
    assert pairs([("a", "one two three four five six seven"), ("bcd", "x")], NARROW) == [
        "  a    one two three four five six seven",
        "  bcd  x",
    ]
    assert pairs([("a", "one two three four five six seven eight")], NARROW)[1] == "     eight"


def test_wide_letters():
    """Letters that take two columns are counted as two."""
    assert columns("日本") == 4
    assert columns("é") == 1
    assert table(("a", "b"), [("日本", "x"), ("ab", "y")], WIDE) == ["a     b", "日本  x", "ab    y"]


def test_wrap_keeps_long_words():
    """A word longer than the line stays whole."""
    assert wrap("a verylongwordindeed b", 8) == ["a", "verylongwordindeed", "b"]


def test_nothing_can_move_the_cursor():
    """What a handler said is shown without its control characters."""
    assert clean("\x1b[2Jgone\x07\r\n\ttab") == "?[2Jgone??\n\ttab"


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, "0ms"), (999, "999ms"), (2_500, "2.5s"), (59_999, "59s"), (12_345_678, "3h25m"), (90_000_000, "1d1h")],
)
def test_about(ms, words):
    """A span in its two largest units."""
    assert about(ms) == words


def test_away():
    """How far an instant is."""
    assert [away(at, 10_000) for at in (10_000, 12_500, 4_000)] == ["now", "in 2.5s", "6.0s ago"]
