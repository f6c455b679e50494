"""What an instance of a small world may do next, in every stage, and how it takes what it hears.

It reads and decides in one move and commits in a later one; between the two anything may happen. After an
answer that was lost it follows R40a: it waits until its commit can't arrive any more, reads again, and goes on
by what it finds. It may crash at any moment and start again, knowing nothing. To be frozen, cut off or dead is
to make no move, so that needs no stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from tenure.proof.smallworld import Ending, ModelStore, Table
from tenure.proof.steps import Breach, Step
from tenure.rules import commands as c
from tenure.rules.job import Past, Run

NOTHING: Final = -1
ENDINGS: Final[tuple[Ending, ...]] = ("success", "failed", "handed-over", "unsure")


class Doing(NamedTuple):
    """What an instance is doing.

    name: of the instance, where instances have names; stage: `idle`; `doubt`: its claim won, but it was not
    told; `work`: it was, and may not know that it ended the run already. sent: its decision on the way to the
    store; fresh: nothing was written since that was decided; awaited: its answer is waited for, else it was
    given up, and only whether it arrives is open.
    """

    name: str = ""
    stage: str = "idle"
    slot: int = 0
    request: str = ""
    token: str = ""
    sent: int = NOTHING
    fresh: bool = True
    awaited: bool = True


class Stray(NamedTuple):
    """A commit that nobody waits for. abandoned: its sender is up, and believes that it can't arrive any more."""

    sent: int
    fresh: bool = True
    abandoned: bool = False


class Move(NamedTuple):
    """One move of one instance, or of a commit that nobody waits for.

    command: that it is about; written: whether the store was changed; kept: what it holds then; doing: what
    the instance does then; stray: the commit that it leaves in the air.
    """

    what: str
    command: c.Command | None
    written: bool
    kept: int
    doing: int
    stray: int = NOTHING


