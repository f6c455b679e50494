"""ADR-0043, sentence by sentence, as far as it needs no MCP and no page; the doors' tests go on from here.

Names begin with the part of the record: `outcome`, `consequences` and `confirmation`.
"""

import pytest
import sqlalchemy as sa

from tenure.board import access, claims, endpoints, friends, humans, tables, todos, webhooks
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.shapes import Beat, Completion, Failing, Handback, NewTodo, Next
from tenure.rules import bounds
from tenure.rules import endpoints as rules

SECONDS = 1000
# per-call value, endpoint's default, and the seconds, source and clamping that follow
PRECEDENCE = [
    (None, None, (300, "server", False)),
    (None, 900, (900, "endpoint", False)),
    (600, None, (600, "call", False)),
    (600, 900, (600, "call", False)),
    (1, 900, (1, "call", False)),
    (86_400, 900, (86_400, "call", False)),
    (86_401, 900, (86_400, "call", True)),
    (10**9, None, (86_400, "call", True)),
]


class Hands:
    """A worker at an endpoint of Alice's, each call as a door makes it: credential and verb in one transaction."""

    def __init__(self, board, **scope):
        self.board, self.vended = board, board.vend(**{"queues": ["inbox"], **scope})
        self.slug = self.vended.endpoint.slug

    def __call__(self, case, *args):
        credential = self.vended.credential.reveal()
        return self.board.write(
            lambda tx, board: case(tx, board, access.worker_by_credential(tx, board, credential), *args)
        )

    def edit(self, value):
        return self.board.write(endpoints.edit_lease, self.board.alice, self.slug, value)

    def put(self):
        return self.board.write(todos.create, self.board.alice, self.vended.endpoint, NewTodo("work")).todo.summary.id

    def take(self, call=None, verb="claim_next"):
        """A new todo, claimed by either verb; the lease."""
        todo_id = self.put()
        if verb == "claim":
            (granted,) = self(claims.claim, todo_id, call).granted
        else:
            (granted,) = self(claims.claim_next, Next(lease_ttl_seconds=call)).granted
        assert granted.todo.summary.id == todo_id
        return granted

    def beat(self, granted, call=None):
        (answer,) = self(claims.heartbeat, [Beat(granted.todo.summary.id, granted.lease.token.reveal(), call)])
        return answer


@pytest.fixture
def hands(board):
    return Hands(board)


def expiry_of(board, granted):
    return board.rows("SELECT expires FROM claims WHERE id = :id", id=granted.lease.claim_id)[0].expires


# --- Decision Outcome -------------------------------------------------------------------------------------


def test_outcome_field_is_nullable_and_null_means_the_server_default(board):
    """endpoints.default_lease_ttl_seconds, by this name; NULL is stored for what nobody set."""
    endpoint = board.vend().endpoint
    assert board.rows("SELECT default_lease_ttl_seconds FROM endpoints")[0] == (None,)
    assert endpoint.effective == (bounds.SERVER_LEASE_SECONDS, "server") == (300, "server")


def test_outcome_bounds_apply_to_the_default_only(hands):
    """A worker may still pass a shorter value on one call."""
    assert hands.take(59).lease.ttl_seconds == 59
    assert hands.take(1).lease.ttl_seconds == 1


@pytest.mark.parametrize("verb", ["claim", "claim_next"])
@pytest.mark.parametrize(("call", "default", "expected"), PRECEDENCE)
def test_outcome_precedence_on_taking(hands, verb, call, default, expected):
    """Per call > endpoint > server, and the cap; the answer says all of it, and the row agrees."""
    hands.edit(default)
    lease = hands.take(call, verb).lease
    assert (lease.ttl_seconds, lease.ttl_source, lease.clamped) == expected
    assert lease.expires - lease.granted == lease.ttl_seconds * SECONDS


@pytest.mark.parametrize(("call", "default", "expected"), PRECEDENCE)
def test_outcome_precedence_on_heartbeat(hands, call, default, expected):
    """The same rule for a renewal."""
    hands.edit(default)
    renewed = hands.beat(hands.take(1), call)
    assert (renewed.ttl_seconds, renewed.ttl_source, renewed.clamped) == expected
    assert renewed.expires - renewed.now == renewed.ttl_seconds * SECONDS


def test_outcome_a_bare_heartbeat_extends_by_the_endpoints_default(board, hands):
    """The trap is gone: an hour by default stays an hour, forty minutes in and later."""
    hands.edit(3600)
    granted = hands.take()
    for _ in range(3):
        board.clock.turn(minutes=40)
        renewed = hands.beat(granted)
        assert (renewed.extended, renewed.seconds_left) == (True, 3600)


