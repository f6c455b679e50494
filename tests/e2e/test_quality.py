"""What every page must be: reachable by keyboard, readable, itself in light and dark, and of this host alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from web_filling import fill

BAD = ("serious", "critical")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("full", [True, False], ids=["full", "empty"])
def test_axe_finds_nothing_serious(site, windows, scheme, full):
    """Every page, with something on it and without, in light and dark."""
    from axe_playwright_python.sync_playwright import Axe

    paths = fill(site).paths if full else dict.fromkeys(("", "board", "endpoints", "runs/runs", "friends", "schedules"))
    window = windows(color_scheme=scheme).enter()
    found = {}
    for name, path in paths.items():
        page = window.go(path or f"/{name}")
        for summary in page.locator("main details > summary").all():
            summary.click()
        wrong = [
            (one["id"], [node["html"][:160] for node in one["nodes"][:3]])
            for one in Axe().run(page).response["violations"]
            if one["impact"] in BAD
        ]
        if wrong:
            found[name] = wrong
    assert found == {}


def test_axe_on_signing_in(site, windows):
    """The pages that are shown before any session."""
    from axe_playwright_python.sync_playwright import Axe

    window = windows()
    for path in ("/login", site.link()):
        page = window.go(path)
        assert [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] in BAD] == []


def test_axe_on_vending(site, windows):
    """Each step of the wizard, a step that refuses, and the page with the credential."""
    from axe_playwright_python.sync_playwright import Axe

    window = windows().enter()
    page = window.go("/endpoints/new")
    for name in ("", "reviewer", *[None] * 5):
        if name is not None:
            page.get_by_label("Name of the endpoint").fill(name)
        page.get_by_role("button", name="Next").or_(page.get_by_role("button", name="Vend")).last.click()
        wrong = [
            (one["id"], one["nodes"][0]["html"][:160])
            for one in Axe().run(page).response["violations"]
            if one["impact"] in BAD
        ]
        assert wrong == [], page.url
    expect(page.locator("#credential")).to_be_visible()


@pytest.mark.parametrize("width", [390, 820, 1280, 1900])
def test_no_page_is_wider_than_its_window(site, windows, width):
    """Wide things scroll within themselves."""
    paths = fill(site).paths
    window = windows(viewport={"width": width, "height": 800}).enter()
    for name, path in paths.items():
        page = window.go(path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


def test_a_picture_over_time_begins_at_its_newest_end(site, windows):
    """On a phone the timeline scrolls, and its right end is what is seen."""
    page = windows(viewport={"width": 390, "height": 800}).enter().go(fill(site).paths["job"])
    seen = page.evaluate(
        "(e => [e.scrollWidth > e.clientWidth, Math.round(e.getBoundingClientRect().right"
        " - e.firstElementChild.getBoundingClientRect().right)])(document.querySelector('[aria-label=Timeline]'))"
    )
    assert seen == [True, 0]


def test_keys_reach_pages_and_rows(site, windows):
    """`g b` goes to the Board, `j` and Enter open the first todo, `?` shows the list of keys, `t` turns the theme."""
    fill(site)
    page = windows().enter().page
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page.get_by_role("heading", level=1)).to_have_text("Board")
    page.keyboard.press("/")
    expect(page.get_by_label("Queue", exact=True).first).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Review change")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_every_action_is_reached_by_tab(site, windows):
    """Tab comes to each button and link of a page, and shows where it is."""
    paths = fill(site).paths
    window = windows().enter()
    for name in ("board", "endpoint", "todo", "job", "settings"):
        page = window.go(paths[name])
        wanted = page.evaluate(
            "[...document.querySelectorAll('main :is(a, button, input, select, textarea, summary)')]"
            ".filter(e => e.checkVisibility() && e.type !== 'hidden' && e.tabIndex >= 0).length"
        )
        page.evaluate("document.activeElement.blur(); window.met = new Set()")
        for _ in range(wanted + 60):
            page.keyboard.press("Tab")
            shown = page.evaluate(
                "(e => { if (!e.closest('main')) return true; met.add(e);"
                " return getComputedStyle(e).outlineStyle !== 'none' })(document.activeElement)"
            )
            assert shown, (name, page.evaluate("document.activeElement.outerHTML"))
        met = page.evaluate(
            "[...window.met].filter(e => e.matches('a, button, input, select, textarea, summary')).length"
        )
        assert met >= wanted, name


def test_the_skip_link(site, windows):
    """The first Tab offers to skip to the content."""
    page = windows().enter().page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()


def test_a_stream_that_is_cut_says_so(site, windows):
    """When the server can't be heard the page says that it is paused."""
    window = windows().enter()
    page = window.go("/board")
    expect(page.locator("#dot")).to_have_attribute("data-state", "live")
    page.route("**/live/**", lambda route: route.abort())
    site.cut_streams()
    expect(page.locator("#dot")).to_have_attribute("data-state", "paused")
    window.complaints.clear()


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_refresh_that_fails_leaves_the_page(site, windows, status):
    """A refusal replaces nothing; the next answer does."""
    from tenure.board import endpoints

    window = windows().enter()
    page = window.go("/endpoints")
    expect(page.locator("#dot")).to_have_attribute("data-state", "live")
    with page.expect_response(lambda answer: answer.url.endswith("/endpoints")):
        page.route("**/endpoints", lambda route: route.fulfill(status=status, body="<main>Too many calls.</main>"))
        site.board.write(endpoints.vend, site.board.alice, name="first")
    expect(page.locator("main")).to_contain_text("Quick vend")
    page.unroute("**/endpoints")
    site.board.write(endpoints.vend, site.board.alice, name="second")
    expect(page.locator("main")).to_contain_text("second")
    expect(page.locator("main")).to_contain_text("first")
