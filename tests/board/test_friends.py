"""Friends: asked, narrowed, collected once, ended from either side."""

import pytest

from tenure.board import access, audit, endpoints, friends, humans, tables
from tenure.board.refused import Refused
from tenure.rules import endpoints as rules
from tenure.rules.instant import DAY
from tenure.rules.refusal import MISSING

QUEUES, VERBS = ["review", "triage"], ["claim_next", "complete", "create_todo"]


@pytest.fixture
def code(board):
    """Alice's friend code, as she shows it."""
    return board.read(humans.friend_code, board.alice)


@pytest.fixture
def asked(board, code):
    """Bob has asked Alice."""
    return board.write(friends.request, board.bob, code, queues=QUEUES, verbs=VERBS, reason="we pair")


def enters(board, credential):
    try:
        return board.read(access.worker_by_credential, credential.reveal()).endpoint
    except Refused:
        return None


def test_b39_a_request_is_seen_by_both_sides_and_says_no_more_than_it_must(board, asked):
    """The approver sees who asks and for what; the requester not even whose code it was; Charlie sees nothing."""
    assert (asked.side, asked.other, asked.state, asked.slug) == ("requester", None, "requested", None)
    (seen,) = board.read(friends.list_all, board.alice)
    assert (seen.side, seen.other, seen.queues, seen.reason) == ("approver", "bob", tuple(QUEUES), "we pair")
    assert board.read(friends.list_all, board.charlie) == []


def test_b39_an_unknown_code_answers_like_a_known_one(board, code):
    """The same answer, in the list too, then and after a revoked code; only the id and the time differ."""
    known, unknown = (
        board.write(friends.request, board.bob, one, queues=QUEUES, verbs=VERBS)
        for one in (code, "AAAA-BBBB-CCCC-DDDD")
    )
    blank = {"id": "", "created": 0}
    assert known._replace(**blank) == unknown._replace(**blank)
    assert {one.id for one in board.read(friends.list_all, board.bob)} == {known.id, unknown.id}
    for text in ("", "\0", "\ud800", "x" * 1000, code.lower()):
        assert board.write(friends.request, board.bob, text, queues=QUEUES, verbs=VERBS)._replace(
            **blank
        ) == known._replace(**blank)


def test_b39_a_code_that_was_changed_leads_nowhere(board, code):
    """The new one does."""
    fresh = board.write(humans.new_friend_code, board.alice)
    for one, arrived in ((code, 0), (fresh, 1)):
        board.write(friends.request, board.bob, one, queues=QUEUES, verbs=VERBS)
        assert len(board.read(friends.list_all, board.alice)) == arrived


@pytest.mark.parametrize("verb", [*rules.OWN, *rules.SELF, "sudo"])
def test_b39_a_request_for_a_verb_that_friends_are_not_given_is_refused_whole(board, code, verb):
    """Naming it; nothing is stored, for a known code and an unknown one alike."""
    for one in (code, "AAAA-BBBB-CCCC-DDDD"):
        refused = board.refused(friends.request, board.bob, one, queues=QUEUES, verbs=[*VERBS, verb])
        assert (refused.details["field"], verb in refused.message) == ("verbs", True)
    assert board.rows(tables.friendships) == []


def test_b39_requests_do_not_flood(board):
    """So many wait at a time; ending one makes room; one's own code is no friend's."""
    for _ in range(friends.OPEN_REQUESTS):
        last = board.write(friends.request, board.bob, "no such code", queues=QUEUES, verbs=VERBS)
    call = (friends.request, board.bob, "no such code")
    assert board.refused(*call, queues=QUEUES, verbs=VERBS).details["reason"] == "requests_wait"
    board.write(friends.end, board.bob, last.id)
    own = board.read(humans.friend_code, board.bob)
    assert board.refused(friends.request, board.bob, own, queues=QUEUES, verbs=VERBS).details["reason"] == "own_code"


def test_b39_approval_vends_on_the_approvers_agent_and_may_narrow(board, asked):
    """Fewer queues and verbs, an endpoint of Alice's with the origin `friend`, and no credential yet."""
    given = board.write(
        friends.approve, board.alice, asked.id, agent="friends", queues=["review"], verbs=["claim_next"]
    )
    (endpoint,) = board.read(endpoints.list_all, board.alice)
    assert (endpoint.origin, endpoint.agent_name, endpoint.human) == ("friend", "friends", board.alice.id)
    assert (endpoint.queues, endpoint.verbs, endpoint.webhook_ceiling) == (("review",), ("claim_next",), 0)
    assert (given.slug, given.state) == (endpoint.slug, "approved")
    seen = board.read(friends.get, board.bob, asked.id)
    assert (seen.other, seen.slug, seen.queues, seen.verbs) == ("alice", endpoint.slug, ("review",), ("claim_next",))
    assert board.rows(tables.credentials) == []


@pytest.mark.parametrize("wider", [{"queues": ["review", "other"]}, {"verbs": ["claim_next", "fail"]}, {"queues": []}])
def test_b39_approval_never_widens_nor_grants_nothing(board, asked, wider):
    """What was not asked for can't be granted; an empty grant is a decline, said otherwise."""
    refused = board.refused(friends.approve, board.alice, asked.id, agent="friends", **wider)
    assert refused.details["field"] == next(iter(wider))
    assert board.read(endpoints.list_all, board.alice) == []