class Instances:
    """The moves of instances over one store.

    Instances without names are alike, and so are states that differ only in who does what. A token is drawn at
    a claim and named when that wins. That is no loss while a version check lets only one of two claims win that
    were decided on one document; else `named` gives instances names, and their tokens too.
    """

    def __init__(self, store: ModelStore, *, named: bool) -> None:
        self.store, self.world, self.named = store, store.world, named
        self.doings: Table[Doing] = Table()
        self.strays: Table[Stray] = Table()
        self._moves: dict[tuple[int, int, int], tuple[Move, ...]] = {}
        self._copies: dict[tuple[int, int], tuple[Move, ...]] = {}

    def start(self) -> tuple[int, ...]:
        """All are idle."""
        names = [chr(ord("A") + place) if self.named else "" for place in range(self.world.instances)]
        return tuple(self._number(Doing(name)) for name in names)

    def moves(self, now: int, kept: int, doing: int) -> tuple[Move, ...]:
        """All moves of an instance that is doing this."""
        key = (now, kept, doing)
        if key not in self._moves:
            self._moves[key] = tuple(self._next(now, kept, self.doings.values[doing]))
        return self._moves[key]

    def _next(self, now: int, kept: int, me: Doing) -> Iterator[Move]:
        if me.sent != NOTHING:
            yield from self._under_way(now, kept, me)
        elif me.stage == "idle":
            yield from self._idle(now, kept, me)
        elif me.stage == "doubt":
            yield from self._doubt(now, kept, me)
        else:
            yield from self._work(now, kept, me)
        idle = Doing(me.name)
        if me != idle:
            stray = NOTHING if me.sent == NOTHING else self.strays.number(Stray(me.sent, me.fresh))
            yield Move("crashes, and starts again", None, False, kept, self._number(idle), stray)

    def _under_way(self, now: int, kept: int, me: Doing) -> Iterator[Move]:
        """A commit on its way arrives, and is answered or not; or the answer is given up before it arrives."""
        sent = self.store.sent.values[me.sent]
        if self.store.lands(me.sent, now, fresh=me.fresh):
            after = self.store.land(kept, me.sent, now)
            deaf = self._number(_unanswered(me, sent.command, sent.decision.answer))
            if me.awaited:
                heard = self._number(_answered(me, sent.command, sent.decision.answer))
                yield Move("commits", sent.command, True, after, heard)
                if heard != deaf:
                    yield Move("commits, and is not told,", sent.command, True, after, deaf)
            else:
                yield Move("commits late, untold,", sent.command, True, after, deaf)
        # While deadlines hold, to wait for an answer that does not come leads wherever giving it up does.
        if me.awaited and not self.store.deadlines:
            yield Move("waits no more for", sent.command, False, kept, self._number(me._replace(awaited=False)))

    def _idle(self, now: int, kept: int, me: Doing) -> Iterator[Move]:
        token = f"{me.name or 't'}{len(self.store.kept[kept].told.tokens) + 1}"
        job = self.store.kept[kept].job
        for claim in self._claims(kept):
            known = job.find(claim.slot, claim.request) is not None
            for create in (True, False):
                asked = by_token(claim, token, create=create)
                answer, sent = self.store.ask(kept, now, asked)
                # Whoever asks for a run that exists gets the same: one of the two is enough.
                if sent != NOTHING and create != known and self._may_win(kept, answer):
                    yield self._decides(kept, asked, me._replace(sent=sent))
        others = self.world.others
        if self.world.pruning:
            others = (*others, self.store.prune(kept))
        for command in others:
            _, sent = self.store.ask(kept, now, command)
            if sent != NOTHING:
                yield self._decides(kept, command, me._replace(sent=sent))

    def _claims(self, kept: int) -> Iterator[c.Claim]:
        """The claims of slots, and those of wishes, each at the time at which it was wished for."""
        one = self.store.kept[kept]
        runs: tuple[Run | Past, ...] = (*one.job.runs, *one.history.values())
        for claim in self.world.claims:
            wished = {wish.at for wish in one.job.requests if wish.id == claim.request}
            wished |= {run.slot for run in runs if claim.request and run.request == claim.request}
            yield from (replace(claim, slot=slot) for slot in sorted(wished or {claim.slot}))

    def _may_win(self, kept: int, answer: c.Answer) -> bool:
        return not isinstance(answer, c.Won) or len(self.store.kept[kept].told.tokens) < self.world.wins

    def _doubt(self, now: int, kept: int, me: Doing) -> Iterator[Move]:
        """Its claim won and it does not know: the same claim again."""
        same = next(one for one in self._claims(kept) if (one.slot, one.request) == (me.slot, me.request))
        asked = by_token(same, me.token, create=True)
        answer, sent = self.store.ask(kept, now, asked)
        if sent != NOTHING:
            if isinstance(answer, c.Won):
                yield self._decides(kept, asked, me._replace(sent=sent))
        elif isinstance(answer, c.Won):
            yield Move("hears that it won:", asked, False, kept, self._number(me._replace(stage="work")))
        else:
            run = self.store.kept[kept].job.find(me.slot, me.request)
            if run is not None and run.lease.token == me.token and run.lease.live(now):
                step = Step(self.store.kept[kept].job, asked, now, answer, self.store.kept[kept].job)
                raise Breach("I8a", "the claim won and is live, its instance is up, and it is told otherwise", step)
            yield Move("gives up", asked, False, kept, self._number(Doing(me.name)))

    def _work(self, now: int, kept: int, me: Doing) -> Iterator[Move]:
        """A heartbeat, or the handler's end, perhaps once more: the last answer may have been lost."""
        beat = c.Heartbeat(me.slot, me.token, me.request)
        answer, sent = self.store.ask(kept, now, beat)
        if sent != NOTHING:
            yield self._decides(kept, beat, me._replace(sent=sent))
        elif isinstance(answer, c.Refused):
            yield Move("has lost the run:", beat, False, kept, self._number(Doing(me.name)))
        for how in self.world.endings:
            end = ending(how, me)
            _, sent = self.store.ask(kept, now, end)
            if sent != NOTHING:
                yield self._decides(kept, end, me._replace(sent=sent))
            else:
                yield Move("hears that nothing is left to do by", end, False, kept, self._number(Doing(me.name)))

    def _decides(self, kept: int, command: c.Command, after: Doing) -> Move:
        return Move("reads and decides", command, False, kept, self._number(after))

    def _number(self, doing: Doing) -> int:
        return self.doings.number(doing)

    # --- what happens to those who wait ---------------------------------------------------------------------

    def outdated(self, doing: int) -> int:
        """What this one is doing once somebody else's commit was written."""
        me = self.doings.values[doing]
        if me.sent == NOTHING or not me.fresh:
            return doing
        if not self.store.lands(me.sent, 0, fresh=False):
            return self._number(_dropped(me))
        return self._number(me._replace(fresh=False))

    def waited(self, doing: int, now: int) -> tuple[int, int]:
        """What this one is doing once it is `now`, and the commit of its that it believes can't arrive any more."""
        me = self.doings.values[doing]
        if me.sent == NOTHING or now <= self.store.sent.values[me.sent].deadline:
            return doing, NOTHING
        if self.store.lands(me.sent, now, fresh=me.fresh):  # only where the store ignores deadlines
            if me.awaited:
                return doing, NOTHING
            return self._number(_dropped(me)), self.strays.number(Stray(me.sent, me.fresh, True))
        return self._number(_dropped(me)), NOTHING

    def outdated_strays(self, strays: tuple[int, ...]) -> tuple[int, ...]:
        """What may still arrive once another commit was written: nothing, where the store checks versions."""
        stale = [self.strays.values[one]._replace(fresh=False) for one in strays]
        return tuple(self.strays.number(one) for one in stale if self.store.lands(one.sent, 0, fresh=False))

    def waited_strays(self, strays: tuple[int, ...], now: int) -> tuple[int, ...]:
        """What may still arrive at `now`."""
        values = self.strays.values
        return tuple(one for one in strays if self.store.lands(values[one].sent, now, fresh=values[one].fresh))

    # --- what nobody sends any more -------------------------------------------------------------------------

    def copies(self, now: int, kept: int) -> tuple[Move, ...]:
        """Copies of all that was ever sent with a token that is not current: what any of them would change."""
        key = (now, kept)
        if key not in self._copies:
            self._copies[key] = tuple(self._all_copies(now, kept))
        return self._copies[key]

    def _all_copies(self, now: int, kept: int) -> Iterator[Move]:
        job = self.store.kept[kept].job
        for slot, request, token in self.store.kept[kept].tokens:
            run = job.find(slot, request)
            current = run is not None and run.lease.held_by(token)
            claims = [one for one in self._claims(kept) if (one.slot, one.request) == (slot, request)]
            me = Doing("", "work", slot, request, token)
            for command in (
                *(by_token(one, token, create=create) for one in claims for create in (True, False)),
                c.Heartbeat(slot, token, request),
                *(ending(how, me) for how in ENDINGS),
            ):
                _, sent = self.store.ask(kept, now, command)
                if sent != NOTHING and not current:
                    after = self.store.land(kept, sent, self.store.sent.values[sent].now)
                    yield Move("a copy arrives of", command, True, after, NOTHING)


