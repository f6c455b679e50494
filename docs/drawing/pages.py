"""The pages, and what is drawn into them. Knows every drawing by name; draws none itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from drawing import doors, proofs, races, scenes, states, tables

DRAWINGS: Final[dict[str, Callable[[], str]]] = {
    "states of a run": states.diagram,
    "a claim in full": races.claim_in_full,
    "two claims at once": races.two_claims,
    "takeover": scenes.takeover,
    "fencing": scenes.fencing,
    "cut off": scenes.cut_off,
    "next slot first": scenes.next_slot_first,
    "overlap": scenes.overlap,
    "hand-over": scenes.hand_over,
    "catch-up": scenes.catch_up,
    "late claim": scenes.late_claim,
    "takeover times": tables.takeover_times,
    "options": tables.options,
    "four nights": tables.four_nights,
    "gaps and overlaps": tables.choices,
    "endings": tables.endings,
    "events": tables.events,
    "routes": doors.routes,
    "verbs": doors.verbs,
    "what is planted in instances": proofs.planted,
    "kinds of faults": proofs.faults,
    **proofs.SCENARIOS,
}

_DRAWN: Final = re.compile(r"(<!-- drawn: (?P<name>[^\n]+?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
_OPENING: Final = "<!-- drawn: "


class PageError(Exception):
    """A page asks for what can't be drawn, or a drawing stands in no page."""


def redraw(docs: Path, *, write: bool) -> list[tuple[Path, str]]:
    """The pages and drawings that were stale; with `write` they are so no more."""
    stale: list[tuple[Path, str]] = []
    used: set[str] = set()
    for page in sorted(docs.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        fresh, names, changed = _redrawn(page, text)
        used |= names
        stale += [(page, name) for name in changed]
        if write and fresh != text:
            page.write_text(fresh, encoding="utf-8")
    unused = sorted(set(DRAWINGS) - used)
    if unused:
        raise PageError(f"no page shows: {', '.join(unused)}")
    return stale


def _redrawn(page: Path, text: str) -> tuple[str, set[str], list[str]]:
    """The text with fresh drawings, the names of all drawings in it, and of those that changed."""
    names: set[str] = set()
    changed: list[str] = []

    def fresh(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in DRAWINGS:
            raise PageError(f"{page.name}: there is no drawing {name!r}. There are: {', '.join(DRAWINGS)}.")
        names.add(name)
        body = "\n".join(_lines(DRAWINGS[name]())) + "\n"
        if body != found["body"]:
            changed.append(name)
        return f"{found[1]}{body}{found[4]}"

    drawn = _DRAWN.sub(fresh, text)
    if text.count(_OPENING) != len(_DRAWN.findall(text)):
        raise PageError(f"{page.name}: a drawing has no <!-- end -->.")
    return drawn, names, changed


def _lines(drawing: str) -> Iterator[str]:
    """Set off by empty lines, so that Markdown sees a table or a fence."""
    yield ""
    yield from drawing.strip("\n").splitlines()
    yield ""
