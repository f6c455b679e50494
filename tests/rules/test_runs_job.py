"""The rules of the job: definitions (R29a), wishes (R36), pauses (R37) and claim-only jobs (R46)."""

from __future__ import annotations

from tenure.proof.onejob import OneJob, claim
from tenure.rules import commands as c
from tenure.rules.instant import DAY
from tenure.rules.job import Attempt, Definition, Job, Mark, Past, Request
from tenure.rules.runs import KEPT, REQUESTS, SCHEDULES, TAKEN, TOLERANCE, decide
from tenure.rules.timers import recovery

S = 1_000
LEASE = 30 * S
BOUND = 60 * S
MINUTE = 60 * S
# The age from which on no claim can ask for a slot any more (R11).
OLD = BOUND + TOLERANCE + KEPT


def _register(schedule: str, fingerprint: str = "1", *, anew: bool = False) -> c.Register:
    return c.Register(schedule, fingerprint, f'{{"schedule":"{schedule}"}}', BOUND, anew)


def test_r29a_when_a_schedule_was_first_seen_is_kept() -> None:
    """However often instances start; a changed expression has a first time of its own."""
    job = OneJob()
    assert job.ask(_register("0 3 * * *"), 5) == c.Registered(5, drift=False)
    before = job.job
    assert job.ask(_register("0 3 * * *"), 9) == c.Registered(5, drift=False)
    assert job.job is before
    assert job.ask(_register("0 4 * * *"), 11) == c.Registered(11, drift=False)
    assert (job.job.since("0 3 * * *"), job.job.since("0 4 * * *")) == (5, 11)
    assert job.job.definition == Definition("0 4 * * *", "1", '{"schedule":"0 4 * * *"}')


def test_r29a_an_old_and_a_new_definition_alternate_in_a_deploy() -> None:
    """Each keeps the time at which it was first seen."""
    job = OneJob()
    for at, schedule, since in ((1, "old", 1), (2, "new", 2), (3, "old", 1), (4, "new", 2)):
        assert job.ask(_register(schedule), at) == c.Registered(since, drift=False)
        assert job.job.since(schedule) == since


def test_r29a_of_several_instances_that_are_told_the_same_the_first_says_since_when() -> None:
    """Going back on purpose begins a schedule's time anew, once: a repeated or later command finds it changed."""
    job = OneJob()
    steps = ((1, "old", False, 1), (2, "new", True, 2), (3, "new", True, 2), (4, "old", True, 4), (5, "old", True, 4))
    for at, schedule, anew, since in (*steps, (6, "old", False, 4)):
        assert job.ask(_register(schedule, anew=anew), at) == c.Registered(since, drift=False)


def test_r29a_options_drift_and_reset_nothing() -> None:
    """A fingerprint that differs is reported; the schedule was seen when it was seen."""
    job = OneJob()
    job.ask(_register("0 3 * * *", "1"), 5)
    assert job.ask(_register("0 3 * * *", "2"), 6) == c.Registered(5, drift=True)


def test_r29a_a_few_schedules_are_remembered() -> None:
    """The newest of them: a document stays small."""
    job = OneJob()
    for at in range(SCHEDULES + 2):
        job.ask(_register(f"schedule {at}"), at)
    assert [at for _, at in job.job.seen] == [2, 3, 4, 5]


def test_r29a_nothing_is_known_of_a_job_that_was_never_registered() -> None:
    """Then no slot is caught up."""
    assert Job().since("0 3 * * *") is None


def _wished(at: int = 0) -> OneJob:
    job = OneJob()
    assert job.ask(c.Trigger("w", "me"), at) == c.Noted(changed=True)
    assert job.last.hint
    return job


def test_r36_a_wish_stands_in_the_document_until_it_is_claimed() -> None:
    """Whoever sees it first runs it, once, with a fence; it is no slot."""
    job = _wished(5)
    assert job.job.requests == (Request("w", 5, "me"),)
    assert job.claim(5, "a", 6, request="w") == c.Won(1, "a", 1, 6 + LEASE, "manual")
    assert job.job.requests == ()
    assert job.job.newest is None
    assert job.claim(5, "b", 7, request="w") == c.Running("runner of a", 1, 6 + LEASE)
    job.finish(5, "a", 8, request="w")
    assert job.claim(5, "b", 9, request="w") == c.Ended("success")


def test_r36_a_wish_told_twice_is_one_wish() -> None:
    """While it waits, while it runs, and when it has ended: the answer to its teller may have been lost."""
    job = _wished()
    for at in (1, 3, 5):
        before = job.job
        assert job.ask(c.Trigger("w", "me"), at) == c.Noted(changed=True)
        assert job.job is before
        if at == 1:
            job.claim(0, "a", 2, request="w")
        if at == 3:
            job.finish(0, "a", 4, request="w")
    assert job.job.requests == ()


