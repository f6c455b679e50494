"""A real browser, Debian's Chromium, on a real server. Excluded from the ordinary run; `make e2e` runs it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest
from web_hall import open_site

CHROMIUM = os.environ.get("TENURE_TEST_CHROMIUM", "/usr/bin/chromium")
# A page answers in milliseconds; a loaded machine may take its time.
PATIENCE_MS = 15_000


# The browser's driver is in a group of its own, for it is large; where it is not, nothing here can even be read.
collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["test_*.py"]


def pytest_collection_modifyitems(items):
    """Everything in this folder is of the kind that `make e2e` runs."""
    for item in items:
        if "/e2e/" in str(item.path):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for the whole run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path, sqlite_template):
    """A page on a board of this test's own; its humans are never held up by their rates."""
    from dataclasses import replace

    from tenure.board.board import Rate

    with open_site(tmp_path, sqlite_template) as site:
        rates = {"writes": Rate(1000, 1000), "reads": Rate(1000, 1000)}
        object.__setattr__(site.board, "settings", replace(site.board.settings, **rates))
        yield site


class Window:
    """A window of one human's browser, and all that went wrong in it."""

    def __init__(self, site: Any, page: Any) -> None:
        self.site, self.page = site, page
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        # Chromium says of every 4xx that it is one; refusals are answers here.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def enter(self, name: str = "alice") -> Window:
        """Sign in by a link, as people do."""
        self.page.goto(self.site.url + self.site.link(name))
        self.page.get_by_role("button", name="Sign in to this board").click()
        self.page.wait_for_url(self.site.url + "/")
        return self

    def go(self, path: str) -> Any:
        """Open a path of the page."""
        self.page.goto(self.site.url + path)
        return self.page

    def text(self) -> str:
        return self.page.locator("main").inner_text()


@pytest.fixture
def windows(site, chromium):
    """`windows(js=True)`: a new window with its own cookies. In the end none may have complained or gone elsewhere."""
    opened: list[tuple[Any, Window]] = []

    def open_window(js: bool = True, **options: Any) -> Window:
        context = chromium.new_context(java_script_enabled=js, **options)
        window = Window(site, context.new_page())
        opened.append((context, window))
        return window

    yield open_window
    for context, window in opened:
        context.close()
        assert window.complaints == []
        assert window.hosts <= {site.url.removeprefix("http://")}


@pytest.fixture(params=[True, False], ids=["js", "plain"])
def js(request) -> bool:
    """With JavaScript, and without."""
    return request.param


@pytest.fixture
def window(windows, js) -> Window:
    """Alice's window, with and without JavaScript."""
    return windows(js).enter()
