"""The pictures: the timeline shows what the terminal's does; statistics are what they say; all is small."""

from __future__ import annotations

import gzip
import re
from xml.etree import ElementTree as ET

import pytest
from picture_story import ALIVE, FAILED, HANDED_OVER, STORY, TAKEN_OVER, at, attempt, mark, run, timeline

from tenure.board.depth import Depth
from tenure.board.shapes import Attempt as Claim
from tenure.doors.cli.signs import LEGEND as TERMINAL
from tenure.doors.cli.timeline import draw as drawn_in_a_terminal
from tenure.doors.web.pictures import statistics, todos
from tenure.doors.web.pictures.timeline import draw, signs


def read(picture):
    """The picture as a tree, which it must be."""
    return ET.fromstring(str(picture))  # noqa: S314 - ours


def classes(picture, tag):
    return [one.get("class") for one in read(picture).iter(tag)]


def terminal_signs(told):
    """The words of the terminal's legend; bars and numbers need no legend on the page."""
    text = "\n".join(drawn_in_a_terminal(told, 140))
    return {words for words in TERMINAL.values() if f" {words}" in text} - {"attempt", "which attempt"}


UNSURE = run(
    0,
    "success",
    attempt(1, "api-1", 0.1, 0.6, 1, 1.5, "unsure"),
    attempt(2, "api-1", 2.0, 3.0, 2, 3.5, "success", "takeover"),
    ended=3.5,
)
WISH = run(1, "success", attempt(1, "api-1", 1.2, 1.2, 0, 2.5, "success", "manual"), ended=2.5, request="w1")


@pytest.mark.parametrize(
    "told",
    [
        STORY,
        timeline(TAKEN_OVER, until=12),
        timeline(HANDED_OVER, since=11, until=20),
        timeline(FAILED, ALIVE, since=19),
        timeline(UNSURE, until=6),
        timeline(WISH, until=6),
        timeline(marks=(mark(2, "missed", 10, 3), mark(14))),
    ],
    ids=["story", "takeover", "hand-over", "failed-alive", "unsure", "wish", "marks"],
)
def test_the_timeline_equals_the_terminals(told):
    """The same signs, with the same words, for the same record."""
    assert set(signs(told).values()) == terminal_signs(told)


def test_places_of_a_takeover():
    """Bars, ticks and the arrow lie where their times are."""
    picture = draw(timeline(TAKEN_OVER, since=0, until=10), ("api-1", "api-2"))
    bars = [one for one in read(picture).iter("rect") if (one.get("class") or "").startswith("bar")]
    left = [float(one.get("x")) for one in bars]
    width = 1040 - 160 - 16
    assert left == pytest.approx([160 + width * 0.01, 160 + width * 0.54], abs=0.2)
    tip = next(one for one in read(picture).iter("path") if (one.get("class") or "").startswith("tip"))
    assert float(re.match(r"M([\d.]+)", tip.get("d"))[1]) == pytest.approx(left[1], abs=0.2)
    assert sum(one.get("class") == "tick" for one in read(picture).iter("path")) == 2


def test_names_and_errors_are_text():
    """What instances and handlers are called can't become markup."""
    evil = attempt(1, "<script>", 0.1, 0.6, 1, 1.0, "success")
    picture = draw(timeline(run(0, "success", evil, ended=1.0)))
    assert "<script>" not in str(picture)
    assert read(picture) is not None


def test_pictures_are_small():
    """500 runs with takeovers: each picture under 60 kB compressed."""
    runs = [
        run(
            4 * n,
            "success",
            attempt(1, f"api-{n % 12}", 4 * n + 0.1, 4 * n + 1.1, 2, 4 * n + 2.0, "expired"),
            attempt(2, f"api-{(n + 1) % 12}", 4 * n + 2.2, 4 * n + 3.2, 2, 4 * n + 3.6, "success", "takeover"),
            ended=4 * n + 3.6,
        )
        for n in range(500)
    ]
    told = timeline(*runs, since=-1, until=2001, now=2000)
    pictures = [draw(told), statistics.duration(runs), statistics.lateness(runs), statistics.heat(runs, "UTC")]
    for picture in pictures:
        assert len(gzip.compress(str(picture).encode())) < 60_000


