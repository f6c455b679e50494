"""Reading and changing documents, inside a transaction that somebody else began and ends.

All that is kept stands under a name, and names have nothing to do with each other: so changes of different
names are taken together, in one statement for each table, and only those of one name one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Reading
from tenure.stores.sqlite.schema import CLOCK, Executes, Statements

# As the contract says: of the records beyond the limit, so many are told.
HEADS: Final = 500

_dumps: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


# --- reading ----------------------------------------------------------------------------------------------


def read(connection: Executes, sql: Statements, asks: Sequence[Ask]) -> Reading:
    """What stands under the names asked. The clock comes first: it may not be later than what is seen."""
    now = connection.execute(CLOCK).fetchone()[0]
    return Reading(now, look_up(connection, sql, asks))


def plain(asks: Sequence[Ask]) -> bool:
    """Whether one statement answers it: one name and at most one run, as for a claim."""
    return len(asks) == 1 and len(asks[0].runs) < 2 and asks[0].beyond is None and asks[0].before is None


def read_plain(connection: Executes, sql: Statements, ask: Ask) -> Reading:
    """As `read`, for what is plain, and without a transaction around it."""
    run = ask.runs[0] if ask.runs else None
    now = connection.execute(CLOCK).fetchone()[0]
    row = connection.execute(sql.page, (run, ask.name)).fetchone()
    if row is None:
        return Reading(now, (Found(),))
    version, body, past = row
    return Reading(now, (Found(version, body, {} if run is None or past is None else {run: past}),))


def look_up(connection: Executes, sql: Statements, asks: Sequence[Ask]) -> tuple[Found, ...]:
    """What stands under the names asked, in their order."""
    bodies = _bodies(connection, sql.document, sql.documents, [ask.name for ask in asks])
    runs = [(place, run) for place, ask in enumerate(asks) for run in ask.runs]
    past: dict[int, dict[str, bytes]] = {}
    if runs:
        told = _bodies(connection, sql.past_one, sql.past, [(asks[place].name, run) for place, run in runs])
        for at, (body,) in told.items():
            place, run = runs[at]
            past.setdefault(place, {})[run] = body
    before = _before(connection, sql, [(ask.name, ask.before) for ask in asks if ask.before is not None])
    beyond = _beyond(connection, sql, asks)
    found = []
    for place, ask in enumerate(asks):
        body, version = bodies.get(place, (None, 0))
        heads, marks_until = beyond.get((ask.name, ask.beyond), ((), None))
        last = before.get((ask.name, ask.before))
        found.append(Found(version, body, past.get(place, {}), heads, marks_until, last))
    return tuple(found)


def _bodies(connection: Executes, one: str, many: str, wanted: list[Any]) -> dict[int, tuple[Any, ...]]:
    """By the place in `wanted`, a list of keys: the body, and what else the statement tells of it."""
    if len(wanted) == 1:
        key = wanted[0]
        row = connection.execute(one, key if isinstance(key, tuple) else (key,)).fetchone()
        return {} if row is None else {0: (row[-1], *row[:-1])}
    told, joined = connection.execute(many, (_dumps(wanted),)).fetchone()
    bodies, begin = {}, 0
    for place, *rest, length in json.loads(told):
        bodies[place] = (joined[begin : begin + length] if length else b"", *rest)
        begin += length
    return bodies


def _before(
    connection: Executes, sql: Statements, asked: list[tuple[str, int]]
) -> dict[tuple[str, int | None], int | None]:
    if not asked:
        return {}
    told = json.loads(connection.execute(sql.before, (_dumps(asked),)).fetchone()[0])
    return {(name, slot): max((one for one in ends if one is not None), default=None) for name, slot, *ends in told}


_Beyond = dict[tuple[str, tuple[int, int] | None], tuple[tuple[tuple[str, int, int], ...], int | None]]


def _beyond(connection: Executes, sql: Statements, asks: Sequence[Ask]) -> _Beyond:
    """What lies beyond the limits; asks with the same limits are answered together."""
    names: dict[tuple[int, int], list[str]] = {}
    for ask in asks:
        if ask.beyond is not None:
            names.setdefault(ask.beyond, []).append(ask.name)
    beyond: _Beyond = {}
    for limits, named in names.items():
        records, marks = limits
        heads = connection.execute(sql.heads, (records, HEADS, _dumps(named))).fetchone()[0]
        untils = connection.execute(sql.marks_until, (marks, _dumps(named))).fetchone()[0]
        for (name, head), (_, until) in zip(json.loads(heads), json.loads(untils), strict=True):
            beyond[name, limits] = tuple((run, slot, keep) for run, slot, keep in head), until
    return beyond


# --- changing ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Applied:
    """What became of the changes, and whether any of them wrote."""

    now: int
    outcomes: list[Outcome]
    wrote: bool = False


def apply(connection: Executes, sql: Statements, changes: Sequence[Change]) -> Applied:
    """Take the changes, each wholly or not at all, in their order. The transaction holds the write lock.

    The clock is read here, once: after the lock was had, so that no change that waited beats its deadline.
    """
    now, current = _versions(connection, sql, [change.name for change in changes])
    applied = Applied(now, [_judge(change, current, now) for change in changes])
    done = [change for change, what in zip(changes, applied.outcomes, strict=True) if what is Outcome.DONE]
    for together in _apart(done):
        wrote = _write(connection, sql, together)
        applied.wrote = applied.wrote or wrote
    return applied


def hint(connection: Executes, sql: Statements, names: Iterable[str], origin: str, now: int) -> None:
    """Leave word for other processes that these documents were changed, by `origin`."""
    connection.execute(sql.hint, (origin, now, _dumps(list(names))))


def _versions(connection: Executes, sql: Statements, names: list[str]) -> tuple[int, dict[str, int]]:
    """The store's time, and the versions of the documents that are there."""
    if len(names) == 1:
        now, version = connection.execute(sql.version, (names[0],)).fetchone()
        return now, {} if version is None else {names[0]: version}
    now, versions = connection.execute(sql.versions, (_dumps(names),)).fetchone()
    return now, {names[place]: version for place, version in json.loads(versions)}


