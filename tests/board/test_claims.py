"""Claims as workers take, keep and end them (B8 to B19), on SQLite and on PostgreSQL."""

import pytest
import sqlalchemy as sa
from board_worker import Hands, key

from tenure.board import claims, endpoints, reaper, todo_rows, todos, vending
from tenure.board.refused import Refused
from tenure.board.shapes import Beat, Completion, Ended, Next, Renewed
from tenure.rules.refusal import MISSING, Refusal

S = 1_000


@pytest.fixture
def hands(board):
    """A worker without a name on an endpoint of Alice's."""
    return Hands(board, board.vend())


def second(hands, label=None):
    """Another worker with the same credential."""
    return Hands(hands.board, hands.vended, label)


def reap(board):
    """One round of the reaper."""
    return board.write(reaper.reap)


def reason(answer):
    """The reason of a conflict."""
    assert isinstance(answer, Refusal), answer
    assert answer.code == "conflict"
    return answer.details["reason"]


def refused(call, *args, **kwargs):
    """What a call that must be refused says."""
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    return caught.value.refusal


# --- taking -----------------------------------------------------------------------------------------------


def test_b32_a_claim_carries_the_todo_and_its_lease(hands):
    """Todo, token, expiry, ttl and its source, the server's time, the attempt and how earlier ones ended."""
    todo_id = hands.put("Review change 552", body="please", payload={"change": 552})
    first = hands.take()
    hands.release(first, "not mine")
    claimed = hands.next()
    (granted,) = claimed.granted
    assert granted.todo.summary.id == todo_id
    assert (granted.todo.body, granted.todo.payload) == ("please", {"change": 552})
    assert granted.lease.token.reveal().startswith("tl_")
    assert granted.lease.expires == claimed.now + 300 * S
    assert (granted.lease.ttl_seconds, granted.lease.ttl_source, granted.lease.clamped) == (300, "server", False)
    assert granted.attempt == 2
    assert [(one.end, one.reason) for one in granted.todo.attempts] == [("released", "not mine")]
    assert hands.next().empty


@pytest.mark.parametrize(
    ("call", "default", "resolved"),
    [
        (None, None, (300, "server", False)),
        (None, 3600, (3600, "endpoint", False)),
        (7, 3600, (7, "call", False)),
        (1, None, (1, "call", False)),
        (86_400, None, (86_400, "call", False)),
        (86_401, 3600, (86_400, "call", True)),
    ],
)
def test_b08_the_call_then_the_endpoint_then_the_server(board, call, default, resolved):
    """The precedence holds on claim_next, claim and heartbeat alike, with the cap."""
    hands = Hands(board, board.vend(default_lease=default))
    by_next, by_id = hands.put(), hands.put()
    for granted in (hands.take(call), hands.claim(by_id, call)):
        lease = granted.lease
        assert (lease.ttl_seconds, lease.ttl_source, lease.clamped) == resolved
        assert lease.expires - lease.granted == resolved[0] * S
        beat = hands.beat(granted, call)
        assert (beat.ttl_seconds, beat.ttl_source, beat.clamped) == resolved
    assert by_next != by_id


@pytest.mark.parametrize("value", [0, -1, 1.5, 60.0, "60", True, False, [60]])
def test_b09_a_call_s_lease_is_a_whole_number_of_one_or_more(hands, value):
    """Anything else is refused by every verb that takes one, and nothing is claimed or extended."""
    todo_id = hands.put()
    assert refused(hands.next, value).details["field"] == "lease_ttl_seconds"
    assert refused(hands.claim, todo_id, value).code == "invalid_argument"
    granted = hands.take()
    assert hands.beat(granted, value).code == "invalid_argument"
    assert hands.see(todo_id).summary.expires == granted.lease.expires


