"""The rules of a todo for all values, not only for told ones: retries, order, leases, contents (B2 to B13)."""

import json
import math
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules import bounds, todo_content, todo_words
from tenure.rules import todo_commands as c
from tenure.rules.refusal import Refusal
from tenure.rules.todo import Claim, End, Todo
from tenure.rules.todo_content import NewTodo
from tenure.rules.todos import (
    JITTER,
    RETRY_LIMIT_MS,
    RETRY_MS,
    decide,
    lost,
    order_ms,
    retry_delay_ms,
    shown,
)

S = 1_000
TIMES = st.integers(0, 10**14)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


def todo(**changed):
    """A pending todo."""
    plain = Todo("td", "e", "inbox", "pending", True, 0, 0, None, 0, 0, 0, 0, 5, 5, None, None, None, None, False)
    return plain._replace(**changed)


def held(expires=300 * S, **changed):
    """A claimed todo and its open claim."""
    claim = Claim("cl", "td", "e", None, None, 1, "hash", "s", 0, expires, 300, "server")._replace(**changed)
    return todo(state="claimed", ready=False, attempts=1, claim="cl"), claim


# --- retries and order ------------------------------------------------------------------------------------


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_b05_a_retry_waits_30_s_doubling_to_15_minutes(failures, jitter):
    """With jitter that only adds, of a fifth at most; no number of failures overflows it."""
    base = min(30 * S * 2 ** (failures - 1), 15 * 60 * S)
    assert base <= retry_delay_ms(failures, jitter) <= base * (1 + JITTER)


def test_b05_the_bounds_of_a_retry_are_the_page_s():
    """30 s and 15 minutes."""
    assert (RETRY_MS, RETRY_LIMIT_MS) == (30 * S, 900 * S)


@given(TIMES, st.integers(-9, 9), st.integers(1, 18), st.integers(0, 10**7))
def test_b03_a_step_of_priority_is_worth_ten_minutes(since, priority, steps, more):
    """Whoever has waited ten minutes a step longer comes first, whatever the other's priority: none starves."""
    low, high = priority, min(9, priority + steps)
    waited = (high - low) * 600 * S
    assert order_ms(since, low) == order_ms(since + waited, high)
    assert order_ms(since - more - 1, low) < order_ms(since + waited, high)


@given(TIMES, st.integers(-9, 9), st.integers(0, 10**9))
def test_b03_a_retry_that_is_due_is_ready_since_then(created, priority, later):
    """Behind what has waited longer; a lapse or a release leaves the place as it was."""
    failed = todo(
        state="failed", ready=False, order_ms=order_ms(created, priority), priority=priority, retry_at=created + later
    )
    woken = decide(failed, c.Wake(), created + later).todo
    assert (woken.state, woken.ready, woken.order_ms) == ("pending", True, order_ms(created + later, priority))
    claimed, claim = held(expires=created)
    claimed = claimed._replace(order_ms=failed.order_ms)
    for command in (c.Lapse(), c.Release()):
        assert decide(claimed, command, created, claim).todo.order_ms == failed.order_ms


# --- leases -----------------------------------------------------------------------------------------------


@given(TIMES, st.integers(1, bounds.LEASE_CAP_SECONDS), st.integers(0, 10**9))
def test_b11_a_bare_heartbeat_never_shortens(now, ttl, left):
    """The later of what it is and now + ttl; by the call it is now + the call's value, later or not."""
    claimed, claim = held(expires=now + left)
    for source in ("endpoint", "server"):
        answer = decide(claimed, c.Heartbeat(ttl, source), now, claim).answer
        assert answer.claim.expires == max(now + left, now + ttl * S)
        assert not answer.shortened
        assert answer.extended == (answer.claim.expires > claim.expires)
    answer = decide(claimed, c.Heartbeat(ttl, "call"), now, claim).answer
    assert answer.claim.expires == now + ttl * S
    assert (answer.extended, answer.shortened) == (ttl * S > left, ttl * S < left)


