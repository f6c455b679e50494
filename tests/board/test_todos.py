"""Todos as they are made, listed and steered by humans and producers (B1 to B7b, B25, B33), on both databases."""

import json

import pytest
import sqlalchemy as sa
from board_worker import Hands

from tenure.board import endpoints, tables, todos
from tenure.board.refused import Refused
from tenure.board.shapes import Filters, NewTodo, Source
from tenure.rules import bounds
from tenure.rules import todo_commands as c
from tenure.rules.endpoints import ALL
from tenure.rules.refusal import MISSING
from tenure.rules.todo import Claim, Todo
from tenure.rules.todos import decide

S = 1_000


@pytest.fixture
def hands(board):
    """A worker on an endpoint of Alice's."""
    return Hands(board, board.vend(queues=["inbox", "review"], verbs=ALL))


def refused(call, *args, **kwargs):
    """What a call that must be refused says."""
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    return caught.value.refusal


def reason(call, *args, **kwargs):
    """The reason of a conflict."""
    refusal = refused(call, *args, **kwargs)
    assert refusal.code == "conflict"
    return refusal.details["reason"]


def act(hands, case, *args, **kwargs):
    """An action of Alice's."""
    return hands.board.write(case, hands.board.alice, *args, **kwargs)


# --- contents ---------------------------------------------------------------------------------------------


def test_b02_a_todo_has_what_it_was_given(hands):
    """Every field comes back as it was sent, and what was left out has its default."""
    payload = {"text": "ümläut \U0001f600", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}
    todo_id = hands.put("Title", queue="review", body="*body*", payload=payload, priority=-9, failures_cap=3)
    todo = hands.see(todo_id)
    assert (todo.summary.title, todo.summary.queue, todo.body, todo.payload) == ("Title", "review", "*body*", payload)
    assert (todo.summary.priority, todo.summary.failures_cap, todo.summary.lapses_cap) == (-9, 3, 5)
    assert (todo.summary.state, todo.summary.source, todo.source_id) == ("pending", "human", hands.board.alice.id)
    assert hands.see(hands.put()).summary.queue == "inbox"


