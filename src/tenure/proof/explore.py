"""Every interleaving of a small world, breadth first, over the real rules: the shortest way to a broken law.

A state is the instant, what the store holds, what each instance is doing, and a commit of a crashed instance
that may still arrive. Of several such commits only the first to arrive would be written, so one at a time is
enough: another takes its place, or is lost. What each instance may do next stands in `doings.py`, what they
share in `smallworld.py`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tenure.proof import words
from tenure.proof.doings import NOTHING, Instances, Move
from tenure.proof.smallworld import Decide, ModelStore, World
from tenure.proof.steps import Breach
from tenure.rules import commands as c
from tenure.rules.runs import decide

# Who moves, where it is none of the instances: their numbers are 0 and above.
TIME: Final = -1
CRASHED: Final = -2
COPY: Final = -3

# The number of the instant, of what is kept, of what each instance does, and of the commit in the air.
State = tuple[int, int, tuple[int, ...], tuple[int, ...]]
# One transition: who moved, the move, and where it led.
Way = tuple[int, Move, State]


@dataclass(frozen=True)
class Report:
    """What a search found.

    documents: how many different contents of the store; seconds: of processor time; reached: the branches of
    the rules, and how often each was asked anew; path: the shortest way to the breach, a line for each step.
    """

    world: str
    states: int
    transitions: int
    documents: int
    seconds: float
    complete: bool
    reached: Mapping[str, int]
    breach: Breach | None = None
    path: tuple[str, ...] = ()

    @property
    def pace(self) -> float:
        """Distinct states a second."""
        return self.states / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        found = "no law broken" if self.breach is None else f"{self.breach}\n" + "\n".join(self.path)
        whole = "" if self.complete or self.breach else ", NOT COMPLETE"
        return (
            f"{self.world}: {self.states} states, {self.transitions} transitions, {self.documents} documents, "
            f"{self.seconds:.1f} s, {self.pace:.0f} states/s{whole}; {found}"
        )


class Explorer:
    """The transitions of one world."""

    def __init__(self, store: ModelStore, *, named: bool) -> None:
        self.store = store
        self.instances = Instances(store, named=named)
        # Whose moves were looked at last: where a law is broken, it was by one of them.
        self.mover = 0
        self._outdated: dict[tuple[int, ...], tuple[int, ...]] = {}

    def start(self) -> State:
        """Where it begins: nothing is held, and nobody does anything."""
        return (0, self.store.start(), self.instances.start(), ())

    def ways(self, state: State) -> Iterator[Way]:
        """Every transition out of a state. Raises Breach where one breaks a law."""
        now, kept, doing, strays = state
        instant = self.store.world.instants[now]
        for who, me in enumerate(doing):
            if who and me == doing[who - 1]:
                continue  # the same as its neighbour: what it may do was done
            self.mover = who
            rest = doing[:who] + doing[who + 1 :]
            for move in self.instances.moves(instant, kept, me):
                yield who, move, self._after(now, move, rest, strays)
                if strays and move.stray != NOTHING:
                    yield who, move, self._after(now, move._replace(stray=NOTHING), rest, strays)
        self.mover = CRASHED
        for stray in strays:
            arrival = self._arrives(instant, kept, stray)
            if arrival is not None:
                yield CRASHED, arrival, self._after(now, arrival, doing, ())
        self.mover = COPY
        for move in self.instances.copies(instant, kept):
            yield COPY, move, self._after(now, move, doing, strays)
        self.mover = TIME
        if now + 1 < len(self.store.world.instants):
            yield self._tick(state)
        if now and self.store.world.steps_back:
            back = self.store.settle(kept, self.store.world.instants[now - 1])
            yield TIME, Move("", None, False, back, NOTHING), (now - 1, back, doing, strays)

    def _after(self, now: int, move: Move, rest: tuple[int, ...], strays: tuple[int, ...]) -> State:
        _, _, written, kept, mine, stray = move
        if written:
            if rest not in self._outdated:
                self._outdated[rest] = tuple(sorted(self.instances.outdated(one) for one in rest))
            rest = self._outdated[rest]
            strays = self.instances.outdated_strays(strays)
        if stray != NOTHING:
            strays = (stray,)
        return now, kept, rest if mine == NOTHING else tuple(sorted((*rest, mine))), strays

    def _arrives(self, instant: int, kept: int, number: int) -> Move | None:
        """The commit of one that crashed, or gave it up, is written after all."""
        stray = self.instances.strays.values[number]
        if not self.store.lands(stray.sent, instant, fresh=stray.fresh):
            return None
        after = self.store.land(kept, stray.sent, instant)
        step = self.store.step(kept, stray.sent, instant)
        if stray.abandoned and isinstance(step.answer, c.Won) and "I8a" not in self.store.without:
            raise Breach("I8a", "a claim won that its instance, which is up, had given up: nobody runs it", step)
        return Move("commits at last", step.command, True, after, NOTHING)

    def _tick(self, state: State) -> Way:
        now, kept, doing, strays = state
        instant = self.store.world.instants[now + 1]
        pairs = [self.instances.waited(one, instant) for one in doing]
        given_up = tuple(stray for _, stray in pairs if stray != NOTHING)[:1]
        left = given_up or self.instances.waited_strays(strays, instant)
        move = Move("", None, False, self.store.settle(kept, instant), NOTHING)
        return TIME, move, (now + 1, move.kept, tuple(sorted([one for one, _ in pairs])), left)


def explore(
    world: World,
    rule: Decide = decide,
    *,
    versions: bool = True,
    deadlines: bool = True,
    without: frozenset[str] = frozenset(),
    named: bool = False,
    limit: int = 5_000_000,
) -> Report:
    """Search a world to its end, to the first broken law, or to `limit` states.

    rule, versions, deadlines: what decides, and what the store holds a commit against: to plant faults.
    without: laws that are not asked. named: tell instances apart, which only a store without versions needs.
    """
    began = time.process_time()
    store = ModelStore(world, rule, versions=versions, deadlines=deadlines, without=without)
    explorer = Explorer(store, named=named or not versions)
    collecting = gc.isenabled()
    gc.disable()  # millions of tuples, and no circle among them: looking for one takes a third of the time
    try:
        parents, transitions, last, breach = _search(explorer, limit)
    finally:
        if collecting:
            gc.enable()
    path = () if breach is None else tuple(_path(explorer, parents, last, breach))
    complete = breach is None and len(parents) < limit
    seconds = time.process_time() - began
    return Report(
        world.name, len(parents), transitions, len(store.kept), seconds, complete, store.reached, breach, path
    )


def _search(explorer: Explorer, limit: int) -> tuple[dict[State, State | None], int, State, Breach | None]:
    """All states with the one that each was first reached from, the transitions, and the breach, from where."""
    last = explorer.start()
    parents: dict[State, State | None] = {last: None}
    layer, transitions = [last], 0
    try:
        while layer and len(parents) < limit:
            following: list[State] = []
            for last in layer:
                for _, _, state in explorer.ways(last):
                    transitions += 1
                    if state not in parents:
                        parents[state] = last
                        following.append(state)
            layer = following
    except Breach as breach:
        return parents, transitions, last, breach
    return parents, transitions, last, None


def _path(explorer: Explorer, parents: Mapping[State, State | None], last: State, breach: Breach) -> Iterator[str]:
    """The shortest way to a breach in words; instances are named by where they began."""
    mover = explorer.mover
    states = [last]
    while (before := parents[states[-1]]) is not None:
        states.append(before)
    names = [chr(ord("A") + place) for place in range(len(last[2]))]
    for before, after in pairwise(reversed(states)):
        way = next(one for one in explorer.ways(before) if one[2] == after)
        yield _line(explorer, way, names)
        names = _renamed(explorer, before, way, names)
    step = breach.step
    did = "" if step is None else f"with {words.of_command(step.command)}: {words.of_answer(step.answer)}. "
    yield f"{_who(explorer, last, mover, names)}{did}{breach}"


def _who(explorer: Explorer, state: State, who: int, names: list[str]) -> str:
    """When it was, and who moved."""
    others = {TIME: "", CRASHED: "one that crashed or gave up ", COPY: ""}
    instant = explorer.store.world.instants[state[0]]
    return f"{words.of_time(instant)}: {others[who] if who < 0 else names[who] + ' '}"


def _line(explorer: Explorer, way: Way, names: list[str]) -> str:
    """One step in words, with the document where it was written."""
    who, move, state = way
    if who == TIME:
        return f"{_who(explorer, state, who, names)}time has passed"
    command = "" if move.command is None else " " + words.of_command(move.command)
    job = f" -> {words.of_job(explorer.store.kept[state[1]].job)}" if move.written else ""
    return f"{_who(explorer, state, who, names)}{move.what}{command}{job}"


def _renamed(explorer: Explorer, before: State, way: Way, names: list[str]) -> list[str]:
    """Which name stands where after a step: what the instances do is kept sorted."""
    who, move, state = way
    doing = list(before[2])
    if who == TIME:
        instant = explorer.store.world.instants[state[0]]
        doing = [explorer.instances.waited(one, instant)[0] for one in doing]
    elif move.written:
        doing = [explorer.instances.outdated(one) for one in doing]
    if who >= 0:
        doing[who] = move.doing
    return [name for _, name in sorted(zip(doing, names, strict=True))]
