"""Each flow in a browser, with JavaScript and without."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import expect

from tenure.board import access, claims, endpoints, friends, humans, shapes, todos
from tenure.rules.todo_content import NewTodo

LEASE = "default_lease_ttl_seconds"


def worker(site, secret):
    """What an agent calls: verbs on the worker's door, by their name."""

    def call(verb, **arguments):
        answer = httpx2.post(
            f"{site.url}/work/v1/{verb}", json=arguments, headers={"Authorization": f"Bearer {secret}"}, timeout=30
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    return call


def seen(window, js, text):
    """That the text is to be seen: by itself with JavaScript, after a reload without."""
    if not js:
        window.page.reload()
    expect(window.page.locator("main")).to_contain_text(text)


def test_from_nothing_to_a_done_todo(site, window, js):
    """The wizard vends; the light turns green with the first call; the claim and its end are seen on the Board."""
    page = window.page
    page.get_by_role("link", name="or here, step by step").click()
    page.get_by_label("Name of the endpoint").fill("reviewer")
    page.get_by_role("button", name="Next").last.click()
    page.get_by_label("Queues").fill("reviews")
    page.get_by_label("Queues").press("Enter")
    expect(page.get_by_label("claim_next", exact=True)).to_be_checked()
    expect(page.get_by_label("create_todo", exact=True)).not_to_be_checked()
    page.get_by_role("button", name="Next").last.click()
    page.get_by_role("button", name="Next").last.click()
    page.get_by_label("Default lease").fill("45m")
    page.get_by_role("button", name="Next").last.click()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("Default lease")).to_have_value("45m")
    page.get_by_role("button", name="Next").last.click()
    page.get_by_role("button", name="Vend").click()
    secret = page.locator("#credential").inner_text()
    expect(page.locator("#light")).to_contain_text("Waiting for the first call")
    call = worker(site, secret)
    assert call("claim_next")["empty"]
    if js:
        expect(page.locator("#light")).to_contain_text("The first call came")
    window.go("/board")
    page.get_by_text("Add a todo").click()
    page.get_by_label("Title").fill("Review change 552")
    page.get_by_role("button", name="Add todo").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Review change 552")
    window.go("/board")
    expect(page.locator(".lane", has_text="Ready")).to_contain_text("Review change 552")
    got = call("claim_next", worker="laptop-1")["claims"][0]
    assert got["lease_ttl_seconds"] == 45 * 60
    seen(window, js, "laptop-1")
    expect(page.locator(".lane", has_text="Claimed")).to_contain_text("Review change 552")
    done = {"todo_id": got["todo"]["id"], "lease_token": got["lease_token"], "result": {"verdict": "fine"}}
    call("complete", **done)
    if not js:
        page.reload()
    expect(page.locator(".lane", has_text="Done")).to_contain_text("Review change 552")
    page.get_by_role("link", name="Review change 552").click()
    expect(page.locator("main")).to_contain_text("completed")
    expect(page.locator("main")).to_contain_text('"verdict": "fine"')


def test_b46_the_lease_form_on_a_card(site, window):
    """Out of bounds is refused beside the field with what was typed; what is good is saved."""
    made = site.board.write(endpoints.vend, site.board.alice, name="reviewer").endpoint
    page = window.go("/endpoints")
    card = page.locator(f"#card-{made.slug}")
    card.get_by_text("Edit the default lease").click()
    for typed in ("59", "86401", "soon", ""):
        card.get_by_label("Default lease").fill(typed)
        card.get_by_role("button", name="Save lease").click()
        expect(card.get_by_label("Default lease")).to_have_value(typed)
        expect(card.locator(".problem")).to_be_visible()
    for typed, shown in (("1h30m", "1h30m"), ("900", "15m"), ("default", "5m")):
        field = card.get_by_label("Default lease")
        if not field.is_visible():
            card.get_by_text("Edit the default lease").click()
        field.fill(typed)
        card.get_by_role("button", name="Save lease").click()
        expect(card.locator("dd b")).to_have_text(shown)


def test_case_b46_reload_after_vend(site, window):
    """Reloading the page with the credential neither shows it again nor makes another endpoint."""
    page = window.go("/endpoints")
    page.locator("form[action='/endpoints']").get_by_label("Name").fill("reviewer")
    page.get_by_role("button", name="Vend", exact=True).click()
    secret = page.locator("#credential").inner_text()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("reviewer")
    assert secret not in page.content()
    page.go_back()
    assert secret not in page.content()
    assert len(site.board.read(endpoints.list_all, site.board.alice)) == 1


def test_todo_by_hand(site, window):
    """Claimed on the Board, extended, failed, retried, cancelled; each step is told."""
    board = site.board
    made = board.write(endpoints.vend, board.alice, name="reviewer").endpoint
    id_ = board.write(todos.create, board.alice, made, NewTodo("by hand")).todo.summary.id
    page = window.go(f"/todos/{id_}")
    page.get_by_role("button", name="Claim for 5 minutes").click()
    expect(page.locator("main")).to_contain_text("you, here on the board")
    page.get_by_role("button", name="Extend").click()
    page.get_by_text("Fail it").click()
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("button", name="Fail", exact=True).click()
    expect(page.locator("main")).to_contain_text("retrying")
    page.get_by_role("button", name="Retry now").click()
    page.get_by_text("Cancel it").click()
    page.get_by_label("Reason").fill("no need")
    page.get_by_role("button", name="Cancel this todo").click()
    expect(page.locator("main")).to_contain_text("no need")
    assert board.read(todos.get, board.alice, id_).summary.state == "cancelled"


