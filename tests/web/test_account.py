"""Signing in and out, passwords, tokens, sessions and the audit, by forms."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import httpx2
import pytest
from starlette.requests import Request
from web_pages import forms

from tenure.board import signing_in, tokens
from tenure.board.board import BoardSettings
from tenure.doors.web.guard import cookie_name

COOKIE = "tenure-session"
PASSWORD = "a sentence that is long enough"  # noqa: S105


def before(stranger, path="/login"):
    """The token of a form that is shown before any session."""
    return forms(stranger.get(path).text)[0]["fields"]["csrf"][0]


def give_password(site, name="alice"):
    hashed = signing_in.hashed_password(PASSWORD)
    site.board.write(signing_in.put_password, getattr(site.board, name), hashed)


def test_b52_a_link_signs_in_once(site, stranger):
    """Looking at it uses nothing up; the button signs in; a second time it is over; no referrer is sent."""
    path = site.link()
    for _ in range(2):
        page = stranger.get(path)
        assert (page.status_code, page.headers["referrer-policy"]) == (200, "no-referrer")
    entered = stranger.post(path, csrf=before(stranger, path))
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert entered.headers["referrer-policy"] == "no-referrer"
    cookie = next(value for value in entered.headers.get_list("set-cookie") if value.startswith(COOKIE))
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()
    assert "signed in as <b>alice</b>" in stranger.get("/").text
    stranger.client.cookies.delete(COOKIE)
    again = stranger.post(path, csrf=before(stranger, path))
    assert again.status_code == 401
    assert "tenure human link NAME" in again.text


def test_b51_behind_https_cookies_are_for_https(site, stranger):
    """Where the public address is https, cookies are Secure and of this host alone."""
    https = replace(site.board.settings, public_url=site.url.replace("http://", "https://"))
    object.__setattr__(site.board, "settings", https)
    given = stranger.get("/login").headers["set-cookie"]
    assert given.startswith("__Host-tenure-form=")
    assert {"secure", "httponly", "path=/"} <= {part.strip().lower() for part in given.split(";")}


@pytest.mark.parametrize("called", ["board.example.com", "BOARD.example.com", "board.example.com:443"])
def test_b51_cookies_are_secure_however_the_public_host_is_spelled(called):
    """A port that https has anyway, or a capital letter, makes no cookie one that is sent in clear too."""
    board = SimpleNamespace(settings=BoardSettings(public_url="https://board.example.com"))
    app = SimpleNamespace(state=SimpleNamespace(board=board))
    scope = {"type": "http", "scheme": "http", "path": "/login", "query_string": b"", "server": ("127.0.0.1", 8420)}
    request = Request({**scope, "headers": [(b"host", called.encode())], "app": app})
    assert cookie_name(request) == "__Host-tenure-session"


def test_a_link_is_over_after_ten_minutes(site, stranger):
    """The same sentence as for one that never was."""
    path, never = site.link(), "/login/tenure_link_" + "0" * 49
    site.board.clock.turn(minutes=10)
    old, unknown = (stranger.post(one, csrf=before(stranger, one)) for one in (path, never))
    assert (old.status_code, unknown.status_code) == (401, 401)
    assert re.search(r'role="alert">(.*?)<', old.text)[1] == re.search(r'role="alert">(.*?)<', unknown.text)[1]


def test_b51_password_and_unknown_name_answer_alike(site, stranger):
    """A wrong password and a name that nobody has: the same page but for the name that was typed."""
    give_password(site)
    answers = [
        stranger.post("/login", csrf=before(stranger), name=name, password="wrong password", to="/")  # noqa: S106
        for name in ("alice", "nobody")
    ]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert answers[0].text.replace('value="alice"', 'value="nobody"') == answers[1].text
    entered = stranger.post("/login", csrf=before(stranger), name="alice", password=PASSWORD, to="/board?queue=x")
    assert (entered.status_code, entered.headers["location"]) == (303, "/board?queue=x")


def test_blanks_around_a_name_are_no_part_of_it(site, stranger):
    """They are taken off where a human is added, and so where one signs in."""
    give_password(site)
    answer = stranger.post("/login", csrf=before(stranger), name=" alice ", password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_signing_in_leads_to_no_other_host(site, stranger):
    """Where to go after it is a path of ours, whatever the form says."""
    give_password(site)
    for to in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\x0d\x0aX: y"):
        stranger.client.cookies.clear()
        site.board.clock.turn(minutes=5)
        answer = stranger.post("/login", csrf=before(stranger), name="alice", password=PASSWORD, to=to)
        assert (answer.status_code, answer.headers["location"]) == (303, "/"), to


def test_b43_tries_are_limited(site, stranger):
    """Five a minute for an account; the page says how long to wait."""
    stranger.rest = lambda: None
    answers = [
        stranger.post("/login", csrf=before(stranger), name="alice", password="wrong", to="/")  # noqa: S106
        for _ in range(6)
    ]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429]
    assert "Wait" in answers[-1].text


def test_a_login_form_of_another_browser_is_refused(site, stranger):
    """Its token belongs to the cookie of the browser that it was shown to."""
    token = before(stranger)
    with httpx2.Client(base_url=site.url, headers=stranger.headers) as other:
        other.get("/login")
        answer = other.post("/login", data={"csrf": token, "name": "alice", "password": "x"})
    assert answer.status_code == 403


def test_sign_out_and_ended_sessions(site, visit):
    """Signing out ends the session on the server; another session can be ended from Settings."""
    alice, other = visit("alice"), visit("alice")
    ids = re.findall(r"/settings/sessions/(\w+)/end", alice.get("/settings").text)
    mine = site.board.read(signing_in.sessions, site.board.alice)
    assert set(ids) == {one.id for one in mine}
    ended = site.board.rows("SELECT id FROM sessions ORDER BY id DESC LIMIT 1")[0].id
    assert alice.post(f"/settings/sessions/{ended}/end").status_code == 303
    assert other.get("/").status_code == 303
    assert alice.post("/logout").status_code == 303
    assert alice.get("/").status_code == 303
    assert site.board.read(signing_in.sessions, site.board.alice) == []


def test_a_new_password_ends_other_sessions(site, visit):
    """Refusals stand beside their field; the session that asked goes on."""
    alice, other = visit("alice"), visit("alice")
    for typed, field in (
        ({"password": "short", "again": "short"}, "password"),
        ({"password": "x", "again": "y"}, "again"),
    ):
        page = alice.post("/settings/password", **typed)
        form = next(one for one in forms(page.text) if one["action"] == "/settings/password")
        assert (page.status_code, form["invalid"]) == (400, {field})
        assert typed["password"] not in re.findall(r'value="([^"]*)"', page.text)
    assert alice.post("/settings/password", password=PASSWORD, again=PASSWORD).status_code == 303
    assert (alice.get("/").status_code, other.get("/").status_code) == (200, 303)


def test_a_token_is_shown_once(site, alice):
    """It works, is listed by its end, and is ended by its button."""
    page = alice.post("/settings/tokens", token_name="laptop", days="30")  # noqa: S106
    secret = re.search(r"tenure_human_\w+", page.text)[0]
    listed = alice.get("/settings").text
    assert secret not in listed
    assert f"…{secret[-4:]}" in listed
    made = site.board.read(tokens.list_all, site.board.alice)[0]
    assert made.expires is not None
    assert alice.post(f"/settings/tokens/{made.id}/revoke").status_code == 303
    assert site.board.read(tokens.list_all, site.board.alice) == []
    refused = alice.post("/settings/tokens", token_name=" ")  # noqa: S106
    form = next(one for one in forms(refused.text) if one["action"] == "/settings/tokens")
    assert (refused.status_code, form["invalid"]) == (400, {"token_name"})


def test_case_b46_the_form_of_a_token_sent_twice_makes_one(site, alice):
    """And shows it once; the second answer says why."""
    once = alice.form("/settings", "/settings/tokens")["fields"]["once"][0]
    first, again = [alice.post("/settings/tokens", token_name="laptop", once=once) for _ in range(2)]  # noqa: S106
    assert (first.status_code, again.status_code) == (200, 303)
    assert "shown once" in alice.get(again.headers["location"]).text
    assert len(site.board.read(tokens.list_all, site.board.alice)) == 1


def test_activity_tells_what_was_done(site, alice):
    """Each step by a form has its line; older lines are a page further."""
    for number in range(60):
        site.board.write(tokens.create, site.board.alice, f"token {number}")
    page = alice.get("/activity").text
    assert "token token 59" in page
    older = re.search(r'href="(/activity\?before=[^"]+)"', page)[1]
    assert "token token 2 " in alice.get(older).text


def test_no_secret_in_pages(site, alice):
    """What was shown once is on no page afterwards."""
    shown = [
        alice.post("/endpoints", name="reviewer").text,
        alice.post("/settings/tokens", token_name="laptop").text,  # noqa: S106
    ]
    secrets = {found for page in shown for found in re.findall(r"tenure_(?:endpoint|human)_\w{49}", page)}
    assert len(secrets) == 2
    slug = re.search(r"/mcp/([\w-]+)", shown[0])[1]
    for path in ("/", "/board", "/endpoints", f"/endpoints/{slug}", "/settings", "/activity", "/friends"):
        assert not any(secret in alice.get(path).text for secret in secrets), path


def test_the_theme_is_kept(alice):
    """Chosen by a form, kept in a cookie, and the page that was left comes again; never another host's."""
    answer = alice.post("/theme", theme="dark", back="/board")
    assert answer.headers["location"] == "/board"
    assert 'data-theme="dark"' in alice.get("/").text
    assert alice.post("/theme", theme="light", back="//evil.example").headers["location"] == "/"
    alice.post("/theme", theme="<script>", back="/")
    assert 'data-theme="light"' in alice.get("/").text
