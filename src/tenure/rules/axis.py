"""Round times for the axis of a picture, as far apart as their labels need. Knows nothing of what is drawn."""

from __future__ import annotations

from typing import Final

from tenure.rules.instant import DAY, HOUR, MINUTE, SECOND, iso

# Distances between the times on the axis.
STEPS: Final = tuple(
    [n * SECOND for n in (1, 2, 5, 10, 15, 30)]
    + [n * MINUTE for n in (1, 2, 5, 10, 15, 30)]
    + [n * HOUR for n in (1, 2, 3, 6, 12)]
    + [n * DAY for n in (1, 2, 7, 14, 30, 91, 365)]
)
# How wide the times on the axis are, and which part of an ISO text they show.
FORMS: Final = {"seconds": (11, 19), "minutes": (11, 16), "dated": (5, 16), "days": (0, 10), "short": (14, 19)}


def round_times(since: int, until: int, columns: int) -> list[tuple[int, str]]:
    """The round times between two instants, each with its label, for an axis that is so many letters wide."""
    step, form = _step(until - since, columns)
    first = -(-since // step) * step
    return [(at, _label(at, form)) for at in range(first, until + 1, step)]


def _step(length: int, columns: int) -> tuple[int, str]:
    """How far apart the times on the axis stand, and how they are written: at least two should fit."""
    for narrow in (False, True):
        for step in STEPS:
            form = "short" if narrow else _form(step, length)
            start, end = FORMS[form]
            if step * columns >= (end - start + 2) * length:
                if 2 * step <= length or narrow:
                    return step, form
                break
    return STEPS[-1], "days"


def _form(step: int, length: int) -> str:
    if step < MINUTE:
        return "seconds"
    if step >= DAY:
        return "days"
    return "minutes" if length <= DAY else "dated"


def _label(ms: int, form: str) -> str:
    start, end = FORMS[form]
    return iso(ms)[start:end].replace("T", " ")
