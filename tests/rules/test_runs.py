"""The rules of the claim, R1 to R12, each as a story told to the rules; every story keeps the laws as well."""

from __future__ import annotations

import pytest

from tenure.proof.onejob import OneJob
from tenure.rules import commands as c
from tenure.rules.lease import Lease
from tenure.rules.runs import TOLERANCE

S = 1_000
LEASE = 30 * S
BOUND = 60 * S
MINUTE = 60 * S


def test_r01_a_run_without_state_is_won() -> None:
    """The first claim in time begins attempt 1, with a lease from the store's now, and is the newest slot."""
    job = OneJob()
    assert job.claim(0, "a", 5) == c.Won(1, "a", 1, 5 + LEASE, "schedule")
    run = job.run(0)
    assert run.lease == Lease("a", "runner of a", 5 + LEASE)
    assert (run.lease_ms, run.overlap, run.handed) == (LEASE, "skip", 0)
    assert (job.job.newest, job.job.overlap, job.job.fence, job.job.bound) == (0, "skip", 1, BOUND)


def test_r01_a_claim_at_the_very_slot_is_not_early() -> None:
    """A slot is due from its first millisecond on."""
    assert isinstance(OneJob().claim(MINUTE, "a", MINUTE), c.Won)
    assert OneJob().claim(MINUTE, "a", MINUTE - 1) == c.Early(1)


@pytest.mark.parametrize("create", [True, False])
def test_r02_a_live_lease_holds_the_run(create: bool) -> None:
    """Until the last millisecond of the lease, whoever asks hears who runs it; then it can be won."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert job.claim(0, "b", LEASE - 1, create=create) == c.Running("runner of a", 1, LEASE)
    assert job.last.job is job.job
    assert isinstance(job.claim(0, "b", LEASE, create=create), c.Won)


@pytest.mark.parametrize("create", [True, False])
def test_r03_a_run_that_ran_out_goes_to_its_next_attempt(create: bool) -> None:
    """A new token, a new fence and a new lease; the run keeps its slot and its attempts."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert job.claim(0, "b", 31 * S, create=create, reason="takeover") == c.Won(2, "b", 2, 61 * S, "takeover")
    assert [one.token for one in job.run(0).attempts] == ["a", "b"]
    assert job.job.newest == 0


def test_r03_a_released_run_goes_to_its_next_attempt_at_once() -> None:
    """Ran out means ran out or released."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.release(0, "a", S)
    assert job.takeover(0, "b", S) == c.Won(2, "b", 2, S + LEASE, "takeover")


def test_r03_the_next_attempt_may_have_other_options() -> None:
    """The lease, and the overlap mode, of an attempt are those of the claim that won it."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.takeover(0, "b", 31 * S, lease_ms=5 * S, overlap="allow")
    assert (job.run(0).lease_ms, job.run(0).overlap, job.job.overlap) == (5 * S, "allow", "allow")
    assert job.run(0).lease.until == 36 * S


def _dies(job: OneJob, token: str, at: int) -> int:
    """The run of slot 0 is taken by this token, which dies; the time at which its lease has run out."""
    assert isinstance(job.claim(0, token, at), c.Won)
    return at + LEASE


def test_r04_attempts_that_are_used_up_end_the_run() -> None:
    """Three runners die; the next to ask hears that the run is interrupted, and it is in the history."""
    job = OneJob()
    at = 0
    for token in ("a", "b", "d"):
        at = _dies(job, token, at)
    assert job.takeover(0, "e", at) == c.Ended("interrupted")
    assert job.job.runs == ()
    past = job.past(0)
    assert (past.status, past.ended) == ("interrupted", at)
    assert [one.how for one in past.attempts] == ["expired"] * 3
    assert job.takeover(0, "f", at) == c.Ended("interrupted")


@pytest.mark.parametrize(("counts", "answer"), [(False, c.Won), (True, c.Ended)])
def test_r04_hand_overs_do_not_count_and_all_else_does(counts: bool, answer: type[c.Answer]) -> None:
    """Two dead runners and one release: a hand-over leaves an attempt, a run given up in doubt does not."""
    job = OneJob()
    at = _dies(job, "b", _dies(job, "a", 0))
    job.claim(0, "d", at)
    job.release(0, "d", at + S, counts=counts)
    assert isinstance(job.takeover(0, "e", at + S), answer)


def test_r04_deploys_never_use_attempts_up() -> None:
    """Ten hand-overs in a row leave all the attempts that there were."""
    job = OneJob()
    for number in range(10):
        assert isinstance(job.claim(0, f"t{number}", number * S, max_attempts=1), c.Won)
        job.release(0, f"t{number}", number * S + 500)
    assert job.run(0).handed == 10
    assert isinstance(job.takeover(0, "last", 11 * S, max_attempts=1), c.Won)


