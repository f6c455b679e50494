"""Serving a board: its doors behind one front, the reaper beside them, and an orderly end.

The only room that knows all doors. Nothing imports it but by name: the command that starts a board, and tests.
"""

from __future__ import annotations

from tenure.serve.running import listen, run
from tenure.serve.site import Site

__all__ = ["Site", "listen", "run"]
