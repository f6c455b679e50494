"""The rules of endpoints: verbs, scope, names, and how long a lease is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules import bounds
from tenure.rules import endpoints as rules
from tenure.rules.refusal import Refusal

LEASES = st.none() | st.integers(60, 86_400)
NO_NUMBERS = [0, -1, 1.5, 60.0, "60", True, False, [], float("nan")]


def test_the_constants_are_those_of_the_decision_record():
    """The bounds, the server's default and the Board's own lease stand in one place, with the record's numbers."""
    assert (bounds.LEASE_FLOOR_SECONDS, bounds.LEASE_CAP_SECONDS) == (60, 86_400)
    assert (bounds.SERVER_LEASE_SECONDS, bounds.OPERATOR_LEASE_SECONDS) == (300, 300)


def test_verbs_are_in_one_class_each_and_self_verbs_are_outside_the_allowlist():
    """DRAIN, PRODUCE and OWN make up the allowlist; what everybody has is not in it."""
    assert len(set(rules.ALL)) == len(rules.ALL) == 18
    assert not set(rules.SELF) & set(rules.ALL)


@given(st.integers(1, 10**12), LEASES)
def test_b8_the_calls_own_value_wins_and_is_clamped(call, default):
    """Whatever the endpoint says: the call's value, up to the cap, and it is said when that cut it."""
    assert rules.ttl(call, default) == (min(call, 86_400), "call", call > 86_400)


@given(LEASES)
def test_b8_a_bare_call_takes_the_endpoints_default_and_else_the_servers(default):
    """No value: the endpoint's default; none there: 300 s; nothing is clamped."""
    expected = (300, "server", False) if default is None else (default, "endpoint", False)
    assert rules.ttl(None, default) == expected
    assert rules.effective(default) == expected[:2]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_b9_a_calls_ttl_is_a_whole_number_from_one(value):
    """What is no positive whole number is refused by name, not mended."""
    refused = rules.call_ttl(value)
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_argument"
    assert refused.details["field"] == "lease_ttl_seconds"


@given(st.none() | st.integers(min_value=1))
def test_b9_null_and_absent_are_bare_and_there_is_no_upper_bound(value):
    """The clamping is `ttl`'s; the reading lets everything from one on pass."""
    assert rules.call_ttl(value) == value


@given(st.integers())
def test_b10_a_default_is_within_its_bounds_or_refused(value):
    """Never clamped: it comes back as it is, or not at all."""
    answer = rules.default_lease(value)
    assert (answer == value) is (60 <= value <= 86_400)
    assert (answer == value) is not isinstance(answer, Refusal)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_b10_a_default_of_another_type_is_refused(value):
    """A float that is whole, a string of digits and a boolean are no whole numbers."""
    refused = rules.default_lease(value)
    assert isinstance(refused, Refusal)
    assert refused.details == {"field": "default_lease_ttl_seconds", "minimum": 60, "maximum": 86_400}


def test_b10_null_is_a_default():
    """Null means the server's."""
    assert rules.default_lease(None) is None


def test_b23_a_scope_without_queues_is_the_inbox_and_keeps_the_order_of_the_page():
    """Repetitions fall away; verbs stand in the page's order whatever order they came in."""
    scope = rules.scope([], ["release", "claim", "claim"], ["a", "a"], 5)
    assert scope == rules.Scope(("inbox",), ("claim", "release"), ("a",), 5)


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ((["a b"], [], [], 5), "queues"),
        ((["a"] * 31 + ["b", "é"], [], [], 5), "queues"),
        ((["x"], ["whoami"], [], 5), "verbs"),
        ((["x"], ["Claim"], [], 5), "verbs"),
        (([f"q{i}" for i in range(33)], [], [], 5), "queues"),
        ((["x"], [], [f"t{i}" for i in range(33)], 5), "targets"),
        ((["x"], [], [], -1), "webhook_ceiling"),
        ((["x"], [], [], 101), "webhook_ceiling"),
        ((["x"], [], [], True), "webhook_ceiling"),
    ],
)
def test_b20_a_scope_that_can_not_be_is_refused_by_its_field(scope, field):
    """Queues are names, verbs are those that can be granted, and there are not too many of anything."""
    refused = rules.scope(*scope)
    assert isinstance(refused, Refusal)
    assert refused.details["field"] == field


@pytest.mark.parametrize("verb", [*rules.OWN, *rules.SELF, "no_such_verb"])
def test_b39_a_friend_is_refused_whole_for_one_verb_that_friends_are_not_given(verb):
    """Own-settings verbs are not friend-grantable, and the refusal names the verb."""
    refused = rules.friendly(["claim_next", verb])
    assert verb in refused.message
    assert rules.friendly([*rules.DRAIN, *rules.PRODUCE]) is None


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcde")))
def test_b39_an_approver_narrows_and_never_widens(asked, granted):
    """What is granted was asked for, or the whole grant is refused."""
    answer = rules.narrowed(asked, granted, "queues")
    if set(granted) <= set(asked):
        assert set(answer) == set(granted)
    else:
        assert isinstance(answer, Refusal)
    assert rules.narrowed(asked, None, "queues") == tuple(asked)


@given(st.text(min_size=1, max_size=64))
def test_b20_a_slug_is_never_shaped_like_an_id(name):
    """Whatever the name, the slug is for URLs, ends in its four characters, and no UUID looks like that."""
    slug = rules.slug(name, "k7x2")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-k7x2", slug)
    assert not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", slug)


def test_b20_a_slug_keeps_letters_of_other_alphabets_where_ours_has_them():
    """Accents go, and a letter is not lost for them."""
    assert rules.slug("Über größe", "k7x2") == "uber-grosse-k7x2"
    assert rules.slug("部署", "k7x2") == "endpoint-k7x2"


@given(st.sampled_from(["active", "expired", "revoked"]), st.none() | st.integers(0, 100), st.integers(0, 100))
def test_b24_an_endpoint_has_expired_the_moment_its_time_comes(stored, expires, now):
    """At the very millisecond, not when the reaper gets there; what was revoked stays revoked."""
    due = expires is not None and now >= expires
    assert rules.state_at(stored, expires, now) == ("expired" if stored == "active" and due else stored)


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a\x00b", "x" * 65, "\ud800", 5, None])
def test_names_are_one_line_of_text(text):
    """What no database or page could show is refused."""
    assert isinstance(rules.label(text, "name"), Refusal)


def test_b25_writes_to_what_has_ended_are_refused_with_its_state():
    """The refusal tells programs the state, and people what to do."""
    assert rules.writable("active") is None
    assert rules.writable("revoked").details == {"state": "revoked"}
    assert rules.writable("expired").code == "conflict"
