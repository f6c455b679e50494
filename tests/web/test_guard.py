"""Who may: sessions, forged forms, sizes, headers, and what another's looks like."""

from __future__ import annotations

import itertools
import json
import re
import socket
import time

import pytest

from tenure.board import endpoints, friends, humans, schedules, signing_in, todos, tokens, webhooks
from tenure.board.refused import Refused
from tenure.doors.web import account
from tenure.doors.web import app as web
from tenure.doors.web.guard import FORM_BYTES, POLICY
from tenure.rules.refusal import Refusal
from tenure.rules.todo_content import NewTodo
from tenure.stores.contract import Change

OPEN = ("/static/{version}/{name}", "/login", "/login/{secret}", "/live/board", "/live/runs/{source}")


def routes(site):
    """Every route of the page, with its methods."""
    return [
        (route.path, method) for route in web.web_app(site.board).routes for method in sorted(route.methods - {"HEAD"})
    ]


def vended(site, who, name="reviewer", **more):
    return site.board.write(endpoints.vend, getattr(site.board, who), name=name, **more)


def test_every_page_asks_for_a_session(site, stranger):
    """Without a session no page is shown and no form taken: one is sent to sign in."""
    for path, method in routes(site):
        if path in OPEN:
            continue
        answer = stranger.client.request(method, re.sub(r"\{.*?\}", "x", path), headers=stranger.headers)
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login"), (method, path)


def test_a_refresh_without_a_session_is_no_page(stranger):
    """What asks for itself again is not answered with the page for signing in, which has none of its parts."""
    answer = stranger.client.get("/board", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (401, b"")


def test_b51_headers_on_every_answer(site, alice, stranger):
    """Pages, refusals, files and redirects carry the policy; pages are kept by nobody."""
    answers = [alice.get("/"), alice.get("/nope"), alice.post("/endpoints", csrf="x"), stranger.get("/board")]
    answers.append(alice.get(re.search(r'href="(/static/[^"]+css)"', answers[0].text)[1]))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    assert {answer.headers["cache-control"] for answer in answers[:-1]} == {"no-store"}
    assert "immutable" in answers[-1].headers["cache-control"]


def test_b51_whatever_a_sign_in_link_answers_names_it_to_nobody(site, stranger):
    """Also what refuses: a link that never was, another method, a forged form, and one from elsewhere."""
    path = site.link()
    answers = [stranger.get(path), stranger.get("/login/x"), stranger.client.put(path)]
    answers.append(stranger.post(path, csrf="0" * 64))
    answers.append(stranger.client.post(path, headers={"Sec-Fetch-Site": "cross-site"}))
    csrf = re.search(r'name="csrf" value="(\w+)"', answers[0].text)[1]
    answers.append(stranger.post(path, csrf=csrf))
    assert [answer.status_code for answer in answers] == [200, 200, 405, 403, 403, 303]
    assert {answer.headers["referrer-policy"] for answer in answers} == {"no-referrer"}


def test_b51_a_page_that_breaks_carries_the_headers_too(stranger, monkeypatch, caplog):
    """500, with all that stands on other answers; the log does not say at which address, for that may be a secret."""

    def broken(request):
        raise RuntimeError("no page")

    monkeypatch.setattr(account, "before_sign_in", broken)
    answer = stranger.get("/login/some-link%0A")
    assert (answer.status_code, answer.headers["referrer-policy"]) == (500, "no-referrer")
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert "a page failed" in caplog.messages
    assert not any("some-link" in line for line in caplog.messages)


def test_b16_an_address_that_nobody_has_while_the_database_is_away(site, alice, monkeypatch):
    """503 like every other page, by whatever method: it can't be told whose page that is, and nothing is broken."""

    async def away(*_asked):
        raise Refused(Refusal("unavailable", "The database is away."))

    monkeypatch.setattr(site.board.database, "read", away)
    monkeypatch.setattr(site.board.database, "write", away)
    assert [alice.get(path).status_code for path in ("/board", "/nothing")] == [503, 503]
    assert alice.post("/nothing").status_code == 503


def test_b51_no_address_is_sent_on_with_a_scheme(site, alice):
    """A slash too many is another address: a redirect would name http, also where https stands before the server."""
    for path in ("/board/", "/login/some-link/"):
        answer = alice.get(path)
        assert (answer.status_code, answer.headers.get("location")) == (404, None)


def test_no_inline_script_or_style(site, alice):
    """No page needs what the policy forbids."""
    vended(site, "alice")
    for path in ("/", "/board", "/endpoints", "/endpoints/new", "/settings", "/friends", "/schedules", "/activity"):
        page = alice.get(path).text
        assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=|javascript:", page), path
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page), path


