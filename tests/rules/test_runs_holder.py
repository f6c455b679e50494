"""The rules of the holder, R13 to R18, and of answers that were lost, R40 and R40a."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenure.proof.onejob import OneJob, claim
from tenure.rules import commands as c
from tenure.rules.job import EMPTY, Attempt, Job, Progress, Request
from tenure.rules.runs import decide

S = 1_000
LEASE = 30 * S
MINUTE = 60 * S


def _held(**options: object) -> OneJob:
    job = OneJob()
    job.claim(0, "a", 0, **options)
    return job


def test_r13_a_heartbeat_moves_the_lease_end_from_the_stores_now() -> None:
    """By the lease that the claim carried; the attempt remembers when, and how many there were."""
    job = _held()
    assert job.beat(0, "a", 5 * S) == c.Renewed(35 * S)
    assert job.beat(0, "a", 10 * S) == c.Renewed(40 * S)
    attempt = job.run(0).attempts[-1]
    assert (attempt.started, attempt.renewed, attempt.beats) == (0, 10 * S, 2)


def test_r13_a_lapsed_lease_is_renewed_while_nobody_took_the_run() -> None:
    """Also long after it ran out."""
    job = _held()
    assert job.beat(0, "a", MINUTE) == c.Renewed(90 * S)
    assert job.takeover(0, "b", MINUTE) == c.Running("runner of a", 1, 90 * S)


def test_r13_progress_travels_with_the_heartbeat_and_stays() -> None:
    """A heartbeat that says nothing leaves what was said; the next attempt sees it."""
    job = _held()
    job.ask(c.Heartbeat(0, "a", progress=Progress(3, 10, "pages")), S)
    job.beat(0, "a", 2 * S)
    job.takeover(0, "b", MINUTE)
    assert job.run(0).progress == Progress(3, 10, "pages")


def _taken_over() -> OneJob:
    job = _held()
    job.takeover(0, "b", 30 * S)
    return job


def _released() -> OneJob:
    job = _held()
    job.release(0, "a", S)
    return job


def _ended() -> OneJob:
    job = _held()
    job.finish(0, "a", S)
    return job


@pytest.mark.parametrize("command", [c.Heartbeat(0, "a"), c.Finish(0, "a", "failed"), c.Release(0, "a", True)])
@pytest.mark.parametrize(
    ("state", "refused"),
    [
        (_taken_over, c.Refused("running", "runner of b")),
        (_released, c.Refused("released", "runner of a")),
        (_ended, c.Refused("success", "runner of a")),
        (OneJob, c.Refused("unknown")),
    ],
)
def test_r14_all_else_is_refused_and_changes_nothing(
    state: type[OneJob], refused: c.Refused, command: c.Command
) -> None:
    """A token that is not, or no longer, the key opens nothing; the answer says how the run stands."""
    job = state()
    if isinstance(command, c.Release) and refused.status == "released":
        refused_or_known: c.Answer = c.Released(already=True)  # the same release again is no other
    else:
        refused_or_known = refused
    before = job.job
    assert job.ask(command, 31 * S) == refused_or_known
    assert job.job is before
    assert job.last.ended == ()


def test_r14_somebody_elses_token_is_refused() -> None:
    """A token that never won is as good as none."""
    assert _held().beat(0, "z", S) == c.Refused("running", "runner of a")


@pytest.mark.parametrize("at", [S, LEASE - 1, LEASE, 10 * MINUTE])
def test_r15_a_finish_needs_the_current_token_alone(at: int) -> None:
    """Also after the lease ran out, as long as nobody took the run."""
    job = _held()
    assert job.finish(0, "a", at, result={"pages": 3}) == c.Finished("success")
    past = job.past(0)
    assert (past.status, past.ended, past.result, past.error) == ("success", at, {"pages": 3}, None)
    assert job.job.runs == ()


def test_r15_a_failure_says_what_was_raised() -> None:
    """The error's type, message and the end of its traceback."""
    job = _held()
    error = ("ValueError", "no such page", "line 3")
    assert job.finish(0, "a", S, status="failed", error=error) == c.Finished("failed")
    assert job.past(0).error == error


def test_r16_a_release_ends_the_lease_at_once_and_for_good() -> None:
    """No heartbeat renews it, no finish ends it; the next attempt is up."""
    job = _released()
    lease = job.run(0).lease
    assert (lease.until, lease.released, lease.live(0)) == (S, True, False)
    assert job.beat(0, "a", S) == c.Refused("released", "runner of a")
    assert job.finish(0, "a", S) == c.Refused("released", "runner of a")
    assert isinstance(job.takeover(0, "b", S), c.Won)


def test_r16_a_release_is_told_at_once() -> None:
    """The change hints, so that a store that can push wakes the backups."""
    job = _held()
    job.release(0, "a", S)
    assert job.last.hint


def test_r16_a_released_run_is_in_nobodys_way() -> None:
    """Its lease is not live: the next slot starts, and interrupts it."""
    job = _released()
    assert isinstance(job.claim(20 * S, "b", 20 * S), c.Won)
    assert job.past(0).attempts[0].how == "handed-over"


def test_r17_many_heartbeats_of_one_job_fit_into_one_change() -> None:
    """Decided one on the other they are one document: two runs of a job beat in one commit."""
    job = _held(overlap="allow")
    job.claim(S, "b", S, overlap="allow")
    first = decide(job.job, c.Heartbeat(0, "a"), 9 * S)
    second = decide(first.job, c.Heartbeat(S, "b"), 9 * S)
    assert [run.lease.until for run in second.job.runs] == [39 * S, 39 * S]


