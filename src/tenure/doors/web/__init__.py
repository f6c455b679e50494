"""The web page: what humans see and steer. Pages made on the server; without JavaScript everything still works.

It knows the use cases of `board` and the public face of `scheduler`, and no rule. `web_app` makes the app that
`serve.py` mounts at `/`.
"""

from __future__ import annotations

from tenure.doors.web.app import web_app
from tenure.doors.web.sources import Source

__all__ = ["Source", "web_app"]