def test_b39_the_requester_collects_once_and_the_endpoint_itself_stays_hidden(board, asked):
    """The credential works; a second collect is refused; the endpoint is a 404 to Bob."""
    board.write(friends.approve, board.alice, asked.id, agent="friends")
    collected = board.write(friends.collect, board.bob, asked.id)
    assert enters(board, collected.credential).slug == collected.friendship.slug
    assert collected.friendship.collect_until is None
    assert board.refused(friends.collect, board.bob, asked.id).details["reason"] == "collected"
    for ref in (collected.friendship.slug, enters(board, collected.credential).id):
        assert board.refused(endpoints.get, board.bob, ref) is MISSING
    assert board.read(endpoints.list_all, board.bob) == []


def test_b39_the_approver_never_sees_the_credential(board, asked):
    """No collect for Alice, and no rotation that would show her one."""
    board.write(friends.approve, board.alice, asked.id, agent="friends")
    assert board.refused(friends.collect, board.alice, asked.id) is MISSING
    slug = board.read(friends.get, board.alice, asked.id).slug
    assert board.refused(endpoints.rotate, board.alice, slug, 60).details["reason"] == "friend_endpoint"


def test_b39_there_are_seven_days_to_collect(board, asked):
    """Then the approver must allow it once more."""
    given = board.write(friends.approve, board.alice, asked.id, agent="friends")
    assert given.collect_until - given.decided == 7 * DAY
    board.clock.turn(days=7)
    assert board.refused(friends.collect, board.bob, asked.id).details["reason"] == "collect_over"
    board.write(friends.allow_collect, board.alice, asked.id)
    assert enters(board, board.write(friends.collect, board.bob, asked.id).credential)


def test_b39_a_lost_credential_ends_when_another_is_collected(board, bobs_pass):
    """One more collect, allowed by Alice alone; the first credential opens nothing any more."""
    friendship, first = bobs_pass
    assert board.refused(friends.allow_collect, board.bob, friendship.id) is MISSING
    board.write(friends.allow_collect, board.alice, friendship.id)
    second = board.write(friends.collect, board.bob, friendship.id).credential
    assert enters(board, first) is None
    assert enters(board, second).slug == friendship.slug


@pytest.mark.parametrize("side", ["alice", "bob"])
def test_b39_either_side_ends_it_and_with_it_the_endpoint(board, bobs_pass, side):
    """Revoked at once; both see it ended, with a line in the audit of each; nothing more can be collected."""
    friendship, credential = bobs_pass
    ended = board.write(friends.end, board.people[side], friendship.id)
    assert (ended.state, enters(board, credential)) == ("ended", None)
    assert board.read(endpoints.get, board.alice, friendship.slug).state == "revoked"
    for human in (board.alice, board.bob):
        assert board.read(friends.get, human, friendship.id).state == "ended"
        assert "end" in [line.action for line in board.read(audit.list_page, human)]
    assert board.refused(friends.end, board.bob, friendship.id).details["state"] == "ended"
    assert board.refused(friends.allow_collect, board.alice, friendship.id).details["state"] == "ended"


def test_b39_revoking_the_endpoint_ends_the_friendship(board, bobs_pass):
    """Alice may do it where she revokes all her endpoints."""
    board.write(endpoints.revoke, board.alice, bobs_pass.friendship.slug)
    assert board.read(friends.get, board.bob, bobs_pass.friendship.id).state == "ended"
    assert board.refused(friends.collect, board.bob, bobs_pass.friendship.id).code == "conflict"


def test_b39_a_friends_endpoint_is_the_approvers_in_its_settings(board, bobs_pass):
    """Alice sets the default lease and the presence; Bob reaches neither as a human."""
    slug = bobs_pass.friendship.slug
    assert board.write(endpoints.edit_lease, board.alice, slug, 1800).default_lease_ttl_seconds == 1800
    assert enters(board, bobs_pass.credential).effective == (1800, "endpoint")
    assert board.refused(endpoints.edit_lease, board.bob, slug, 1800) is MISSING


def test_b39_a_request_is_declined_or_withdrawn(board, asked, code):
    """Each by its own side, and once."""
    assert board.refused(friends.decline, board.bob, asked.id) is MISSING
    assert board.write(friends.decline, board.alice, asked.id).state == "declined"
    for step in (friends.decline, friends.end):
        assert board.refused(step, board.alice, asked.id).details["state"] == "declined"
    again = board.write(friends.request, board.bob, code, queues=QUEUES, verbs=VERBS)
    assert board.write(friends.end, board.bob, again.id).state == "ended"
    assert board.refused(friends.approve, board.alice, again.id, agent="x").details["state"] == "ended"


def test_b39_charlie_and_the_wrong_side_find_nothing(board, asked):
    """Every step, on this id and on one that never was: the same answer."""
    steps = [
        (friends.get, {}),
        (friends.approve, {"agent": "x"}),
        (friends.decline, {}),
        (friends.collect, {}),
        (friends.allow_collect, {}),
        (friends.end, {}),
    ]
    for step, options in steps:
        for friendship_id in (asked.id, "fr_never"):
            assert board.refused(step, board.charlie, friendship_id, **options) is MISSING, step
    assert board.refused(friends.approve, board.bob, asked.id, agent="x") is MISSING