def test_r18_every_attempt_leaves_a_record() -> None:
    """Number, runner, reason, fence, start, end, and how it ended; an expired one ended at its lease end."""
    job = _held(max_attempts=9)
    job.beat(0, "a", 5 * S)
    job.takeover(0, "b", 50 * S)
    job.release(0, "b", 51 * S, counts=False)
    job.takeover(0, "d", 52 * S)
    job.release(0, "d", 53 * S, counts=True)
    job.takeover(0, "e", 54 * S)
    job.finish(0, "e", 55 * S)
    assert job.past(0).attempts == (
        Attempt(1, "a", "runner of a", "schedule", 1, 0, 5 * S, 1, 35 * S, "expired"),
        Attempt(2, "b", "runner of b", "takeover", 2, 50 * S, 50 * S, 0, 51 * S, "handed-over"),
        Attempt(3, "d", "runner of d", "takeover", 3, 52 * S, 52 * S, 0, 53 * S, "unsure"),
        Attempt(4, "e", "runner of e", "takeover", 4, 54 * S, 54 * S, 0, 55 * S, "success"),
    )
    assert job.past(0).handed == 1


@pytest.mark.parametrize(("how", "told"), [(None, "failed"), ("timeout", "timeout")])
def test_r18_a_timeout_is_a_failure_that_says_so(how: c.How | None, told: str) -> None:
    """The run failed; its attempt ended by the timeout (R30a)."""
    job = _held()
    job.finish(0, "a", S, status="failed", how=how)
    assert (job.past(0).status, job.past(0).attempts[-1].how) == ("failed", told)


# --- answers that were lost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [2 * S, 11_999, 12 * S, 30 * S, 24 * 60 * MINUTE])
@pytest.mark.parametrize(
    "command",
    [
        c.Heartbeat(0, "a"),
        c.Finish(0, "a", "success"),
        c.Release(0, "a", counts=False),
        claim(0, "a"),
        claim(0, "b", max_attempts=1),
        claim(0, "b"),
    ],
)
def test_r40_a_decision_is_valid_for_a_sixth_of_the_lease_and_two_seconds_at_most(
    lease: int, command: c.Command
) -> None:
    """Every decision on a run: renewed, ended, released, interrupted, or won once more."""
    job = OneJob()
    job.ask(claim(0, "a", lease_ms=lease), 0)
    assert job.last.valid_ms == min(2 * S, lease // 6)
    if isinstance(command, c.Claim):
        command = claim(0, command.token, lease_ms=lease, max_attempts=command.max_attempts)
    decision = decide(job.job, command, lease)
    assert decision.job is not job.job
    assert decision.valid_ms == min(2 * S, lease // 6)


def test_r40a_the_claim_that_won_wins_again_when_asked_again() -> None:
    """The same attempt and fence, as often as its answer is lost; the lease lasts from the time of each answer."""
    job = OneJob()
    first = job.claim(0, "a", 0)
    assert job.claim(0, "a", S) == replace(first, until=first.until + S)
    assert job.claim(0, "a", 2 * S, create=False) == replace(first, until=first.until + 2 * S)


def test_r40a_a_claim_asked_again_renews_a_lease_that_ran_out_meanwhile() -> None:
    """The winner learns of it late, and nobody else took the run."""
    job = _held()
    assert job.claim(0, "a", MINUTE) == c.Won(1, "a", 1, MINUTE + LEASE, "schedule")
    assert job.run(0).lease.until == MINUTE + LEASE


def test_r40a_a_spent_token_never_wins_again() -> None:
    """Not after a hand-over, not after a takeover, and not while the run is alive."""
    job = _released()
    assert job.claim(0, "a", 2 * S) == c.Spent()
    job.takeover(0, "b", 3 * S)
    assert job.claim(0, "a", 4 * S) == c.Spent()
    assert job.takeover(0, "a", MINUTE) == c.Spent()


@pytest.mark.parametrize("status", ["success", "failed"])
def test_r40a_the_same_finish_again_is_answered_ok(status: str) -> None:
    """With the same outcome; another outcome, or another token, is refused."""
    job = _held()
    job.finish(0, "a", S, status=status)
    assert job.finish(0, "a", 9 * S, status=status) == c.Finished(status, already=True)
    other = "failed" if status == "success" else "success"
    assert job.finish(0, "a", 9 * S, status=other) == c.Refused(status, "runner of a")
    assert job.finish(0, "b", 9 * S, status=status) == c.Refused(status, "runner of a")
    assert job.past(0).ended == S


def test_r40a_the_same_release_again_is_answered_ok() -> None:
    """And it counts as one hand-over."""
    job = _released()
    assert job.release(0, "a", 9 * S) == c.Released(already=True)
    assert (job.run(0).handed, job.run(0).lease.until) == (1, S)


def test_r40a_a_lost_win_can_be_found_in_a_run_of_a_wish_too() -> None:
    """The wish is gone from the document, the run is there."""
    job = OneJob(Job(requests=(Request("w", 0, ""),)))
    first = job.claim(0, "a", 0, request="w")
    assert job.claim(0, "a", S, request="w") == replace(first, until=first.until + S)


def test_nothing_is_known_of_an_empty_job() -> None:
    """The first command to a job meets a document that says nothing."""
    assert decide(EMPTY, c.Heartbeat(0, "a"), 0).answer == c.Refused("unknown")
    assert decide(EMPTY, claim(0, "a", create=False), 0).answer == c.Gone()
