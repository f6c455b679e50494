"""Random sequences, on a store and on the memory store at once: every answer must be the same.

The memory store's clock is set to the time that the store answered, so that both judge deadlines alike.
Steps are data, so that hypothesis can shrink a sequence that fails to the shortest one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tenure.proof.hall import Hall, same
from tenure.rules import commands as c
from tenure.rules import job as documents
from tenure.rules.job import run_id
from tenure.rules.runs import Decision, decide, keep_until
from tenure.stores.contract import Ask, Change, Found, Mark, Record, Store
from tenure.stores.memory import MemoryStore

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMES: Final = ("a", "a%", "ä/b", "😀")
RUNS: Final = ("1", "2", "3", "2#w", "5#w")
SLOTS: Final = range(1, 9)


class Pair:
    """A store and the memory store beside it. Names are made unlike all that stood there before."""

    def __init__(self, store: Store, tag: str) -> None:
        self.store, self.tag = store, tag
        self.time = 0
        self.memory = MemoryStore(clock=lambda: self.time)

    def name(self, short: str) -> str:
        """A name of this sequence alone."""
        return f"{self.tag}{short}"

    async def read(self, asks: list[Ask]) -> tuple[int, tuple[Found, ...]]:
        """Read both; they must have found the same."""
        reading = await self.store.read(asks)
        self.time = reading.now
        same(reading.found, (await self.memory.read(asks)).found, f"Reading {asks}")
        return reading.now, reading.found

    async def commit(self, changes: list[Change]) -> None:
        """Commit to both; they must have judged the same."""
        verdict = await self.store.commit(changes)
        self.time = verdict.now
        same(verdict.outcomes, (await self.memory.commit(changes)).outcomes, f"Committing {changes} at {verdict.now}")

    async def compare(self, shorts: tuple[str, ...]) -> None:
        """All that stands under these names, in both."""
        for name in map(self.name, shorts):
            for list_ in ("records", "marks"):
                told = await getattr(self.store, list_)(name, -1, 2**53, 99)
                same(told, await getattr(self.memory, list_)(name, -1, 2**53, 99), f"The {list_} of {name!r}")
        for prefix in (self.tag, self.name("a")):
            same(await self.store.names(prefix), await self.memory.names(prefix), f"Names that begin with {prefix!r}")


# --- reads and changes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draft:
    """A change to come: its version is that of the document then, and `off`; its deadline is in `late_ms`."""

    short: str
    off: int
    late_ms: int | None
    change: Change


async def _play(pair: Pair, steps: list[list[Draft] | list[Ask]]) -> None:
    """Take the steps: a commit of drafts, or a read."""
    for step in steps:
        asks = [replace(one, name=pair.name(one.name)) for one in step if isinstance(one, Ask)]
        drafts = [one for one in step if isinstance(one, Draft)]
        if drafts:
            now, found = await pair.read([Ask(pair.name(draft.short)) for draft in drafts])
            changes = [_made(pair, draft, now, one.version) for draft, one in zip(drafts, found, strict=True)]
            await pair.commit(changes)
        else:
            await pair.read(asks)
    everything = [Ask(pair.name(short), RUNS, (limit, limit), limit * 5 + 4) for short in NAMES for limit in (0, 1)]
    await pair.read(everything)
    await pair.compare(NAMES)


def _made(pair: Pair, draft: Draft, now: int, version: int) -> Change:
    deadline = None if draft.late_ms is None else now + draft.late_ms
    return replace(draft.change, name=pair.name(draft.short), version=max(0, version + draft.off), deadline=deadline)


def _steps() -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    shorts, slots = st.sampled_from(NAMES), st.sampled_from(SLOTS)
    records = st.builds(
        lambda run, body, keep: Record(run, int(run.partition("#")[0]), "success", 7, keep, body),
        st.sampled_from(RUNS),
        st.binary(max_size=9),
        st.integers(0, 9),
    )
    marks = st.builds(
        lambda slot, length, why, whom, at, request, after: Mark(
            slot, slot + length, length + 1, why, whom, at, "by", request, slot - 1 - after if after < slot else None
        ),
        slots,
        st.integers(0, 3),
        st.sampled_from(["late", "paused"]),
        st.sampled_from(["", "1"]),
        st.integers(0, 9),
        st.sampled_from(["", "", "w"]),
        st.integers(0, 9),
    )
    several = st.lists(marks, max_size=3).map(tuple)
    changing = st.builds(
        lambda body, records, marks, forget, trim, hint: Change(
            "", 0, body, None, tuple(records), marks, tuple(forget), trim, hint
        ),
        st.binary(max_size=20),
        st.lists(records, max_size=3),
        several,
        st.lists(st.sampled_from(RUNS), max_size=2),
        st.none() | slots,
        st.booleans(),
    )
    marking = several.map(lambda marks: Change("", 0, None, marks=marks))
    deleting = st.just(Change("", 0, None, delete=True))
    drafts = st.builds(
        Draft,
        shorts,
        st.sampled_from([0, 0, 0, 0, -1, 1]),
        st.sampled_from([None, 60_000, 60_000, 0, -1]),
        changing | changing | marking | deleting,
    )
    asks = st.builds(
        Ask,
        shorts,
        st.lists(st.sampled_from(RUNS), max_size=3).map(tuple),
        st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)),
        st.none() | st.integers(0, 13),
    )
    return st.lists(st.lists(drafts, min_size=1, max_size=5) | st.lists(asks, max_size=4), max_size=12)


# --- commands of the rules --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ordered:
    """One instance reads and decides a command (`commit` false), or commits what it decided before."""

    instance: int
    commit: bool
    kind: str
    slot: int
    token: str


async def _live(pair: Pair, steps: list[Ordered]) -> None:
    """Take the steps on one job; what an instance decided may be stale when it commits."""
    decided: dict[int, Change] = {}
    name = pair.name("job")
    for step in steps:
        if step.commit:
            if step.instance in decided:
                await pair.commit([decided.pop(step.instance)])
            continue
        told = Ask(name, (run_id(step.slot), run_id(step.slot, "w")), (1, 1), step.slot + 1)
        now, (found,) = await pair.read([told])
        command = _command(step, found)
        run = run_id(getattr(command, "slot", 0), getattr(command, "request", ""))
        past = documents.decode_past(found.past[run]) if run in found.past else None
        job = documents.decode(found.body)
        decision = decide(job, command, now, past)
        if decision.job is not job or decision.marks or decision.ended:
            decided[step.instance] = _change(name, found, decision, decision.job is not job, now)
    await pair.compare(("job",))


def _change(name: str, found: Found, decision: Decision, changed: bool, now: int) -> Change:
    """A decision as a change of the document."""
    body = documents.encode(decision.job) if changed or decision.ended else None
    records = tuple(
        Record(past.id, past.slot, past.status, past.ended, keep_until(past), documents.encode_past(past))
        for past in decision.ended
    )
    marks = tuple(Mark(*one) for one in decision.marks)
    deadline = now + decision.valid_ms
    return Change(name, found.version, body, deadline, records, marks, decision.forget, decision.trim, decision.hint)


def _command(step: Ordered, found: Found) -> c.Command:
    request = "w" if step.token == "w" else ""  # noqa: S105 - a token of a game
    match step.kind:
        case "heartbeat":
            return c.Heartbeat(step.slot, step.token, request)
        case "finish":
            return c.Finish(step.slot, step.token, "success", request)
        case "release":
            return c.Release(step.slot, step.token, True, request)
        case "pause":
            return c.Pause()
        case "resume":
            return c.Resume()
        case "trigger":
            return c.Trigger("w", "somebody")
        case "missed":
            return c.Missed(step.slot, step.slot + 1, 2, "somebody")
        case "prune":
            return c.Prune(tuple(c.Head(*head) for head in found.heads), found.marks_until)
        case _:
            # Slots are of long ago, so the bound is long too; a lease of no length has run out when it is asked of.
            bound = documents.FORMAT * 2**45 if step.kind == "claim" else 0
            lease = 1_000 if step.slot % 2 else 0
            return c.Claim(
                step.slot, step.token, "me", lease, 2, bound, "skip", "schedule", True, request, step.slot - 1
            )


def _orders() -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    kinds = ["claim", "claim", "claim", "late", "heartbeat", "finish", "release", "pause", "resume", "trigger"]
    order = st.builds(
        Ordered,
        st.integers(0, 1),
        st.booleans(),
        st.sampled_from([*kinds, "missed", "prune"]),
        st.integers(1, 2),
        st.sampled_from(["t", "u", "w"]),
    )
    return st.lists(order, max_size=30)


# --- running them -----------------------------------------------------------------------------------------


def random_sequences(hall: Hall, examples: int = 100) -> None:
    """Play so many random sequences of reads and changes, and as many of commands, on one fresh store.

    Raises AssertionError for the shortest sequence found of which an answer differs. Outside a running loop.
    """
    from hypothesis import HealthCheck, given, settings

    checked = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    tags = (f"{number}." for number in itertools.count())
    with asyncio.Runner() as runner:
        store = runner.run(_opened(hall))

        def played(play: Callable[[Pair, Any], Awaitable[None]], steps: Any) -> None:
            runner.run(_awaited(play(Pair(store, next(tags)), steps)))

        try:
            checked(given(_steps())(lambda steps: played(_play, steps)))()
            checked(given(_orders())(lambda steps: played(_live, steps)))()
        finally:
            runner.run(store.close())


async def _opened(hall: Hall) -> Store:
    return await hall.fresh()


async def _awaited(step: Awaitable[None]) -> None:
    await step