def _judge(change: Change, current: dict[str, int], now: int) -> Outcome:
    """The outcome; `current` holds the versions that the changes before this one left."""
    if not change.conditional:
        return Outcome.DONE
    if current.get(change.name, 0) != change.version:
        return Outcome.RACED
    if change.deadline is not None and now > change.deadline:
        return Outcome.EXPIRED
    if change.delete:
        current.pop(change.name, None)
    else:
        current[change.name] = change.version + 1
    return Outcome.DONE


def _apart(changes: list[Change]) -> list[list[Change]]:
    """Groups in which no name comes twice, so that the order within a group means nothing."""
    if len(changes) < 2:
        return [changes]
    of_name: dict[str, list[Change]] = {}
    for change in changes:
        of_name.setdefault(change.name, []).append(change)
    return [[one for one in row if one is not None] for row in zip_longest(*of_name.values())]


def _write(connection: Executes, sql: Statements, changes: list[Change]) -> bool:
    """Write changes of different names. Whether there was anything to write."""
    deleted = [change.name for change in changes if change.delete]
    if deleted:
        for statement in (sql.delete, sql.delete_history, sql.delete_marks):
            connection.execute(statement, (_dumps(deleted),))
    changed = [change for change in changes if change.body is not None and not change.delete]
    if changed:
        _write_documents(connection, sql, changed)
    marked = [[(one.name, mark) for mark in one.marks] for one in changes if one.marks and not one.delete]
    noted = [_note(connection, sql, [one for one in row if one is not None]) for row in zip_longest(*marked)]
    return bool(deleted or changed or any(noted))


def _write_documents(connection: Executes, sql: Statements, changes: list[Change]) -> None:
    """Write documents, and what their changes say of history and marks."""
    _put(connection, sql.put_one, sql.put, [((one.name, one.version + 1), one.body or b"") for one in changes])
    records = [
        ((change.name, one.run, one.slot, one.status, one.ended, one.keep), one.body)
        for change in changes
        if change.records
        for one in {record.run: record for record in change.records}.values()
    ]
    if records:
        _put(connection, sql.record_one, sql.record, records)
    forgotten = [(change.name, run) for change in changes for run in change.forget]
    if forgotten:
        connection.execute(sql.forget, (_dumps(forgotten),))
    trimmed = [(change.name, change.trim) for change in changes if change.trim is not None]
    if trimmed:
        connection.execute(sql.trim, (_dumps(trimmed),))


def _put(connection: Executes, one: str, many: str, rows: list[tuple[tuple[Any, ...], bytes]]) -> None:
    """Write rows that end in a body. Of several, the bodies go as one blob, and each row says where its own begins."""
    if len(rows) == 1:
        connection.execute(one, (*rows[0][0], rows[0][1]))
        return
    begin, placed = 2, []
    for columns, body in rows:
        placed.append((*columns, begin, len(body)))
        begin += len(body)
    # A byte goes before them all: of an empty blob SQLite makes NULL.
    connection.execute(many, (b"".join((b"|", *(body for _, body in rows))), _dumps(placed)))


def _note(connection: Executes, sql: Statements, marks: list[tuple[str, Mark]]) -> bool:
    """Insert marks of different names where none covers their slot, or extend the neighbour before."""
    wanted = [(name, one.request, one.slot, one.after, one.why, one.whom) for name, one in marks]
    rows = []
    for place, covered, neighbour in json.loads(connection.execute(sql.neighbours, (_dumps(wanted),)).fetchone()[0]):
        if covered:
            continue
        name, one = marks[place]
        slot = one.slot if neighbour is None or one.request else neighbour
        rows.append((name, slot, one.request, one.until, one.count, one.why, one.whom, one.at, one.by))
    if rows:
        connection.execute(sql.mark, (_dumps(rows),))
    return bool(rows)