@given(TIMES, st.integers(-10_000, 10_000))
def test_b13_a_lease_is_over_at_its_very_expiry(expires, off):
    """now >= expiry: not a millisecond later, whoever asks."""
    claimed, claim = held(expires=expires)
    now = expires + off
    lapsed = off >= 0
    assert (shown(claimed, now, expires) == "lapsed") == lapsed
    assert bool(decide(claimed, c.Lapse(), now, claim).claims) == lapsed
    grant = c.Grant("cl2", "e", None, "hash2", "s", 60, "server")
    assert isinstance(decide(claimed, grant, now, claim).answer, c.Won) == lapsed


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 9))
def test_b04_each_cap_makes_a_dead_letter_of_its_own(failures, lapses, failures_cap, lapses_cap):
    """Failures and lapses are counted apart: one cap says nothing of the other."""
    claimed, claim = held()
    claimed = claimed._replace(failures=failures, lapses=lapses, failures_cap=failures_cap, lapses_cap=lapses_cap)
    failed = decide(claimed, c.Fail("why"), 0, claim).todo
    assert (failed.failures, failed.lapses) == (failures + 1, lapses)
    assert (failed.ended is not None) == (failures + 1 >= failures_cap)
    lapsed = decide(claimed, c.Lapse(), 300 * S, claim).todo
    assert (lapsed.failures, lapsed.lapses) == (failures, lapses + 1)
    assert (lapsed.state == "failed") == (lapses + 1 >= lapses_cap)
    retried = decide(failed, c.Retry(), 0).todo
    assert (retried.state, retried.failures < retried.failures_cap) == ("pending", True)


def test_b13_every_way_a_claim_can_end_has_a_sentence():
    """Whatever is told a returning holder says what to do; no word is left without one."""
    for end in typing.get_args(End):
        for state in (
            ("done",) if end.startswith("completed") else ("pending", "claimed", "done", "failed", "cancelled")
        ):
            reason = lost(todo(state=state, ended=1 if state == "done" else None), held(end=end, ended=1)[1])
            refusal = todo_words.refused_holder(reason)
            assert refusal.details["reason"] == reason
            assert refusal.message.endswith(".")


# --- contents ---------------------------------------------------------------------------------------------


@given(JSON)
def test_b02_json_comes_back_as_it_was(value):
    """Payloads and results are stored as text, and read back equal."""
    spelled = todo_content.json_text(value, "payload")
    assert not isinstance(spelled, Refusal)
    assert (None if spelled is None else json.loads(spelled)) == value


@pytest.mark.parametrize(
    "value", [math.inf, {"a": math.nan}, "\ud800", {"\udfff": 1}, "\0", ["\0"], {"\0": 1}, object()]
)
def test_b02_what_no_database_keeps_is_refused(value):
    """NaN and infinities, lone surrogates, NUL, and what is no JSON."""
    assert todo_content.json_text(value, "result").details["field"] == "result"


def test_b02_what_is_too_deep_is_refused():
    """Never a traceback."""
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert isinstance(todo_content.json_text(deep, "payload"), Refusal)


def test_b02_the_backslash_before_a_u_is_no_nul():
    """The six characters of an escape, as text, are text."""
    assert todo_content.json_text("\\u0000", "payload") == '"\\\\u0000"'


@given(st.permutations(["a", "b", "c"]), JSON)
def test_b06_the_same_content_has_the_same_hash(order, payload):
    """Keys in any order, the default queue named or not, dependencies in any order; the key itself is no content."""
    one = NewTodo("t", payload=dict.fromkeys("abc", payload), depends_on=("td_1", "td_2"), idempotency_key="k")
    two = one._replace(
        payload=dict.fromkeys(order, payload),
        queue="inbox",
        depends_on=("td_2", "td_1", "td_2"),
        idempotency_key="l",
    )
    first, second = (todo_content.checked(new, ["inbox", "b"], "human", None) for new in (one, two))
    assert first.content_hash == second.content_hash
    other = todo_content.checked(one._replace(priority=1), ["inbox", "b"], "human", None)
    assert other.content_hash != first.content_hash