def test_b03_the_order_is_age_and_ten_minutes_a_step(hands):
    """A step of priority is worth ten minutes of waiting, and at the same age the first made comes first."""
    old, older = hands.put("old"), hands.put("older")
    hands.board.clock.turn(minutes=9)
    urgent = hands.put("urgent", priority=1)
    hands.board.clock.turn(minutes=2)
    late = hands.put("late", priority=1)
    assert [one.todo.summary.id for one in hands.next(max=10).granted] == [urgent, old, older, late]


def test_b03_queues_are_merged_in_the_order_of_the_claim(board):
    """A claim from several queues takes the first of all; from one it leaves the others alone."""
    hands = Hands(board, board.vend(queues=["inbox", "review", "chat"]))
    made = [hands.put(queue=name) for name in ("chat", "review", "inbox", "chat", "review")]
    assert [one.todo.summary.id for one in hands.next(max=2).granted] == made[:2]
    assert hands.take(queues=["chat"]).todo.summary.id == made[3]
    assert hands.take(queues=["review", "inbox"]).todo.summary.id == made[2]
    assert refused(hands.next, queues=["nowhere"]).details["field"] == "queues"


def test_b03_only_what_is_ready_is_claimed(hands):
    """Not before its time, nor while what it depends on isn't done; by id both are refused with their reason."""
    needed = hands.put("needed")
    waits = hands.put("waits", depends_on=(needed,))
    later = hands.put("later", not_before=hands.board.write(_now) + 60 * S)
    granted = hands.take()
    assert granted.todo.summary.id == needed
    assert hands.next().empty
    assert refused(hands.claim, waits).details["reason"] == "blocked"
    assert refused(hands.claim, later).details["reason"] == "waiting"
    hands.complete(granted)
    assert hands.take().todo.summary.id == waits
    hands.board.clock.turn(seconds=61)
    assert hands.claim(later).attempt == 1


def _now(tx, board):
    return tx.now()


def test_b32_a_batch_is_claimed_at_once(hands):
    """`max` todos at most, each with a token of its own."""
    made = [hands.put() for _ in range(5)]
    got = hands.next(max=3).granted
    assert [one.todo.summary.id for one in got] == made[:3]
    assert len({one.lease.token.reveal() for one in got}) == 3
    assert refused(hands.next, max=0).code == refused(hands.next, max=101).code == "invalid_argument"


def test_b06_shared_queue_names_share_no_todos(board):
    """Another endpoint's worker sees none of it, though its queue has the same name: neither by next nor by id."""
    mine, bobs = Hands(board, board.vend()), Hands(board, board.vend(board.bob))
    alices = Hands(board, board.vend(name="other"))
    todo_id = mine.put()
    for stranger in (bobs, alices):
        assert stranger.next().empty
        assert refused(stranger.claim, todo_id) == refused(stranger.claim, "td_0") == MISSING
    granted = mine.take()
    for stranger in (bobs, alices):
        answers = stranger.beat(granted), stranger.complete(granted), stranger.fail(granted), stranger.release(granted)
        assert set(map(str, answers)) == {str(MISSING)}
        assert stranger.check(granted) == MISSING
    assert mine.check(granted).held


def test_b27_a_verb_that_is_not_granted_is_unknown(board):
    """The use case holds it too, not the list of tools alone."""
    hands = Hands(board, board.vend(verbs=["list_todos"]))
    hands.put()
    assert refused(hands.next).message == "Unknown tool: claim_next"


# --- keeping ----------------------------------------------------------------------------------------------


def test_case_b01_a_bare_heartbeat_never_shortens(board):
    """Claimed for an hour by the call, beaten bare on a default of 900: the hour stays, and the answer says so."""
    hands = Hands(board, board.vend(default_lease=900))
    hands.put()
    granted = hands.take(3600)
    beat = hands.beat(granted)
    assert (beat.expires, beat.extended, beat.shortened) == (granted.lease.expires, False, False)
    board.clock.turn(minutes=50)
    beat = hands.beat(granted)
    assert (beat.expires, beat.extended, beat.ttl_source) == (beat.now + 900 * S, True, "endpoint")


