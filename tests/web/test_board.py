"""Board, todo, friends, schedules and overview, by forms."""

from __future__ import annotations

import html
import re

import pytest
from web_pages import forms

from tenure.board import access, claims, endpoints, friends, humans, schedules, shapes, todos
from tenure.rules.todo_content import NewTodo


class Desk:
    """Alice's endpoint with one todo, and a worker on it."""

    def __init__(self, site):
        self.site, board = site, site.board
        made = board.write(endpoints.vend, board.alice, name="reviewer", queues=["reviews"])
        self.endpoint = made.endpoint
        self.worker = board.write(lambda tx, board: access.worker_by_credential(tx, board, made.credential.reveal()))
        self.id = self.put("Review change 552")

    def put(self, title, **more):
        board = self.site.board
        return board.write(todos.create, board.alice, self.endpoint, NewTodo(title, **more)).todo.summary.id

    def claim(self):
        """The worker takes the next todo; its token."""
        got = self.site.board.write(claims.claim_next, self.worker, shapes.Next(worker_label="laptop-1"))
        return got.granted[0].lease.token.reveal()

    def now(self):
        return self.site.board.read(todos.get, self.site.board.alice, self.id)


@pytest.fixture
def desk(site):
    return Desk(site)


def test_b45_lanes_show_where_todos_stand(desk, alice):
    """Each todo is in its lane; a filter leaves the others out; an empty lane says so."""
    desk.claim()
    desk.put("later", not_before=4_000_000_000_000)
    desk.put("ready one")
    page = alice.get("/board").text
    lanes = dict(re.findall(r'aria-label="([\w ]+)">\s*<header><h2>[\w ]+</h2><span class="tag">(\d+)<', page))
    assert lanes == {"Ready": "1", "Waiting": "1", "Claimed": "1", "Dead letters": "0", "Done": "0"}
    assert "laptop-1" in page
    assert "Nothing was finished yet." in page
    assert "ready one" not in alice.get("/board?queue=other").text
    assert "ready one" in alice.get(f"/board?endpoint={desk.endpoint.slug}").text


def test_the_ready_lane_is_in_the_order_of_claims_and_a_todo_is_added_above_it(desk, alice):
    """What a worker gets next stands first: by priority, then by age."""
    desk.put("second")
    desk.put("urgent", priority=5)
    page = alice.get("/board").text
    assert re.findall(r'class="card-link title"[^>]*>([^<]+)<', page) == ["urgent", "Review change 552", "second"]
    assert page.index("Add a todo") < page.index('aria-label="Ready"')


def test_the_reason_of_an_attempt_before_is_not_said_of_the_one_that_runs(desk, alice):
    """It stands with its attempt; above it is told while the todo waits for its retry, as the last one's."""
    board = desk.site.board
    board.write(claims.fail, desk.worker, [shapes.Failing(desk.id, desk.claim(), "the linter crashed")])
    assert "<dt>last reason</dt><dd>the linter crashed</dd>" in alice.get(f"/todos/{desk.id}").text
    board.write(todos.retry, board.alice, desk.id)
    desk.claim()
    page = alice.get(f"/todos/{desk.id}").text
    assert "reason</dt>" not in page
    assert page.count("the linter crashed") == 1


def test_activity_says_which_todo_was_cancelled_or_released(desk, alice):
    """By its title, and with the reason if there is one."""
    desk.claim()
    alice.post(f"/todos/{desk.id}/release")
    alice.post(f"/todos/{desk.id}/cancel", cancel_reason="not needed")
    page = html.unescape(alice.get("/activity").text)
    told = re.findall(r'<td class="wrap">("Review change 552".*?)</td>', page)
    assert told[:2] == ['"Review change 552": not needed', '"Review change 552"']


def test_depth_is_a_page_of_its_own(desk, alice):
    """The Board has a link to it, which JavaScript puts in its place; the page has picture and table."""
    assert 'href="/board/depth"' in alice.get("/board").text
    page = alice.get("/board/depth").text
    assert 'class="area live"' in page
    assert "<table>" in page


def test_a_todo_is_added_by_the_form(desk, alice):
    """With payload, priority and time; a refusal stands beside its field, and all that was typed stays."""
    good = {"endpoint": desk.endpoint.slug, "title": "new", "body": "a\r\nb", "payload": '{"a": [1]}', "priority": "3"}
    answer = alice.post("/todos", **good)
    made = desk.site.board.read(todos.get, desk.site.board.alice, re.search(r"td_\w+", answer.headers["location"])[0])
    assert (made.summary.title, made.body, made.payload, made.summary.priority) == ("new", "a\nb", {"a": [1]}, 3)
    wrong = {"title": "", "payload": "{not json", "priority": "ten", "queue": "unknown", "not_before": "soon"}
    for field, typed in wrong.items():
        page = alice.post("/todos", **{**good, field: typed})
        form = next(one for one in forms(page.text) if one["action"] == "/todos")
        assert (page.status_code, form["invalid"]) == (400, {field}), field
        assert form["fields"][field] == [typed]
        assert 'hx-get="/board"' in page.text  # what refreshes itself asks for the page, not for the form's address


