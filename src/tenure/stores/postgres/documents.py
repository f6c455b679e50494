"""Reading and changing documents over one connection: asks and changes as arrays, and what came back as answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

import psycopg

from tenure.errors import StoreUnavailable
from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Reading, Verdict
from tenure.stores.postgres.connecting import Link
from tenure.stores.postgres.refusals import LATE, ROLLED_BACK, unconfirmed
from tenure.stores.postgres.statements import NEVER, Parts, Statements

# How often a statement is sent again that was rolled back for certain, or marks that lost a race.
_TRIES: Final = 5
# How long a row that another session holds is left alone before the race is called lost: whoever asked reads
# and tries again at once, and a held row is mostly held by a commit that waits for a disk.
_HELD_SECONDS: Final = 0.01
# A process that stops between two statements of one transaction is cut off after this.
IDLE: Final = "5s"


# --- reading ----------------------------------------------------------------------------------------------


def plain(asks: Sequence[Ask]) -> bool:
    """Whether it is one name and at most one run, as for a claim."""
    return len(asks) == 1 and len(asks[0].runs) < 2 and asks[0].beyond is None and asks[0].before is None


async def read(link: Link, sql: Statements, asks: Sequence[Ask], now: int | None = None) -> Reading:
    """What stands under the names asked, at one moment. `now`: the time to tell, inside a transaction."""
    if now is None and not link.watched and plain(asks):
        return await _page(link, sql, asks[0])
    past = [(place, run) for place, ask in enumerate(asks) for run in dict.fromkeys(ask.runs)]
    before = [place for place, ask in enumerate(asks) if ask.before is not None]
    beyond = [(place, ask.beyond) for place, ask in enumerate(asks) if ask.beyond is not None]
    statement = sql.read(bool(past), bool(before), bool(beyond), link.watched, now is not None)
    rows = await link.rows(
        statement,
        {
            "now": now,
            "asked_name": [ask.name for ask in asks],
            "past_name": [asks[place].name for place, _ in past],
            "past_run": [run for _, run in past],
            "a_name": [asks[place].name for place in before],
            "a_slot": [int(asks[place].before or 0) for place in before],
            "b_name": [asks[place].name for place, _ in beyond],
            "b_kept": [kept for _, (kept, _) in beyond],
            "b_kept_marks": [kept for _, (_, kept) in beyond],
        },
    )
    pages = [_Page() for _ in asks]
    told = 0
    for kind, at, number, body, text, keep in rows:
        match kind:
            case 0:
                told = number
                if link.watched:
                    link.timeline.check(text)
            case 1:
                pages[at - 1].version, pages[at - 1].body = number, body
            case 2:
                place, run = past[at - 1]
                pages[place].past[run] = body
            case 3:
                pages[before[at - 1]].last = number
            case 4:
                pages[beyond[at - 1][0]].heads.append((text, number, keep))
            case _:
                pages[beyond[at - 1][0]].marks_until = number
    return Reading(told, tuple(page.found() for page in pages))


async def _page(link: Link, sql: Statements, ask: Ask) -> Reading:
    run = ask.runs[0] if ask.runs else None
    ((now, version, body, past),) = await link.rows(sql.page, (ask.name, run))
    told = {} if run is None or past is None else {run: past}
    return Reading(now, (Found(version or 0, body, told),))


@dataclass(slots=True)
class _Page:
    """One ask's answer while its rows come in."""

    version: int = 0
    body: bytes | None = None
    past: dict[str, bytes] = field(default_factory=dict)
    heads: list[tuple[str, int, int]] = field(default_factory=list)
    marks_until: int | None = None
    last: int | None = None

    def found(self) -> Found:
        heads = tuple(sorted(self.heads, key=lambda head: (head[1], head[0])))
        return Found(self.version, self.body, self.past, heads, self.marks_until, self.last)


# --- changing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hints:
    """How other processes are told: by which channel, and as whom."""

    channel: str
    origin: str


def small(changes: Sequence[Change]) -> bool:
    """Whether it is one change of a document that is there, and nothing beside it."""
    if len(changes) != 1:
        return False
    one = changes[0]
    beside = one.records or one.marks or one.forget or one.hint or one.delete or one.trim is not None
    return one.version > 0 and one.body is not None and not beside


