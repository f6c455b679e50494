import asyncio
from dataclasses import replace

import pytest

from tenure.proof.conformance import QUESTIONS, NotAskedError, random_sequences, sit
from tenure.stores.contract import Found, Outcome, Verdict
from tenure.stores.memory import MemoryStore


@pytest.mark.parametrize("question", QUESTIONS)
async def test_r40_question(hall, question):
    """Each question of the exam on each store."""
    try:
        await QUESTIONS[question](hall)
    except NotAskedError:
        assert not hall.transactions


def test_r40_random_sequences(hall):
    """Random reads, changes and commands end as they do in memory."""
    random_sequences(hall, examples=40)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_r40_many_random_sequences(hall):
    """The same, many more."""
    random_sequences(hall, examples=3_000)


class Forgetful(MemoryStore):
    """A store that answers DONE and forgets every third change."""

    count = 0

    def _apply(self, change, now):
        self.count += 1
        return Outcome.DONE if self.count % 3 == 0 else super()._apply(change, now)


class Hasty(MemoryStore):
    """A store that knows no deadlines."""

    async def commit(self, changes):
        return await super().commit([replace(one, deadline=None) for one in changes])


class Blind(MemoryStore):
    """A store that finds no history."""

    def _found(self, ask):
        found = super()._found(ask)
        return Found(found.version, found.body)


class Generous(MemoryStore):
    """A store that tells two rivals that they won."""

    async def commit(self, changes):
        verdict = await super().commit(changes)
        return Verdict(verdict.now, tuple(Outcome.DONE for _ in verdict.outcomes))


@pytest.mark.parametrize("planted", [Forgetful, Hasty, Blind, Generous])
async def test_r40_the_exam_finds_a_bad_store(planted):
    """The exam fails a store with a fault, or it would prove nothing."""

    class Hall:
        transactions = False

        async def fresh(self):
            return planted()

        async def second(self, store):
            return store

    report = await sit(Hall())
    assert not report.passed
    assert "FAILED" in str(report)


async def test_r40_the_report_of_a_good_store(hall):
    """The report names each question, and passes."""
    names = ["versions_grow_by_one", "a_transaction_commits_both"]
    report = await sit(hall, names)
    assert report.passed, str(report)
    assert len(str(report).splitlines()) >= 3


def test_r40_random_sequences_find_a_bad_store():
    """A store that differs from the yardstick is found by chance too."""

    class Hall:
        transactions = False

        async def fresh(self):
            return Forgetful()

        async def second(self, store):
            return store

    with pytest.raises(BaseException) as told:  # noqa: PT011 - hypothesis may report several at once
        random_sequences(Hall(), examples=100)
    assert isinstance(told.value, AssertionError | BaseExceptionGroup)
    assert not isinstance(told.value, asyncio.CancelledError)
