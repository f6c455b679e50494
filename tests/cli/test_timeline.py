"""The picture of runs, as whole texts: what a reader sees is what is tested."""

# ruff: noqa: RUF001 - pictures are drawn with signs that look like letters

from __future__ import annotations

import re

import pytest
from picture_story import ALIVE, HANDED_OVER, STORY, TAKEN_OVER, at, attempt, mark, run, timeline

from tenure.doors.cli.timeline import draw
from tenure.scheduler.picture import fitted
from tenure.scheduler.records import Timeline

STORY_100 = """\
letters   2026-11-30 11:59:59 to 12:00:29 UTC   one column is 322ms

api-1     1██████░░░░░░░░†╮                           2█████████████✓
          ─┴─┴─┴┴────────┘│                           ▲─┴┴─┴┴─┴─┴┴─┴─
                          ▼                           │
api-2                     2█████████████✓      1█████◆╯
                          ──┴┴─┴─┴┴─┴┴─┴─      ──┴┴─┴─

api-3                                                                   ███✗        ██████▶
                                                                        ─┴──        ──┴┴─┴────────┘
slots     ╵           ╱           ╱            ╵           ╱            ╵           ╵
       ───┬──────────────┬───────────────┬──────────────┬───────────────┬──────────────┬────────────
          12:00:00       12:00:05        12:00:10       12:00:15        12:00:20       12:00:25

█ attempt   2 which attempt   ✓ succeeded   ✗ failed   ░ no heartbeat any more
† gone: lease ran out   ◆ handed over   ▶ running   ─ lease   ┴ heartbeat   ┘ lease end
▲▼ next attempt   ╵ slot that ran   ╱ slot skipped
(the last heartbeat at its time, those before it evenly)"""


STORY_ASCII = """\
letters   2026-11-30 11:59:59 to 12:00:29 UTC   one column is 322ms

api-1     1######::::::::!.                           2#############+
          -'-'-''--------]|                           ^-''-''-'-''-'-
                          v                           |
api-2                     2#############+      1#####*'
                          --''-'-''-''-'-      --''-'-

api-3                                                                   ###x        ######>
                                                                        -'--        --''-'--------]
slots     '           /           /            '           /            '           '
       ---+--------------+---------------+--------------+---------------+--------------+------------
          12:00:00       12:00:05        12:00:10       12:00:15        12:00:20       12:00:25

# attempt   2 which attempt   + succeeded   x failed   : no heartbeat any more
! gone: lease ran out   * handed over   > running   - lease   ' heartbeat   ] lease end
^v next attempt   ' slot that ran   / slot skipped
(the last heartbeat at its time, those before it evenly)"""

STORY_40 = """\
letters
2026-11-30 11:59:59 to 12:00:29 UTC
one column is 909ms

api-1   1██░░†╮        2████✓
        ┴┴┴──┘│        ▲┴┴┴┴┴
              ▼        │
api-2         2███✓  1█◆
              ┴┴┴┴┴  ┴┴┴

api-3                         █✗  ██▶
                              ┴─  ─┴┴──┘
slots   ╵   ╱   ╱    ╵   ╱    ╵   ╵
       ─┬──────────┬──────────┬─────────
        12:00:00   12:00:10   12:00:20

█ attempt   2 which attempt
✓ succeeded   ✗ failed
░ no heartbeat any more
† gone: lease ran out   ◆ handed over
▶ running   ─ lease   ┴ heartbeat
┘ lease end   ▲▼ next attempt
╵ slot that ran   ╱ slot skipped
(the last heartbeat at its time, those
before it evenly)"""


def text(picture: Timeline, width: int = 100, **look) -> str:
    return "\n".join(draw(picture, width, **look))


def test_the_whole_story():
    """A takeover downwards, a hand-over upwards, skipped slots, a failure and a run under way."""
    assert text(STORY) == STORY_100


def test_colour_changes_no_letter():
    """With colours the letters are the same."""
    assert re.sub(r"\x1b\[[0-9]*m", "", text(STORY, colour=True)) == STORY_100


def test_pure_ascii():
    """Without Unicode every sign has an ASCII letter, and the places stay the same."""
    drawn = text(STORY, unicode=False)
    assert drawn.isascii()
    assert drawn == STORY_ASCII


def test_forty_columns():
    """No line is wider than the terminal."""
    drawn = text(STORY, 40)
    assert all(len(line) <= 40 for line in drawn.split("\n"))
    assert drawn == STORY_40


