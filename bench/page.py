"""The page of the docs: what stands between `<!-- measured: NAME -->` and `<!-- end -->` is written here alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rows import Row

PLACE = re.compile(r"(?P<head><!-- measured: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL)


def write(path: Path, texts: dict[str, str]) -> None:
    """Put each text in its place, and leave places alone for which there is none. Raises LookupError."""
    page = path.read_text(encoding="utf-8")
    places = {found["name"] for found in PLACE.finditer(page)}
    if missing := sorted(texts.keys() - places):
        raise LookupError(f"{path} has no place for {', '.join(missing)}: write `<!-- measured: NAME -->` into it.")

    def put(found: re.Match[str]) -> str:
        text = texts.get(found["name"])
        return found[0] if text is None else f"{found['head']}\n{text}\n\n{found['end']}"

    path.write_text(PLACE.sub(put, page), encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """The rows of one part as Markdown; what has no goal gets no column for it."""
    goals = any(row.goal for row in rows)
    head = ["measured", "figure", *(["goal", "reached"] if goals else []), ""]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        reached = {None: "", True: "yes", False: "**no**"}[row.reached]
        lines.append([row.what, row.shown, *([row.goal, reached] if goals else []), row.remark])
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
