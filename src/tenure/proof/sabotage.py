"""Faults planted in whole instances: in the rules, the ledger, the keeper, catch-up, timers, the runner and the store.

Each breaks one thing that the code does, for as long as a schedule is played. A simulation that does not find them
all would find nothing. `seed` is the first of the seeds from 0 on that shows it: a test plays just that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from tenure.proof import planted
from tenure.proof.replaced import replaced
from tenure.proof.simulate import Planted
from tenure.proof.smallworld import Decide
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.scheduler import ledger, run
from tenure.scheduler.catchup import CatchUp
from tenure.scheduler.claims import Claims
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.ledger import Ledger
from tenure.scheduler.run import Holding
from tenure.scheduler.watchman import Watchman
from tenure.stores.contract import Change, Outcome
from tenure.stores.memory import MemoryStore


@dataclass(frozen=True)
class Sabotage:
    """One fault: where it sits, what it is, the laws by which it may be found, and the first seed that does."""

    place: str
    what: str
    laws: tuple[str, ...]
    seed: int
    planted: Planted


def _rule(rule: Decide) -> Planted:
    return Planted(rule=rule)


def _instead(place: Any, name: str, value: Any) -> Planted:
    return Planted(during=partial(replaced, place, name, value))


def _all(*several: Planted) -> Planted:
    """Several at once."""

    @contextmanager
    def during() -> Iterator[None]:
        with ExitStack() as stack:
            for one in several:
                stack.enter_context(one.during())
            yield

    return Planted(during=during)


def _altered(place: Any, name: str, alter: Callable[[Any], Any]) -> Planted:
    """The same function, with something done to it."""
    return Planted(during=lambda: replaced(place, name, alter(vars(place)[name])))


# --- what is put in place of the code -------------------------------------------------------------------------


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing at all."""


async def _nothing_async(*_: Any, **__: Any) -> None:
    """Do nothing at all."""


def _as_if_won(commit: Any) -> Any:
    """A race that was lost, and a deadline that had passed, are taken for done."""

    async def done(self: Ledger, changes: list[Change], patience: float | None) -> tuple[Outcome, ...]:
        return (Outcome.DONE,) * len(await commit(self, changes, patience))

    return done


def _deaf_to_refusals(beaten: Any) -> Any:
    """A refused heartbeat changes nothing (R24)."""

    def heard(self: Keeper, holding: Holding, answered: Any) -> None:
        if not isinstance(answered.answer, c.Refused):
            beaten(self, holding, answered)

    return heard


def _backup_once(looked: Any) -> Any:
    """A backup asks once, and not again where the run is held (R21)."""

    def asked(self: Keeper, watch: Any, answered: Any) -> None:
        looked(self, watch, answered)
        if isinstance(answered.answer, c.Running):
            self.forget(watch.key)

    return asked


def _without_cancelling(abort: Any) -> Any:
    """The signal is set, and an async handler is not cancelled (R26)."""

    return lambda self, why, cancel=True: abort(self, why, cancel=cancel and False)


def _late_to_claim(claim_at: Any) -> Any:
    """Five seconds more than the jitter (R19)."""
    return lambda slot, jitter_ms, draw: claim_at(slot, jitter_ms, draw) + 5_000


def _sluggish(next_beat: Any) -> Any:
    """A heartbeat in seven is sent (R17)."""
    return lambda boot, heartbeat_ms, phase: next_beat(boot, 7 * heartbeat_ms, phase)


def _looking_away(next_look: Any) -> Any:
    """A backup that knows the lease end waits a minute more (R21)."""
    return lambda *asked: next_look(*asked) + 60_000


def _given_back_as_failed(ending: Any) -> Any:
    """A handler that raised on stop() has failed, instead of being handed over (R27)."""
    return lambda returned, why: "fail" if why == "stop" and not returned else ending(returned, why)


def _no_version(apply: Any) -> Any:
    """The store writes whatever version a change was decided on."""

    def write(self: MemoryStore, change: Change, now: int) -> Outcome:
        shelf = self._shelves.get(change.name)
        return apply(self, replace(change, version=shelf.version if shelf else 0), now)  # type: ignore[no-any-return]

    return write


def _no_deadline(apply: Any) -> Any:
    """The store writes what comes after its deadline."""
    return lambda self, change, now: apply(self, replace(change, deadline=None), now)


def _no_marks(apply: Any) -> Any:
    """The store keeps no marks (R12)."""
    return lambda self, change, now: apply(self, replace(change, marks=()), now)


def _no_records(apply: Any) -> Any:
    """The store keeps the document, and not the ended runs beside it."""
    return lambda self, change, now: apply(self, replace(change, records=()), now)


def _forgetful(apply: Any) -> Any:
    """Each fiftieth change is answered as done, and not written."""
    count = 0

    def write(self: MemoryStore, change: Change, now: int) -> Outcome:
        nonlocal count
        count += change.name.startswith("job:")
        return Outcome.DONE if count % 50 == 0 else apply(self, change, now)

    return write


def _torn(apply: Any) -> Any:
    """A change that ends runs writes their records, and not the document."""

    def write(self: MemoryStore, change: Change, now: int) -> Outcome:
        shelf = self._shelves.get(change.name)
        body = shelf.body if shelf is not None and change.records else change.body
        return apply(self, replace(change, body=body), now)  # type: ignore[no-any-return]

    return write


def _no_limit_to_what_was_written(change_of: Any) -> Any:
    """The ledger sends its changes without a deadline (R40)."""
    return lambda *asked: replace(change_of(*asked), deadline=None)