def test_r36_a_few_wishes_are_remembered_each_once() -> None:
    """The last that were claimed, however often one of them was taken over."""
    job = OneJob()
    for number in range(TAKEN + 2):
        job.ask(c.Trigger(f"w{number}", "me"), 0)
        job.claim(0, f"t{number}", 0, request=f"w{number}")
        job.release(0, f"t{number}", 0, request=f"w{number}")
        job.takeover(0, f"u{number}", 0, request=f"w{number}")
        job.finish(0, f"u{number}", 0, request=f"w{number}")
    assert job.job.taken == tuple(f"w{number}" for number in range(2, TAKEN + 2))


def test_r36_a_wish_that_runs_is_known_however_many_came_after_it() -> None:
    """A handler may take longer than the wishes that are remembered."""
    job = _wished()
    job.claim(0, "m", 0, request="w", overlap="allow")
    for number in range(TAKEN):
        job.ask(c.Trigger(f"w{number}", "me"), 1)
        job.claim(1, f"t{number}", 1, request=f"w{number}", overlap="allow")
    assert "w" not in job.job.taken
    before = job.job
    assert job.ask(c.Trigger("w", "me"), 2) == c.Noted(changed=True)
    assert job.job is before


def test_r36_a_wish_made_at_the_very_time_of_a_slot_is_another_run() -> None:
    """Both stand in the document; what happens to one leaves the other as it was."""
    job = _wished()
    job.claim(0, "a", 0, overlap="allow")
    job.claim(0, "m", 0, request="w", overlap="allow")
    job.beat(0, "m", S, request="w")
    assert [(run.id, run.lease.until) for run in job.job.runs] == [("0", LEASE), ("0#w", S + LEASE)]
    job.finish(0, "a", 2 * S)
    assert [run.id for run in job.job.runs] == ["0#w"]


def test_r36_a_claim_of_an_unknown_wish_runs_nothing() -> None:
    """It was claimed and forgotten, or never told."""
    assert OneJob().claim(0, "a", 0, request="w") == c.Ended("forgotten")


def test_r36_a_wish_obeys_overlap_and_pause() -> None:
    """And slots obey a manual run."""
    job = _wished()
    job.claim(0, "a", 0)
    assert job.claim(0, "b", 1, request="w") == c.Overlaps(0, "", "runner of a", LEASE)
    job.finish(0, "a", 2)
    job.ask(c.Pause(), 3)
    assert job.claim(0, "b", 4, request="w") == c.Paused(3)
    job.ask(c.Resume(), 5)
    assert isinstance(job.claim(0, "b", 6, request="w"), c.Won)
    assert job.claim(20 * S, "d", 20 * S) == c.Overlaps(0, "w", "runner of b", 6 + LEASE)


def test_r36_a_wish_neither_supersedes_nor_is_superseded() -> None:
    """It may be claimed after a newer slot, and an older slot after it; a dead one goes on after a newer slot."""
    job = _wished(10 * S)
    job.claim(20 * S, "a", 20 * S)
    job.finish(20 * S, "a", 21 * S)
    assert isinstance(job.claim(10 * S, "b", 22 * S, request="w"), c.Won)
    job.release(10 * S, "b", 23 * S, request="w")
    assert isinstance(job.takeover(10 * S, "d", 24 * S, request="w"), c.Won)


def test_r36_a_dead_manual_run_is_interrupted_by_a_slot_that_is_won() -> None:
    """Also one that was wished for after that slot."""
    job = _wished(25 * S)
    job.claim(25 * S, "a", 25 * S, request="w")
    job.release(25 * S, "a", 26 * S, request="w")
    assert isinstance(job.claim(20 * S, "b", 27 * S), c.Won)
    assert job.past(25 * S, "w").status == "interrupted"


def test_r36_a_wish_that_came_too_late_is_dropped() -> None:
    """With a mark; else every instance would go on asking for it."""
    job = _wished()
    assert job.claim(0, "a", BOUND + TOLERANCE + 1, request="w") == c.Late(1)
    assert job.job.requests == ()
    assert job.marks[-1] == Mark(0, 0, 1, "late", "", BOUND + TOLERANCE + 1, "runner of a", "w")
    assert job.claim(0, "b", BOUND + TOLERANCE + 2, request="w") == c.Ended("forgotten")


def test_r36_only_so_many_wishes_wait() -> None:
    """One more is refused, and those of yesterday make room."""
    assert (REQUESTS, TAKEN) == (16, 8)
    job = OneJob()
    for number in range(REQUESTS):
        assert job.ask(c.Trigger(f"w{number}", "me"), number) == c.Noted(changed=True)
    assert job.ask(c.Trigger("more", "me"), DAY - 1) == c.Noted(changed=False)
    assert job.ask(c.Trigger("more", "me"), DAY + 2) == c.Noted(changed=True)
    assert [request.id for request in job.job.requests] == [f"w{number}" for number in range(3, REQUESTS)] + ["more"]


def test_r36a_slots_nobody_was_there_for_are_a_mark() -> None:
    """From, to, how many and who says so."""
    job = OneJob()
    assert job.ask(c.Missed(0, 5 * MINUTE, 6, "me"), DAY) == c.Noted(changed=True)
    assert job.marks == [Mark(0, 5 * MINUTE, 6, "missed", "", DAY, "me")]
    assert job.last.job is job.job