@pytest.mark.parametrize(
    ("field", "new"),
    [
        ("title", {"title": ""}),
        ("title", {"title": "   "}),
        ("title", {"title": "x" * (bounds.TITLE_CHARS + 1)}),
        ("title", {"title": "two\nlines"}),
        ("title", {"title": "nul \0"}),
        ("body", {"body": "x" * (bounds.BODY_BYTES + 1)}),
        ("body", {"body": "ü" * (bounds.BODY_BYTES // 2 + 1)}),
        ("body", {"body": "half a pair \ud800"}),
        ("payload", {"payload": "x" * bounds.JSON_BYTES}),
        ("payload", {"payload": {"text": "nul \0"}}),
        ("payload", {"payload": float("nan")}),
        ("payload", {"payload": {"half": "\udfff"}}),
        ("payload", {"payload": {1, 2}}),
        ("priority", {"priority": 10}),
        ("priority", {"priority": True}),
        ("not_before", {"not_before": -1}),
        ("not_before", {"not_before": 10**15}),
        ("idempotency_key", {"idempotency_key": ""}),
        ("idempotency_key", {"idempotency_key": "x" * (bounds.KEY_CHARS + 1)}),
        ("failures_cap", {"failures_cap": 0}),
        ("lapses_cap", {"lapses_cap": bounds.CAP_LIMIT + 1}),
        ("queue", {"queue": "nowhere"}),
        ("depends_on", {"depends_on": tuple(f"td_{n}" for n in range(bounds.DEPENDENCIES + 1))}),
    ],
)
def test_b02_over_a_limit_is_refused_by_name(hands, field, new):
    """invalid_argument that names its field; nothing is made."""
    refusal = refused(hands.put, **{"title": "fine", **new})
    assert (refusal.code, refusal.details["field"]) == ("invalid_argument", field)
    assert hands.next().empty


def test_b02_the_limits_themselves_are_allowed(hands):
    """The largest of each, in characters or bytes as the page says."""
    todo_id = hands.put(
        "ü" * bounds.TITLE_CHARS,
        body="ü" * (bounds.BODY_BYTES // 2),
        payload="x" * (bounds.JSON_BYTES - 2),
        priority=9,
        idempotency_key="k" * bounds.KEY_CHARS,
        failures_cap=bounds.CAP_LIMIT,
    )
    assert len(hands.see(todo_id).payload) == bounds.JSON_BYTES - 2


def test_b02_dependencies_hold_a_todo_back(hands):
    """Shown as blocked with a stored count; it is ready when the last of them is done, in whatever order."""
    first, other = hands.put("first"), hands.put("other")
    last = hands.put("last", depends_on=(first, other, first))
    summary = hands.see(last).summary
    assert (summary.shown, summary.blockers) == ("blocked", 2)
    assert hands.see(last).depends_on == tuple(sorted((first, other)))
    one, two = hands.next(max=2).granted
    hands.complete(two)
    assert hands.see(last).summary.blockers == 1
    hands.complete(one)
    assert hands.take().todo.summary.id == last
    assert hands.see(hands.put(depends_on=(first,))).summary.blockers == 0


def test_b02_a_dead_dependency_keeps_its_dependent(hands):
    """A cancelled or dead one keeps the dependent pending; retried and done, it lets it go."""
    needed = hands.put("needed", failures_cap=1)
    waits = hands.put("waits", depends_on=(needed,))
    hands.fail(hands.take(), "no")
    assert hands.see(needed).summary.shown == "dead"
    assert hands.see(waits).summary.shown == "blocked"
    act(hands, todos.retry, needed)
    hands.complete(hands.take())
    assert hands.take().todo.summary.id == waits


def test_b02_a_dependency_must_be_of_the_same_endpoint(hands):
    """Another's, another endpoint's and one that never was are one and the same refusal."""
    bobs = Hands(hands.board, hands.board.vend(hands.board.bob)).put()
    other = Hands(hands.board, hands.board.vend(name="other")).put()
    for unknown in (bobs, other, "td_never"):
        assert refused(hands.put, depends_on=(unknown,)) == MISSING


def test_b02_no_verb_can_close_a_circle(hands):
    """A todo names only those that were there before it, and none may name what is to come: not even itself."""
    first = hands.put()
    second = hands.put(depends_on=(first,))
    edges = hands.board.rows("SELECT todo, needs FROM dependencies")
    assert edges == [(second, first)]
    assert all(todo > needs for todo, needs in edges)


# --- keys -------------------------------------------------------------------------------------------------


def test_case_b34_the_same_key_gives_the_same_todo(hands):
    """The same content: the todo that is there, and it says so. Other content: 409."""
    put = hands.board.write(todos.create, hands.board.alice, hands.vended.endpoint, NewTodo("a", idempotency_key="k"))
    again = hands.board.write(todos.create, hands.board.alice, hands.vended.endpoint, NewTodo("a", idempotency_key="k"))
    assert (put.existing, again.existing) == (False, True)
    assert again.todo.summary.id == put.todo.summary.id
    assert reason(hands.put, "a", payload={"b": 2}, idempotency_key="k") == "idempotency_key"
    assert len(hands.board.rows(tables.todos)) == 1


@pytest.mark.parametrize("end", ["done", "cancelled", "dead"])
def test_b06_a_key_is_free_again_when_its_todo_has_ended(hands, end):
    """Unique among live ones: not done, not cancelled, not dead."""
    first = hands.put("a", idempotency_key="k", failures_cap=1)
    if end == "cancelled":
        act(hands, todos.cancel, first)
    else:
        (hands.complete if end == "done" else hands.fail)(hands.take())
    second = hands.put("b", idempotency_key="k")
    assert second != first
    if end == "dead":
        assert reason(act, hands, todos.retry, first) == "idempotency_key"


def test_b06_a_batch_may_hold_the_same_key_twice(hands):
    """The second is the first."""
    new = NewTodo("a", idempotency_key="k")
    one, two = hands.board.write(todos.create_many, hands.board.alice, hands.vended.endpoint, [new, new])
    assert one.todo.summary.id == two.todo.summary.id
    assert (one.existing, two.existing) == (False, True)


def test_b12a_create_todo_may_be_repeated(hands):
    """The same request id gives the same todo; other arguments are a conflict."""
    ask = NewTodo("made by an agent"), "r" * 20
    first = hands.do(todos.create, hands.vended.endpoint, *ask)
    again = hands.do(todos.create, hands.vended.endpoint, *ask)
    assert first.todo.summary.id == again.todo.summary.id
    assert first.todo.summary.source == "endpoint"
    assert reason(hands.do, todos.create, hands.vended.endpoint, NewTodo("else"), "r" * 20) == "request_id_reused"
    assert len(hands.board.rows(tables.todos)) == 1


# --- who pushes -------------------------------------------------------------------------------------------


def test_b07a_a_worker_pushes_to_listed_targets_alone(board):
    """Its own endpoint, and the targets of its scope; unlisted and unknown are one and the same not_found."""
    target = board.vend(name="target", queues=["work"])
    unlisted = board.vend(name="unlisted")
    bobs = board.vend(board.bob, name="bobs")
    hands = Hands(board, board.vend(verbs=ALL, targets=[target.endpoint.slug]))
    found = hands.do(todos.target_of, target.endpoint.slug)
    assert hands.do(todos.create, found, NewTodo("over there")).todo.summary.queue == "work"
    assert Hands(board, target).take().todo.summary.source == "endpoint"
    assert hands.do(todos.target_of, None) == hands.worker.endpoint
    for slug in (unlisted.endpoint.slug, bobs.endpoint.slug, "nowhere-1234", ""):
        assert refused(hands.do, todos.target_of, slug) == MISSING


def test_b26_a_repeated_create_tells_of_a_todo_elsewhere_only_that_it_is_there(board):
    """On a target, or moved away: its state, but not the result or the reason that others gave."""
    there = Hands(board, board.vend(name="there"))
    hands = Hands(board, board.vend(verbs=ALL, targets=[there.vended.endpoint.slug]))
    for slug, request_id in ((there.vended.endpoint.slug, "t" * 16), (None, "m" * 16)):
        target = hands.do(todos.target_of, slug)
        made = hands.do(todos.create, target, NewTodo("a", body="b"), request_id).todo.summary.id
        if slug is None:
            own = hands.do(todos.create, target, NewTodo("a", body="b"), request_id)
            assert (own.todo.body, own.existing) == ("b", True)
            act(hands, todos.move, made, there.vended.endpoint)
        there.complete(there.take(), {"theirs": True})
        again = hands.do(todos.create, target, NewTodo("a", body="b"), request_id)
        assert (again.existing, again.todo.summary.id, again.todo.summary.state) == (True, made, "done")
        assert (again.todo.result, again.todo.body, again.todo.summary.endpoint_slug) == (None, "", target.slug)


def test_b26_an_equal_key_elsewhere_tells_only_that_it_is_there(board):
    """A producer that sends the same again hears the state, and not why the target's worker failed; that one does."""
    there = Hands(board, board.vend(name="there", verbs=ALL))
    hands = Hands(board, board.vend(verbs=ALL, targets=[there.vended.endpoint.slug]))
    new = NewTodo("a", body="b", idempotency_key="k")
    made = hands.do(todos.create, there.vended.endpoint, new).todo.summary.id
    there.fail(there.take(), "theirs alone")
    again = hands.do(todos.create, there.vended.endpoint, new)
    assert (again.existing, again.todo.summary.id, again.todo.summary.state) == (True, made, "failed")
    assert again.todo.summary.reason is None
    assert there.do(todos.create, there.vended.endpoint, new).todo.summary.reason == "theirs alone"


def test_b01_a_worker_cancels_by_key(hands):
    """A live one, by its idempotency key; claimed it is refused, and unknown it is missing."""
    hands.put(idempotency_key="k")
    assert reason_after_claim(hands) == "claimed"
    cancelled = hands.do(todos.cancel_by_key, "k", "no longer")
    assert (cancelled.summary.state, cancelled.summary.reason) == ("cancelled", "no longer")
    assert refused(hands.do, todos.cancel_by_key, "k") == MISSING


def reason_after_claim(hands):
    """What cancelling says while the todo is claimed; then it is released."""
    granted = hands.take()
    said = reason(hands.do, todos.cancel_by_key, "k")
    hands.release(granted)
    return said


def test_b07a_a_webhook_s_todo_says_so(hands):
    """Source and its id are kept."""
    source = Source("webhook", "wh_1")
    made = hands.board.write(todos.create, source, hands.vended.endpoint, NewTodo("delivered"))
    assert (made.todo.summary.source, made.todo.source_id) == ("webhook", "wh_1")


# --- humans on the Board ----------------------------------------------------------------------------------


def test_b01_who_is_refused_a_dead_letter_hears_that_it_can_be_retried(hands):
    """Taking it in hand and completing it both say so: the way on is true of the todo."""
    todo_id = hands.put(failures_cap=1)
    hands.fail(hands.take())
    for case in (todos.board_claim, todos.board_complete):
        assert "retry" in refused(act, hands, case, todo_id).message.lower(), case


def test_b01_a_human_retries_a_dead_letter(hands):
    """One more attempt where they are used up; the next failure is the end again."""
    todo_id = hands.put(failures_cap=1)
    hands.fail(hands.take())
    assert hands.see(todo_id).summary.shown == "dead"
    retried = act(hands, todos.retry, todo_id).summary
    assert (retried.state, retried.failures, retried.failures_cap) == ("pending", 1, 2)
    assert hands.fail(hands.take()).dead


def test_b01_a_retry_now_does_not_wait(hands):
    """A failed todo that would be tried again later is ready at once, and keeps its place behind older ones."""
    first, _ = hands.put(), hands.put()
    hands.fail(hands.take())
    assert hands.see(first).summary.shown == "retrying"
    act(hands, todos.retry, first)
    assert hands.next(max=2).granted[1].todo.summary.id == first


def test_b01_what_may_not_be_retried_or_cancelled(hands):
    """Pending, claimed and ended todos answer with their reason."""
    todo_id = hands.put()
    assert reason(act, hands, todos.retry, todo_id) == "pending"
    granted = hands.take()
    assert reason(act, hands, todos.retry, todo_id) == "claimed"
    assert reason(act, hands, todos.cancel, todo_id) == "claimed"
    hands.complete(granted)
    assert reason(act, hands, todos.cancel, todo_id) == "finished"
    assert reason(act, hands, todos.retry, todo_id) == "finished"


def test_b19_a_board_claim_is_a_human_s(board):
    """Fixed 300 s, whatever the endpoint's default; no endpoint can touch it, and its human extends and ends it."""
    hands = Hands(board, board.vend(default_lease=3600))
    todo_id = hands.put()
    taken = act(hands, todos.board_claim, todo_id)
    assert (taken.lease.ttl_seconds, taken.lease.ttl_source, taken.lease.token) == (300, "board", None)
    assert taken.lease.expires == taken.lease.granted + 300 * S
    assert hands.next().empty
    assert reason(hands.claim, todo_id) == "taken"
    board.clock.turn(minutes=4)
    extended = act(hands, todos.board_extend, todo_id)
    assert extended.attempt == taken.attempt
    assert 240 * S <= extended.lease.expires - taken.lease.expires < 300 * S
    assert act(hands, todos.board_complete, todo_id, {"by": "hand"}).state == "done"
    seen = hands.see(todo_id)
    assert (seen.result, seen.attempts[0].holder, seen.attempts[0].end) == ({"by": "hand"}, "human", "completed")


@pytest.mark.parametrize(
    ("case", "end", "state"),
    [
        (todos.board_release, "released_by_operator", "pending"),
        (todos.board_complete, "completed_by_operator", "done"),
        (todos.board_fail, "failed_by_operator", "failed"),
        (todos.board_claim, "taken_by_operator", "claimed"),
    ],
)
def test_b01_a_human_ends_a_worker_s_claim(hands, case, end, state):
    """Without a token: the claim closes under its own name, and the audit has a line."""
    todo_id = hands.put()
    hands.take()
    act(hands, case, todo_id)
    seen = hands.see(todo_id)
    assert (seen.attempts[0].end, seen.summary.state) == (end, state)
    lines = [row.action for row in hands.board.rows(sa.select(tables.audit).order_by("id")) if row.subject == "todo"]
    assert (lines[0], len(lines)) == ("create", 2)


def test_b01_nobody_holds_what_is_to_be_ended(hands):
    """Complete, fail, release and extend need a claim; a refusal leaves no line in the audit."""
    todo_id = hands.put()
    before = len(hands.board.rows(tables.audit))
    for case in (todos.board_complete, todos.board_fail, todos.board_release, todos.board_extend):
        assert reason(act, hands, case, todo_id) == "not_claimed"
    assert len(hands.board.rows(tables.audit)) == before


def test_b07b_a_todo_is_moved(board):
    """Pending there, counts 0, dependencies dropped; attempts go on, and late results are still kept."""
    hands, there = Hands(board, board.vend()), Hands(board, board.vend(name="there", queues=["other", "inbox"]))
    needed = hands.put("needed")
    todo_id = hands.put("moved", depends_on=(needed,), idempotency_key="k")
    assert act(hands, todos.move, todo_id, there.vended.endpoint).summary.queue == "inbox"
    granted = there.take()
    assert (granted.todo.summary.id, granted.todo.depends_on) == (todo_id, ())
    assert reason(act, hands, todos.move, todo_id, hands.vended.endpoint) == "claimed"
    board.clock.turn(minutes=6)
    act(hands, todos.move, todo_id, hands.vended.endpoint)
    summary = hands.see(todo_id).summary
    assert (summary.state, summary.failures, summary.lapses, summary.attempts) == ("pending", 0, 0, 1)
    assert there.complete(granted, "late").details["reason"] == "lapsed"
    assert hands.see(todo_id).attempts[0].late == {"verb": "complete", "result": "late"}
    assert hands.take(queues=["inbox"]).todo.summary.id == needed


def test_b07b_a_live_equal_key_on_the_target_is_a_conflict(board):
    """Also off a revoked endpoint, whose todos can be moved; onto one they can't."""
    hands, there = Hands(board, board.vend()), Hands(board, board.vend(name="there"))
    todo_id = hands.put("a", idempotency_key="k")
    in_the_way = there.put("b", idempotency_key="k")
    board.write(endpoints.revoke, board.alice, hands.vended.endpoint.slug)
    assert reason(act, hands, todos.move, todo_id, there.vended.endpoint) == "idempotency_key"
    act(hands, todos.cancel, in_the_way)
    assert act(hands, todos.move, todo_id, there.vended.endpoint).summary.state == "pending"
    assert refused(act, hands, todos.move, todo_id, hands.vended.endpoint).details["state"] == "revoked"


def test_b25_revoke_ends_claims_and_todos(board):
    """Open claims close as `revoked`, live todos are dead letters with that reason, ended ones stay as they are."""
    hands = Hands(board, board.vend())
    done, held, waiting = hands.put("done"), hands.put("held"), hands.put("waiting")
    hands.complete(hands.take())
    hands.take()
    board.write(endpoints.revoke, board.alice, hands.vended.endpoint.slug)
    shown = {one.id: (one.shown, one.reason) for one in board.read(todos.list_page, board.alice).items}
    told = "Its endpoint was revoked."
    assert shown == {done: ("done", None), held: ("dead", told), waiting: ("dead", told)}
    assert hands.see(held).attempts[0].end == "revoked"
    for case, *more in ((todos.cancel,), (todos.retry,), (todos.board_claim,), (todos.add_note, "too late")):
        refusal = refused(act, hands, case, waiting, *more)
        assert (refusal.code, refusal.details["state"]) == ("conflict", "revoked")
    assert board.rows(tables.notes) == []
    assert refused(hands.put).details["state"] == "revoked"


@pytest.mark.parametrize("state", ["pending", "waiting", "claimed", "retrying", "done", "dead", "cancelled"])
def test_b25_an_endpoint_s_end_does_what_the_rule_says(board, state):
    """The two statements for many leave each todo and claim as `decide` leaves one."""
    hands = Hands(board, board.vend())
    later = board.write(lambda tx, _: tx.now()) + 3_600 * S
    todo_id = hands.put(failures_cap=1 if state == "dead" else 5, not_before=later if state == "waiting" else None)
    if state in ("claimed", "retrying", "done", "dead"):
        granted = hands.take()
        {"claimed": hands.check, "done": hands.complete}.get(state, hands.fail)(granted)
    if state == "cancelled":
        act(hands, todos.cancel, todo_id)
    todo, claim = _as_ruled(board, todo_id)
    board.write(endpoints.revoke, board.alice, hands.vended.endpoint.slug)
    after, closed = _as_ruled(board, todo_id)
    (ended,) = board.rows("SELECT ended FROM endpoints")
    decision = decide(todo, c.EndpointEnds("revoked"), ended[0], claim if todo.claim else None)
    assert after._replace(version=0) == decision.todo._replace(version=0)
    assert closed == (decision.claims[0] if decision.claims else claim)


def _as_ruled(board, todo_id):
    """The todo, and its last claim, as the rules see them."""
    (row,) = board.rows(sa.select(*(tables.todos.c[name] for name in Todo._fields)).where(tables.todos.c.id == todo_id))
    rows = board.rows(sa.select(*(tables.claims.c[name] for name in Claim._fields)))
    return Todo(*row), Claim(*rows[-1]) if rows else None


# --- isolation --------------------------------------------------------------------------------------------


def test_case_b39_another_human_s_todo_is_missing(hands):
    """Bob, who is Alice's friend, and Charlie: every use case, the same refusal as for one that never was."""
    board, todo_id = hands.board, hands.put()
    target = board.vend(board.bob, name="bobs").endpoint
    hands.take()
    for stranger in (board.bob, board.charlie):
        for one in (todo_id, "td_never", "%00", "../x", "\0"):
            for case in (
                todos.get, todos.cancel, todos.retry, todos.board_claim, todos.board_extend, todos.board_complete,
                todos.board_fail, todos.board_release,
            ):  # fmt: skip
                assert board.refused(case, stranger, one) == MISSING
            assert board.refused(todos.add_note, stranger, one, "hello") == MISSING
        assert board.read(todos.list_page, stranger).items == ()
        assert board.read(todos.counts, stranger) == []
    assert board.refused(todos.move, board.bob, todo_id, target) == MISSING
    assert hands.see(todo_id).summary.state == "claimed"


def test_b26_another_endpoint_s_worker_sees_nothing(hands):
    """Of the same human or another's: get, list and notes."""
    board, todo_id = hands.board, hands.put()
    for vended in (board.vend(name="other"), board.vend(board.bob)):
        stranger = Hands(board, vended)
        assert board.refused(todos.get, stranger.worker, todo_id) == MISSING
        assert board.refused(todos.add_note, stranger.worker, todo_id, "hello") == MISSING
        assert board.read(todos.list_page, stranger.worker).items == ()
        assert board.read(todos.list_page, stranger.worker, Filters(endpoint_id=hands.worker.id)).items == ()


# --- lists and notes --------------------------------------------------------------------------------------


def test_b33_a_list_has_pages(hands):
    """Newest first, 20 by default, 200 at most, with a cursor; more is refused."""
    made = [hands.put(f"todo {n}") for n in range(25)]
    first = hands.board.read(todos.list_page, hands.worker)
    assert [one.id for one in first.items] == made[:4:-1]
    rest = hands.board.read(todos.list_page, hands.worker, Filters(), first.cursor)
    assert ([one.id for one in rest.items], rest.cursor) == (made[4::-1], None)
    for limit in (0, 201, -1, True):
        assert hands.board.refused(todos.list_page, hands.worker, limit=limit).details["field"] == "limit"
    assert hands.board.refused(todos.list_page, hands.worker, cursor="nonsense").details["field"] == "cursor"


@pytest.mark.parametrize("name", ["queue", "claimed_by", "endpoint_id", "source"])
@pytest.mark.parametrize("unfit", ["a\0b", "\ud800"])
def test_b33_a_filter_that_no_database_can_be_asked_for_is_refused(hands, name, unfit):
    """By its name, on both databases alike."""
    refusal = hands.board.refused(todos.list_page, hands.board.alice, Filters(**{name: unfit}))
    assert refusal.details["field"] == name


def test_b33_a_list_has_filters(hands):
    """By queue, by state as stored and as shown, by a worker's label, by whose claims they are, by source."""
    board, ann = hands.board, Hands(hands.board, hands.vended, "ann")
    later = board.write(lambda tx, _: tx.now()) + 3_600 * S
    made = {
        "claimed": hands.put("1"), "lapsed": hands.put("2"), "dead": hands.put("3", failures_cap=1),
        "retrying": hands.put("4"), "done": hands.put("5"),
    }  # fmt: skip
    ann.take(3600), hands.take(1)
    hands.fail(hands.take()), hands.fail(hands.take()), hands.complete(hands.take())
    made["pending"], made["waiting"] = hands.put(queue="review"), hands.put(not_before=later)
    made["blocked"], made["cancelled"] = hands.put(depends_on=(made["pending"],)), hands.put()
    act(hands, todos.cancel, made["cancelled"])
    board.clock.turn(seconds=2)

    def ids(**filters):
        return {one.id for one in board.read(todos.list_page, board.alice, Filters(**filters)).items}

    def of(*shown):
        return {made[one] for one in shown}

    for state in ("lapsed", "dead", "retrying", "done", "waiting", "blocked", "cancelled"):
        assert ids(states=(state,)) == of(state)
    assert ids(states=("pending",)) == of("pending", "waiting", "blocked")
    assert ids(states=("claimed",)) == of("claimed", "lapsed")
    assert ids(states=("failed", "done")) == of("dead", "retrying", "done")
    assert ids(queue="review") == of("pending")
    assert ids(claimed_by="ann") == of("claimed")
    assert ids(source="webhook") == set()
    assert board.refused(todos.list_page, board.alice, Filters(states=("odd",))).details["field"] == "state"
    mine = board.read(todos.list_page, ann.worker, Filters(mine=True)).items
    assert {one.id for one in mine} == of("claimed", "lapsed")
    lanes = {(lane.shown, lane.total) for lane in board.read(todos.counts, board.alice)}
    assert lanes == {(shown, 1) for shown in made}


def test_case_b29_a_lapsed_claim_is_shown_as_lapsed(hands):
    """The reaper is stopped: lists go by the clock."""
    todo_id = hands.put()
    hands.take()
    hands.board.clock.turn(minutes=6)
    (one,) = hands.board.read(todos.list_page, hands.board.alice).items
    assert (one.id, one.state, one.shown) == (todo_id, "claimed", "lapsed")


def test_b02_notes_are_kept_in_order(hands):
    """A human's and a worker's, with who wrote them; too long or empty ones are refused."""
    todo_id = hands.put()
    hands.do(todos.add_note, todo_id, "looking at it", "ann")
    act(hands, todos.add_note, todo_id, "thanks")
    notes = [(one.author, one.worker, one.text) for one in hands.see(todo_id).notes]
    assert notes == [("endpoint", "ann", "looking at it"), ("human", None, "thanks")]
    for text in ("", "x" * (bounds.NOTE_BYTES + 1), "nul \0"):
        assert refused(act, hands, todos.add_note, todo_id, text).details["field"] == "text"


def test_s34_each_board_action_leaves_one_line_in_the_audit(hands):
    """In the transaction that made it; what workers do leaves none."""
    todo_id = hands.put()
    lines = len(hands.board.rows(tables.audit))
    hands.complete(hands.take())
    assert len(hands.board.rows(tables.audit)) == lines
    todo_id = hands.put("another")
    for case in (todos.board_claim, todos.board_extend, todos.board_release, todos.cancel):
        lines = len(hands.board.rows(tables.audit))
        act(hands, case, todo_id)
        assert len(hands.board.rows(tables.audit)) == lines + 1
    assert json.dumps("another") in [row.summary for row in hands.board.rows(tables.audit)][-5]
