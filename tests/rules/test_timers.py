"""What a waking timer should do: pure functions of time and draws (R17, R19, R21, R25, R26, R29)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.rules import timers
from tenure.rules.job import EMPTY, Attempt, Past, Run
from tenure.rules.lease import Lease, provable, unsure_after, validity

draws = st.floats(0, 1, exclude_max=True)
HOUR = 3_600_000


def running(slot, until, *, released=False, request=""):
    attempt = Attempt(1, "t", "a", "schedule", 1, slot, slot)
    return Run(slot, request, Lease("t", "a", until, released), 30_000, "skip", 0, (attempt,))


def recover(job, latest, past=None, told=None, *, now=HOUR + 1_000):
    return timers.recovery(job, latest, past, told, now, schedule="s", catch_up_ms=300_000, max_late_ms=60_000)


@given(st.floats(0, 1e12), st.integers(1, 60_000), draws)
def test_r17_the_next_tick_is_on_the_grid_of_its_length(boot, length, phase):
    """Later than now, by at most one heartbeat."""
    tick = timers.next_beat(boot, length, phase)
    assert boot <= tick <= boot + length + 1e-3


@given(st.floats(0, 1e9), st.one_of(st.none(), st.floats(0, 1e9)), st.integers(10, 60_000), draws, draws)
def test_r21_a_look_is_on_the_grid_and_soon_enough(boot, end, heartbeat, draw, draw_end):
    """Within two heartbeats, or within 200 ms of a lease end that comes sooner; never at once."""
    look = timers.next_look(boot, end, heartbeat, draw, draw_end)
    assert look % timers.GRID == 0
    assert boot < look <= boot + 2 * heartbeat + timers.GRID
    if end is not None and end >= boot:
        assert look <= end + 1 + timers.AFTER_END + timers.GRID


@given(st.integers(0, 10**13), st.integers(0, 60_000), draws)
def test_r19_a_claim_is_never_before_its_slot(slot, jitter, draw):
    """And at most the jitter after it."""
    assert slot <= timers.claim_at(slot, jitter, draw) <= slot + jitter


@pytest.mark.parametrize(("silent", "doing"), [(0, "go on"), (24_999, "go on"), (25_000, "unsure"), (10**9, "unsure")])
def test_r26_a_runner_doubts_a_heartbeat_before_its_lease_can_end(silent, doing):
    """Lease 30 s, heartbeat 5 s: at 25 s."""
    assert timers.judge(1_000 + silent, 1_000, 30_000, 5_000) == doing


def test_r26_the_margin_is_the_smaller_of_heartbeat_and_a_sixth():
    """With a long heartbeat a sixth of the lease is enough; 1 % is kept for the clocks' rates."""
    assert unsure_after(30_000, 14_000) == 25_000
    assert provable(30_000) == 29_700
    assert unsure_after(30_000, 5_000) < provable(30_000)


@pytest.mark.parametrize(("lease", "valid"), [(None, 2_000), (30_000, 2_000), (12_000, 2_000), (3_000, 500)])
def test_r40_a_decision_is_valid_for_two_seconds_or_a_sixth(lease, valid):
    """The smaller of the two."""
    assert validity(lease) == valid


@pytest.mark.parametrize(
    ("returned", "why", "doing"),
    [
        (True, "", "finish"),
        (False, "", "fail"),
        (True, "stop", "finish"),
        (False, "stop", "hand over"),
        (True, "unsure", "finish"),
        (False, "unsure", "give up"),
        (True, "timeout", "time out"),
        (False, "timeout", "time out"),
        (True, "lost", "nothing"),
        (False, "lost", "nothing"),
        (True, "abandoned", "nothing"),
        (False, "abandoned", "nothing"),
    ],
)
def test_r24_to_r30a_how_a_handler_ended_decides(returned, why, doing):
    """The whole table."""
    assert timers.ending(returned, why) == doing


@given(st.integers(1, 10_000), draws)
def test_r25_backoff_is_capped_and_jittered(tries, draw):
    """Half to the whole of a doubling wait, never beyond the cap."""
    full = min(timers.BACKOFF_CAP, timers.BACKOFF_FIRST * 2 ** min(tries - 1, 16))
    assert full / 2 <= timers.backoff(tries, draw) <= full


