"""Tables of what the board's doors over HTTP take: routes of REST and verbs of `/work/v1`, from the code itself."""

from __future__ import annotations

from typing import Any, Final, get_type_hints

from tenure.board.board import Board
from tenure.board.database import Database
from tenure.board.secrets import Ring
from tenure.doors.rest.app import rest_app, routes_of
from tenure.doors.wire.verbs import VERBS

PREFIX: Final = "/api/v1"
# In every verb's arguments and answer; the page says so once.
COMMON: Final = ("worker", "warnings")


def routes() -> str:
    """Each route, and the sentence that it says of itself."""
    board = Board(Database("sqlite://"), Ring((b"drawn",)))
    app = rest_app(board, "", ())
    board.database.shut()
    found = []
    for route in routes_of(app):
        text = (route.endpoint.__doc__ or "").strip().split("\n")[0]
        found += [(str(route.path).removeprefix(PREFIX), method, text) for method in sorted(route.methods or ())]
    rows = [f"| `{method} {path}` | {text} |" for path, method, text in found]
    return "\n".join(["| route | what it does |", "|---|---|", *rows])


def verbs() -> str:
    """Each verb's arguments, the optional ones in brackets, and what its answer holds."""
    rows = []
    for verb in VERBS.values():
        fields: dict[str, Any] = verb.arguments.model_fields
        needed = [f"`{name}`" for name, field in fields.items() if field.is_required()]
        more = [f"`{name}`" for name, field in fields.items() if not field.is_required() and name not in COMMON]
        arguments = ", ".join((*needed, f"[{', '.join(more)}]")) if more else ", ".join(needed)
        answer = ", ".join(f"`{name}`" for name in get_type_hints(verb.answer) if name not in COMMON)
        rows.append(f"| `{verb.name}` | {arguments} | {answer} |")
    return "\n".join(["| verb | arguments | answer |", "|---|---|---|", *rows])
