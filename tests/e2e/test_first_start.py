"""From an empty folder: `tenure board` as it is started, its link, an endpoint, a claim and a done todo."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import httpx2
import pytest
from playwright.sync_api import expect


@pytest.fixture
def started(tmp_path):
    """A board as a user starts it, in a folder where nothing is; what it printed, address and link."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    with subprocess.Popen(
        [sys.executable, "-m", "tenure", "board", "--port", "0", "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**ours, "XDG_CONFIG_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"},
    ) as process:
        told = ""
        for line in process.stdout:
            told += line
            if link := re.search(r"(http://\S+)/login/\S+", line):
                break
        yield link[1], link[0]
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(20) == 0, told


def test_the_first_minutes_in_a_browser(started, chromium, js):
    """The printed link signs in; the page vends; the worker's door claims; the Board shows it done."""
    address, link = started
    context = chromium.new_context(java_script_enabled=js)
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in to this board").click()
    expect(page.locator("main")).to_contain_text("No endpoint is active")
    page.goto(f"{address}/endpoints")
    page.locator("form[action='/endpoints']").get_by_label("Name").fill("reviewer")
    page.get_by_role("button", name="Vend", exact=True).click()
    secret = page.locator("#credential").inner_text()
    page.goto(f"{address}/board")
    page.get_by_text("Add a todo").click()
    page.get_by_label("Title").fill("Review change 552")
    page.get_by_role("button", name="Add todo").click()
    page.goto(f"{address}/board")

    def call(verb, **arguments):
        signed = {"Authorization": f"Bearer {secret}"}
        answer = httpx2.post(f"{address}/work/v1/{verb}", json=arguments, headers=signed, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    (got,) = call("claim_next", worker="laptop-1")["claims"]
    if not js:
        page.reload()
    expect(page.locator(".lane", has_text="Claimed")).to_contain_text("laptop-1")
    call("complete", todo_id=got["todo"]["id"], lease_token=got["lease_token"])
    if not js:
        page.reload()
    expect(page.locator(".lane", has_text="Done")).to_contain_text("Review change 552")
    context.close()
