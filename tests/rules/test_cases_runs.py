"""Cases from the field that are decided by the rules alone, each named after its row."""

from __future__ import annotations

import itertools
import random

import pytest

from tenure.proof.onejob import OneJob, claim
from tenure.rules import commands as c
from tenure.rules.instant import DAY, HOUR
from tenure.rules.job import EMPTY, Job
from tenure.rules.runs import TOLERANCE, Decision, decide, keep_until

S = 1_000
MINUTE = 60 * S
LEASE = 30 * S


class Shelf:
    """The contract's compare-and-set for one document: a decision is written if it was made on the newest one."""

    def __init__(self, job: Job = EMPTY) -> None:
        self.job, self.version = job, 0

    def commit(self, decision: Decision, read: int, at: int, decided: int) -> bool:
        """Whether it was written."""
        if read != self.version or at > decided + decision.valid_ms:
            return False
        self.job, self.version = decision.job, self.version + 1
        return True


@pytest.mark.parametrize("offset", [-3 * S, 0, 3 * S])
def test_case_r07_a_claimer_with_another_clock_finds_the_slot_taken(offset: int) -> None:
    """The handler took 5 ms; whoever claims three seconds later or earlier by its own clock hears that it ended."""
    job = OneJob()
    job.claim(MINUTE, "a", MINUTE)
    job.finish(MINUTE, "a", MINUTE + 5)
    # Only the store's time is asked: an instance's own clock is no part of a claim.
    answer = job.claim(MINUTE, "b", MINUTE + 3 * S + offset)
    assert answer == c.Ended("success")


@pytest.mark.parametrize("order", sorted(set(itertools.permutations("AaBb"))))
def test_case_r09_two_claimers_interleaved_at_every_step_have_one_winner(order: tuple[str, ...]) -> None:
    """A capital letter reads, a small one commits; who lost the race reads again and is told who won."""
    shelf = Shelf()
    read: dict[str, tuple[Decision, int]] = {}
    won: list[str] = []
    for step in order:
        who = step.lower()
        if step.isupper():
            read[who] = (decide(shelf.job, claim(0, who), 0), shelf.version)
        elif who in read:
            decision, version = read[who]
            if decision.job is not shelf.job and shelf.commit(decision, version, 0, 0):
                won.append(who)
            else:
                answer = decide(shelf.job, claim(0, who), 0).answer
                assert isinstance(answer, c.Running) or not won
    assert len(won) == (1 if any(order.index(who.upper()) < order.index(who) for who in "ab") else 0)
    assert [attempt.number for run in shelf.job.runs for attempt in run.attempts] == [1] * len(won)


def test_case_r09_a_document_that_looks_the_same_again_is_another_one() -> None:
    """A pause and a resume leave the same words and two versions more: what was decided before is not written."""
    shelf = Shelf()
    late, version = decide(shelf.job, claim(0, "a"), 0), shelf.version
    for command in (c.Pause(), c.Resume()):
        assert shelf.commit(decide(shelf.job, command, 0), shelf.version, 0, 0)
    assert shelf.job == EMPTY
    assert not shelf.commit(late, version, 0, 0)


def test_case_r11_a_minute_evaluated_again_is_answered_by_its_end() -> None:
    """An instance's clock stepped back 90 s just after a slot: the second claim hears that it is over."""
    job = OneJob()
    job.claim(MINUTE, "a", MINUTE)
    job.finish(MINUTE, "a", MINUTE + S)
    for at in (MINUTE + 2 * S, MINUTE + 90 * S):
        assert job.claim(MINUTE, "b", at) == c.Ended("success")


def test_case_r14_a_finish_and_a_takeover_race_at_the_moment_of_expiry() -> None:
    """A thousand times, in either order: one outcome, and the loser changes nothing."""
    chance = random.Random(14)
    for _ in range(1_000):
        job = OneJob()
        job.claim(0, "a", 0)
        finish_first = chance.random() < 0.5
        if finish_first:
            assert job.finish(0, "a", LEASE) == c.Finished("success")
            assert job.takeover(0, "b", LEASE) == c.Ended("success")
            continue
        assert isinstance(job.takeover(0, "b", LEASE), c.Won)
        assert job.finish(0, "a", LEASE) == c.Refused("running", "runner of b")
        assert job.finish(0, "b", LEASE + S, status="failed") == c.Finished("failed")


def test_case_r17_a_finish_says_nothing_of_the_next_slot() -> None:
    """Slots come from the schedule alone: finished once or twice, the document names no time to come."""
    job = OneJob()
    job.claim(0, "a", 0)
    before = job.job._replace(runs=())
    job.finish(0, "a", S)
    assert job.job == before
    job.finish(0, "a", S)
    assert job.job == before
    assert isinstance(job.claim(7 * DAY, "b", 7 * DAY), c.Won)