# --- forged forms -----------------------------------------------------------------------------------------


def posts(site):
    return [path for path, method in routes(site) if method == "POST" and path not in OPEN]


def test_b46_every_form_needs_its_sessions_token(site, visit):
    """Without the token, with a made-up one, another human's, or one of an older session: 403, nothing written."""
    alice, bob, older = visit("alice"), visit("bob"), visit("alice")
    before = site.board.rows("SELECT count(*) AS n FROM audit")[0].n
    for path in posts(site):
        there = re.sub(r"\{.*?\}", "x", path)
        for token in ("", "0" * 64, bob.csrf, older.csrf):
            answer = alice.post(there, csrf=token, name="forged")
            assert answer.status_code == 403, (there, token)
    assert site.board.rows("SELECT count(*) AS n FROM audit")[0].n == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_b46_forms_from_elsewhere_are_refused(alice, headers):
    """Even with the right token: the browser says that another page sent it, or nothing at all says it was ours."""
    assert alice.post("/endpoints", headers=headers, name="forged").status_code == 403
    assert alice.client.post("/theme", data={"theme": "dark"}, headers=headers).status_code == 403
    assert "forged" not in alice.get("/endpoints").text


def test_an_origin_of_ours_will_do(site, alice):
    """A browser that sends no Sec-Fetch-Site is known by its Origin."""
    assert alice.post("/endpoints", headers={"Origin": site.url}, name="mine").status_code == 200


def test_get_never_writes(site, alice):
    """Looking at every page changes nothing but when the session was seen."""
    slug = vended(site, "alice").endpoint.slug
    before = site.board.rows("SELECT count(*) AS n FROM audit")[0].n
    for path in ("/", "/board", "/endpoints", f"/endpoints/{slug}", "/settings", "/friends", "/schedules", site.link()):
        alice.get(path)
    for path in posts(site):
        assert alice.get(re.sub(r"\{.*?\}", slug, path)).status_code in (200, 303, 404, 405), path
    # the link that was made for the test is the one line more
    assert site.board.rows("SELECT count(*) AS n FROM audit")[0].n == before + 1


def test_b43_forms_are_at_most_64_kib(alice):
    """65536 bytes are read, one more is refused, by a length or without one."""
    start = f"csrf={alice.csrf}&name=".encode()
    kind = {**alice.headers, "Content-Type": "application/x-www-form-urlencoded"}
    fits, beyond = start + b"n" * (FORM_BYTES - len(start)), start + b"n" * (FORM_BYTES - len(start) + 1)
    assert alice.client.post("/endpoints", content=fits, headers=kind).status_code == 400
    assert alice.client.post("/endpoints", content=beyond, headers=kind).status_code == 413
    assert alice.client.post("/endpoints", content=iter([beyond]), headers=kind).status_code == 413


def test_b43_a_todo_may_be_larger(site, alice):
    """A payload of 256 KiB fits into the form of a new todo."""
    slug = vended(site, "alice").endpoint.slug
    payload = '"' + "x" * (250 * 1024) + '"'
    assert alice.post("/todos", endpoint=slug, title="large", payload=payload).status_code == 303


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", "text/plain"])
def test_only_forms_are_taken(alice, kind):
    """Anything else is refused before it is read."""
    answer = alice.client.post("/endpoints", content=b"x", headers={**alice.headers, "Content-Type": kind})
    assert answer.status_code == 415