@pytest.mark.parametrize("width", [1, 24, 33, 61, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_any_width(width, unicode):
    """Whatever the width, no line is wider, and none ends in spaces."""
    for line in draw(STORY, width, unicode=unicode):
        assert len(line) <= max(width, 24)
        assert line == line.rstrip()


def test_instances_that_ran_nothing():
    """Instances may be given rows of their own, in their order."""
    names = [line[:5] for line in draw(STORY, 100, instances=["api-9", "api-3"]) if line.startswith("api-")]
    assert names == ["api-9", "api-3", "api-1", "api-2"]


def test_nothing_happened():
    """An empty time says so."""
    assert draw(timeline(), 100)[-1] == "nothing happened in that time: no run, and no slot skipped or missed"


def rows(picture: Timeline, width: int = 60) -> list[str]:
    """The picture's lines between title and legend."""
    lines = draw(picture, width)
    return lines[lines.index("") + 1 : lines.index("", next(n for n, line in enumerate(lines) if "slots" in line))]


def test_silent_while_the_lease_holds():
    """A running attempt whose heartbeats have stopped is drawn as silent since the last one."""
    picture = timeline(run(0, "running", attempt(1, "a", 0, 2, 4), lease_until=5), since=0, until=6, now=4.5)
    assert rows(picture)[:2] == [
        "a      ██████████████████░░░░░░░░░░░░░░░░░░░░░▶",
        "       ────┴───┴────┴───┴──────────────────────────┘",
    ]


def test_expired_but_not_taken_over():
    """A lease that ran out with nobody there ends in a dagger at the lease's end."""
    picture = timeline(run(0, "expired", attempt(1, "a", 0, 2, 4), lease_until=5), since=0, until=6, now=6)
    assert rows(picture)[0] == "a      ██████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░†"


def test_released_and_unsure():
    """A released run without a next attempt ends in its diamond; an unsure one in a question mark."""
    handed = run(0, "released", attempt(1, "a", 0, 1, 2, 2.0, "handed-over"), lease_until=2)
    unsure = run(0, "released", attempt(1, "a", 0, 1, 2, 2.0, "unsure"), lease_until=2)
    assert rows(timeline(handed, since=0, until=4, now=4))[0].endswith("█◆")
    assert rows(timeline(unsure, since=0, until=4, now=4))[0].endswith("█?")


def test_the_same_instance_again():
    """A run taken over by the instance that had it shows a sign between the two attempts."""
    picture = timeline(
        run(
            0,
            "success",
            attempt(1, "a", 0, 1, 2, 2.0, "unsure"),
            attempt(2, "a", 2.5, 4, 3, 5.0, "success", "takeover"),
            ended=5,
        ),
        since=0,
        until=6,
    )
    assert rows(picture)[0] == "a      1████████████████?╌╌╌▸2█████████████████████✓"


def test_past_other_instances():
    """An arrow passes behind other instances' bars, and never hides one."""
    other = run(4, "success", attempt(1, "b", 1, 7, 12, 8.0, "success"), ended=8)
    far = run(
        0,
        "success",
        attempt(1, "a", 0, 1, 2, 4.0, "expired"),
        attempt(2, "c", 4.2, 6, 3, 7.0, "success", "takeover"),
        ended=7,
    )
    picture = timeline(far, other, since=0, until=9, now=9)
    drawn = "\n".join(rows(timeline(far, other, since=0, until=9, now=9)))
    assert picture.runs
    bar = next(line for line in drawn.split("\n") if line.startswith("b "))
    assert "│" not in bar
    assert drawn.count("▼") == 1


def test_missed_ranges_are_hatched_at_their_slots():
    """A range of slots nobody was there for is hatched at each of its slots, or whole where they are too dense."""
    ran = run(20, "success", attempt(1, "a", 20.1, 20.1, 0, 21.0, "success"), ended=21)
    few = timeline(ran, since=0, until=24, marks=(mark(4, "missed", 16, 4),))
    assert rows(few)[2] == "slots          ╳        ╳        ╳        ╳        ╵"
    dense = timeline(ran, since=0, until=24, marks=(mark(4, "missed", 16, 4_000),))
    assert "╳" * 20 in rows(dense)[2]


def test_triggered_runs_are_marked():
    """A manual run's mark is its own."""
    picture = timeline(run(2, "success", attempt(1, "a", 2, 3, 2, 4.0, "success", "manual"), ended=4, request="w"))
    assert " m" in rows(picture)[2]


def test_what_is_dense_keeps_its_failures():
    """Where many runs share a column, a failure is what is seen."""
    many = [run(n, "success", attempt(1, "a", n, n, 0, n + 0.5, "success"), ended=n + 0.5) for n in range(0, 3_600, 2)]
    bad = run(1_801, "failed", attempt(1, "a", 1_801, 1_801, 0, 1_801.2, "failed"), ended=1_801.2)
    first = rows(timeline(*many[:900], bad, *many[900:], since=0, until=3_600, now=3_600))[0]
    assert first.count("✗") == 1
    assert first.count("█") > 45


def test_what_lies_outside_is_not_drawn():
    """Runs before and after the time asked for leave no trace, those that reach into it are cut."""
    inside = timeline(TAKEN_OVER, HANDED_OVER, since=6, until=8, now=30)
    drawn = rows(inside)
    assert drawn[0] == "api-2  " + "█" * 53
    assert len(drawn) == 5, "api-1 had no part in it"


def test_long_names_are_cut_at_their_beginning():
    """Instances' names differ at their ends."""
    name = "worker-eu-central-1a.example.net-4711-ab12cd"
    picture = timeline(run(0, "success", attempt(1, name, 0, 1, 2, 2.0, "success"), ended=2))
    assert rows(picture)[0].startswith("…et-4711-ab12cd ")


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (10, ["12:00:00", "12:00:02"]),
        (600, ["12:00", "12:01"]),
        (7_200, ["12:00", "12:15"]),
        (3 * 86_400, ["12-01 00:00", "12-01 12:00"]),
        (90 * 86_400, ["2026-12-03", "2026-12-17"]),
    ],
)
def test_the_axis_has_round_times(length, labels):
    """Times on the axis are round, and as close as they fit."""
    picture = timeline(run(0, "success", attempt(1, "a", 0, 1, 0, 1.0, "success"), ended=1), since=0, until=length)
    axis = rows(picture, 90)[-1]
    for label in labels:
        assert label in axis


def test_fitted_to_what_happened():
    """Without a time asked for, the picture is cut to what happened in it, its live lease included."""
    wide = timeline(TAKEN_OVER, ALIVE, since=-3_600, until=26, now=26)
    cut = fitted(wide)
    assert (cut.since, cut.until) == (at(0) - 1_000, at(28.6) + 1_000)
    assert fitted(timeline()) == timeline()
