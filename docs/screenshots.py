#!/usr/bin/env python3
"""Pictures of the web page for the documentation: `make screenshots`. Each page, in light, with something on it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

CHROMIUM = os.environ.get("TENURE_TEST_CHROMIUM", "/usr/bin/chromium")
# What stands in the documentation; all others only where a folder of one's own is named.
KEPT = {"overview": "light", "board": "light", "takeover": "light", "endpoint": "dark"}
WIDE = {"width": 1280, "height": 860}


def main(folder: Path | None) -> None:
    """Into docs/images the kept ones, or into `folder` all of them: light and dark, wide and narrow."""
    from board_hall import found
    from playwright.sync_api import sync_playwright
    from web_filling import fill
    from web_hall import open_site

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        found(f"sqlite:///{place}/template.db")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        with open_site(Path(place), Path(place) / "template.db") as site:
            paths = fill(site).paths
            for name, scheme, width in _wanted(paths, whole=folder is not None):
                context = browser.new_context(color_scheme=scheme, viewport={**WIDE, "width": width})
                page = context.new_page()
                page.goto(site.url + site.link())
                page.get_by_role("button", name="Sign in to this board").click()
                page.goto(site.url + paths[name])
                page.locator("#dot[data-state=live], main:not(:has(#dot))").first.wait_for()
                kind = "" if folder is None else f"-{scheme}-{width}"
                target = (folder or ROOT / "docs" / "images") / f"{name}{kind}.png"
                page.screenshot(path=target, full_page=folder is not None)
                print(target)  # noqa: T201 - what was made
                context.close()
        browser.close()


def _wanted(paths: dict[str, str], *, whole: bool) -> list[tuple[str, str, int]]:
    if not whole:
        return [(name, scheme, 1280) for name, scheme in KEPT.items()]
    return [(name, scheme, width) for name in paths for scheme in ("light", "dark") for width in (1280, 390)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