def test_outcome_a_bare_heartbeat_never_shortens_a_longer_lease(board, hands):
    """An hour by call, a bare heartbeat at once: the expiry is where it was, and the answer says so."""
    granted = hands.take(3600)
    renewed = hands.beat(granted)
    assert (renewed.extended, renewed.shortened) == (False, False)
    assert renewed.expires == granted.lease.expires == expiry_of(board, granted)


def test_outcome_operator_claims_keep_five_minutes_whatever_the_default(board, hands):
    """A Board claim is a human's, keyed to no endpoint."""
    hands.edit(3600)
    granted = board.write(todos.board_claim, board.alice, hands.put())
    assert (granted.lease.ttl_seconds, granted.lease.ttl_source) == (300, "board")
    row = board.rows(tables.claims)[0]
    assert (row.endpoint, row.human, row.hash) == (None, board.alice.id, None)


def test_outcome_a_friend_vended_endpoint_takes_by_the_same_verbs_and_rule(board):
    """Its default is the approver's to set, and holds for the friend's claims."""
    code = board.read(humans.friend_code, board.alice)
    asked = board.write(friends.request, board.bob, code, queues=["review"], verbs=list(rules.GRANTABLE))
    board.write(friends.approve, board.alice, asked.id, agent="friends", default_lease=1800)
    friendship, credential = board.write(friends.collect, board.bob, asked.id)
    endpoint = board.read(endpoints.get, board.alice, friendship.slug)
    board.write(todos.create, board.alice, endpoint, NewTodo("work"))
    worker = board.write(access.worker_by_credential, credential.reveal())
    (granted,) = board.write(claims.claim_next, worker, Next()).granted
    assert (granted.lease.ttl_seconds, granted.lease.ttl_source) == (1800, "endpoint")


def test_outcome_timing_an_edit_applies_to_the_next_claim_and_heartbeat(hands):
    """The default is read on each call that needs it."""
    first = hands.take()
    hands.edit(1200)
    assert hands.take().lease.ttl_seconds == 1200
    assert hands.beat(first).ttl_seconds == 1200
    hands.edit(None)
    assert hands.take().lease.ttl_source == "server"


def test_outcome_timing_leases_already_granted_keep_their_expiry(board, hands):
    """An edit touches no claim, shorter or longer."""
    granted = hands.take()
    for value in (60, 86_400, None):
        hands.edit(value)
        assert expiry_of(board, granted) == granted.lease.expires


def test_outcome_reach_by_slug_or_id_and_anothers_is_an_unknown_one(board, hands):
    """The same refusal, the very value, for Charlie and for an id that never was."""
    by_id = hands.vended.endpoint.id
    assert board.write(endpoints.edit_lease, board.alice, by_id, 700).default_lease_ttl_seconds == 700
    refusals = [
        board.refused(endpoints.edit_lease, board.charlie, ref, value)
        for ref in (hands.slug, by_id, "never-was", "00000000-0000-4000-8000-000000000000")
        for value in (700, "bad", 59)
    ]
    assert {str(refusal) for refusal in refusals} == {str(refusals[0])}
    assert refusals[0].code == "not_found"


def test_outcome_a_revoked_endpoint_is_409_with_its_state_as_for_every_write(board, hands):
    """And its default can still be read."""
    hands.edit(700)
    board.write(endpoints.revoke, board.alice, hands.slug)
    refused = board.refused(endpoints.edit_lease, board.alice, hands.slug, 800)
    assert (refused.code, refused.details) == ("conflict", {"state": "revoked"})
    assert board.read(endpoints.get, board.alice, hands.slug).default_lease_ttl_seconds == 700


def test_outcome_own_access_reads_the_effective_default_and_the_bounds(hands):
    """get_default_lease, unset and set."""
    assert hands(endpoints.get_default_lease) == (None, (300, "server"), 60, 86_400)
    hands.edit(900)
    assert hands(endpoints.get_default_lease) == (900, (900, "endpoint"), 60, 86_400)


def test_outcome_own_access_sets_the_callers_own_and_no_other(board, hands):
    """No argument names an endpoint, so there is none to reach by it: the signature has none."""
    other = board.vend(name="other", default_lease=500).endpoint
    hands(endpoints.set_default_lease, 1500)
    stored = {row.id: row.default_lease_ttl_seconds for row in board.rows(tables.endpoints)}
    assert stored == {hands.vended.endpoint.id: 1500, other.id: 500}
    hands(endpoints.set_default_lease, None)
    assert board.read(endpoints.get, board.alice, hands.slug).default_lease_ttl_seconds is None