def test_case_b02_a_bare_heartbeat_leaves_an_expiry(hands):
    """The row has one, in the future."""
    todo_id = hands.put()
    hands.beat(hands.take())
    (row,) = hands.board.rows("SELECT expires, heartbeats FROM claims WHERE todo = :todo", todo=todo_id)
    assert row.heartbeats == 1
    assert row.expires > hands.board.write(_now)


def test_b11_a_value_of_the_call_s_own_is_set_as_it_is(hands):
    """Also nearer, and then the answer says `shortened`."""
    hands.put()
    granted = hands.take(3600)
    beat = hands.beat(granted, 60)
    assert (beat.shortened, beat.extended, beat.seconds_left) == (True, False, 60)
    assert beat.expires == beat.now + 60 * S


def test_case_b04_a_silent_worker_keeps_its_owner_s_hour(board):
    """The incident: an owner's default of an hour, a worker silent for 50 minutes; it still holds, and completes."""
    hands = Hands(board, board.vend(default_lease=3600))
    hands.put()
    granted = hands.take()
    board.clock.turn(minutes=50)
    reap(board)
    assert second(hands).next().empty
    assert hands.check(granted).held
    assert hands.complete(granted, {"approved": True}).state == "done"


def test_case_b04_without_the_default_the_second_worker_stands(hands):
    """The incident as it was: 300 s, silent for 50 minutes. `lapsed`, then `taken`; the late result is kept."""
    todo_id = hands.put()
    granted = hands.take()
    hands.board.clock.turn(minutes=50)
    assert (hands.check(granted).held, hands.check(granted).recoverable) == (False, True)
    reap(hands.board)
    assert hands.check(granted).reason == "lapsed"
    assert reason(hands.beat(granted)) == "lapsed"
    other = second(hands).take()
    assert hands.check(granted).reason == "taken"
    assert reason(hands.complete(granted, {"merged": 552})) == "taken"
    assert second(hands).complete(other, {"merged": None}).state == "done"
    seen = hands.see(todo_id)
    assert seen.result == {"merged": None}
    assert [one.late for one in seen.attempts] == [{"verb": "complete", "result": {"merged": 552}}, None]


@pytest.mark.parametrize("again", ["next, requeued", "by id, at once"])
def test_case_b06_heartbeat_fields_belong_to_the_attempt(hands, again):
    """A fresh claim has no heartbeat of the one before, whether the reaper or the claim itself ended that."""
    todo_id = hands.put()
    hands.beat(hands.take())
    hands.board.clock.turn(minutes=6)
    if again == "by id, at once":
        hands.claim(todo_id)
    else:
        reap(hands.board)
        hands.take()
    first, fresh = hands.see(todo_id).attempts
    assert (first.heartbeats, first.end) == (1, "lapsed")
    assert (fresh.heartbeats, fresh.heartbeat, fresh.end) == (0, None, None)


def test_case_b09_a_failed_heartbeat_may_be_repeated(hands, monkeypatch):
    """The database fails: 503, never a lost lease. The same heartbeat again works, and tells the time left."""
    hands.put()
    granted = hands.take()

    def fails(*_, **__):
        raise sa.exc.OperationalError("SELECT", {}, Exception("the connection was lost"))

    with monkeypatch.context() as broken:
        broken.setattr(todo_rows, "by_token", fails)
        assert refused(hands.beat, granted).code == "unavailable"
    hands.board.clock.turn(minutes=4)
    assert hands.beat(granted).seconds_left == 300


def test_case_b11_the_owner_takes_a_dead_worker_s_todo(board):
    """A worker is killed under a default of six hours: its owner releases it on the Board, or it lapses on time."""
    hands = Hands(board, board.vend(default_lease=6 * 3600))
    one, other = hands.put(), hands.put()
    first, last = hands.take(), hands.take()
    board.write(todos.board_release, board.alice, one)
    assert second(hands).take().todo.summary.id == one
    assert reason(hands.beat(first)) == "released_by_operator"
    board.clock.turn(hours=6, seconds=-1)
    reap(board)
    assert hands.check(last).held
    board.clock.turn(seconds=1)
    reap(board)
    assert hands.see(other).summary.state == "pending"


