"""The rules are total, safe to ask again and lawful: over random stories of one job."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tenure.proof.branches import branch
from tenure.proof.laws import LOSING
from tenure.proof.onejob import OneJob, claim
from tenure.proof.smallworld import blurred, blurred_past
from tenure.proof.steps import Step
from tenure.rules import commands as c
from tenure.rules.job import Job, Progress, decode, decode_past, encode, encode_past, run_id
from tenure.rules.runs import Decision, decide, keep_until

S = 1_000
EVERY = 20 * S
WAITS = (*(0, 0, 0, 0, 1, S, S, 2 * S, 5 * S, 5 * S, 10 * S, 10 * S, 20 * S, 31 * S) * 2, 250 * S)


class Story:
    """A random story: old and new definitions, wishes, pauses, claim-only and pruning in any order."""

    def __init__(self, seed: int, *, laws: bool = True, back: bool = False) -> None:
        self.chance, self.back = random.Random(seed), back
        self.job = OneJob(laws=laws)
        self.at = 0
        self.tokens = 0
        self.told: list[tuple[int, str, str]] = []
        self.modes = self.chance.choice((("skip",), ("allow",), ("skip", "allow")))
        self.leases = self.chance.choice(((30 * S,), (2 * S, 30 * S), (30 * S, None)))

    def go(self, steps: int | None = None) -> Story:
        """So many commands, or a random number of them, each asked and kept."""
        for _ in range(self.chance.randrange(150) if steps is None else steps):
            self.job.ask(self.command(), self.at)
        return self

    def command(self) -> c.Command:
        """The next command; some time may pass before it."""
        wait = self.chance.choice(WAITS)
        self.at += -wait if self.back and self.chance.random() < 0.1 else wait
        kind = self.chance.random()
        if kind < 0.4:
            return self._claim()
        return self._holder() if kind < 0.85 else self._other()

    def _claim(self) -> c.Claim:
        slot, request = self.chance.choice(self._runs())
        token = f"t{self.tokens}"
        if self.told and self.chance.random() < 0.2:
            slot, request, token = self.chance.choice(self.told[-6:])
        else:
            self.tokens += 1
        self.told.append((slot, request, token))
        return claim(
            slot, token, request=request, create=self.chance.random() < 0.7, overlap=self.chance.choice(self.modes),
            lease_ms=self.chance.choice(self.leases), bound_ms=self.chance.choice((0, 60 * S, 60 * S)),
            max_attempts=self.chance.choice((2, 3, 9)),
        )  # fmt: skip

    def _runs(self) -> list[tuple[int, str]]:
        """The slots that are due, one that is not yet, what is unfinished, and wishes, known and unknown."""
        due = self.at - self.at % EVERY
        runs = [(due - EVERY * back, "") for back in (-1, 0, 0, 0, 0, 1, 2)]
        runs += [(run.slot, run.request) for run in self.job.job.runs for _ in range(3)]
        return runs + [(wish.at, wish.id) for wish in self.job.job.requests for _ in range(3)] + [(0, "unknown")]

    def _holder(self) -> c.Heartbeat | c.Finish | c.Release:
        holders = [(run.slot, run.request, run.lease.token) for run in self.job.job.runs]
        known = holders if holders and self.chance.random() < 0.6 else self.told[-8:]
        slot, request, token = self.chance.choice(known or [(0, "", "nobody")])
        kind = self.chance.choice("bbbffrrr")
        if kind == "b":
            progress = Progress(1, None, "note") if self.chance.random() < 0.2 else None
            return c.Heartbeat(slot, token, request, progress)
        if kind == "r":
            return c.Release(slot, token, self.chance.random() < 0.5, request)
        how = self.chance.choice((("success", None), ("failed", None), ("failed", "timeout")))
        return c.Finish(slot, token, how[0], request, {"n": 1}, ("E", "m", "t"), how[1])

    def _other(self) -> c.Command:
        past = sorted(self.job.history.values(), key=lambda one: (one.slot, one.id))
        heads = tuple(c.Head(one.id, one.slot, keep_until(one)) for one in past)
        return self.chance.choice((
            c.Register(self.chance.choice("xyz"), self.chance.choice("12"), "{}", 60 * S),
            c.Pause(),
            *[c.Resume()] * 4,
            c.Trigger(f"w{self.at // (5 * S)}", "me"),
            c.Trigger(f"w{self.at // (5 * S)}", "me"),
            c.Missed(0, EVERY, 2, "me"),
            c.Prune(heads, self.at - 200 * S),
            c.Prune(heads, None),
        ))  # fmt: skip

    def decided(self, command: c.Command) -> Decision:
        """What the rules say now, and nothing kept of it."""
        past = None
        if isinstance(command, c.Claim | c.Heartbeat | c.Finish | c.Release):
            past = self.job.history.get(run_id(command.slot, command.request))
        return decide(self.job.job, command, self.at, past)


SEEDS = st.integers(0, 2**32 - 1)


def test_the_stories_meet_every_branch() -> None:
    """A story too tame proves nothing: among a few hundred all that the rules can answer is met."""
    met: Counter[str] = Counter()
    for seed in range(300):
        story = Story(seed)
        for _ in range(150):
            command = story.command()
            before, history = story.job.job, story.job.history
            past = None
            if isinstance(command, c.Claim | c.Heartbeat | c.Finish | c.Release):
                past = history.get(run_id(command.slot, command.request))
            story.job.ask(command, story.at)
            met[branch(Step.of(before, command, story.at, story.job.last, past))] += 1
    assert {
        "R1 won", "R1 won, manual", "R2 running", "R3 next attempt, expired", "R3 next attempt, released", "R4 used up",
        "R5 newer run won", "R6 won, dead runs interrupted", "R7 overlap, new run", "R7 overlap, takeover",
        "R7 heartbeat blocked", "R8 late", "R8 late, wish dropped", "R9 superseded",
        "R10 ended", "R11 forgotten, floor", "R36 no such wish", "R37 paused", "R40a spent", "R40a won before",
        "R40a won before, lease renewed", "R46 claimed", "R46 claimed before", "R46 left by a lease", "early", "gone",
        "R13 renewed", "R13 renewed after expiry", "R15 finished", "R15 finished before", "R16 given back",
        "R16 handed over", "R16 released before", "R14 heartbeat refused, unknown", "prune: done",
    } <= set(met)  # fmt: skip


@settings(max_examples=500)
@given(SEEDS)
def test_every_story_keeps_the_laws(seed: int) -> None:
    """While time goes forward, whatever is asked and by whom."""
    story = Story(seed).go(100)
    event(f"{min(9, len(story.job.history))} ended, {len(story.job.job.runs)} not")


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_eighty_thousand_stories_keep_the_laws(part: int) -> None:
    """The same, for longer: twelve million commands."""
    for seed in range(part * 10_000, part * 10_000 + 10_000):
        Story(seed).go(150)


@settings(max_examples=500)
@given(SEEDS)
def test_every_command_has_an_answer_and_what_loses_changes_nothing(seed: int) -> None:
    """In any state, reached by a clock that went back at times, at any time; never an exception."""
    story = Story(seed, laws=False, back=True).go()
    for _ in range(10):
        command = story.command()
        decision = story.decided(command)
        event(type(decision.answer).__name__)
        late_wish = isinstance(decision.answer, c.Late) and isinstance(command, c.Claim) and command.request
        if isinstance(decision.answer, LOSING) and not late_wish:
            assert decision.job is story.job.job
            assert (decision.ended, decision.forget, decision.trim, decision.hint) == ((), (), None, False)
        assert decision == story.decided(command)


def _alike(first: c.Answer, second: c.Answer) -> bool:
    """Whether both say the same to whoever lost the first: the second may say that it is done already."""
    match first, second:
        case (c.Finished(status), c.Finished(again)):
            return status == again
        case (c.Released(), c.Released()) | (c.Noted(), c.Noted()):
            return True
        case (c.Registered(since), c.Registered(again)):
            return since == again
        case (c.Late(), c.Ended("forgotten")):
            return True  # the wish was dropped, and is asked for once more
    return first == second


def _blur(job: Job) -> Job:
    """What no rule reads is blurred; lease ends stay as they are, down to half a second."""
    return blurred(job, tuple(range(0, 7_000 * S, S // 2)), -(10**9))


@settings(max_examples=300)
@given(SEEDS)
def test_every_command_may_be_asked_again(seed: int) -> None:
    """Its reply was lost: the same command is answered alike at that time, and changes nothing more."""
    story = Story(seed, laws=False).go()
    for _ in range(10):
        command = story.command()
        first = story.job.ask(command, story.at)
        once = story.job.job
        again = story.decided(command)
        assert _alike(first, again.answer)
        assert again.ended == ()
        # A heartbeat, or a win told again, is counted twice, which no rule reads; what is forgotten is named again.
        assert _blur(again.job) == _blur(once)
        if not isinstance(command, c.Heartbeat | c.Prune) and not isinstance(first, c.Won):
            assert again.job is once


@settings(max_examples=300)
@given(SEEDS)
def test_what_is_stored_comes_back_the_same(seed: int) -> None:
    """Every document and every record that the rules can make."""
    job = Story(seed, back=True, laws=False).go().job
    assert decode(encode(job.job)) == job.job
    for past in job.history.values():
        assert decode_past(encode_past(past)) == past


@settings(max_examples=300)
@given(SEEDS)
def test_no_rule_reads_what_small_worlds_blur(seed: int) -> None:
    """Blurred before or blurred after, a decision is the same: exploring blurred documents loses nothing."""
    story = Story(seed, laws=False).go()
    job, history = story.job.job, story.job.history
    dull_job, dull_history = _blur(job), {run: blurred_past(past, ages=True) for run, past in history.items()}
    for _ in range(10):
        command = story.command()
        story.at -= story.at % S
        if isinstance(command, c.Claim):
            command = replace(command, slot=command.slot - command.slot % S)
        story.job.job, story.job.history = job, history
        sharp = story.decided(command)
        story.job.job, story.job.history = dull_job, dull_history
        dull = story.decided(command)
        assert type(dull.answer) is type(sharp.answer)
        assert _blur(dull.job) == _blur(sharp.job)
        ended = [[blurred_past(past, ages=True) for past in one.ended] for one in (dull, sharp)]
        assert ended[0] == ended[1]
        assert (dull.forget, dull.trim, dull.valid_ms) == (sharp.forget, sharp.trim, sharp.valid_ms)