# --- another's --------------------------------------------------------------------------------------------


def test_case_b39_anothers_is_the_page_of_an_unknown_one(site, visit):
    """Every route with an id, Bob's and none's and a revoked one's: the same status, headers and bytes for Alice."""
    alice, board = visit("alice"), site.board
    own = vended(site, "bob", targets=[])
    ended = vended(site, "bob", "gone")
    board.write(endpoints.revoke, board.bob, ended.endpoint.slug)
    todo = board.write(todos.create, board.bob, own.endpoint, NewTodo("secret")).todo.summary.id
    hook = board.write(webhooks.create, board.bob, name="h", ref=own.endpoint.slug).webhook.id
    raw = {"expression": "10m", "title": "t"}
    schedule = board.write(schedules.add, board.bob, own.endpoint.slug, "s", raw).id
    code = board.read(humans.friend_code, board.charlie)
    asked = board.write(friends.request, board.bob, code, queues=["inbox"], verbs=["claim"]).id
    site.session("bob")
    theirs = {
        "endpoints": [own.endpoint.slug, own.endpoint.id, ended.endpoint.slug],
        "todos": [todo],
        "schedules": [schedule, "s"],
        "friends": [asked],
        "settings": [
            board.read(signing_in.sessions, board.bob)[0].id,
            board.write(tokens.create, board.bob, "t").token.id,
        ],
    }
    checked = 0
    for path, method in routes(site):
        kind = path.split("/")[1]
        if "{" not in path or kind not in theirs or path == "/endpoints/new":
            continue
        for ref in theirs[kind]:
            both = ((ref, hook), ("no-such-thing", "wh_unknown"))
            answers = [_ask(alice, method, _named(path, *one)) for one in both]
            assert answers[0] == answers[1], (method, path)
            if "{edit}" not in path and "{step}" not in path:
                assert answers[0][0] == 404, (method, path)
            checked += 1
    assert checked > 15


def _filled(path, words):
    """The path with its parts filled in."""
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1]) or "x", path)


def _named(path, ref, hook):
    return _filled(path, {"edit": "lease", "step": "cancel", "ref": ref, "id": hook if "webhooks" in path else ref})


def _ask(visitor, method, path):
    """Status, headers and body, without what names the answer itself."""
    told = {"default_lease_ttl_seconds": "45m", "target": "x", "overlap_seconds": "0"}
    answer = visitor.get(path) if method == "GET" else visitor.post(path, **told)
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("date", "x-request-id", "request-id") and not name.startswith("ratelimit")
    }
    return answer.status_code, headers, answer.content


def test_an_unknown_address_is_the_same_page(alice):
    """What never was a page answers like what is another's."""
    assert _ask(alice, "GET", "/endpoints/nobodys") == _ask(alice, "GET", "/no/such/page")