def test_case_b12_the_age_of_a_claim_is_seen(hands):
    """Heartbeats for ever: when it was granted stays to be seen beside how often it was extended."""
    todo_id = hands.put()
    granted = hands.take()
    for _ in range(5):
        hands.board.clock.turn(minutes=4)
        hands.beat(granted)
    (attempt,) = hands.see(todo_id).attempts
    assert (attempt.heartbeats, attempt.granted) == (5, granted.lease.granted)
    assert attempt.heartbeat - attempt.granted >= 20 * 60 * S


def test_case_b14_a_short_default_and_heartbeats_do(board):
    """A long job on a default of a minute, beaten every 40 seconds, is nobody else's."""
    hands = Hands(board, board.vend(default_lease=60))
    hands.put()
    granted = hands.take()
    for _ in range(10):
        board.clock.turn(seconds=40)
        assert hands.beat(granted).extended
        reap(board)
        assert second(hands).next().empty
    assert hands.complete(granted).state == "done"


def test_b08_an_edit_holds_from_the_next_call_on(board):
    """A granted lease keeps its expiry; the next claim or heartbeat has the new default."""
    hands = Hands(board, board.vend())
    todo_id, _ = hands.put(), hands.put()
    granted = hands.take()
    board.write(endpoints.edit_lease, board.alice, hands.vended.endpoint.slug, 3600)
    assert hands.see(todo_id).summary.expires == granted.lease.expires
    assert hands.take().lease.ttl_seconds == 3600
    assert hands.beat(granted).seconds_left == 3600


def test_b41a_a_batch_answers_each_item_for_itself(hands):
    """One bad token, one unknown todo and one bad value spoil nothing for the rest."""
    for _ in range(4):
        hands.put()
    a, b, c, d = hands.next(max=4).granted
    beats = [
        Beat(*key(a)),
        Beat(key(b)[0], "tl_wrong"),
        Beat("td_nowhere", key(c)[1]),
        Beat(*key(d), 0),
        Beat(*key(c), 9),
    ]
    one, two, three, four, five = hands.do(claims.heartbeat, beats)
    assert isinstance(one, Renewed)
    assert isinstance(five, Renewed)
    assert reason(two) == "wrong_token"
    assert three == MISSING
    assert four.code == "invalid_argument"
    items = [Completion(*key(a), 1), Completion(*key(a), 2), Completion(key(b)[0], "")]
    done, again, without = hands.do(claims.complete, items)
    assert (done.already, again.already) == (False, True)
    assert without.details["field"] == "lease_token"
    assert hands.see(key(a)[0]).result == 1


# --- tokens -----------------------------------------------------------------------------------------------


def test_b12_a_token_of_no_claim_changes_nothing(hands):
    """wrong_token, for every verb that needs one; without any it is invalid_argument."""
    todo_id = hands.put()
    granted = hands.take()
    wrong = granted._replace(lease=granted.lease._replace(token=type(granted.lease.token)("tl_" + "0" * 43)))
    before = hands.board.rows("SELECT * FROM claims"), hands.board.rows("SELECT * FROM todos")
    for verb in (hands.beat, hands.check, hands.complete, hands.fail, hands.release):
        assert reason(verb(wrong)) == "wrong_token"
    empty = granted._replace(lease=granted.lease._replace(token=type(granted.lease.token)("")))
    assert hands.complete(empty).code == "invalid_argument"
    assert before == (hands.board.rows("SELECT * FROM claims"), hands.board.rows("SELECT * FROM todos"))
    assert hands.see(todo_id).summary.state == "claimed"


