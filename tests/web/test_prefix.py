"""The page below a prefix, as an application mounts it: every link, form and redirect stays below it."""

from __future__ import annotations

import re

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tenure.doors.web import web_app

PREFIX = "/a/b"


@pytest.mark.anyio
async def test_all_addresses_lie_below_the_prefix(site):
    """Links, forms, files, streams and where one is sent."""
    app = Starlette(routes=[Mount(PREFIX, web_app(site.board))])
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        away = await client.get(f"{PREFIX}/board")
        assert away.headers["location"] == f"{PREFIX}/login?to={PREFIX}/board"
        client.cookies.set("tenure-session", site.session())
        for path in ("/", "/board", "/endpoints", "/endpoints/new", "/settings", "/friends", "/no/such/page"):
            page = (await client.get(PREFIX + path)).text
            found = re.findall(r'(?:href|src|action|hx-get|hx-sse:connect)="([^"#][^"]*)"', page)
            assert len(found) > 10, path
            assert {one for one in found if not one.startswith(PREFIX)} == set(), path
        for asset in re.findall(r'(?:href|src)="([^"]+/static/[^"]+)"', page):
            assert (await client.get(asset)).status_code == 200
        csrf = re.search(r'name="csrf" value="(\w+)"', page)[1]
        sent = await client.post(
            f"{PREFIX}/settings/friend-code", data={"csrf": csrf}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert sent.headers["location"].startswith(f"{PREFIX}/settings")
