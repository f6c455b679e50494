"""Where words go: data to stdout, talk to stderr; colour, width and letters as the other end can take them.

Must not know what is said: only how it looks.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

import click

STYLES: Final = {
    "good": "32",
    "bad": "31",
    "warn": "33",
    "accent": "36",
    "move": "35",
    "strong": "1",
    "dim": "2",
}
# What stands for our own signs where the other end can't show them.
_ASCII: Final = str.maketrans(
    {"→": "->", "·": "-", "…": "...", "–": "-", "−": "-", "×": "x", "’": "'", "█": "#", "░": ".", "♥": "*"}
)
_PLAIN_WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Look:
    """What the other end of a stream can show. `width` None: it is no terminal, lines may be as long as they are."""

    colour: bool
    unicode: bool
    width: int | None

    def paint(self, text: str, style: str) -> str:
        """The text in a style of `STYLES`, where there is colour."""
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.colour and style and text else text


def look(stream: TextIO | None = None) -> Look:
    """How to write to a stream, stdout by default."""
    stream = sys.stdout if stream is None else stream
    return Look(_colour(stream), _unicode(stream), _width(stream))


def _colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _unicode(stream: TextIO) -> bool:
    try:
        "─█◆▲".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _width(stream: TextIO) -> int | None:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns if stream.isatty() else None


def put(text: str = "") -> None:
    """Data, to stdout."""
    _write(text, sys.stdout, err=False)


def say(text: str) -> None:
    """Talk, to stderr. That nobody listens any more keeps nothing from being done."""
    try:
        _write(text, sys.stderr, err=True)
    except OSError:
        unheard(sys.stderr)


def unheard(stream: TextIO) -> None:
    """Whoever read it has enough: what is buffered and what is to come goes nowhere, and fails no more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _write(text: str, stream: TextIO, *, err: bool) -> None:
    seen = look(stream)
    if not seen.unicode:
        encoding = getattr(stream, "encoding", None) or "ascii"
        text = text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    click.echo(text, err=err, color=seen.colour)


def put_json(value: Any, *, line: bool = False) -> None:
    """A value as JSON, to stdout; `line`: on one line, for streams of them."""
    ascii_only = not look().unicode
    if line:
        put(json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")))
    else:
        put(json.dumps(value, ensure_ascii=ascii_only, indent=2))


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table that has a style."""

    text: str
    style: str = ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str | Cell]], seen: Look) -> list[str]:
    """Rows in columns; on a terminal that is too narrow for them, one block of `head  value` lines per row."""
    cells = [[one if isinstance(one, Cell) else Cell(one) for one in row] for row in rows]
    widths = [max([columns(head), *(columns(row[place].text) for row in cells)]) for place, head in enumerate(heads)]
    if seen.width is not None and sum(widths) + 2 * (len(widths) - 1) > seen.width:
        return _blocks(heads, cells, seen)
    lines = [_line([Cell(head, "dim") for head in heads], widths, seen)]
    return lines + [_line(row, widths, seen) for row in cells]


def _line(row: Sequence[Cell], widths: Sequence[int], seen: Look) -> str:
    padded = [pad(cell.text, width) for cell, width in zip(row, widths, strict=True)]
    padded[-1] = row[-1].text
    while padded and not padded[-1].strip():
        padded.pop()
    if padded:
        padded[-1] = padded[-1].rstrip()
    return "  ".join(seen.paint(text, cell.style) for text, cell in zip(padded, row, strict=False))


def _blocks(heads: Sequence[str], rows: Sequence[Sequence[Cell]], seen: Look) -> list[str]:
    """The first column as a title, the others flowing below it."""
    room = (seen.width or _PLAIN_WIDTH) - 2
    lines: list[str] = []
    for row in rows:
        lines.append(seen.paint(row[0].text, row[0].style or "strong"))
        line, used = "", 0
        for head, cell in zip(heads[1:], row[1:], strict=True):
            if not cell.text.strip():
                continue
            plain = f"{head} {cell.text}".strip()
            if used and used + 3 + columns(plain) > room:
                lines.append(f"  {line}")
                line, used = "", 0
            if columns(plain) > room:
                lines += [f"  {part}" for part in wrap(plain, room)]
                continue
            told = f"{seen.paint(head, 'dim')} {seen.paint(cell.text, cell.style)}".strip()
            line, used = (f"{line}   {told}", used + 3 + columns(plain)) if used else (told, columns(plain))
        if used:
            lines.append(f"  {line}")
    return lines


def pairs(told: Iterable[tuple[str, str | Cell]], seen: Look, indent: int | None = None) -> list[str]:
    """`name  value` lines, aligned; long values go on below themselves."""
    listed = [(name, value if isinstance(value, Cell) else Cell(value)) for name, value in told]
    wide = max((len(name) for name, _ in listed), default=0) if indent is None else indent
    room = max(16, seen.width - wide - 4) if seen.width is not None else None
    lines: list[str] = []
    for name, value in listed:
        for place, part in enumerate(wrap(value.text, room)):
            head = seen.paint((name if place == 0 else "").ljust(wide), "dim")
            lines.append(f"  {head}  {seen.paint(part, value.style)}".rstrip())
    return lines


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def pad(text: str, width: int) -> str:
    """The text, filled up with spaces to so many columns."""
    return text + " " * max(0, width - columns(text))


def wrap(text: str, room: int | None) -> list[str]:
    """Text in lines of at most `room` columns; words that are longer stay whole."""
    if room is None:
        return text.split("\n")
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if line and len(line) + 1 + len(word) > room:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines
