"""Leases: who is alive, who may still act, and how long anything rests on them."""

from __future__ import annotations

import pytest

from tenure.rules.lease import VALIDITY, Lease, provable, unsure_after, validity

S = 1_000
LEASE = Lease("a", "one", 30 * S)


@pytest.mark.parametrize(("now", "live"), [(-1, True), (30 * S - 1, True), (30 * S, False), (31 * S, False)])
def test_r02_a_lease_is_live_before_its_end(now: int, live: bool) -> None:
    """The end itself is too late."""
    assert LEASE.live(now) is live


def test_r16_a_released_lease_is_live_at_no_time() -> None:
    """Not even before its end, where a clock went back; and its token opens nothing."""
    lease = LEASE.given_back(5 * S)
    assert lease == Lease("a", "one", 5 * S, released=True)
    assert not lease.live(0)
    assert not lease.held_by("a")


def test_r13_a_lapsed_lease_is_still_its_holders() -> None:
    """The token opens it, lapsed or not; no other does."""
    assert LEASE.held_by("a")
    assert not LEASE.held_by("b")
    assert LEASE.renewed(60 * S) == Lease("a", "one", 60 * S)


@pytest.mark.parametrize(
    ("lease_ms", "valid_ms"),
    [(None, VALIDITY), (50, 8), (1 * S, 166), (11_999, 1_999), (12 * S, 2 * S), (86_400 * S, 2 * S)],
)
def test_r40_a_decision_is_valid_for_a_sixth_of_the_lease_at_most(lease_ms: int | None, valid_ms: int) -> None:
    """Whichever is less, rounded down; claim-only has the two seconds."""
    assert validity(lease_ms) == valid_ms


@pytest.mark.parametrize(
    ("lease_ms", "heartbeat_ms", "after"),
    [(30 * S, 5 * S, 25 * S), (30 * S, 14 * S, 25 * S), (30 * S, 1 * S, 29 * S), (50, 8, 42)],
)
def test_r26_a_runner_doubts_a_heartbeat_or_a_sixth_before_the_end(
    lease_ms: int, heartbeat_ms: int, after: int
) -> None:
    """lease − min(heartbeat, lease/6), so that two attempts overlap for one heartbeat at most."""
    assert unsure_after(lease_ms, heartbeat_ms) == after


@pytest.mark.parametrize(("lease_ms", "ms"), [(30 * S, 29_700), (50, 50), (1 * S, 990)])
def test_r26_a_lease_is_provable_for_all_but_a_hundredth_of_it(lease_ms: int, ms: int) -> None:
    """Clocks may differ in rate; a lease under 100 ms, of tests alone, has no hundredth to spare."""
    assert provable(lease_ms) == ms


def test_r26_doubt_comes_before_the_lease_stops_being_provable() -> None:
    """For every lease of at least a second and every heartbeat that is allowed."""
    for lease_ms in (1 * S, 2 * S, 30 * S, 86_400 * S):
        for heartbeat_ms in range(max(1, lease_ms // 100), lease_ms // 2, max(1, lease_ms // 50)):
            assert unsure_after(lease_ms, heartbeat_ms) <= provable(lease_ms)