SABOTAGES: Final = (
    Sabotage("rules", "a live run is taken over", ("S11", "S8"), 0, _rule(planted.live_run_taken_over)),
    Sabotage("rules", "an overlap is ignored", ("I1",), 0, _rule(planted.overlap_ignored)),
    Sabotage("rules", "a superseded slot is started", ("I4", "I5"), 347, _rule(planted.superseded_started)),
    Sabotage("rules", "attempts have no end", ("I6",), 0, _rule(planted.attempts_without_end)),
    Sabotage("rules", "a released lease is renewed", ("S9",), 22, _rule(planted.released_lease_renewed)),
    Sabotage("rules", "a finish with an old token counts", ("I3",), 9, _rule(planted.old_token_accepted(c.Finish))),
    Sabotage(
        "rules", "a heartbeat with an old token counts", ("S4",), 5, _rule(planted.old_token_accepted(c.Heartbeat))
    ),
    Sabotage("rules", "lateness is ignored", ("I4",), 1, _rule(planted.late_ignored)),
    Sabotage("rules", "a slot is started early", ("I4",), 4, _rule(planted.early_ignored)),
    Sabotage("rules", "the fence is not raised", ("S12",), 1, _rule(planted.fence_not_raised)),
    Sabotage("rules", "a dead run is left by a newer win", ("S12", "R6"), 2, _rule(planted.dead_run_left)),
    Sabotage("rules", "a pause is ignored", ("R37",), 9, _rule(planted.pause_ignored)),
    Sabotage("rules", "states are forgotten too soon", ("R11",), 1, _rule(planted.state_forgotten)),
    Sabotage("rules", "a claim that won is told otherwise", ("I8a",), 5, _rule(planted.won_claim_forgotten)),
    Sabotage("rules", "a finish asked again is refused", ("S15",), 14, _rule(planted.finish_forgotten)),
    Sabotage(
        "ledger", "a race that was lost is taken for won", ("S20", "S16"), 0, _altered(Ledger, "_commit", _as_if_won)
    ),
    Sabotage(
        "ledger", "changes have no deadline", ("S14",), 5, _altered(ledger, "change_of", _no_limit_to_what_was_written)
    ),
    Sabotage(
        "claims",
        "a claim that failed is given up",
        ("L6", "L5", "I8"),
        45,
        _instead(Claims, "_given_up", lambda *_: True),
    ),
    Sabotage("keeper", "no runner judges itself", ("S21",), 5, _instead(Keeper, "judge", _nothing)),
    Sabotage(
        "keeper", "refused heartbeats are not heard", ("S21",), 11, _altered(Keeper, "_beaten", _deaf_to_refusals)
    ),
    Sabotage(
        "keeper",
        "a backup asks once, and nobody adopts",
        ("L2",),
        0,
        _all(_altered(Keeper, "_looked", _backup_once), _instead(Watchman, "_adopt", _nothing)),
    ),
    Sabotage(
        "keeper", "hints and looks never come soon", ("L2", "L3"), 0, _altered(timers, "next_look", _looking_away)
    ),
    Sabotage("timers", "a claim comes five seconds late", ("I8",), 0, _altered(timers, "claim_at", _late_to_claim)),
    Sabotage("timers", "a heartbeat in seven is sent", ("R23",), 0, _altered(timers, "next_beat", _sluggish)),
    Sabotage(
        "timers",
        "a runner doubts after its lease",
        ("S21",),
        5,
        _instead(timers, "unsure_after", lambda lease, _: lease + 5_000),
    ),
    Sabotage(
        "timers",
        "no wait after a failure is capped",
        ("L7", "L8", "I8", "L6"),
        78,
        _instead(timers, "backoff", lambda *_: 600_000.0),
    ),
    Sabotage(
        "run",
        "a lease is believed for twice its length",
        ("R26", "I9"),
        5,
        _instead(run, "provable", lambda lease: 2 * lease),
    ),
    Sabotage(
        "run", "a handler in doubt is not cancelled", ("S22", "L4"), 5, _altered(Holding, "abort", _without_cancelling)
    ),
    Sabotage("runner", "a hand-over is told as failed", ("R27",), 2, _altered(timers, "ending", _given_back_as_failed)),
    Sabotage("catch-up", "nothing is recovered", ("L6",), 11, _instead(CatchUp, "recover", _nothing_async)),
    Sabotage("catch-up", "missed slots are not told", ("L6",), 11, _instead(CatchUp, "_missed", lambda *_: [])),
    Sabotage(
        "catch-up", "slots left to others are forgotten", ("L6",), 16, _instead(CatchUp, "_close", _nothing_async)
    ),
    Sabotage("watchman", "waking is not noticed", ("L6",), 15, _instead(Watchman, "recover", _nothing_async)),
    Sabotage("store", "versions are not compared", ("S16",), 0, _altered(MemoryStore, "_apply", _no_version)),
    Sabotage("store", "deadlines are not kept", ("S14",), 5, _altered(MemoryStore, "_apply", _no_deadline)),
    Sabotage("store", "no marks are kept", ("L6",), 0, _altered(MemoryStore, "_apply", _no_marks)),
    Sabotage("store", "ended runs are not kept", ("R11",), 0, _altered(MemoryStore, "_apply", _no_records)),
    Sabotage("store", "each fiftieth change is lost", ("S16",), 0, _altered(MemoryStore, "_apply", _forgetful)),
    Sabotage("store", "a change is torn in two", ("I3", "S16"), 0, _altered(MemoryStore, "_apply", _torn)),
)