def test_r04_the_limit_is_that_of_whoever_asks() -> None:
    """A deploy that raises max_attempts gives a run the attempts that an old instance would have refused."""
    job = OneJob()
    job.claim(0, "a", 0, max_attempts=1)
    assert isinstance(job.takeover(0, "b", LEASE, max_attempts=2), c.Won)


def test_r05_a_run_that_ran_out_after_a_newer_one_was_won_is_interrupted() -> None:
    """This holds where overlaps are allowed too, and with attempts to spare."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.claim(MINUTE // 3, "b", MINUTE // 3, overlap="allow")
    assert job.takeover(0, "d", LEASE, overlap="allow") == c.Ended("interrupted")
    assert job.past(0).status == "interrupted"
    assert job.job.find(MINUTE // 3, "") is not None


def test_r05_a_live_run_is_left_alone_by_a_newer_one() -> None:
    """What is alive is running, whatever was won since."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.claim(MINUTE // 3, "b", MINUTE // 3, overlap="allow")
    assert isinstance(job.takeover(0, "d", LEASE - 1, overlap="allow"), c.Running)


def test_r06_winning_a_new_run_interrupts_older_dead_ones() -> None:
    """In the same step, and the dead run's token opens nothing from then on."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert isinstance(job.claim(MINUTE, "b", MINUTE), c.Won)
    past = job.past(0)
    assert (past.status, past.ended, past.attempts[0].how, past.attempts[0].ended) == (
        "interrupted", MINUTE, "expired", LEASE,
    )  # fmt: skip
    assert job.beat(0, "a", MINUTE) == c.Refused("interrupted", "runner of a")
    assert job.finish(0, "a", MINUTE) == c.Refused("interrupted", "runner of a")
    assert job.release(0, "a", MINUTE) == c.Refused("interrupted", "runner of a")


def test_r06_what_is_alive_or_newer_is_not_interrupted() -> None:
    """With overlaps allowed: an older live run goes on, a newer dead one stays up for its next attempt."""
    job = OneJob()
    job.claim(20 * S, "old", 20 * S, overlap="allow", lease_ms=MINUTE)
    job.claim(40 * S, "new", 40 * S, overlap="allow", lease_ms=5 * S)
    job.claim(30 * S, "between", 50 * S, overlap="allow")
    assert [run.slot for run in job.job.runs] == [20 * S, 30 * S, 40 * S]
    assert job.history == {}


def test_r06_a_takeover_interrupts_nothing_and_nor_does_a_manual_run() -> None:
    """Only a new slot that is won replaces what is dead."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.ask(c.Trigger("w", "me"), 40 * S)
    job.claim(40 * S, "m", 40 * S, request="w")
    assert [run.id for run in job.job.runs] == ["0", "40000#w"]


def test_r06_a_takeover_of_the_newest_slot_leaves_older_dead_runs_to_r05() -> None:
    """With overlaps allowed both may be dead: who asks for the older one ends it."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.claim(20 * S, "b", 20 * S, overlap="allow")
    assert isinstance(job.takeover(20 * S, "d", MINUTE, overlap="allow"), c.Won)
    assert [run.slot for run in job.job.runs] == [0, 20 * S]


def test_r07_no_new_run_beside_a_live_one() -> None:
    """The answer names the run in the way, its runner and its lease end."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert job.claim(20 * S, "b", 20 * S) == c.Overlaps(0, "", "runner of a", LEASE)
    assert job.last.job is job.job
    assert isinstance(job.claim(20 * S, "b", LEASE), c.Won)


def test_r07_no_takeover_beside_a_live_one() -> None:
    """A dead slot waits while a manual run is alive."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.ask(c.Trigger("w", "me"), 30 * S)
    job.claim(30 * S, "m", 30 * S, request="w")
    assert job.takeover(0, "b", 31 * S) == c.Overlaps(30 * S, "w", "runner of m", 60 * S)
    assert isinstance(job.takeover(0, "b", 60 * S), c.Won)


def test_r07_a_lapsed_lease_is_not_renewed_beside_a_live_one() -> None:
    """Neither by a heartbeat nor by the claim that won it; once the other has ended, it is."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.ask(c.Trigger("w", "me"), 30 * S)
    job.claim(30 * S, "m", 30 * S, request="w")
    assert job.beat(0, "a", 31 * S) == c.Blocked(30 * S, "runner of m")
    assert job.claim(0, "a", 31 * S) == c.Overlaps(30 * S, "w", "runner of m", 60 * S)
    job.finish(30 * S, "m", 32 * S, request="w")
    assert job.beat(0, "a", 33 * S) == c.Renewed(33 * S + LEASE)


