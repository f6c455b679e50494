"""The laws themselves: each is broken by hand once, and says so; a history that keeps them all passes."""

# Tokens of tests are no secrets.
# ruff: noqa: S106, S107

from __future__ import annotations

from dataclasses import replace

import pytest

from tenure.proof.chronicle import HISTORY_LAWS, Chronicle, check_history
from tenure.proof.laws import ANSWER_LAWS, CHANGE_LAWS, check
from tenure.proof.onejob import OneJob, claim
from tenure.proof.steps import Breach, Step, won
from tenure.rules import commands as c
from tenure.rules.job import EMPTY, Job, Past, Run
from tenure.rules.runs import decide

S = 1_000
LEASE = 30 * S


class Recorder(OneJob):
    """One job whose steps are kept, as a recorder of a real store would keep them."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def ask(self, command: c.Command, at: int) -> c.Answer:
        before = self.job
        answer = super().ask(command, at)
        self.steps.append(Step.of(before, command, at, self.last, at=at))
        return answer


def _story() -> list[Step]:
    """A run that is taken over, handed over and finished; the next slot is skipped, the one after is won."""
    job = Recorder()
    job.claim(0, "a", 0)
    job.beat(0, "a", 5 * S)
    job.takeover(0, "b", 35 * S)
    job.claim(60 * S, "x", 60 * S)
    job.release(0, "b", 61 * S)
    job.takeover(0, "d", 62 * S)
    job.finish(0, "d", 63 * S)
    job.claim(120 * S, "e", 120 * S)
    return job.steps


def _job(*runs: Run, **fields: object) -> Job:
    return Job(**{"newest": 0, "fence": 1, **fields}, runs=runs)


def _run(slot: int = 0, *, until: int = LEASE, **fields: object) -> Run:
    job = OneJob(laws=False)
    job.claim(slot, "a", slot)
    run = job.run(slot)
    return run._replace(lease=run.lease._replace(until=until, **fields))


def _past(run: Run, status: str = "success") -> Past:
    return Past(run.slot, run.request, status, 1, LEASE, 0, run.attempts)


def _broken(step: Step) -> set[str]:
    """The numbers of all laws of one step that are broken."""
    return {name for name, law in (CHANGE_LAWS | ANSWER_LAWS).items() if law(step) is not None}


def _step(before: Job, command: c.Command, answer: c.Answer, after: Job, now: int = S, **more: object) -> Step:
    return Step(before, command, now, answer, after, **more)


def _won(attempt: int = 1, token: str = "b", until: int = S + LEASE) -> c.Won:
    return c.Won(attempt, token, attempt, until, "schedule")


def test_a_lawful_history_passes() -> None:
    """The laws hold over a story with a takeover, a hand-over, an overlap and an end."""
    told = check_history(_story())
    assert told.newest == 120 * S
    assert told.fence == 4
    assert told.runs["0"].won == 3
    assert told.runs["0"].handed == 1
    assert told.runs["0"].ended == "success"


def test_a_step_is_frozen_and_says_whether_it_changed_anything() -> None:
    """What loses is a step too, and no change."""
    effective = [step.effective for step in _story()]
    assert effective == [True, True, True, False, True, True, True, True]
    with pytest.raises(AttributeError):
        _story()[0].now = 1  # type: ignore[misc]


def test_a_claim_that_won_before_wins_nothing_again() -> None:
    """The same claim, asked again, begins no attempt."""
    job = Recorder()
    job.claim(0, "a", 0)
    job.claim(0, "a", 1)
    assert [won(step) is not None for step in job.steps] == [True, False]


def test_a_breach_names_the_law_the_sentence_and_the_step() -> None:
    """Whoever meets it can read what happened."""
    story = _story()
    bad = replace(story[1], after=story[1].after._replace(fence=7))
    with pytest.raises(Breach) as caught:
        check(bad)
    assert caught.value.law == "S12"
    assert caught.value.step is bad
    assert str(caught.value) == "S12: the fence went from 1 to 7 with no attempt won"
    check(bad, without=frozenset(("S12", "R40")))


RUN = _run()
LIVE, DEAD, GIVEN_BACK = _job(RUN), _job(_run(until=0)), _job(_run(until=0, released=True))
NEXT = _run(60 * S)
OTHER = RUN.attempts[-1]._replace(number=2, token="b", fence=2)
TAKEN = _job(
    RUN._replace(attempts=(*RUN.attempts, OTHER), lease=RUN.lease._replace(token="b", until=S + LEASE)), fence=2
)
TAKE = claim(0, "b", create=False)
BEAT, END = c.Heartbeat(0, "a"), c.Finish(0, "a", "success")

BROKEN = [
    ("I2", _step(DEAD, TAKE, _won(2), _job(RUN._replace(attempts=(OTHER,)), fence=2))),
    ("I2", _step(DEAD, TAKE, _won(2), _job(RUN._replace(attempts=(*RUN.attempts, *RUN.attempts)), fence=2))),
    ("I2", _step(LIVE, BEAT, c.Renewed(0), _job(RUN._replace(attempts=(RUN.attempts[0]._replace(token="z"),))))),
    ("I3", _step(LIVE, BEAT, c.Renewed(0), _job())),
    ("I3", _step(LIVE, END, c.Finished("success"), _job(RUN), ended=(_past(RUN),))),
    ("I3", _step(LIVE, replace(END, token="z"), c.Finished("success"), _job(), ended=(_past(RUN),))),
    ("I3", _step(_job(), END, c.Finished("failed"), _job(), ended=(_past(RUN),), past=_past(RUN, "failed"))),
    ("I4", _step(EMPTY, claim(0, "a", create=False), _won(token="a"), LIVE)),
    ("I4", _step(EMPTY, claim(0, "a"), _won(token="a"), LIVE, now=70 * S + 1)),
    ("I4", _step(EMPTY, claim(60 * S, "a"), _won(token="a"), _job(NEXT), now=60 * S - 1)),
    ("I4", _step(_job(newest=60 * S), claim(0, "a"), _won(token="a"), LIVE)),
    ("I4", _step(_job(), claim(0, "a"), _won(token="a"), LIVE, past=_past(RUN))),
    ("S4", _step(LIVE, replace(BEAT, token="z"), c.Renewed(0), _job(_run(until=60 * S)))),
    ("S8", _step(LIVE, TAKE, _won(2), TAKEN)),
    ("S9", _step(GIVEN_BACK, BEAT, c.Renewed(S + LEASE), _job(_run(until=S + LEASE)))),
    ("S10", _step(GIVEN_BACK, END, c.Finished("success"), _job(), ended=(_past(RUN),))),
    ("S11", _step(LIVE, TAKE, c.Ended("interrupted"), _job(), ended=(_past(RUN, "interrupted"),))),
    ("S11", _step(DEAD, TAKE, c.Ended("interrupted"), _job(), ended=(_past(RUN, "interrupted"),))),
    ("S11", _step(DEAD, BEAT, c.Renewed(0), _job(), ended=(_past(RUN, "interrupted"),))),
    ("S12", _step(DEAD, TAKE, _won(2), TAKEN._replace(fence=1))),
    ("S12", _step(LIVE, BEAT, c.Renewed(0), _job(RUN, fence=2))),
    ("S14", _step(LIVE, BEAT, c.Renewed(0), _job(_run(until=60 * S)), at=4 * S, deadline=3 * S)),
    ("S15", _step(LIVE, BEAT, c.Renewed(60 * S), LIVE)),
    ("S15", _step(EMPTY, claim(0, "a"), _won(token="a"), EMPTY)),
    ("S15", _step(LIVE, c.Release(0, "a", False), c.Released(), LIVE)),
    ("S15", _step(LIVE, END, c.Finished("success"), LIVE)),
    ("S15", _step(_job(), END, c.Refused("success"), _job(), past=_past(RUN))),
    ("R2", _step(DEAD, TAKE, c.Running("", 1, 0), DEAD)),
    ("R2", _step(DEAD, TAKE, c.Gone(), DEAD)),
    ("R5", _step(DEAD._replace(newest=60 * S), TAKE, _won(2), TAKEN._replace(newest=60 * S))),
    ("R6", _step(DEAD, claim(60 * S, "b"), _won(), _job(_run(until=0), NEXT, fence=2), now=60 * S)),
    ("R11", _step(_job(), c.Prune((c.Head("0", 0, 0),)), c.Noted(True), _job(), now=70 * S, forget=("0",))),
    ("R11", _step(_job(), c.Prune((c.Head("0", 0, 99 * S),)), c.Noted(True), _job(floor=0), 98 * S, forget=("0",))),
    ("R11", _step(_job(), c.Prune((c.Head("0", 0, 0),)), c.Noted(True), _job(), now=98 * S, forget=("0",))),
    ("R11", _step(_job(), BEAT, c.Refused("unknown"), _job(), forget=("0",))),
    ("R11", _step(_job(floor=5), c.Prune(()), c.Noted(True), _job(floor=4))),
    ("R13", _step(LIVE, BEAT, c.Refused("running"), LIVE)),
    ("I8a", _step(LIVE, claim(0, BEAT.token), c.Running("a", 1, LEASE), LIVE)),
    ("I9", _step(LIVE, claim(0, BEAT.token), c.Won(1, BEAT.token, 1, LEASE, "schedule"), LIVE, now=5 * S)),
    ("R14", _step(LIVE, TAKE, c.Running("", 1, LEASE), _job(RUN, bound=1))),
    ("R37", _step(_job(paused=0), claim(60 * S, "b"), _won(), _job(NEXT, paused=0, fence=2), now=60 * S)),
    ("R40", _step(LIVE, BEAT, c.Renewed(LEASE), _job(RUN, bound=1))),
    ("R40", _step(_job(RUN, NEXT), BEAT, c.Renewed(LEASE), _job(RUN, NEXT._replace(handed=1)))),
]


@pytest.mark.parametrize(("law", "step"), BROKEN, ids=[f"{law}-{place}" for place, (law, _) in enumerate(BROKEN)])
def test_each_law_of_one_step_can_be_broken(law: str, step: Step) -> None:
    """A law that nothing breaks guards nothing."""
    assert law in _broken(step)


def test_every_law_of_one_step_stands_in_the_table() -> None:
    """None was left out above."""
    assert {law for law, _ in BROKEN} == set(CHANGE_LAWS) | set(ANSWER_LAWS)


def _takes(told: Chronicle, job: Job, command: c.Command, now: int) -> Job:
    decision = decide(job, command, now)
    told.take(Step.of(job, command, now, decision))
    return decision.job


def _first_won(slot: int = 0, token: str = "a", **options: object) -> tuple[Chronicle, Job]:
    told = Chronicle()
    return told, _takes(told, EMPTY, claim(slot, token, **options), slot)


def _caught(told: Chronicle, step: Step) -> set[str]:
    return {name for name, law in HISTORY_LAWS.items() if law(told, step) is not None}


def test_i1_two_live_leases_after_a_win_by_skip() -> None:
    """I1: at a step, and by time alone where a recorder's clock goes back."""
    told, job = _first_won()
    both = job._replace(runs=(*job.runs, NEXT._replace(lease=NEXT.lease._replace(until=99 * S))))
    assert "I1" in _caught(told, _step(job, BEAT, c.Renewed(0), both))
    told.job = both
    with pytest.raises(Breach, match="I1: 2 leases are live at once: runs 0, 60000"):
        told.rest(29 * S)
    told.rest(31 * S)
    told.mode = "allow"
    told.rest(29 * S)