@pytest.mark.parametrize("overlap", ["skip", "allow"])
@pytest.mark.parametrize("bound", [MINUTE, HOUR])
def test_case_r19_a_slot_whose_record_went_is_not_won_again(overlap: str, bound: int) -> None:
    """12:00 and 12:01 with a history of one, and 12:00 once more five minutes later, by any bound."""
    job = OneJob()
    for slot in (0, MINUTE):
        job.claim(slot, f"t{slot}", slot, overlap=overlap)
        job.finish(slot, f"t{slot}", slot + S)
    job.prune(5 * MINUTE, history=1)
    assert set(job.history) == {str(MINUTE)}
    answer = job.claim(0, "z", 5 * MINUTE, overlap=overlap, bound_ms=bound)
    assert answer == c.Ended("forgotten")


def test_case_r19_a_record_is_not_forgotten_while_a_claim_could_come() -> None:
    """Where it is too young to go, the late claim finds it."""
    job = OneJob()
    for slot in (0, MINUTE):
        job.claim(slot, f"t{slot}", slot)
        job.finish(slot, f"t{slot}", slot + S)
    assert job.prune(2 * MINUTE, history=1) == c.Noted(changed=False)
    assert job.claim(0, "z", 2 * MINUTE) == c.Ended("success")


def test_case_r39_a_run_has_one_end_however_finish_and_takeover_interleave() -> None:
    """Every order of a finish, its repetition, a takeover, the newer slot and the takeover's own finish."""
    steps = {
        "finish": lambda job: job.finish(0, "a", MINUTE),
        "again": lambda job: job.finish(0, "a", MINUTE, status="failed"),
        "takeover": lambda job: job.takeover(0, "b", MINUTE),
        "newer": lambda job: job.claim(MINUTE, "d", MINUTE),
        "other": lambda job: job.finish(0, "b", MINUTE),
    }
    for order in itertools.permutations(steps):
        job = OneJob()  # which holds I3: after an end nothing changes a run
        job.claim(0, "a", 0)
        ends = []
        for step in order:
            steps[step](job)
            ends += [past.status for past in job.last.ended if past.slot == 0]
        assert len(ends) == (1 if job.job.find(0, "") is None else 0)


def test_case_r44_a_run_that_nobody_renews_is_claimable_for_as_long_as_it_stands() -> None:
    """After 91 days its lease is long past: not live, and up for its next attempt, or ended by the next slot."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert not job.run(0).lease.live(91 * DAY)
    assert isinstance(job.takeover(0, "b", 91 * DAY), c.Won)
    assert isinstance(job.claim(182 * DAY, "d", 182 * DAY), c.Won)
    assert job.past(0).status == "interrupted"


def test_case_r61_an_instance_an_hour_fast_is_told_how_long_to_wait() -> None:
    """Its claim is early by the store's clock, and hinders nobody."""
    job = OneJob()
    assert job.claim(HOUR, "fast", 0) == c.Early(HOUR)
    assert job.job is EMPTY
    assert isinstance(job.claim(HOUR, "a", HOUR), c.Won)


def test_case_r62_a_timer_that_fires_20_ms_early_waits_and_claims_once() -> None:
    """The answer names the wait; at the end of it the same instance wins."""
    job = OneJob()
    early = job.claim(MINUTE, "a", MINUTE - 20)
    assert early == c.Early(20)
    assert job.claim(MINUTE, "b", MINUTE - 20 + early.wait_ms) == c.Won(1, "b", 1, MINUTE + LEASE, "schedule")


def test_case_r66_a_changed_expression_is_first_seen_when_it_is() -> None:
    """`0 3` became `0 4` at 10:00: nothing before 10:00 is caught up, and in a deploy neither is of the old one."""
    job = OneJob()
    job.ask(c.Register("0 3 * * * UTC", "1", "{}", MINUTE), 0)
    job.ask(c.Register("0 4 * * * UTC", "1", "{}", MINUTE), 10 * HOUR)
    assert job.job.since("0 4 * * * UTC") == 10 * HOUR
    job.ask(c.Register("0 3 * * * UTC", "1", "{}", MINUTE), 11 * HOUR)
    assert job.job.since("0 3 * * * UTC") == 0


def test_case_r69_unique_per_slot_and_no_overlap_are_both_the_default() -> None:
    """One slot has one winner; the next waits for it."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert isinstance(job.claim(0, "b", S), c.Running)
    assert isinstance(job.claim(20 * S, "b", 20 * S), c.Overlaps)


def test_case_r72_a_document_does_not_grow_with_its_history() -> None:
    """Two thousand runs later it says no more than after the first."""
    job = Job()
    for number in range(2_000):
        slot = number * MINUTE
        job = decide(job, claim(slot, "a"), slot).job
        finished = decide(job, c.Finish(slot, "a", "success"), slot + S)
        job = finished.job
        head = c.Head(str(slot), slot, keep_until(finished.ended[0]))
        job = decide(job, c.Prune((head,)), slot + HOUR + TOLERANCE).job
    assert (job.runs, job.requests, job.newest, job.fence) == ((), (), slot, 2_000)
