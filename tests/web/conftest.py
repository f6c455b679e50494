"""A client for pages: a session of one human, forms sent as a browser would."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from web_pages import forms

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Visitor:
    """A browser without JavaScript that is signed in as somebody."""

    site: Any
    client: httpx2.Client
    csrf: str = ""
    headers: dict[str, str] = field(default_factory=lambda: dict(SAME_ORIGIN))

    def get(self, path: str, **more: Any) -> httpx2.Response:
        self.rest()
        return self.client.get(path, headers=self.headers, **more)

    def post(self, path: str, csrf: str | None = None, headers: Any = None, **fields: Any) -> httpx2.Response:
        """Send a form, with the session's token unless another is given."""
        self.rest()
        data = {"csrf": self.csrf if csrf is None else csrf, **fields}
        return self.client.post(path, data=data, headers=self.headers if headers is None else headers)

    def rest(self) -> None:
        """A second goes by, so that no test is held up by the rates that humans are held to."""
        self.site.board.clock.turn(seconds=1)

    def form(self, path: str, action: str) -> dict[str, Any]:
        """The form of a page that is sent to `action`, as it stands there."""
        found = [one for one in forms(self.get(path).text) if one["action"] == action]
        assert found, f"{path} has no form for {action}"
        return found[0]


@pytest.fixture
def visit(site):
    """`visit("alice")`: a signed-in visitor."""
    clients = []

    def enter(name: str) -> Visitor:
        client = httpx2.Client(base_url=site.url, cookies={"tenure-session": site.session(name)}, timeout=20)
        clients.append(client)
        visitor = Visitor(site, client)
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', visitor.get("/settings").text)
        assert found
        visitor.csrf = found[1]
        return visitor

    yield enter
    for client in clients:
        client.close()


@pytest.fixture
def stranger(site):
    """A visitor without a session."""
    with httpx2.Client(base_url=site.url, timeout=20) as client:
        yield Visitor(site, client)


@pytest.fixture
def alice(visit):
    """Alice, signed in."""
    return visit("alice")