def test_friends(site, windows, js):
    """Charlie asks with Alice's code, she approves, he collects; his agent works, until she ends it."""
    alice, charlie = windows(js).enter("alice"), windows(js).enter("charlie")
    page = charlie.go("/friends")
    page.get_by_label("Their friend code").fill(site.board.read(humans.friend_code, site.board.alice))
    page.get_by_role("button", name="Ask", exact=True).click()
    page = alice.go("/friends")
    page.get_by_role("button", name="Approve").click()
    page = charlie.go("/friends")
    page.get_by_role("button", name="Collect the credential").click()
    call = worker(site, page.locator("#credential").inner_text())
    assert call("claim_next")["empty"]
    page = alice.go("/friends")
    page.get_by_role("button", name="End, and revoke its endpoint").click()
    expect(page.locator("main")).to_contain_text("ended")
    assert site.board.read(friends.list_all, site.board.charlie)[0].state == "ended"


def test_runs_are_steered(site, window):
    """Pause, resume, trigger and why, from a job's page."""
    from tenure.rules.schedule import every

    site.tell_job("tick", every(60_000))
    page = window.go("/runs/runs")
    page.get_by_role("link", name="tick").first.click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main")).to_contain_text("Paused since")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("main")).to_contain_text("1 triggered, not claimed yet")
    page.get_by_label("Time").fill("now-1h")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator("main")).to_contain_text("is no slot of tick")
    page.get_by_label("Time").fill("whenever")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".problem")).to_contain_text("is no time")


def test_password_and_sign_out(site, window):
    """A password is chosen in Settings, and lets its human in again."""
    page = window.go("/settings")
    for label in ("New password", "The same again"):
        page.get_by_label(label).fill("a sentence that is long enough")
    page.get_by_role("button", name="Change password").click()
    expect(page.locator(".said")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not go together")
    expect(page.get_by_label("Name")).to_have_value("alice")
    page.get_by_label("Password").fill("a sentence that is long enough")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


# --- live: with JavaScript alone --------------------------------------------------------------------------


def test_b47_two_browsers_see_each_others_changes(site, windows):
    """What one does, the other sees without a reload; what is being typed stays."""
    board = site.board
    made = board.write(endpoints.vend, board.alice, name="reviewer").endpoint
    one, two = windows().enter(), windows().enter()
    watching, page = two.go("/board"), one.go("/board")
    expect(watching.locator("#dot")).to_have_attribute("data-state", "live")
    page.get_by_text("Add a todo").click()
    page.get_by_label("Title").fill("seen by both")
    page.get_by_role("button", name="Add todo").click()
    expect(watching.locator(".lane", has_text="Ready")).to_contain_text("seen by both")
    id_ = re.search(r"/todos/(td_\w+)", page.url)[1]
    watching = two.go(f"/todos/{id_}")
    expect(watching.locator("#dot")).to_have_attribute("data-state", "live")
    watching.get_by_label("Add a note").fill("half a thought")
    page.get_by_role("button", name="Claim for 5 minutes").click()
    expect(watching.locator("main")).to_contain_text("you, here on the board")
    expect(watching.get_by_label("Add a note")).to_have_value("half a thought")
    assert made


def test_runs_are_live(site, windows):
    """A change in the store of runs is seen without a reload."""
    from tenure.rules.schedule import every

    site.tell_job("tick", every(60_000))
    page = windows().enter().go("/runs/runs/job?name=tick")
    expect(page.locator("#dot")).to_have_attribute("data-state", "live")
    site.app.pause("tick")
    expect(page.locator("main")).to_contain_text("Paused since")


def test_an_ended_session_ends_its_streams(site, windows):
    """Ended from another browser, the window goes to the sign-in page by itself."""
    first, second = windows().enter(), windows().enter()
    page = first.go("/board")
    expect(page.locator("#dot")).to_have_attribute("data-state", "live")
    other = second.go("/settings")
    other.get_by_role("row").filter(has_not_text="this one").get_by_role("button", name="End").click()
    page.wait_for_url(re.compile("/login"))
    assert second.text()


def test_b25_revoke_is_seen_at_once(site, windows):
    """Another window's card goes, and the claim is shown as closed."""
    board = site.board
    made = board.write(endpoints.vend, board.alice, name="reviewer")
    board.write(todos.create, board.alice, made.endpoint, NewTodo("held"))
    board.write(
        lambda tx, board: claims.claim_next(
            tx, board, access.worker_by_credential(tx, board, made.credential.reveal()), shapes.Next()
        )
    )
    one, two = windows().enter(), windows().enter()
    watching = two.go("/board")
    expect(watching.locator("#dot")).to_have_attribute("data-state", "live")
    page = one.go(f"/endpoints/{made.endpoint.slug}")
    expect(page.locator("main")).to_contain_text("1 open claims are closed")
    page.get_by_text("Revoke it").click()
    page.get_by_role("button", name="Revoke reviewer for good").click()
    expect(watching.locator(".lane", has_text="Dead letters")).to_contain_text("held")