def test_r37_a_pause_holds_new_runs_for_all() -> None:
    """It is kept with its time; asked again it changes nothing, and so does a resume."""
    job = OneJob()
    assert job.ask(c.Resume(), 1) == c.Noted(changed=False)
    assert job.ask(c.Pause(), 5) == c.Noted(changed=True)
    assert job.last.hint
    assert job.ask(c.Pause(), 6) == c.Noted(changed=False)
    assert job.claim(0, "a", 7) == c.Paused(5)
    assert job.ask(c.Resume(), 8) == c.Noted(changed=True)
    assert job.last.hint
    assert isinstance(job.claim(0, "a", 9), c.Won)


def test_r37_a_pause_stops_nothing_that_runs() -> None:
    """Heartbeats, finishes and takeovers go on, also by a claim that would have been a new one."""
    job = OneJob()
    job.claim(0, "a", 0)
    job.ask(c.Pause(), 1)
    assert isinstance(job.beat(0, "a", 2), c.Renewed)
    assert isinstance(job.claim(0, "b", MINUTE), c.Won)
    assert job.finish(0, "b", MINUTE) == c.Finished("success")


def test_r46_the_winner_of_a_claim_only_slot_is_recorded_as_ended() -> None:
    """A second claimer hears so; the winner, if its answer was lost, hears that it won."""
    job = OneJob()
    assert job.claim(0, "a", 5, lease_ms=None) == c.Won(1, "a", 1, 5, "schedule")
    assert job.job.runs == ()
    attempt = Attempt(1, "a", "runner of a", "schedule", 1, 5, 5, 0, 5, "claimed")
    assert job.past(0) == Past(0, "", "claimed", 5, 0, 0, (attempt,))
    assert job.claim(0, "b", 6, lease_ms=None) == c.Ended("claimed")
    again = job.claim(0, "a", 7, lease_ms=None)
    assert again == c.Won(1, "a", 1, 7, "schedule")
    assert job.takeover(0, "b", DAY, lease_ms=None) == c.Ended("claimed")


def test_r46_claim_only_knows_no_order_and_no_overlap() -> None:
    """R6 and R9 do not apply; early, late, pause and the floor do."""
    job = OneJob()
    job.claim(20 * S, "b", 20 * S, lease_ms=None)
    assert isinstance(job.claim(0, "a", 21 * S, lease_ms=None), c.Won)
    assert job.job.newest == 20 * S
    assert job.claim(MINUTE, "d", 21 * S, lease_ms=None) == c.Early(39 * S)
    assert job.claim(S, "d", S + BOUND + TOLERANCE + 1, lease_ms=None) == c.Late(1)
    job.ask(c.Pause(), 22 * S)
    assert job.claim(S, "d", 22 * S, lease_ms=None) == c.Paused(22 * S)
    job.ask(c.Resume(), 22 * S)
    job.prune(20 * S + OLD + 1)
    assert job.job.floor == 20 * S
    assert job.claim(S, "d", 30 * S, lease_ms=None) == c.Ended("forgotten")


def test_r46_a_run_that_a_lease_left_is_not_taken_over_by_claim_only() -> None:
    """A deploy turned the lease off: while it is alive it runs, then it is interrupted."""
    job = OneJob()
    job.claim(0, "a", 0)
    assert job.claim(0, "b", S, lease_ms=None) == c.Running("runner of a", 1, LEASE)
    assert job.claim(0, "b", LEASE, lease_ms=None) == c.Ended("interrupted")


def test_r46_claim_only_of_a_wish() -> None:
    """It is recorded under its wish, and the wish is gone."""
    job = _wished()
    assert isinstance(job.claim(0, "a", 1, request="w", lease_ms=None), c.Won)
    assert (job.past(0, "w").status, job.job.requests, job.job.newest) == ("claimed", (), None)


def test_a_losing_decision_is_the_very_same_document() -> None:
    """So that nothing is written: a few of them, beside those that a search meets."""
    job = OneJob()
    job.claim(0, "a", 0)
    for command in (claim(0, "b"), claim(20 * S, "b"), c.Heartbeat(0, "z"), c.Resume(), c.Prune(())):
        assert decide(job.job, command, 20 * S).job is job.job


def test_r29a_a_changed_expression_runs_nothing_of_the_past_while_the_old_one_comes_back() -> None:
    """A deploy at 10:00 from `0 3` to `0 4`; an old instance starts again at 11:00; a new one wakes at 12:00."""
    hour = 60 * MINUTE
    job = OneJob()
    job.ask(_register("0 3 * * * UTC"), 0)
    job.ask(_register("0 4 * * * UTC"), 10 * hour)
    job.ask(_register("0 3 * * * UTC"), 11 * hour)
    found = recovery(
        job.job, 4 * hour, None, None, 12 * hour, schedule="0 4 * * * UTC", catch_up_ms=12 * hour, max_late_ms=MINUTE
    )
    assert found.catch_up is None