@pytest.mark.parametrize("case", [endpoints.get_default_lease, endpoints.set_default_lease])
def test_outcome_verbs_are_allowlisted_so_a_human_can_withhold_them(board, case):
    """An endpoint that was not given them is answered as for a tool that never was, and nothing changes."""
    hands = Hands(board, verbs=list(rules.DRAIN))
    with pytest.raises(Refused) as refused:
        hands(case, *([600] if case is endpoints.set_default_lease else []))
    assert refused.value.refusal == ("not_found", f"Unknown tool: {case.__name__}", {})
    assert board.rows(tables.endpoints)[0].default_lease_ttl_seconds is None


def test_outcome_verbs_are_beside_the_webhook_verbs_and_granted_by_default(board):
    """In the allowlist, and in what vending without a list grants."""
    assert {"get_default_lease", "set_default_lease", "create_webhook"} <= set(rules.OWN) < set(rules.ALL)
    assert set(rules.OWN) <= set(board.vend().endpoint.verbs)


@pytest.mark.parametrize("verb", ["get_default_lease", "set_default_lease"])
def test_outcome_verbs_are_not_friend_grantable(board, verb):
    """A request that names one is refused whole."""
    code = board.read(humans.friend_code, board.alice)
    refused = board.refused(friends.request, board.bob, code, queues=["review"], verbs=["claim", verb])
    assert (refused.details["field"], verb in refused.message) == ("verbs", True)


def test_outcome_endpoints_vended_without_the_verbs_have_a_default_all_the_same(board):
    """Scope is immutable: their human sets it, and it applies to them."""
    hands = Hands(board, verbs=["claim", "claim_next"])
    hands.edit(1800)
    assert hands.take().lease.ttl_seconds == 1800
    assert board.read(endpoints.get, board.alice, hands.slug).verbs == ("claim", "claim_next")


# --- Consequences -----------------------------------------------------------------------------------------


def test_consequences_a_worker_that_forgets_keeps_its_todo_under_a_long_default(board, hands):
    """The incident: silent for fifty minutes, and with an hour by default it still holds."""
    hands.edit(3600)
    granted = hands.take()
    board.clock.turn(minutes=50)
    checked = hands(claims.check_claim, granted.todo.summary.id, granted.lease.token.reveal())
    assert (checked.held, checked.reason) == (True, None)
    assert 500 < checked.seconds_left <= 600


def test_consequences_the_number_that_is_told_is_the_number_that_is_applied(hands):
    """For configured and unconfigured endpoints alike."""
    for value in (None, 60, 86_400):
        hands.edit(value)
        told = hands(endpoints.get_default_lease).effective
        lease = hands.take().lease
        assert (lease.ttl_seconds, lease.ttl_source) == tuple(told)


def test_consequences_a_failed_look_at_the_endpoint_refuses_the_claim(board, hands, monkeypatch):
    """Unavailable, never unauthenticated; no lease is guessed, and the todo is as it was (B16)."""
    todo_id, execute = hands.put(), Tx.execute

    def failing(tx, statement, parameters=None):
        if "credentials" in str(statement):
            raise sa.exc.OperationalError("SELECT", {}, Exception("the database went away"))
        return execute(tx, statement, parameters)

    monkeypatch.setattr(Tx, "execute", failing)
    with pytest.raises(Refused) as refused:
        hands(claims.claim, todo_id)
    monkeypatch.undo()
    assert refused.value.refusal.code == "unavailable"
    assert "went away" not in str(refused.value.refusal)
    assert board.rows(tables.claims) == []


# --- Confirmation -----------------------------------------------------------------------------------------


def test_confirmation_null_resets(hands):
    """A configured endpoint is as an unconfigured one again."""
    hands.edit(600)
    assert hands.edit(None).effective == (300, "server")
    assert hands.take().lease.ttl_source == "server"


def test_confirmation_no_other_use_case_of_a_worker_takes_or_extends_a_lease(board, hands):
    """Each of the others is called on an open claim: its expiry stands, and there is no second claim."""
    hands.edit(600)
    granted, waiting = hands.take(), hands.put()
    todo_id, token = granted.todo.summary.id, granted.lease.token.reveal()
    board.clock.turn(seconds=10)
    calls = [
        (claims.check_claim, todo_id, token), (todos.get, todo_id), (todos.list_page,), (todos.add_note, todo_id, "x"),
        (todos.create, hands.vended.endpoint, NewTodo("more")), (endpoints.get_default_lease,),
        (endpoints.set_default_lease, 900), (endpoints.clock_in,), (endpoints.clock_out,), (webhooks.list_all,),
        (claims.complete, [Completion(waiting, token, None)]), (claims.fail, [Failing(waiting, token)]),
        (claims.release, [Handback(waiting, token)]),
    ]  # fmt: skip
    for call in calls:
        hands(*call)
        (row,) = board.rows(tables.claims)
        assert (row.id, row.expires, row.ended) == (granted.lease.claim_id, granted.lease.expires, None), call