def by_token(claim: c.Claim, token: str, *, create: bool) -> c.Claim:
    """The claim with this token; a takeover where it may not be a new run."""
    reason = claim.reason if create else "takeover"
    return c.Claim(
        claim.slot, token, claim.runner, claim.lease_ms, claim.max_attempts, claim.bound_ms, claim.overlap,
        reason, create, claim.request,
    )  # fmt: skip


def ending(how: Ending, me: Doing) -> c.Finish | c.Release:
    """The command that ends an attempt in this way."""
    if how == "success" or how == "failed":  # noqa: PLR1714 (mypy narrows by == alone)
        return c.Finish(me.slot, me.token, how, me.request)
    return c.Release(me.slot, me.token, how == "unsure", me.request)


def _answered(me: Doing, command: c.Command, answer: c.Answer) -> Doing:
    """What one does after the answer to what it sent."""
    match answer:
        case c.Won() if isinstance(command, c.Claim):
            # The winner of a claim-only slot needs nothing more of the store (R46).
            if command.lease_ms is not None:
                return Doing(me.name, "work", command.slot, command.request, answer.token)
        case c.Renewed():
            return _dropped(me)
        case _:
            pass
    return Doing(me.name)


def _unanswered(me: Doing, command: c.Command, answer: c.Answer) -> Doing:
    """The same where the answer was lost."""
    if isinstance(answer, c.Won) and isinstance(command, c.Claim):
        return Doing(me.name, "doubt", command.slot, command.request, answer.token)
    return _dropped(me)


def _dropped(me: Doing) -> Doing:
    """What it sent was not written, or it can't tell: back to where it reads again."""
    return me._replace(sent=NOTHING, fresh=True, awaited=True)