@pytest.mark.parametrize("payload", ['{"a":1,"a":2}', "NaN", "[" * 40 + "]" * 40, '"\\ud800"'])
def test_payloads_are_read_strictly(desk, alice, payload):
    """What two programs could read in two ways is refused."""
    assert alice.post("/todos", endpoint=desk.endpoint.slug, title="t", payload=payload).status_code == 400


def test_b1_a_human_takes_over_and_completes(desk, alice):
    """The claim page: taken over from the worker, extended, completed with a result; the late one can be read."""
    token = desk.claim()
    assert "Take it over" in alice.get(f"/todos/{desk.id}").text
    assert alice.post(f"/todos/{desk.id}/claim").status_code == 303
    assert alice.post(f"/todos/{desk.id}/extend").status_code == 303
    late = shapes.Completion(desk.id, token, {"verdict": "too late"})
    desk.site.board.write(claims.complete, desk.worker, [late])
    assert alice.post(f"/todos/{desk.id}/complete", result='{"by": "hand"}').status_code == 303
    page = alice.get(f"/todos/{desk.id}").text
    assert "What came too late" in page
    assert "too late" in page
    assert "taken by operator" in page
    assert (desk.now().summary.state, desk.now().result) == ("done", {"by": "hand"})


def test_fail_retry_release_and_cancel(desk, alice):
    """The other steps; each leads to the state that it names."""
    desk.claim()
    assert alice.post(f"/todos/{desk.id}/release").status_code == 303
    assert desk.now().summary.shown == "pending"
    alice.post(f"/todos/{desk.id}/claim")
    assert alice.post(f"/todos/{desk.id}/fail", fail_reason="no").status_code == 303
    assert desk.now().summary.shown == "retrying"
    assert alice.post(f"/todos/{desk.id}/retry").status_code == 303
    assert alice.post(f"/todos/{desk.id}/note", note="seen").status_code == 303
    assert alice.post(f"/todos/{desk.id}/cancel", cancel_reason="not needed").status_code == 303
    found = desk.now()
    assert (found.summary.state, found.summary.reason, found.notes[0].text) == ("cancelled", "not needed", "seen")


def test_b7b_move_to_another_endpoint(desk, alice):
    """Off a revoked endpoint too."""
    other = desk.site.board.write(endpoints.vend, desk.site.board.alice, name="other").endpoint
    desk.site.board.write(endpoints.revoke, desk.site.board.alice, desk.endpoint.slug)
    assert "can be read, and moved" in alice.get(f"/todos/{desk.id}").text
    assert alice.post(f"/todos/{desk.id}/move", target=other.slug).status_code == 303
    assert desk.now().summary.endpoint_id == other.id


def test_steps_that_come_too_late_say_what_changed(desk, alice):
    """A step that the state no longer allows: 409, with the sentence above the page as it is now."""
    alice.post(f"/todos/{desk.id}/cancel", cancel_reason="")
    page = alice.post(f"/todos/{desk.id}/complete", result="")
    assert page.status_code == 409
    assert 'class="trouble"' in page.text
    assert "cancelled" in page.text


@pytest.mark.parametrize(
    ("step", "field", "typed"),
    [("complete", "result", "{"), ("fail", "fail_reason", "r" * 2001), ("note", "note", "")],
)
def test_refusals_on_a_todo_stand_beside_their_field(desk, alice, step, field, typed):
    """What was typed is kept."""
    desk.claim()
    page = alice.post(f"/todos/{desk.id}/{step}", **{field: typed})
    form = next(one for one in forms(page.text) if one["action"] == f"/todos/{desk.id}/{step}")
    assert (page.status_code, form["invalid"]) == (400, {field})