def test_b45_moving_onto_anothers_endpoint(site, alice):
    """A target that is another's is missing, and the todo stays where it is."""
    mine, theirs = vended(site, "alice"), vended(site, "bob")
    todo = site.board.write(todos.create, site.board.alice, mine.endpoint, NewTodo("stay")).todo.summary.id
    answers = [alice.post(f"/todos/{todo}/move", target=slug) for slug in (theirs.endpoint.slug, "none-1234")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content


def test_runs_of_others_schedules(site, visit):
    """A job of a source that has owners is, for all others, one that never was."""
    from tenure.rules.schedule import every

    site.tell_job("schedule sc_bobs", every(60_000))

    async def owned(human):
        return frozenset({"schedule sc_bobs"} if human.name == "bob" else ())

    site.own_runs(owned)
    alice, bob = visit("alice"), visit("bob")
    path = "/runs/runs/job?name="
    assert bob.get(path + "schedule sc_bobs").status_code == 200
    assert "sc_bobs" not in alice.get("/runs/runs").text
    assert _ask(alice, "GET", path + "schedule sc_bobs") == _ask(alice, "GET", path + "schedule sc_none")
    assert alice.post("/runs/runs/pause", name="schedule sc_bobs").status_code == 404
    assert bob.post("/runs/runs/pause", name="schedule sc_bobs").status_code == 303


def test_b26_an_instance_tells_nobody_how_many_schedules_others_have(site, visit):
    """It has Alice's and two of Bob's: each is told of their own, and how many runs it backs up is told to neither."""
    jobs = {"alice": ["schedule sc_1"], "bob": ["schedule sc_2", "schedule sc_3"]}

    async def owned(human):
        return frozenset(jobs[human.name])

    site.own_runs(owned)
    for job in itertools.chain(*jobs.values()):
        site.tell_job(job)
    now = site.app.ask_now(lambda records: records.now())
    told = {"host": "web", "pid": 7, "version": "1", "started": now, "seen": now, "offset_ms": 0, "running": []}
    told |= {"jobs": list(itertools.chain(*jobs.values())), "backups": 7, "reasons": []}
    change = Change("instance:api-1", 0, json.dumps(told).encode())
    site.app.ask_now(lambda records: records.store.commit([change]))
    for name, mine in jobs.items():
        page = visit(name).get("/runs/runs").text
        assert "api-1" in page
        assert re.findall(r'<td class="right">(\d+)</td>', page) == [str(len(mine))]


# --- what is shown ----------------------------------------------------------------------------------------

NASTY = "<img src=x onerror=alert(1)>\"'</script><script>"


def test_markup_is_text_everywhere(site, alice):
    """Titles, bodies, names, notes, reasons and JSON are shown as they were written, never read as a page's parts."""
    board = site.board
    one = vended(site, "alice", NASTY[:60])
    todo = board.write(todos.create, board.alice, one.endpoint, NewTodo(NASTY, body=NASTY, payload={NASTY: NASTY}))
    id_ = todo.todo.summary.id
    alice.post(f"/todos/{id_}/note", note=NASTY)
    alice.post(f"/todos/{id_}/cancel", cancel_reason=NASTY)
    for path in ("/", "/board", f"/todos/{id_}", "/endpoints", f"/endpoints/{one.endpoint.slug}", "/activity"):
        page = alice.get(path).text
        assert "<img src=x" not in page, path
        assert "<script>" not in page.replace("</script><script>", ""), path
        assert "&lt;img src=x" in page, path


STRANGE = [
    b"%FF%FE", b"\xff\xfe", b"%F0%9F%92%A9" * 20, b"9" * 400, b"-1", b"1e400", b"%0D%0A", b"..%2f..", b"%E2%80%AEa",
    b"{{7*7}}", b"%25s%25n", b"'%3B--", b"[]", b"null", b"a" * 5000,
]  # fmt: skip
ALWAYS = (b"%00", b"%ED%A0%80")  # what no database keeps
NAMES = [
    "name", "queues", "default_lease_ttl_seconds", "days", "once", "agent", "verbs", "targets", "webhook_ceiling",
    "step", "go", "presence", "for", "shift", "mcp_era", "overlap_seconds", "webhook_name", "queue", "endpoint",
    "title", "body", "payload", "priority", "not_before", "idempotency_key", "result", "fail_reason", "cancel_reason",
    "target", "note", "code", "reason", "expression", "tz", "overlap", "catch_up", "password", "again", "token_name",
    "at",
]  # fmt: skip


def test_strange_values_are_refused_in_every_form(site, alice):
    """NUL, half a surrogate pair, broken UTF-8, endless numbers, templates: an answer below 500 from every form."""
    one = vended(site, "alice")
    todo = site.board.write(todos.create, site.board.alice, one.endpoint, NewTodo("t")).todo.summary.id
    raw = {"expression": "10m", "title": "t"}
    schedule = site.board.write(schedules.add, site.board.alice, one.endpoint.slug, "s", raw).id
    ids = {"endpoints": one.endpoint.slug, "todos": todo, "schedules": schedule}
    kind = {**alice.headers, "Content-Type": "application/x-www-form-urlencoded"}
    steps = {
        "edit": ["lease", "presence", "shift", "name", "era"],
        "step": ["complete", "note", "cancel", "fail", "move"],
    }
    strange = itertools.cycle(STRANGE)
    for path in posts(site):
        word = next((word for word in steps if f"{{{word}}}" in path), "")
        for step in steps.get(word, [""] if path != "/logout" else []):
            there = _filled(path, {word: step, "ref": ids.get(path.split("/")[1]), "id": ids.get(path.split("/")[1])})
            for value in (*ALWAYS, *itertools.islice(strange, 3)):
                fields = b"".join(f"&{name}=".encode() + value for name in NAMES)
                alice.rest()
                answer = alice.client.post(there, content=f"csrf={alice.csrf}".encode() + fields, headers=kind)
                assert answer.status_code < 500, (there, value, answer.text[:500])


@pytest.mark.parametrize("token", [b"%00", b"%ED%A0%80", b"%FF", "é".encode(), b""])
def test_strange_tokens_are_wrong_ones(alice, token):
    """A form's token that is no text is refused like any other wrong one."""
    kind = {**alice.headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert alice.client.post("/endpoints", content=b"name=x&csrf=" + token, headers=kind).status_code in (400, 403)
    assert "No endpoint is active" in alice.get("/endpoints").text


@pytest.mark.parametrize("days", ["2", "0", "07", "-1", "forever"])
def test_b24_a_lifetime_that_no_form_offers_is_refused(site, alice, days):
    """It is not taken for "until revoked": nothing is made that would live longer than was asked."""
    told = {
        "name": "n",
        "token_name": "n",
        "verbs": "complete",
        "webhook_ceiling": "5",
        "step": "confirm",
        "days": days,
    }
    for path in ("/settings/tokens", "/endpoints", "/endpoints/new"):
        page = alice.post(path, **told)
        assert (page.status_code, "no such lifetime" in page.text) == (400, True), path
    assert site.board.read(tokens.list_all, site.board.alice) == []
    assert site.board.read(endpoints.list_all, site.board.alice) == []


def test_a_form_that_is_cut_off_is_no_fault(site, caplog):
    """Whoever hangs up in the middle of a form, or is hung up on, changes nothing and leaves no traceback."""
    host, port = site.url.removeprefix("http://").split(":")
    kind = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100"
    cookie = f"tenure-session={site.session()}"
    answered = site._doors.metrics.registry.get_sample_value
    for many, path in enumerate(("/login", "/endpoints"), start=1):
        with socket.create_connection((host, port)) as caller:
            head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookie}\r\n{kind}\r\n"
            caller.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
            assert caller.recv(100).startswith(b"HTTP/1.1 100 ")  # the form is being read
            caller.sendall(b"name=x")
        deadline = time.monotonic() + 20
        while answered("tenure_http_request_seconds_count", {"door": "web"}) != many and time.monotonic() < deadline:
            time.sleep(0.01)
    assert answered("tenure_http_request_seconds_count", {"door": "web"}) == 2
    assert not [line for line in caplog.records if line.exc_info]


def test_too_many_fields_are_refused(alice):
    """A form of thousands of fields is no form of ours."""
    kind = {**alice.headers, "Content-Type": "application/x-www-form-urlencoded"}
    answer = alice.client.post("/endpoints", content=b"&".join([b"a=1"] * 5000), headers=kind)
    assert answer.status_code in (400, 413)


@pytest.mark.parametrize("query", ["%00", "%ED%A0%80", "%FF", "x" * 3000, "-1", "9" * 50])
def test_strange_addresses(alice, query):
    """Addresses that nobody has: never an error of ours."""
    paths = (
        f"/board?endpoint={query}&queue={query}", f"/todos/{query}", f"/endpoints/{query}", f"/schedules/{query}",
        f"/activity?before={query}", f"/runs/runs/job?name={query}", f"/runs/runs/run?name=x&slot={query}",
        f"/?said={query}", f"/login/{query}",
    )  # fmt: skip
    for path in paths:
        assert alice.get(path).status_code < 500, path
