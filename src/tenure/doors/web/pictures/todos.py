"""Pictures of todos: the attempts at one, and how deep a board was over the last day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from tenure.board.depth import Depth
from tenure.board.shapes import Attempt
from tenure.doors.web.pictures.svg import line, path, picture, rect, text
from tenure.rules.axis import round_times
from tenure.rules.instant import span_words
from tenure.rules.times import short

WIDTH: Final = 1040
LEFT: Final = 150
ROW: Final = 26
# How a claim's end looks: as a run's that ended so.
LOOKS: Final = {
    "completed": "success", "completed_by_operator": "success", "failed": "failed", "failed_by_operator": "failed",
    "lapsed": "died", "revoked": "failed", "expired": "failed", "released": "handed",
    "released_by_operator": "handed", "taken_by_operator": "handed",
}  # fmt: skip


def attempts(claims: Sequence[Attempt], now: int) -> Markup:
    """Each claim as a bar from grant to end, the lease below it. Needs one."""
    begin = min(one.granted for one in claims)
    # An open lease may reach far beyond all that happened: the picture shows what was, and where that ends.
    last = max(one.ended or now for one in claims)
    reach = max(1000, last - begin)
    end = min(max(last, *(one.expires for one in claims)), last + reach // 3 + 60_000)

    def x(ms: int) -> float:
        return LEFT + (WIDTH - LEFT - 16) * min(1.0, max(0.0, (ms - begin) / max(1, end - begin)))

    floor = 8 + ROW * len(claims)
    parts = []
    for at, label in round_times(begin, end, (WIDTH - LEFT) // 7):
        parts += [line(x(at), 4, x(at), floor + 2, "grid"), text(x(at), floor + 16, label, "tickmark", "middle")]
    for place, one in enumerate(claims):
        y, until = 8 + ROW * place, one.ended or now
        who = "you" if one.holder == "human" else one.worker or "a worker"
        look = LOOKS.get(one.end or "", "open")
        says = f"attempt {one.attempt} by {who}: {(one.end or 'open').replace('_', ' ')} after "
        says += span_words(max(0, until - one.granted))
        parts.append(text(4, y + 12, f"{one.attempt}  {who[:18]}", "name"))
        parts.append(rect(x(one.granted), y, x(until) - x(one.granted), 12, f"bar {look}", says=says, rx=2))
        lease = f"lease until {short(one.expires)}"
        held = min(one.expires, one.ended or one.expires)
        parts.append(rect(x(one.granted), y + 15, x(held) - x(one.granted), 3, "lease", says=lease))
        if held == one.expires <= end:
            parts.append(path(f"M{x(one.expires):.1f} {y + 13}v7", "lease-end", "lease end"))
    return picture(WIDTH, floor + 22, f"{len(claims)} attempts at this todo", *parts, class_="timeline")


def depth(points: Sequence[Depth]) -> Markup:
    """Live todos over time as an area, and how many of them were held as a darker one within it."""
    most = max([1, *(one.live for one in points)])
    floor, left, height = 120, 40, 108
    room = WIDTH - left - 8

    def area(values: list[int], class_: str) -> Markup:
        places = [
            f"{left + room * place / (len(values) - 1):.1f} {floor - height * value / most:.1f}"
            for place, value in enumerate(values)
        ]
        return path(f"M{left} {floor}L{'L'.join(places)}L{left + room} {floor}z", f"area {class_}")

    parts = [area([one.live for one in points], "live"), area([one.held for one in points], "held")]
    parts += [line(left, floor, left + room, floor, "axis"), text(left - 6, 16, f"{most}", "tickmark", "end")]
    parts.append(text(left - 6, floor, "0", "tickmark", "end"))
    begin, end = points[0].at, points[-1].at
    for at, label in round_times(begin, end, room // 7):
        place = left + room * (at - begin) / max(1, end - begin)
        if place < WIDTH - 30:
            parts.append(text(place, floor + 15, label, "tickmark", "middle"))
    words = f"Live todos over the last day: now {points[-1].live}, at most {most}; held now {points[-1].held}"
    return picture(WIDTH, floor + 22, words, *parts, class_="timeline")