def test_b12_only_the_token_s_hash_is_stored(hands):
    """The token itself stands in no row; it is the HMAC of the claim's id, made again for a repeated request."""
    hands.put()
    granted = hands.take()
    (row,) = hands.board.rows("SELECT * FROM claims")
    token = granted.lease.token.reveal()
    assert token not in " ".join(map(str, row))
    assert hands.board.ring.lease_token(row.id, row.secret).reveal() == token


def test_case_b26_an_old_token_frees_nobody_s_claim(hands):
    """Released with the token of the lapsed claim, when another holds the todo: refused, and the other holds on."""
    hands.put()
    old = hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    new = second(hands).take()
    assert reason(hands.release(old)) == "taken"
    assert second(hands).check(new).held


def test_case_b24_a_repeated_request_gives_the_same_claim(hands):
    """The reply was lost: the same request id gives the same claim and token, not a second todo."""
    hands.put(), hands.put()
    first = hands.next(request_id="r" * 16)
    again = hands.next(request_id="r" * 16)
    assert again.repeated
    assert [one.lease for one in again.granted] == [one.lease for one in first.granted]
    assert hands.board.rows("SELECT count(*) FROM claims") == [(1,)]
    assert refused(hands.next, 60, request_id="r" * 16).details["reason"] == "request_id_reused"
    hands.complete(first.granted[0])
    over = refused(hands.next, request_id="r" * 16)
    assert over.details["reason"] == "request_over"
    assert "completed" in over.message


def test_b12a_an_empty_answer_is_not_remembered(hands):
    """The same request id may find a todo that came later."""
    assert hands.next(request_id="r" * 16).empty
    hands.put()
    assert len(hands.next(request_id="r" * 16).granted) == 1


def test_b12a_a_request_id_is_an_endpoint_s_and_a_verb_s_own(board):
    """The same id at another endpoint, or of another verb, is another request, with an answer of its own."""
    mine, bobs = Hands(board, board.vend()), Hands(board, board.vend(board.bob))
    by_next, by_id, theirs = mine.put(), mine.put(), bobs.put()
    shared = {"request_id": "r" * 16}
    assert mine.take(**shared).todo.summary.id == by_next
    assert mine.claim(by_id, **shared).todo.summary.id == by_id
    first, again = bobs.next(**shared), bobs.next(**shared)
    assert (first.repeated, again.repeated) == (False, True)
    assert [one.todo.summary.id for one in again.granted] == [theirs]
    assert mine.take(**shared).todo.summary.id == by_next


@pytest.mark.parametrize("bad", ["short", "x" * 65, "with blanks in here", "ünïcödé-is-not-ascii"])
def test_b12a_a_request_id_has_16_to_64_characters(hands, bad):
    """Anything else is refused before anything is claimed."""
    hands.put()
    assert refused(hands.next, request_id=bad).details["field"] == "request_id"
    assert not hands.next().empty


def test_b12a_part_of_a_batch_may_have_ended(hands):
    """The open ones come with their tokens, the others with how they ended."""
    hands.put(), hands.put()
    first = hands.next(max=2, request_id="r" * 16)
    hands.complete(first.granted[0])
    again = hands.next(max=2, request_id="r" * 16)
    assert [one.state for one in again.granted] == ["completed", "open"]
    assert [one.lease.token for one in again.granted] == [None, first.granted[1].lease.token]


def test_b08_a_repeated_request_tells_that_the_lease_was_cut(hands):
    """As the first answer did; and a lease that is over, but that nobody has taken, as lapsed."""
    hands.put()
    assert hands.take(10**6, request_id="r" * 16).lease.clamped
    assert hands.take(10**6, request_id="r" * 16).lease.clamped
    hands.put()
    by_id = hands.put()
    hands.claim(by_id, 10**6, request_id="i" * 16)
    assert hands.claim(by_id, 10**6, request_id="i" * 16).lease.clamped
    hands.board.clock.turn(days=1)
    again = hands.next(10**6, request_id="r" * 16)
    assert [one.state for one in again.granted] == ["lapsed"]


