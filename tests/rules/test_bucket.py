"""Buckets of calls: never more than the burst and the rate allow, and nobody is locked out."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.rules.bucket import take

RATES = st.sampled_from([(5, 20), (20, 40), (200, 400), (5 / 60, 5), (1, 10), (0.5, 1), (3, 7)])
PAUSES = st.lists(st.integers(0, 5_000), min_size=1, max_size=200)


def replay(rate, pauses, cost=1):
    now, arrival, allowed = 1_000_000, None, []
    for pause in pauses:
        now += pause
        taken = take(arrival, now, *rate, cost)
        if taken.allowed:
            arrival = taken.arrival_us
            allowed.append(now)
    return allowed


@given(RATES, PAUSES)
def test_b43_in_no_window_are_there_more_than_burst_and_rate_allow(rate, pauses):
    """Any stretch of t ms sees at most burst + rate × t calls."""
    per_second, burst = rate
    allowed = replay(rate, pauses)
    for first, start in enumerate(allowed):
        for last in range(first, len(allowed)):
            assert last - first + 1 <= burst + per_second * (allowed[last] - start) / 1000 + 1e-6


@given(RATES)
def test_b43_a_full_bucket_gives_its_burst_at_once_and_not_one_more(rate):
    """And says how many are left each time."""
    arrival, now = None, 1_000_000
    for left in reversed(range(rate[1])):
        taken = take(arrival, now, *rate)
        assert (taken.allowed, taken.remaining) == (True, left)
        arrival = taken.arrival_us
    assert not take(arrival, now, *rate).allowed


@given(RATES, PAUSES)
def test_b43_whoever_waits_as_long_as_told_is_let_in(rate, pauses):
    """Retry-After is the truth, and not longer than it must be."""
    now, arrival = 1_000_000, None
    for pause in pauses:
        now += pause
        taken = take(arrival, now, *rate)
        if not taken.allowed:
            assert take(arrival, now + taken.retry_after_ms, *rate).allowed
            assert not take(arrival, now + taken.retry_after_ms - 2, *rate).allowed
        arrival = taken.arrival_us


@given(RATES, st.integers(1, 10**9))
def test_b43_a_clock_that_goes_back_locks_nobody_out_longer_than_a_burst(rate, back):
    """A stored time far ahead is cut to what a burst explains."""
    per_second, burst = rate
    now = 10**10
    arrival = take(None, now, *rate).arrival_us
    refused = take(arrival, now - back, *rate)
    assert refused.retry_after_ms <= burst / per_second * 1000 + 1


def test_b43_what_costs_more_than_the_bucket_holds_is_refused():
    """A batch beyond the burst is never let in, and leaves the bucket as it was."""
    taken = take(None, 1_000, 5, 20, 21)
    assert (taken.allowed, taken.remaining) == (False, 20)