async def commit(link: Link, sql: Statements, hints: Hints, changes: Sequence[Change]) -> Verdict:
    """Take the changes, in their order; each statement commits by itself, but where one needs several.

    Raises StoreUnavailable where PostgreSQL committed with a warning, and psycopg.Error.
    """
    link.warnings.clear()
    for tried in range(_TRIES):
        try:
            if small(changes):
                verdict, held = await _put(link, sql, changes[0])
            elif _at_once(changes):
                verdict, held = await apply(link, sql, hints, changes)
            else:
                verdict, held = await _in_one_transaction(link, sql, hints, changes)
        except psycopg.Error as error:
            if tried == _TRIES - 1 or link.closed or error.sqlstate not in ROLLED_BACK | {LATE}:
                raise
            await asyncio.sleep(random.random() * _HELD_SECONDS)  # noqa: S311 - spreads rivals, hides nothing
            continue
        if link.warnings:
            raise unconfirmed(link.where, link.warnings[0])
        if held and Outcome.DONE not in verdict.outcomes:
            await asyncio.sleep(_HELD_SECONDS)
        return verdict
    raise StoreUnavailable(f"{link.where} undid a commit {_TRIES} times, and nothing was changed.")


def _at_once(changes: Sequence[Change]) -> bool:
    """Whether one statement does it: no name comes twice, and no change brings several marks."""
    names = {change.name for change in changes}
    return len(names) == len(changes) and all(len(change.marks) < 2 for change in changes)


async def _put(link: Link, sql: Statements, change: Change) -> tuple[Verdict, bool]:
    deadline = NEVER if change.deadline is None else change.deadline
    place = {"name": change.name, "version": change.version, "body": change.body, "deadline": deadline}
    rows = await link.rows(sql.put, place)
    if rows:
        # The clock was compared a moment before it was read again to be told.
        return Verdict(min(rows[0][0], deadline), (Outcome.DONE,)), False
    ((now, version),) = await link.rows(sql.why, (change.name,))
    expired = version == change.version and now > deadline
    outcome = Outcome.EXPIRED if expired else Outcome.RACED
    return Verdict(now, (outcome,)), version == change.version and not expired


async def _in_one_transaction(
    link: Link, sql: Statements, hints: Hints, changes: Sequence[Change]
) -> tuple[Verdict, bool]:
    """Several statements where the order within a batch means something. All documents are locked before the first."""
    outcomes: dict[int, Outcome] = {}
    held = False
    try:
        await link.execute("BEGIN")
        names = sorted({change.name for change in changes})
        ((now, _),) = await link.rows(sql.lock_many, {"names": names, "idle": IDLE})
        for group in _apart(changes):
            verdict, waited = await apply(link, sql, hints, [changes[place] for place in group], now)
            outcomes.update(zip(group, verdict.outcomes, strict=True))
            held = held or waited
        await link.execute("COMMIT")
    except BaseException:
        await link.undo()
        raise
    return Verdict(now, tuple(outcomes[place] for place in range(len(changes)))), held


def _apart(changes: Sequence[Change]) -> list[list[int]]:
    """Places of changes, in groups in which no name comes twice, so that the order within a group means nothing."""
    of_name: dict[str, list[int]] = {}
    for place, change in enumerate(changes):
        of_name.setdefault(change.name, []).append(place)
    return [[one for one in row if one is not None] for row in zip_longest(*of_name.values())]


async def apply(
    link: Link, sql: Statements, hints: Hints, changes: Sequence[Change], at: int | None = None
) -> tuple[Verdict, bool]:
    """Changes of different names, and whether any was passed over because another session holds its row.

    By one statement, but for the marks of a change after its first. `at`: the time, where it was read before.
    """
    conditional = [place for place, change in enumerate(changes) if change.conditional]
    first = [(place, change.marks[0]) for place, change in enumerate(changes) if change.marks and not change.delete]
    first.sort(key=lambda one: changes[one[0]].name)  # as with documents: two batches never wait for each other
    batch = _Batch(changes, conditional, first)
    if not conditional and not first:
        ((now, _),) = await link.rows(sql.why, ("",))
        return Verdict(at or now, (Outcome.DONE,) * len(changes)), False
    rows = await link.rows(sql.commit(batch.parts), batch.arrays(hints, at))
    now, done, current, again, *_ = rows[0]
    won = {conditional[n - 1] for n in done or ()}
    stood = {conditional[n - 1] for n in current or ()}
    outcomes = []
    held = False
    for place, change in enumerate(changes):
        if not change.conditional or place in won:
            outcomes.append(Outcome.DONE)
        elif place in stood and change.deadline is not None and now > change.deadline:
            outcomes.append(Outcome.EXPIRED)
        else:
            outcomes.append(Outcome.RACED)
            held = held or place in stood
    lost = [(changes[first[n - 1][0]].name, first[n - 1][1]) for n in again or ()]
    await _note(link, sql, hints, lost, _later_marks(changes, outcomes))
    return Verdict(now, tuple(outcomes)), held