def test_b26_a_repeated_request_tells_nothing_of_a_todo_that_was_moved(hands):
    """It is another endpoint's now: that the claim has ended is told, and nothing of the todo's content."""
    board = hands.board
    there = Hands(board, board.vend(name="there"))
    moved, stays = hands.put("moved", body="secret", payload={"a": 1}), hands.put("stays", body="mine")
    first = hands.next(max=2, request_id="r" * 16).granted
    hands.release(next(one for one in first if one.todo.summary.id == moved))
    board.write(todos.move, board.alice, moved, there.vended.endpoint)
    there.complete(there.take(), {"theirs": True})
    told = {one.todo.summary.id: one for one in hands.next(max=2, request_id="r" * 16).granted}
    assert (told[stays].todo.body, told[stays].state) == ("mine", "open")
    assert told[moved].state == "released"
    assert (told[moved].todo.body, told[moved].todo.payload, told[moved].todo.result) == ("", None, None)


# --- lapsing and ending -----------------------------------------------------------------------------------


def test_b13_a_lapsed_lease_is_revived_by_its_holder(hands):
    """Before the reaper has come: heartbeat, complete, fail and release by its token are accepted."""
    for end in ("beat", "complete", "fail", "release"):
        todo_id = hands.put()
        granted = hands.take()
        hands.board.clock.turn(seconds=301)
        assert hands.see(todo_id).summary.shown == "lapsed"
        answer = getattr(hands, end)(granted)
        if end == "beat":
            assert (answer.revived, answer.seconds_left) == (True, 300)
            hands.complete(granted)
        else:
            assert isinstance(answer, Ended)
        if end == "release":
            hands.complete(hands.take())


def test_b13_claim_by_id_requeues_and_claims(hands):
    """claim_next does not see what has lapsed before the reaper has; claim by id does, and counts the lapse."""
    todo_id = hands.put()
    hands.take()
    assert refused(hands.claim, todo_id).details["reason"] == "taken"
    hands.board.clock.turn(seconds=301)
    assert hands.next().empty
    assert hands.claim(todo_id).attempt == 2
    summary = hands.see(todo_id).summary
    assert (summary.lapses, summary.attempts, summary.failures) == (1, 2, 0)


def test_case_b16_the_second_worker_s_completion_stands(hands):
    """A lapses, B claims, A completes: refused. B completes: done, with B's result."""
    todo_id = hands.put()
    a = hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    b = second(hands).take()
    assert reason(hands.complete(a, "A")) == "taken"
    assert second(hands).complete(b, "B").state == "done"
    assert hands.see(todo_id).result == "B"


def test_case_b17_a_late_result_is_kept(hands):
    """A large one too: refused, and there for the human to read."""
    todo_id = hands.put()
    a = hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    b = second(hands).take()
    second(hands).complete(b)
    large = {"text": "x" * 200_000}
    refusal = hands.complete(a, large)
    assert reason(refusal) == "finished"
    assert "kept" in refusal.message
    late = hands.see(todo_id).attempts[0]
    assert late.late == {"verb": "complete", "result": large}
    assert late.late_at is not None


def test_b13_a_late_result_is_not_lost_to_a_late_reason(hands):
    """A late `fail` leaves the result that came too late where it is, and does not say that it was kept itself."""
    todo_id = hands.put()
    granted = hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    assert "kept" in hands.fail(granted, "first").message
    assert "kept" in hands.complete(granted, {"merged": 552}).message
    assert "kept" not in hands.fail(granted, "no luck").message
    assert hands.see(todo_id).attempts[0].late == {"verb": "complete", "result": {"merged": 552}}


