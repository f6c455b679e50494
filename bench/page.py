"""The page of the docs: what stands between `<!-- measured: NAME -->` and `<!-- end -->` is written here alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rows import Row

PLACE = re.compile(r"(?P<head><!-- measured: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL)


def write(path: Path, name: str, text: str) -> None:
    """Put the text in its place; a new part gets one at the end of the page, where its prose is still to be written."""
    page = path.read_text(encoding="utf-8")
    if all(found["name"] != name for found in PLACE.finditer(page)):
        page += f"\n## {name}\n\n<!-- measured: {name} -->\n<!-- end -->\n"

    def put(found: re.Match[str]) -> str:
        return f"{found['head']}\n{text}\n\n{found['end']}" if found["name"] == name else found[0]

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