def test_b39_friends_by_forms(site, visit):
    """Charlie asks, Alice narrows and approves, Charlie collects once, Alice ends it."""
    alice, charlie = visit("alice"), visit("charlie")
    code = site.board.read(humans.friend_code, site.board.alice)
    refused = charlie.post("/friends", code=code, queues="reviews", verbs=["claim", "set_default_lease"], reason="")
    assert refused.status_code == 400
    assert "set_default_lease" in refused.text
    asked = charlie.post("/friends", code=code, queues="reviews, inbox", verbs=["claim", "complete"], reason="please")
    assert asked.status_code == 303
    id_ = site.board.read(friends.list_all, site.board.alice)[0].id
    assert "charlie asks" in alice.get("/friends").text
    wider = alice.post(f"/friends/{id_}/approve", agent="a", queues=["reviews"], verbs=["claim", "fail"])
    assert wider.status_code == 400
    assert "may only be narrowed" in wider.text
    approved = alice.post(f"/friends/{id_}/approve", agent="a", queues=["reviews"], verbs=["claim"])
    assert approved.status_code == 303
    shown = charlie.post(f"/friends/{id_}/collect")
    assert "tenure_endpoint_" in shown.text
    assert charlie.post(f"/friends/{id_}/collect").status_code == 409
    slug = site.board.read(friends.get, site.board.alice, id_).slug
    assert charlie.get(f"/endpoints/{slug}").status_code == 404
    assert alice.post(f"/friends/{id_}/end").status_code == 303
    assert site.board.read(endpoints.get, site.board.alice, slug).state == "revoked"


def test_b46_what_an_approver_narrowed_is_kept_when_it_is_refused(site, visit):
    """A mistyped lease gives back no queue and no verb that was unchecked: sent again, the form grants no more."""
    alice, charlie = visit("alice"), visit("charlie")
    code = site.board.read(humans.friend_code, site.board.alice)
    charlie.post("/friends", code=code, queues="reviews, inbox", verbs=["claim", "create_todo"], reason="please")
    id_ = site.board.read(friends.list_all, site.board.alice)[0].id
    there = f"/friends/{id_}/approve"
    narrowed = {"agent": "a", "name": "n", "queues": ["inbox"], "verbs": ["claim"], "days": "7"}
    page = alice.post(there, default_lease_ttl_seconds="soon", **narrowed)
    form = next(one for one in forms(page.text) if one["action"] == there)
    assert (page.status_code, form["invalid"]) == (400, {"default_lease_ttl_seconds"})
    told = {name: form["fields"][name] for name in narrowed}
    assert told == {"agent": ["a"], "name": ["n"], "queues": ["inbox"], "verbs": ["claim"], "days": ["7"]}


def test_b49_schedules_by_forms(desk, alice):
    """Added, edited, paused, resumed, a todo made now, removed; refusals beside their fields."""
    board, good = desk.site.board, {"name": "nightly", "endpoint": desk.endpoint.slug, "title": "Night {slot:%d}"}
    wrong = {"expression": "61 * * * *", "tz": "Mars/Olympus", "title": "", "payload": "{", "catch_up": "soon"}
    for field, typed in wrong.items():
        page = alice.post("/schedules", **{"expression": "30 2 * * *", "tz": "Europe/Berlin", **good, field: typed})
        form = next(one for one in forms(page.text) if one["action"] == "/schedules")
        assert (page.status_code, form["invalid"]) == (400, {field}), field
        assert form["fields"][field] == [typed]
    assert alice.post("/schedules", expression="30 2 * * *", tz="Europe/Berlin", **good).status_code == 303
    found = board.read(schedules.list_all, board.alice)[0]
    path = f"/schedules/{found.id}"
    page = alice.get(path).text
    assert "02:30 does not exist: runs at 03:" in page
    fields = alice.form(path, f"{path}/edit")["fields"]
    fields.pop("csrf")
    assert alice.post(f"{path}/edit", **{**fields, "title": "other"}).status_code == 303
    for step, paused in (("pause", True), ("resume", False)):
        assert alice.post(f"{path}/{step}").status_code == 303
        assert (board.read(schedules.get, board.alice, found.id).paused is not None) is paused
    assert alice.post(f"{path}/trigger").status_code == 303
    assert "other" in alice.get("/board").text
    assert alice.post(f"{path}/remove").status_code == 303
    assert board.read(schedules.list_all, board.alice) == []


def test_the_overview_names_what_needs_an_eye(desk, alice):
    """Dead letters, a silent endpoint with ready todos, one that ends soon, a friend who asks."""
    board = desk.site.board
    board.write(friends.request, board.charlie, board.read(humans.friend_code, board.alice), queues=[], verbs=["claim"])
    soon = board.read(lambda tx, _: tx.now()) + 3_600_000
    board.write(endpoints.vend, board.alice, name="short one", expires=soon)
    board.clock.turn(minutes=20)
    page = alice.get("/").text
    assert "charlie asks for friendship" in page
    assert "has 1 ready todos, and was last seen" in page
    assert re.search(r"short one</a> <span class=.dim.>expires", page)


def test_every_empty_page_names_the_command_that_fills_it(alice):
    """An empty board: each list says which command fills it."""
    commands = {
        "/": "tenure endpoint vend", "/board": "tenure endpoint vend", "/endpoints": "tenure endpoint vend",
        "/runs/runs": "tenure run", "/schedules": "tenure schedule add", "/friends": "tenure friend request",
    }  # fmt: skip
    for path, command in commands.items():
        assert command in alice.get(path).text, path