def test_case_b19_a_returning_holder_hears_why(hands):
    """Free, taken, finished, and two for what a human did on the Board: five different reasons."""
    todo_id = hands.put()
    a = hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    said = [reason(hands.beat(a))]
    b = second(hands).take()
    said.append(reason(hands.beat(a)))
    hands.board.write(todos.board_release, hands.human, todo_id)
    said.append(reason(second(hands).beat(b)))
    c = hands.take()
    hands.board.write(todos.board_claim, hands.human, todo_id)
    said.append(reason(hands.beat(c)))
    hands.board.write(todos.board_complete, hands.human, todo_id, "by hand")
    said.append(reason(hands.beat(a)))
    assert said == ["lapsed", "taken", "released_by_operator", "taken_by_operator", "finished"]


def test_case_b21_a_late_completion_has_one_rule(hands):
    """Accepted until the reaper has requeued the todo, refused from then on, whatever came of it."""
    hands.put(), hands.put()
    early, late = hands.take(), hands.take()
    hands.board.clock.turn(minutes=6)
    assert hands.complete(early).state == "done"
    reap(hands.board)
    assert reason(hands.complete(late)) == "lapsed"
    again = second(hands).take()
    assert reason(hands.complete(late)) == "taken"
    second(hands).complete(again)
    assert reason(hands.complete(late)) == "finished"


def test_case_b22_a_heartbeat_after_done_is_a_clean_conflict(hands):
    """One order wins."""
    hands.put()
    granted = hands.take()
    hands.complete(granted)
    assert reason(hands.beat(granted)) == "finished"


@pytest.mark.parametrize("verb", ["complete", "fail", "release"])
def test_b13_the_same_end_again_is_already(hands, verb):
    """By the token that ended it that way; another way is a conflict."""
    hands.put()
    granted = hands.take()
    assert not getattr(hands, verb)(granted).already
    assert getattr(hands, verb)(granted).already
    other = {"complete": "fail", "fail": "release", "release": "complete"}[verb]
    assert isinstance(getattr(hands, other)(granted), Refusal)


def test_b04_failures_are_counted_apart_and_end_in_a_dead_letter(hands):
    """Retried after 30 s, doubling, with its own cap and reason; releases count as nothing."""
    todo_id = hands.put(failures_cap=2)
    hands.release(hands.take())
    first = hands.fail(hands.take(), "no network")
    assert (first.state, first.dead) == ("failed", False)
    assert 30 * S <= first.retry_at - first.now <= 36 * S
    assert hands.next().empty
    hands.board.clock.turn(seconds=37)
    reap(hands.board)
    last = hands.fail(hands.take(), "still none")
    assert (last.state, last.dead, last.retry_at) == ("failed", True, None)
    summary = hands.see(todo_id).summary
    assert (summary.attempts, summary.failures, summary.lapses, summary.shown) == (3, 2, 0, "dead")
    assert "failed 2 times" in summary.reason
    assert "still none" in summary.reason


def test_case_b07_lapses_are_counted_apart(hands):
    """Three leases lapse: three lapses, no failure."""
    todo_id = hands.put()
    for _ in range(3):
        hands.take()
        hands.board.clock.turn(minutes=6)
        reap(hands.board)
    summary = hands.see(todo_id).summary
    assert (summary.state, summary.lapses, summary.failures) == ("pending", 3, 0)


def test_case_b31_a_lapse_with_attempts_left_goes_back(hands):
    """Attempt 1 of 5 lapses: pending, not dead."""
    todo_id = hands.put()
    hands.take()
    hands.board.clock.turn(minutes=6)
    reap(hands.board)
    assert (hands.see(todo_id).summary.state, hands.see(todo_id).summary.lapses_cap) == ("pending", 5)


def test_case_b32_a_todo_that_kills_its_workers_dies(hands):
    """Each worker dies: the cap of lapses makes it a dead letter, with that reason."""
    todo_id = hands.put()
    for _ in range(5):
        hands.take()
        hands.board.clock.turn(minutes=6)
        reap(hands.board)
    assert hands.next().empty
    summary = hands.see(todo_id).summary
    assert (summary.shown, summary.lapses, summary.failures) == ("dead", 5, 0)
    assert "lapsed 5 times" in summary.reason


