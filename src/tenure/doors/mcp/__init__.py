"""The board's MCP door: agents claim, heartbeat and complete by the Model Context Protocol, in both its generations.

It knows the use cases of `board` and the spelling of `doors/wire`, and no rule. `mcp_app` makes the app that
`serve.py` mounts at `/mcp/{slug}`.
"""

from __future__ import annotations

from collections.abc import Collection

from tenure.board.board import Board
from tenure.doors.mcp.door import Door

__all__ = ["Door", "mcp_app"]


def mcp_app(board: Board, hosts: Collection[str] = ()) -> Door:
    """The ASGI app of `/mcp/{slug}`. Serve it inside `async with app.open():`, `app.drain()` it before the end.

    hosts: names, beside those of `public_url` and this machine, by which requests may call the board.
    """
    from importlib.metadata import version

    return Door(board, version("tenure"), hosts)
