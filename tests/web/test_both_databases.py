"""Every page on SQLite and on PostgreSQL, with something of everything on it."""

from __future__ import annotations

import httpx2
from web_filling import fill
from web_hall import open_site


def test_every_page_is_shown(board_url, tmp_path):
    """The same pages answer, and changes are told, whichever database the board has."""
    with open_site(tmp_path, None, board_url) as site:
        paths = fill(site).paths
        cookies = {"tenure-session": site.session()}
        with httpx2.Client(base_url=site.url, cookies=cookies, timeout=30) as client:
            for name, path in paths.items():
                site.board.clock.turn(seconds=1)
                assert client.get(path).status_code == (404 if name == "missing" else 200), name
            with client.stream("GET", "/live/board") as stream:
                lines = stream.iter_lines()
                assert next(line for line in lines if line.startswith("event")) == "event: changed"
                fill_one(site)
                assert next(line for line in lines if line.startswith("event")) == "event: changed"


def fill_one(site):
    """One more endpoint."""
    from tenure.board import endpoints

    site.board.write(endpoints.vend, site.board.alice, name="one more")