def test_i2_attempts_go_on_after_their_record_was_lost() -> None:
    """I2: attempt 1 of a run whose attempt 1 was told before, a token that won elsewhere, a fence again."""
    told, job = _first_won()
    told.runs.clear()
    again = decide(EMPTY, claim(60 * S, "a"), 60 * S)
    assert "I2" in _caught(told, Step.of(EMPTY, claim(60 * S, "a"), 60 * S, again))
    again = decide(EMPTY, claim(60 * S, "b"), 60 * S)
    assert "I2" in _caught(told, Step.of(EMPTY, claim(60 * S, "b"), 60 * S, again))
    told, job = _first_won()
    skipped = decide(job, TAKE, 40 * S)
    told.runs.clear()
    assert "I2" in _caught(told, Step.of(job, TAKE, 40 * S, skipped))


def test_i3_nothing_changes_a_run_after_its_end() -> None:
    """I3: not even where the document knows nothing of the end."""
    told, job = _first_won()
    ended = _takes(told, job, END, S)
    assert _caught(told, _step(ended, BEAT, c.Renewed(0), job)) >= {"I3"}
    assert _caught(told, _step(ended, END, c.Finished("failed"), ended, ended=(_past(RUN, "failed"),))) >= {"I3"}


def test_i4_no_slot_is_first_started_twice() -> None:
    """I4, S13: whatever was pruned meanwhile."""
    told, job = _first_won(overlap="allow")
    ended = _takes(told, job, END, S)
    again = decide(Job(fence=1), claim(0, "b"), 2 * S)
    assert "I4" in _caught(told, Step.of(ended, claim(0, "b"), 2 * S, again))