# --- statistics -------------------------------------------------------------------------------------------


def some(*late):
    return [
        run(10 * n, "success", attempt(1, "a", 10 * n + ms / 1000, 10 * n + ms / 1000, 0, 10 * n + 5, "success"),
            ended=10 * n + 5)
        for n, ms in enumerate(late)
    ]  # fmt: skip


def test_lateness_counts_every_run_once():
    """Each run is in one bin, bounds belong to the bin that they end; triggered runs are not late."""
    bins = statistics.lateness_bins([*some(0, 10, 11, 300, 301, 60_000, 600_001), WISH])
    assert {one.label: one.many for one in bins if one.many} == {
        "≤ 10ms": 2, "≤ 30ms": 1, "≤ 300ms": 1, "≤ 1s": 1, "≤ 1m": 1, "> 10m": 1,
    }  # fmt: skip
    assert classes(statistics.lateness(some(1)), "rect") == ["bar"]


def test_percentiles_are_values_that_were_measured():
    """Nearest rank, of one value too."""
    assert [statistics.percentile([3, 1, 2, 4], share) for share in (0.25, 0.5, 0.95)] == [1, 2, 4]
    assert statistics.percentile([7], 0.5) == 7


def test_the_strip_tells_bad_from_good_by_height():
    """Oldest first; bad ones are short, and a takeover has its own mark."""
    picture = read(statistics.strip([FAILED, TAKEN_OVER]))
    heights = [float(one.get("height")) for one in picture.iter("rect")]
    assert heights == [18.0, 2.0, 9.0]
    assert picture.get("aria-label") == "The last 2 runs: 1 success, 1 failed"


def test_the_week_is_that_of_the_jobs_zone():
    """Noon in UTC is one o'clock in Berlin; failures are counted."""
    assert statistics.week([TAKEN_OVER, FAILED], "Europe/Berlin") == {(0, 13): (2, 1)}
    assert classes(statistics.heat([FAILED], "UTC"), "circle") == ["spot"]


def test_the_ring_empties():
    """A full lease is a whole ring, a third left is a warning, none is none."""
    dashes = [list(read(statistics.ring(share)))[-1] for share in (1, 0.3, 0, -1)]
    assert [one.get("class") for one in dashes] == ["ring good", "ring warn", "ring bad", "ring bad"]
    assert [float(one.get("stroke-dasharray").split()[0]) for one in dashes] == [56.5, 17.0, 0, 0]


def test_clock_offsets():
    """A second from the store's clock is bad."""
    assert classes(statistics.offsets([("a", 3), ("b", -1500)]), "circle") == ["dot success", "dot failed"]


# --- todos ------------------------------------------------------------------------------------------------


def claim(attempt, granted, ended=None, end=None, expires=300, **more):
    return Claim(
        f"cl_{attempt}", attempt, more.get("holder", "endpoint"), more.get("worker"), at(granted), at(expires), 300,
        "server", 0, None, None if ended is None else at(ended), end, None, None, None,
    )  # fmt: skip


def test_attempts_of_a_todo():
    """A bar for each claim, in the look of how it ended; the lease of one that lapsed ends with a mark."""
    picture = todos.attempts(
        [claim(1, 0, 60, "lapsed", 60), claim(2, 61, 90, "completed", 361, worker="laptop")], at(100)
    )
    looks = [one for one in classes(picture, "rect") if one.startswith("bar")]
    assert looks == ["bar died", "bar success"]
    assert classes(picture, "path").count("lease-end") == 1
    assert "laptop" in str(picture)


def test_depth_of_a_board():
    """Two areas within the picture, whatever the numbers are."""
    picture = todos.depth([Depth(at(n * 900), n % 7, n % 3) for n in range(97)])
    assert classes(picture, "path") == ["area live", "area held"]
    assert "at most 6" in read(picture).get("aria-label")