def test_b13_the_last_attempt_s_holder_may_come_back(hands):
    """Lapsed on its last lapse, but not yet reaped: the token is still good."""
    hands.put(lapses_cap=1)
    granted = hands.take()
    hands.board.clock.turn(minutes=6)
    assert hands.beat(granted).revived
    assert hands.complete(granted).state == "done"


def test_case_b36_the_database_s_clock_rules(hands):
    """A worker's clock plays no part: nothing that a worker sends holds a time; a lease follows the turned clock."""
    hands.put()
    granted = hands.take()
    hands.board.clock.turn(minutes=4, seconds=59)
    assert hands.check(granted).held
    hands.board.clock.turn(seconds=1)
    assert not hands.check(granted).held


def test_b17_check_claim_is_one_read(hands):
    """In a transaction that only reads, and it leaves every row as it was."""
    hands.put()
    granted = hands.take()
    before = hands.board.rows("SELECT * FROM claims")
    checked = hands.check(granted)
    assert (checked.held, checked.recoverable, checked.reason) == (True, False, None)
    assert 299 <= checked.seconds_left <= 300
    assert before == hands.board.rows("SELECT * FROM claims")


# --- warnings ---------------------------------------------------------------------------------------------


def test_b18_a_worker_is_warned_of_leases_near_their_end(hands):
    """Of its own, by its label or a token, in the last fifth; the todo is named, and no other worker's is."""
    ann, ben = second(hands, "ann"), second(hands, "ben")
    mine, fresh, _ = hands.put("mine"), hands.put("fresh"), hands.put("ben's")
    granted = ann.take(100)
    held, _ = ann.take(1000), ben.take(100)
    ask = {"worker_label": "ann"}
    assert hands.do(claims.warnings, **ask) == ()
    hands.board.clock.turn(seconds=81)
    (warned,) = hands.do(claims.warnings, **ask)
    assert (warned.code, warned.todo_id) == ("lease_ending", mine)
    assert 17 <= warned.seconds_left <= 19
    assert hands.do(claims.warnings, shown=[key(held)]) == (warned,)
    assert fresh == held.todo.summary.id
    ann.complete(granted)
    assert hands.do(claims.warnings, shown=[key(granted)]) == ()


def test_b18_a_long_lease_is_warned_of_in_its_last_minute(hands):
    """A fifth of an hour would be too early."""
    ann = second(hands, "ann")
    hands.put()
    ann.take(3600)
    hands.board.clock.turn(minutes=58)
    assert hands.do(claims.warnings, worker_label="ann") == ()
    hands.board.clock.turn(minutes=1)
    assert len(hands.do(claims.warnings, worker_label="ann")) == 1


def test_case_b47_an_endpoint_s_end_is_warned_of(board):
    """From a day ahead; and a lease that passes it doesn't outlive it silently."""
    hands = Hands(board, board.vend(expires=board.write(_now) + 25 * 3600 * S))
    hands.put()
    claimed = hands.next(86_400)
    assert claimed.endpoint_expires == hands.vended.endpoint.expires
    leases = [claimed.granted[0].lease.expires]
    assert hands.do(claims.warnings, leases=leases) == ()
    board.clock.turn(hours=2)
    (ending,) = hands.do(claims.warnings)
    assert ending.code == "endpoint_ending"
    beyond = hands.do(claims.warnings, leases=[hands.beat(claimed.granted[0], 86_400).expires])
    assert [one.code for one in beyond] == ["endpoint_ending", "lease_beyond_endpoint"]
    board.clock.turn(hours=23, minutes=30)
    assert refused(hands.beat, claimed.granted[0]).code == "unauthenticated"
    board.write(vending.expire_due)
    assert hands.see(claimed.granted[0].todo.summary.id).attempts[0].end == "expired"


def test_b32_claims_say_nothing_for_nothing(hands):
    """Nothing to do is a success, and empty."""
    answer = hands.board.write(claims.claim_next, hands.worker, Next())
    assert answer.empty
    assert answer.granted == ()