def test_i5_slots_are_first_won_in_their_order() -> None:
    """I5: under skip, and not for claims that allow overlaps."""
    told, job = _first_won(60 * S)
    _takes(told, job, c.Finish(60 * S, "a", "success"), 61 * S)
    for overlap, broken in (("skip", True), ("allow", False)):
        older = claim(S, "b", overlap=overlap)
        step = Step.of(EMPTY, older, 62 * S, decide(Job(fence=1), older, 62 * S))
        assert ("I5" in _caught(told, step)) is broken


def test_i6_attempts_that_count_stay_within_bounds() -> None:
    """I6: counted by the hand-overs that were told, not by what the document says of them."""
    told, job = _first_won(max_attempts=1)
    lying = job._replace(runs=(job.runs[0]._replace(handed=1),))
    take = replace(TAKE, max_attempts=1)
    assert "I6" in _caught(told, Step.of(lying, take, 40 * S, decide(lying, take, 40 * S)))
    handed = _takes(told, job, c.Release(0, "a", counts=False), S)
    assert "I6" not in _caught(told, Step.of(handed, take, 40 * S, decide(handed, take, 40 * S)))


def test_r36_a_wish_is_run_once() -> None:
    """R36: under whatever time it was told again."""
    told = Chronicle()
    job = _takes(told, EMPTY, c.Trigger("w", "me"), 0)
    _takes(told, job, claim(0, "a", request="w"), 0)
    again = Job(requests=decide(EMPTY, c.Trigger("w", "me"), 5).job.requests)
    step = Step.of(again, claim(5, "b", request="w"), 5, decide(again, claim(5, "b", request="w"), 5))
    assert "R36" in _caught(told, step)


def test_s16_a_change_that_the_history_does_not_tell_of() -> None:
    """S16: a recorder that lost a step is found out."""
    story = _story()
    with pytest.raises(Breach, match="S16"):
        check_history([story[0], *story[2:]])


def test_a_copy_of_a_chronicle_stands_alone() -> None:
    """What one hears the other does not."""
    told, job = _first_won()
    copy = told.copy()
    assert copy.key() == told.key()
    _takes(copy, job, END, S)
    assert copy.key() != told.key()
    assert told.job is job
