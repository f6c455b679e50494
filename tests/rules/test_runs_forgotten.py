"""What is forgotten (R11) and what is marked (R12)."""

from __future__ import annotations

import pytest

from tenure.proof.onejob import OneJob
from tenure.rules import commands as c
from tenure.rules.instant import DAY
from tenure.rules.job import Job, Mark, Request
from tenure.rules.runs import KEPT, TOLERANCE, keep_until

S = 1_000
LEASE = 30 * S
BOUND = 60 * S
MINUTE = 60 * S
# The age from which on no claim can ask for a slot any more.
OLD = BOUND + TOLERANCE + KEPT


def _ended(slot: int = 0, *, after: int = S, **options: object) -> OneJob:
    job = OneJob()
    job.claim(slot, "a", slot, **options)
    job.finish(slot, "a", slot + after)
    return job


def test_r11_a_record_is_kept_for_a_minute_more() -> None:
    """Than any claim may be late, and than the lease of the run it tells of."""
    assert KEPT == MINUTE


def test_r11_ended_runs_beyond_the_history_are_forgotten() -> None:
    """The oldest go, as many as are beyond; the floor is the highest slot among them."""
    job = OneJob()
    for slot in (0, MINUTE, 2 * MINUTE):
        job.claim(slot, f"t{slot}", slot)
        job.finish(slot, f"t{slot}", slot + S)
    assert job.prune(3 * MINUTE + OLD, history=1) == c.Noted(changed=True)
    assert set(job.history) == {str(2 * MINUTE)}
    assert job.job.floor == MINUTE


@pytest.mark.parametrize(("at", "gone"), [(OLD, False), (OLD + 1, True)])
def test_r11_never_while_a_late_claim_could_ask_for_it(at: int, gone: bool) -> None:
    """The largest lateness, the tolerance and a minute must have passed since the slot."""
    job = _ended()
    assert job.prune(at) == c.Noted(changed=gone)
    assert (job.last.forget == ("0",)) is gone
    assert (job.job.floor == 0) is gone


@pytest.mark.parametrize(("at", "gone"), [(LEASE + KEPT - 1, False), (LEASE + KEPT, True)])
def test_r11_never_within_a_lease_and_a_minute_of_its_end(at: int, gone: bool) -> None:
    """A run that ended late in its life is kept long enough for its holder to hear of it."""
    job = _ended(after=10 * MINUTE)
    assert keep_until(job.past(0)) == 10 * MINUTE + LEASE + KEPT
    assert job.prune(10 * MINUTE + at) == c.Noted(changed=gone)


def test_r11_the_largest_bound_that_any_claim_carried_counts() -> None:
    """A catch-up with five minutes, or a definition that names them, keeps all of the job's records longer."""
    job = _ended(bound_ms=5 * MINUTE)
    assert job.prune(OLD + 1) == c.Noted(changed=False)
    job = _ended()
    job.ask(c.Register("every 60 s", "1", "{}", 5 * MINUTE), S)
    assert job.prune(OLD + 1) == c.Noted(changed=False)
    job.ask(c.Register("every 60 s", "2", "{}", 0), S)
    assert job.prune(OLD + 1) == c.Noted(changed=False)


@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_r11_a_forgotten_slot_never_runs_again(overlap: str) -> None:
    """Whatever bound a later deploy gives its claims; neither does a slot below the floor."""
    job = _ended(MINUTE, overlap=overlap)
    job.prune(MINUTE + OLD + 1)
    assert job.history == {}
    for slot in (MINUTE, MINUTE // 2, 0):
        assert job.claim(slot, "z", 5 * MINUTE, overlap=overlap, bound_ms=DAY) == c.Ended("forgotten")
    assert isinstance(job.claim(2 * MINUTE, "z", 5 * MINUTE, overlap=overlap, bound_ms=DAY), c.Won)


def test_r11_the_newest_slot_won_is_remembered_without_its_record() -> None:
    """A record that a restored history lost: the newest slot is not first started again."""
    assert OneJob(Job(newest=0, fence=1), laws=False).claim(0, "z", S, overlap="allow") == c.Ended("forgotten")


def test_r11_unfinished_runs_are_never_forgotten() -> None:
    """They stand in the document, and only ended runs are named."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert job.prune(DAY) == c.Noted(changed=False)
    assert job.run(0)


def test_r11_a_manual_run_is_forgotten_and_leaves_no_floor() -> None:
    """It is no slot; a claim of its wish finds neither wish nor record."""
    job = OneJob(Job(requests=(Request("w", 0, ""),)))
    job.claim(0, "m", 0, request="w")
    job.finish(0, "m", S, request="w")
    assert job.prune(OLD + 1) == c.Noted(changed=True)
    assert job.job.floor is None
    assert job.claim(0, "z", OLD + 2, request="w", bound_ms=DAY) == c.Ended("forgotten")


def test_r11_marks_are_forgotten_with_as_much_care() -> None:
    """Up to the slot that is named, and not while a claim could still ask for it."""
    job = _ended()
    job.ask(c.Prune((), marks_until=5 * S), 5 * S + OLD)
    assert (job.last.answer, job.last.trim) == (c.Noted(changed=False), None)
    job.ask(c.Prune((), marks_until=5 * S), 6 * S + OLD)
    assert (job.last.trim, job.job.forgotten) == (5 * S, 5 * S)
    job.ask(c.Prune((), marks_until=4 * S), 6 * S + OLD)
    assert job.job.forgotten == 5 * S


def test_r12_refusals_leave_a_mark_and_change_nothing_else() -> None:
    """Why, whom it met, when, asked by whom, and the slot before; the document is the very same."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.claim(20 * S, "b", 21 * S, after=0)
    assert job.marks == [Mark(20 * S, 20 * S, 1, "overlap", "0", 21 * S, "runner of b", "", 0)]
    job.finish(0, "a", 22 * S)
    job.ask(c.Pause(), 23 * S)
    before = job.job
    job.claim(24 * S, "d", 24 * S)
    job.claim(23 * S, "e", 24 * S + BOUND + TOLERANCE)
    assert [(mark.slot, mark.why, mark.whom) for mark in job.marks[1:]] == [
        (24 * S, "paused", ""),
        (23 * S, "late", ""),
    ]
    assert job.job is before


def test_r12_all_else_that_loses_leaves_none() -> None:
    """Running, superseded, early, gone, ended, forgotten, and a takeover in whose way somebody is."""
    job = OneJob()
    job.claim(20 * S, "a", 20 * S)
    job.claim(20 * S, "b", 21 * S)
    job.claim(0, "b", 21 * S)
    job.claim(MINUTE, "b", 21 * S)
    job.takeover(0, "b", 21 * S)
    job.finish(20 * S, "a", 22 * S)
    job.claim(20 * S, "b", 23 * S)
    assert job.marks == []


def test_r12_a_mark_is_no_state() -> None:
    """A slot that was skipped may still be won, by somebody who asks when the way is free."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.claim(20 * S, "b", 20 * S)
    job.finish(0, "a", 21 * S)
    assert isinstance(job.claim(20 * S, "d", 22 * S), c.Won)