def _later_marks(changes: Sequence[Change], outcomes: Sequence[Outcome]) -> list[list[tuple[str, Mark]]]:
    """The second marks of all changes that were done, then the third ones, and so on."""
    done = zip(changes, outcomes, strict=True)
    rest = [
        [(change.name, mark) for mark in change.marks[1:]]
        for change, outcome in done
        if outcome is Outcome.DONE and not change.delete
    ]
    return [[one for one in row if one is not None] for row in zip_longest(*rest)]


async def _note(
    link: Link,
    sql: Statements,
    hints: Hints,
    lost: list[tuple[str, Mark]],
    later: Iterable[list[tuple[str, Mark]]],
) -> None:
    """Note marks beside no change: those that lost a race, until they win it, and the later ones, in their order."""
    for layer in (lost, *later):
        waiting = sorted(layer, key=lambda one: one[0])
        for _ in range(_TRIES):
            if not waiting:
                break
            changes = [Change(name, 0, None, marks=(mark,)) for name, mark in waiting]
            batch = _Batch(changes, [], list(enumerate(mark for _, mark in waiting)))
            ((_, _, _, again),) = await link.rows(sql.commit(batch.parts), batch.arrays(hints, None))
            waiting = [waiting[n - 1] for n in again or ()]


class _Batch:
    """Changes of different names as the arrays of one statement."""

    def __init__(self, changes: Sequence[Change], conditional: list[int], marks: list[tuple[int, Mark]]) -> None:
        self.changes = [changes[place] for place in conditional]
        number = {place: n for n, place in enumerate(conditional, 1)}
        self.marks = [(number.get(place), changes[place], mark) for place, mark in marks]
        numbered = [pair for pair in enumerate(self.changes, 1) if not pair[1].delete]
        self.records = [
            (n, record)
            for n, change in numbered
            for record in {one.run: one for one in change.records if one.run not in change.forget}.values()
        ]
        self.forget = [(n, run) for n, change in numbered for run in dict.fromkeys(change.forget)]
        self.trim = [(n, change.trim) for n, change in numbered if change.trim is not None]
        self.parts = Parts(
            update=any(change.version > 0 and not change.delete for change in self.changes),
            insert=any(change.version == 0 and not change.delete for change in self.changes),
            delete=any(change.delete for change in self.changes),
            records=bool(self.records),
            forget=bool(self.forget),
            trim=bool(self.trim),
            marks=bool(self.marks),
            hint=any(change.hint for change in self.changes),
        )

    def arrays(self, hints: Hints, at: int | None) -> dict[str, Any]:
        """The parameters of the statement."""
        told: dict[str, Any] = {
            "at": at,
            "channel": hints.channel,
            "origin": hints.origin,
            "c_name": [one.name for one in self.changes],
            "c_version": [one.version for one in self.changes],
            "c_deadline": [NEVER if one.deadline is None else one.deadline for one in self.changes],
            "c_body": [None if one.delete else one.body for one in self.changes],
            "c_hint": [one.hint for one in self.changes],
        }
        told.update(_columns("f", ("place", "run"), self.forget))
        told.update(_columns("t", ("place", "until"), self.trim))
        records = [(n, one.run, one.slot, one.status, one.ended, one.keep, one.body) for n, one in self.records]
        told.update(_columns("r", _RECORD, records))
        told.update(_columns("w", _MARK, [self._marking(*one) for one in self.marks]))
        return told

    def _marking(self, n: int | None, change: Change, one: Mark) -> tuple[Any, ...]:
        trim = -NEVER if change.trim is None or n is None else change.trim
        place = (n, change.name, one.slot, one.until, one.count)
        return (*place, one.why, one.whom, one.at, one.by, one.request, one.after, trim)


_RECORD: Final = ("place", "run", "slot", "status", "ended", "keep", "body")
_MARK: Final = (
    "place", "name", "slot", "until", "count", "why", "whom", "at", "noted_by", "request", "after", "trim",
)  # fmt: skip


def _columns(table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Rows as the arrays of a table of a statement."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {f"{table}_{name}": list(column) for name, column in zip(names, columns, strict=True)}


def told_names(payload: str) -> tuple[str, frozenset[str]]:
    """Who changed which documents, out of a notification. Raises ValueError for one that is not ours."""
    origin, names = json.loads(payload)
    return str(origin), frozenset(map(str, names))
