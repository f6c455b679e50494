# ruff: noqa: S106 - tokens of runs are no passwords
"""The checker of histories is sharp: a record of a sound history passes, and each fault planted in it is found."""

import asyncio
import dataclasses

import pytest
from history import GRACE_MS, Conditions, Kept, check
from recording import clocks, packed, recording, unpacked

from tenure.proof.steps import Breach
from tenure.rules import commands as c
from tenure.rules.job import Mark, decode_past
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask
from tenure.stores.memory import MemoryStore

DOCUMENT = "job:work"
EVERY, LEASE, START = 10_000, 3_000, 1_000_000
ALL = 1 << 53


class Scene:
    """Three slots: the first is taken over from `a`, which died; the others end at once, with `b` and with `c`."""

    def __init__(self):
        self.lines, self.now = [], START
        self.store = MemoryStore(clock=lambda: self.now)
        self.ledger = Ledger(self.store, StoreClock(SystemClock()))

    def tell(self, what, name="test", **facts):
        self.lines.append({"what": what, "name": name, **clocks(), "boot": self.now / 1000, **facts})

    async def ask(self, command):
        return (await self.ledger.ask_one("work", command)).answer

    async def claim(self, slot, name, token):
        return await self.ask(c.Claim(slot, token, name, LEASE, 3, 60_000, "skip", "schedule", True))

    def handle(self, slot, name, token, won):
        told = {"key": str(slot), "attempt": won.attempt, "fence": won.fence, "token": token}
        self.tell("begin", name, **told)
        self.tell("effect", name, since=self.now / 1000, held=True, **told)
        return told

    async def play(self):
        with recording(self.tell):
            won = await self.claim(START, "a", "token-1")
            self.handle(START, "a", "token-1", won)
            self.now += LEASE + 100
            for slot, name, token in ((START, "b", "token-2"), (START + EVERY, "b", "token-3"),
                                      (START + 2 * EVERY, "c", "token-4")):  # fmt: skip
                self.now = max(self.now, slot)
                told = self.handle(slot, name, token, await self.claim(slot, name, token))
                self.now += 100
                await self.ask(c.Heartbeat(slot, token))
                self.tell("end", name, how="returned", **told)
                await self.ask(c.Finish(slot, token, "success"))
        (_, (page,)) = await self.ledger.pages([Ask(DOCUMENT)])
        pasts = [decode_past(one.body) for one in await self.store.records(DOCUMENT, 0, ALL, 99)]
        self.kept = Kept(page.found.version, page.job, {past.id: past for past in pasts})
        self.conditions = Conditions({"a"}, {"b": START - 1}, EVERY, True, LEASE + 1_000)
        return self

    def check(self):
        check(self.lines, DOCUMENT, self.kept, self.conditions)

    def line(self, what, **facts):
        return next(one for one in self.lines if one["what"] == what and facts.items() <= one.items())

    def redecide(self, at, change):
        """Write another step in place of one that was decided, `at` from the end."""
        line = [one for one in self.lines if one["what"] == "decided"][at]
        (step,) = unpacked(line["steps"])
        line["steps"] = packed([change(step)])


@pytest.fixture
def scene():
    return asyncio.run(Scene().play())


def test_a_sound_history_passes(scene):
    """Also with changes that were decided and never stood."""
    late = dict(scene.line("decided", version=3), name="c")
    (step,) = unpacked(late["steps"])
    late["steps"] = packed([dataclasses.replace(step, after=step.after._replace(fence=99))])
    scene.lines.append(late)
    scene.check()


def test_a_finish_that_was_asked_again_is_one(scene):
    """The first never reached the store; the second left the same document, and its own time in the record."""
    line = [one for one in scene.lines if one["what"] == "decided"][-1]
    (step,) = unpacked(line["steps"])
    past = step.ended[0]
    lost = dataclasses.replace(step, now=step.now - 50, ended=(past._replace(ended=past.ended - 50),))
    scene.lines.insert(0, dict(line, steps=packed([lost])))
    scene.check()


def unsaid(scene):
    scene.lines.remove(scene.line("decided", version=2))


def another_document(scene):
    line = dict(scene.line("decided", version=3))
    (step,) = unpacked(line["steps"])
    line["steps"] = packed([dataclasses.replace(step, before=step.before._replace(fence=99))])
    scene.lines.append(line)


def acknowledged_and_gone(scene):
    scene.line("acknowledged", version=2)["body"] = "{}"


def acknowledged_twice(scene):
    scene.lines.append(scene.line("acknowledged", version=2))


def rolled_back(scene):
    version = scene.kept.version - 1
    scene.kept.version = version
    scene.kept.job = unpacked(scene.line("decided", version=version)["steps"])[0].before


def record_lost(scene):
    del scene.kept.pasts[str(START + 2 * EVERY)]


def another_end(scene):
    past = scene.kept.pasts[str(START)]
    scene.kept.pasts[str(START)] = past._replace(status="failed")


def finish_by_a_dead_token(scene):
    def stale(step):
        return dataclasses.replace(step, command=dataclasses.replace(step.command, token="token-1"))

    scene.redecide(3, stale)


def started_twice(scene):
    scene.redecide(-3, lambda step: dataclasses.replace(step, past=scene.kept.pasts[str(START)]))


def begun_twice(scene):
    scene.lines.append(scene.line("begin", token="token-2"))


def begun_by_a_loser(scene):
    scene.line("begin", token="token-2")["name"] = "c"


def another_fence(scene):
    scene.line("begin", token="token-2")["fence"] = 7


def orphaned(scene):
    scene.conditions.harmed.clear()
    scene.lines.remove(scene.line("begin", token="token-1"))


def never_returned(scene):
    scene.lines.remove(scene.line("end", token="token-3"))


def both_sure(scene):
    scene.line("effect", token="token-1")["since"] += (LEASE + 200) / 1000


def taken_over_late(scene):
    scene.conditions.bound_ms = LEASE - GRACE_MS


def slot_without_a_word(scene):
    scene.conditions.every_ms = EVERY // 2


PLANTED = [
    (unsaid, "S16"), (another_document, "S16"), (acknowledged_and_gone, "S15"), (acknowledged_twice, "S16"),
    (rolled_back, "S15"), (record_lost, "I3"), (another_end, "I3"), (finish_by_a_dead_token, "I3"),
    (started_twice, "I4"), (begun_twice, "S20"), (begun_by_a_loser, "S20"), (another_fence, "S20"),
    (orphaned, "I8a"), (never_returned, "I8a"), (both_sure, "I9"), (taken_over_late, "I7"), (slot_without_a_word, "I8"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "law"), PLANTED, ids=[fault.__name__ for fault, _ in PLANTED])
def test_a_planted_fault_is_found(scene, fault, law):
    """By the law that it breaks."""
    scene.check()
    fault(scene)
    with pytest.raises(Breach) as told:
        scene.check()
    assert told.value.law == law


def test_a_marked_slot_is_no_gap(scene):
    """A slot with a mark has its outcome."""
    scene.conditions.every_ms = EVERY // 2
    half = START + EVERY // 2
    scene.kept.marks = (Mark(half, half + EVERY, 2, "missed", "", half, "b"),)
    scene.check()


def test_what_a_store_forgot_excuses_no_half_history(scene):
    """After a failover that lost writes each run is still one, with its attempts in order."""
    scene.conditions.keeps = False
    rolled_back(scene)
    record_lost(scene)
    scene.check()
    past = scene.kept.pasts[str(START)]
    scene.kept.pasts[str(START)] = past._replace(attempts=past.attempts[1:])
    with pytest.raises(Breach, match="I2"):
        scene.check()