def test_r07_the_mode_of_the_newest_run_won_decides_on_renewals() -> None:
    """Under allow a lapsed lease comes back beside a live one; the heartbeat carries no mode of its own."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.claim(20 * S, "b", 20 * S, overlap="allow")
    assert job.beat(0, "a", 40 * S) == c.Renewed(40 * S + LEASE)


def test_r07_under_allow_nobody_is_in_the_way() -> None:
    """Neither of a takeover, nor of a lapsed lease that the claim which won it renews."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.ask(c.Trigger("w", "me"), 30 * S)
    job.claim(30 * S, "m", 30 * S, request="w", overlap="allow")
    assert isinstance(job.claim(0, "a", 31 * S, overlap="allow"), c.Won)
    assert isinstance(job.beat(30 * S, "m", 50 * S, request="w"), c.Renewed)
    assert isinstance(job.takeover(0, "b", 61 * S, overlap="allow"), c.Won)


def test_r07_a_lease_that_is_live_is_renewed_whoever_else_is() -> None:
    """An instance of an old definition started an older slot beside it: only lapsed leases wait."""
    job = OneJob()
    job.claim(20 * S, "b", 20 * S)
    job.claim(0, "a", 21 * S, overlap="allow")
    assert job.beat(20 * S, "b", 22 * S) == c.Renewed(22 * S + LEASE)
    assert job.beat(0, "a", 22 * S) == c.Renewed(22 * S + LEASE)


def test_r07_a_manual_run_under_skip_keeps_a_lapsed_run_of_an_old_definition_out() -> None:
    """Slot 0 was won by a definition that allowed overlaps, the wish by one that does not."""
    job = OneJob()
    job.claim(0, "a", 0, overlap="allow")
    job.ask(c.Trigger("w", "me"), 30 * S)
    job.claim(30 * S, "m", 30 * S, request="w")
    assert job.beat(0, "a", 31 * S) == c.Blocked(30 * S, "runner of m")


def test_r07_an_older_slot_won_under_allow_does_not_change_the_mode() -> None:
    """The newest slot's mode is kept, whoever wins an older one after it."""
    job = OneJob()
    job.claim(20 * S, "b", 20 * S)
    job.claim(0, "a", 21 * S, overlap="allow")
    assert (job.job.newest, job.job.overlap) == (20 * S, "skip")


def test_r08_the_tolerance_is_ten_seconds() -> None:
    """For the clocks and the network, on top of every bound."""
    assert TOLERANCE == 10 * S


@pytest.mark.parametrize("bound", [0, BOUND, 300 * S])
def test_r08_lateness_is_asked_on_the_stores_clock(bound: int) -> None:
    """Up to the bound and ten seconds a new run may start; a millisecond later it is late by one."""
    assert isinstance(OneJob().claim(0, "a", bound + TOLERANCE, bound_ms=bound), c.Won)
    assert OneJob().claim(0, "a", bound + TOLERANCE + 1, bound_ms=bound) == c.Late(1)


def test_r08_a_takeover_is_never_late() -> None:
    """A run that was started in time may be taken over days later."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert isinstance(job.takeover(0, "b", 7 * 24 * 60 * MINUTE, bound_ms=0), c.Won)


def test_r09_an_older_run_is_never_first_started_after_a_newer_one() -> None:
    """Under skip; also once the newer one has ended."""
    job = OneJob()
    job.claim(20 * S, "b", 20 * S)
    assert job.claim(0, "a", 21 * S) == c.Superseded(20 * S)
    job.finish(20 * S, "b", 22 * S)
    assert job.claim(0, "a", 23 * S) == c.Superseded(20 * S)


def test_r09_under_allow_it_may_be_within_its_bound() -> None:
    """The newest slot stays the newest."""
    job = OneJob()
    job.claim(20 * S, "b", 20 * S, overlap="allow")
    assert isinstance(job.claim(0, "a", 21 * S, overlap="allow"), c.Won)
    assert job.job.newest == 20 * S


@pytest.mark.parametrize("status", ["success", "failed", "interrupted"])
@pytest.mark.parametrize("create", [True, False])
def test_r10_an_ended_run_never_runs_again(status: str, create: bool) -> None:
    """Whoever asks, however soon, hears how it ended."""
    job = OneJob()
    job.claim(0, "a", 0, max_attempts=1)
    if status == "interrupted":
        job.takeover(0, "b", LEASE, max_attempts=1)
    else:
        job.finish(0, "a", S, status=status)
    assert job.claim(0, "d", LEASE, create=create) == c.Ended(status)
    assert job.claim(0, "d", MINUTE, create=create, overlap="allow") == c.Ended(status)


def test_r10_the_token_that_ended_a_run_does_not_win_it_again() -> None:
    """A copy of the claim that arrives after the finish hears that it is over."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.finish(0, "a", S)
    assert job.claim(0, "a", 2 * S) == c.Ended("success")
