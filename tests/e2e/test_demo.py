"""The takeover of `make demo`, seen on the timeline page while it happens; the terminal draws the same signs."""

from __future__ import annotations

import re
import subprocess
import sys
import time

from playwright.sync_api import expect

from tenure.doors.cli.signs import LEGEND


def test_the_takeover_of_the_demo(site, windows, tmp_path):
    """The page shows the killed attempt, its silence, and the arrow to the next one; the terminal's picture agrees."""
    command = [sys.executable, "-m", "tenure", "demo", "--store", f"sqlite:///{tmp_path}/runs.db", "--seconds", "25"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path) as demo:
        page = windows().enter().page
        page.set_default_timeout(60_000)
        deadline = time.monotonic() + 60
        while not (names := site.app.ask_now(lambda records: records.names())) and time.monotonic() < deadline:
            time.sleep(0.2)  # the demo is another process, and nothing else tells of its job
        page.goto(f"{site.url}/runs/runs/job?name={names[0]}")
        legend = page.locator(".legend").first
        expect(legend).to_contain_text("next attempt", timeout=60_000)
        expect(legend).to_contain_text("succeeded", timeout=60_000)
        expect(page.locator("svg.timeline").first.locator(".bar.died")).to_have_count(1)
        expect(page.locator("svg.timeline").first.locator(".way.died")).to_have_count(1)
        shown = set(legend.locator("li").all_inner_texts())
        told = demo.communicate(timeout=90)[0]
    assert demo.returncode == 0, told
    drawn = {words for words in LEGEND.values() if re.search(rf"\S {words}( |$)", told, re.MULTILINE)}
    drawn -= {"attempt", "which attempt"}
    # The page was looked at earlier; and in a terminal one sign may hide another that is in the same column.
    assert shown - {"running", "lease end"} <= drawn
    assert {"gone: lease ran out", "no heartbeat any more", "next attempt", "heartbeat", "lease end"} <= shown