@pytest.mark.parametrize(
    ("now", "following", "given_up"),
    [
        (10_000, None, False),
        (300_000, None, False),
        (300_001, None, True),
        (60_000, 60_000, True),
        (59_999, 60_000, False),
    ],
)
def test_r25_a_slot_is_missed_when_its_bounds_have_passed_or_a_newer_is_due(now, following, given_up):
    """max_late 60 s with its tolerance, catch_up 300 s."""
    assert timers.given_up(0, following, now, 60_000, 300_000) is given_up


def test_r29_live_runs_are_watched():
    """Whoever started after them becomes a backup."""
    run = running(HOUR, HOUR + 30_000)
    found = recover(EMPTY._replace(runs=(run,), newest=HOUR, seen=(("s", 0),)), HOUR, told=None)
    assert (found.watch, found.take, found.catch_up) == ((run,), (), None)


@pytest.mark.parametrize("released", [False, True])
def test_r29_a_run_that_ran_out_is_taken_while_it_is_the_latest(released):
    """Also one that was handed over."""
    run = running(HOUR, HOUR + 500, released=released)
    found = recover(EMPTY._replace(runs=(run,), newest=HOUR, seen=(("s", 0),)), HOUR)
    assert found.take == (run,)


def test_r29_a_run_that_ran_out_is_left_when_a_newer_slot_is_due():
    """The next run won interrupts it."""
    run = running(HOUR - 60_000, HOUR - 30_000)
    found = recover(EMPTY._replace(runs=(run,), newest=HOUR - 60_000, seen=(("s", 0),)), HOUR, told=None)
    assert found.take == ()
    assert found.catch_up == HOUR


def test_r36_a_manual_run_that_ran_out_is_taken_whatever_is_due():
    """It is no slot."""
    run = running(HOUR - 60_000, HOUR - 30_000, request="wish")
    assert recover(EMPTY._replace(runs=(run,), seen=(("s", 0),)), HOUR).take == (run,)


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, HOUR),
        ({"newest": HOUR}, None),
        ({"newest": HOUR + 5}, None),
        ({"paused": 5}, None),
        ({"seen": (("s", HOUR + 1),)}, None),
        ({"seen": ()}, None),
    ],
)
def test_r29_the_latest_slot_is_caught_up_if_it_is_new_and_the_schedule_is_not(change, caught):
    """Not if won before, not while paused, not for a slot before the schedule was first seen (R29a)."""
    assert recover(EMPTY._replace(seen=(("s", 0),))._replace(**change), HOUR).catch_up == caught


def test_r29_not_what_has_ended_and_not_what_is_too_long_ago():
    """Its record, or its age, forbids it."""
    job = EMPTY._replace(seen=(("s", 0),))
    past = Past(HOUR, "", "success", HOUR + 5, 30_000, 0, ())
    assert recover(job, HOUR, past).catch_up is None
    assert recover(job, HOUR, now=HOUR + 300_000).catch_up is None
    assert recover(job, HOUR, now=HOUR + 299_999).catch_up == HOUR


def test_r36a_what_nobody_spoke_of_is_missed():
    """From the last slot with a record or a mark to the one before the latest."""
    job = EMPTY._replace(seen=(("s", 0),))
    assert recover(job, HOUR, told=HOUR - 600_000).missed == (HOUR - 600_000, HOUR - 1)
    assert recover(job, HOUR, told=HOUR - 600_000, now=HOUR + 400_000).missed == (HOUR - 600_000, HOUR)


@pytest.mark.parametrize(
    ("age", "catch", "open_", "missed"),
    [
        (1_000, HOUR, None, None),  # young enough to be caught up
        (20_000, None, HOUR, None),  # too old for that; an ordinary claim of somebody may still come
        (70_000, None, HOUR, None),
        (70_001, None, None, (0, HOUR)),  # nobody may claim it any more
    ],
)
def test_r25_a_slot_between_catch_up_and_lateness_is_left_open(age, catch, open_, missed):
    """It is told of once nobody may claim it any more, or it would never be."""
    known = EMPTY._replace(seen=(("s", 0),))
    found = timers.recovery(known, HOUR, None, None, HOUR + age, schedule="s", catch_up_ms=5_000, max_late_ms=60_000)
    assert (found.catch_up, found.open) == (catch, open_)
    assert found.missed == (missed or (0, HOUR - 1))


def test_r29_a_slot_that_was_won_or_ended_is_not_left_open():
    """Somebody saw to it."""
    known = EMPTY._replace(seen=(("s", 0),), newest=HOUR)
    found = timers.recovery(known, HOUR, None, None, HOUR + 20_000, schedule="s", catch_up_ms=5_000, max_late_ms=60_000)
    assert found.open is None
