"""Every statement that the store runs on documents, history and marks, in one place.

A batch of any size is one statement: values go in as arrays. Statements are put together of those parts that
a batch needs, because a pooler lets none be prepared, and planning is most of what a small one costs.

In the texts `@` stands for the schema and the prefix of the tables, `$clock` and its like for what the list
below says, and `$[a: name text, slot int8]` for two arrays side by side as a table `a`, whose rows `n` counts
from one. Functions are named with their schema, so that no search path leads elsewhere.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

# As the contract says: of the records beyond the limit, so many are told.
HEADS: Final = 500
# A deadline where none was given.
NEVER: Final = 1 << 62

_MS: Final = "pg_catalog.floor(extract(epoch FROM pg_catalog.{}()) * 1000)::int8"
_WORDS: Final = {
    # The clock itself, for deadlines: it is read while the statement runs, once the rows are locked.
    "clock": _MS.format("clock_timestamp"),
    # The same, unless a time is given: where several statements of one transaction are of one time.
    "at": f"coalesce(%(at)s::int8, {_MS.format('clock_timestamp')})",
    # When the transaction began: never later than what a statement by itself sees.
    "began": _MS.format("now"),
    "heads": str(HEADS),
    # What a notification may carry is a little more, and a name has up to 512 bytes.
    "payload": "7900",
    "together": "7",
    # The timeline of the server that answers, in hexadecimal digits. It fails on a standby.
    "timeline": "pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)",
}
_ARRAYS: Final = re.compile(r"\$\[(\w+):([^]]*)\]")


def spelled(text: str, place: str) -> str:
    """A text with what its signs stand for."""
    text = _ARRAYS.sub(_table, text.replace("@", place))
    return re.sub(r"\$(\w+)", lambda match: _WORDS[match[1]], text)


def _table(match: re.Match[str]) -> str:
    alias, columns = match[1], [column.split() for column in match[2].split(",")]
    arrays = ", ".join(
        f"pg_catalog.unnest(%({alias}_{name}){'b' if kind == 'bytea' else 's'}::{kind}[])" for name, kind in columns
    )
    names = ", ".join(name for name, _ in columns)
    return f"ROWS FROM ({arrays}) WITH ORDINALITY AS {alias}({names}, n)"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a batch of changes of different names consists of."""

    update: bool = False
    insert: bool = False
    delete: bool = False
    records: bool = False
    forget: bool = False
    trim: bool = False
    marks: bool = False
    hint: bool = False

    @property
    def conditional(self) -> bool:
        """Whether any document is to be changed."""
        return self.update or self.insert or self.delete


class Statements:
    """The statements for tables of one schema and prefix."""

    def __init__(self, schema: str, prefix: str) -> None:
        self.place = f'"{schema}".{prefix}'
        self.commit = functools.lru_cache(maxsize=256)(self._commit)
        self.page = self._of(_PAGE)
        self.put = self._of(_PUT)
        self.why = self._of(_WHY)
        self.lock_one = self._of(_LOCK_ONE)
        self.lock_many = self._of(_LOCK_MANY)
        self.names = self._of(_NAMES)
        self.records = self._of(_RECORDS)
        self.marks = self._of(_MARKS)
        self.read = functools.lru_cache(maxsize=64)(self._read)

    def _of(self, text: str) -> str:
        return spelled(text, self.place)

    def _read(self, past: bool, before: bool, beyond: bool, timeline: bool, given: bool) -> str:
        """The reading of any number of asks; with what some of them ask besides. `given`: the time is a parameter."""
        now = "%(now)s::int8" if given else "$began"
        line = "$timeline" if timeline else "NULL::text"
        parts = [_TIME.replace("{now}", now).replace("{line}", line), _DOCUMENTS]
        parts += [text for text, wanted in ((_PAST, past), (_BEFORE, before), (_BEYOND, beyond)) if wanted]
        return self._of(" UNION ALL ".join(parts))

    def _commit(self, parts: Parts) -> str:
        """Changes of different names, each wholly or not at all; gives the time and what became of them.

        One row: the time, the places of those done, of those that were current and yet not done, of marks that
        lost a race and are to be noted again.
        """
        tables: list[str] = []
        if parts.conditional:
            tables += [_CHANGES, _LOCKED, _CLOCK]
            done = []
            if parts.update:
                tables.append(_UPDATED)
                done.append("SELECT n FROM updated")
            if parts.insert:
                tables.append(_INSERTED)
                done.append("SELECT c.n FROM inserted i JOIN c ON c.name = i.name")
            if parts.delete:
                tables += _DELETED
                done.append("SELECT n FROM gone")
            tables.append(f"done AS MATERIALIZED ({' UNION ALL '.join(done)})")
            tables += [
                text
                for text, wanted in ((_RECORDED, parts.records), (_FORGOTTEN, parts.forget), (_TRIMMED, parts.trim))
                if wanted
            ]
        if parts.marks:
            tables += _noted(parts)
        return self._of(f"WITH {', '.join(tables)} {_told(parts)}")


def _noted(parts: Parts) -> list[str]:
    """Marks of different names. What is trimmed by the same statement is deleted first."""
    whose = "(w.place IS NULL OR w.place IN (SELECT n FROM done))" if parts.conditional else "true"
    after = "(SELECT pg_catalog.count(*) FROM trimmed)" if parts.trim else "(SELECT 0)"
    return [_JUDGED.replace("{whose}", whose), _EXTENDED, _NEWLY_NOTED.replace("{after}", after)]


def _told(parts: Parts) -> str:
    again = _AGAIN if parts.marks else "NULL::int8[]"
    if not parts.conditional:
        return _ALONE.replace("{again}", again)
    beside = [_LATE] if parts.insert else []
    beside += [_HINTED] if parts.hint else []
    return " ".join((", ".join((_SELECTED, _CURRENT, again, *beside)), "FROM clock"))


# --- reading ----------------------------------------------------------------------------------------------

# One name and at most one run, as for a claim: what most reads are.
_PAGE: Final = """
    SELECT $began, d.version, d.body, h.body FROM (SELECT %s::text AS name) a
    LEFT JOIN @documents d ON d.name = a.name LEFT JOIN @history h ON h.name = a.name AND h.run = %s::text"""

# Rows of (kind, place in the list asked from one on, number, body, text, number); OFFSET 0 keeps the planner from
# making joins of look-ups, which with old statistics would read the whole history.
_TIME: Final = "SELECT 0, 0::int8, {now}, NULL::bytea, {line}, NULL::int8"
_DOCUMENTS: Final = """
    SELECT 1, asked.n, d.version, d.body, NULL, NULL
    FROM $[asked: name text] JOIN @documents d ON d.name = asked.name"""
_PAST: Final = """
    SELECT 2, past.n, NULL, h.body, NULL, NULL
    FROM $[past: name text, run text]
    CROSS JOIN LATERAL (SELECT body FROM @history WHERE name = past.name AND run = past.run OFFSET 0) h"""
# A mark that spans the slot counts up to it, and of the others the newest end does: both are found by the index.
_BEFORE: Final = """
    SELECT 3, a.n, GREATEST(
        (SELECT slot FROM @history WHERE name = a.name AND slot < a.slot AND pg_catalog.strpos(run, '#') = 0
            ORDER BY slot DESC LIMIT 1),
        CASE WHEN EXISTS (SELECT 1 FROM @marks
                WHERE name = a.name AND request = '' AND until >= a.slot - 1 AND slot < a.slot) THEN a.slot - 1
            ELSE (SELECT pg_catalog.max(until) FROM @marks
                WHERE name = a.name AND request = '' AND until < a.slot) END), NULL, NULL, NULL
    FROM $[a: name text, slot int8]"""
# The boundary is sought from the newest: a million records may lie beyond it, of which few are told.
_BEYOND: Final = """
    SELECT 4, b.n, h.slot, NULL, h.run, h.keep
    FROM $[b: name text, kept int8, kept_marks int8]
    CROSS JOIN LATERAL (SELECT run, slot, keep FROM @history WHERE name = b.name AND (slot, run) <= (
            SELECT slot, run FROM @history WHERE name = b.name ORDER BY slot DESC, run DESC LIMIT 1 OFFSET b.kept)
        ORDER BY slot, run LIMIT $heads) h
    UNION ALL
    SELECT 5, b.n, (SELECT pg_catalog.max(until) FROM (SELECT until FROM @marks WHERE name = b.name
        ORDER BY slot DESC, until DESC, request DESC OFFSET b.kept_marks) m), NULL, NULL, NULL
    FROM $[b: name text, kept int8, kept_marks int8]"""

_NAMES: Final = "SELECT name FROM @documents WHERE name >= %s::text AND pg_catalog.starts_with(name, %s::text)"
_RECORDS: Final = """
    SELECT run, slot, status, ended, keep, body FROM @history
    WHERE name = %s::text AND slot BETWEEN %s::int8 AND %s::int8 ORDER BY slot DESC, run LIMIT %s::int8"""
_MARKS: Final = """
    SELECT slot, until, count, why, whom, at, noted_by, request FROM @marks
    WHERE name = %s::text AND until >= %s::int8 AND slot <= %s::int8
    ORDER BY slot DESC, until DESC, request DESC LIMIT %s::int8"""


# --- changing ---------------------------------------------------------------------------------------------

# One change of a document that is there, and nothing beside: what most changes are. The inner query locks the
# row, or passes over it where another session holds it, and reads it only where the change is stale or late:
# a change that loses writes nothing. The clock is compared again once the lock is held.
_PUT: Final = """
    UPDATE @documents d SET version = d.version + 1, body = %(body)b
    WHERE d.name = (SELECT l.name FROM @documents l WHERE l.name = %(name)s::text AND l.version = %(version)s::int8
            AND %(deadline)s::int8 >= $clock FOR UPDATE SKIP LOCKED)
        AND d.version = %(version)s::int8 AND %(deadline)s::int8 >= $clock
    RETURNING $clock"""
_WHY: Final = "SELECT $clock, (SELECT version FROM @documents WHERE name = %s::text)"

# The changes; a body of NULL is a deletion.
_CHANGES: Final = """
    c AS MATERIALIZED (
        SELECT * FROM $[c: name text, version int8, deadline int8, body bytea, hint bool])"""
# In the order of the names: two batches that lock the same rows the other way round would wait for each other.
_LOCKED: Final = """
    locked AS MATERIALIZED (
        SELECT c.n FROM c JOIN @documents d ON d.name = c.name AND d.version = c.version
        WHERE c.deadline >= $at ORDER BY d.name FOR UPDATE OF d SKIP LOCKED)"""
# Counting what was locked is what puts the clock after the locks.
_CLOCK: Final = "clock AS MATERIALIZED (SELECT $at AS now FROM (SELECT pg_catalog.count(*) FROM locked) l)"
_UPDATED: Final = """
    updated AS (
        UPDATE @documents d SET version = d.version + 1, body = c.body
        FROM locked l JOIN c ON c.n = l.n CROSS JOIN clock
        WHERE d.name = c.name AND d.version = c.version AND c.body IS NOT NULL AND c.deadline >= clock.now
        RETURNING c.n)"""
_INSERTED: Final = """
    inserted AS (
        INSERT INTO @documents (name, version, body) SELECT c.name, 1, c.body FROM c CROSS JOIN clock
        WHERE c.version = 0 AND c.body IS NOT NULL AND c.deadline >= clock.now ORDER BY c.name
        ON CONFLICT DO NOTHING RETURNING name)"""
_DELETED: Final = (
    """deleted AS (
        DELETE FROM @documents d USING locked l JOIN c ON c.n = l.n CROSS JOIN clock
        WHERE d.name = c.name AND d.version = c.version AND c.body IS NULL AND c.deadline >= clock.now
        RETURNING c.n, c.name)""",
    """gone AS MATERIALIZED (
        SELECT n, name FROM deleted UNION ALL
        SELECT c.n, c.name FROM c CROSS JOIN clock WHERE c.version = 0 AND c.body IS NULL
            AND c.deadline >= clock.now AND NOT EXISTS (SELECT 1 FROM @documents d WHERE d.name = c.name))""",
    "gone_records AS (DELETE FROM @history h USING gone g WHERE h.name = g.name)",
    "gone_marks AS (DELETE FROM @marks m USING gone g WHERE m.name = g.name)",
)
_RECORDED: Final = """
    recorded AS (
        INSERT INTO @history (name, run, slot, status, ended, keep, body)
        SELECT c.name, r.run, r.slot, r.status, r.ended, r.keep, r.body
        FROM $[r: place int8, run text, slot int8, status text, ended int8, keep int8, body bytea]
        JOIN done ON done.n = r.place JOIN c ON c.n = r.place ORDER BY c.name, r.run
        ON CONFLICT (name, run) DO UPDATE SET slot = excluded.slot, status = excluded.status,
            ended = excluded.ended, keep = excluded.keep, body = excluded.body)"""
# Rows are looked up one by one through the key, as in reading, and deleted by where they lie: the document's lock
# keeps everybody else from them.
_FORGOTTEN: Final = """
    forgotten AS (
        DELETE FROM @history WHERE ctid = ANY (ARRAY(
            SELECT h.ctid FROM $[f: place int8, run text]
            JOIN done ON done.n = f.place JOIN c ON c.n = f.place
            CROSS JOIN LATERAL (SELECT ctid FROM @history WHERE name = c.name AND run = f.run OFFSET 0) h)))"""
_TRIMMED: Final = """
    trimmed AS (
        DELETE FROM @marks m USING
            $[t: place int8, until int8]
            JOIN done ON done.n = t.place JOIN c ON c.n = t.place
        WHERE m.name = c.name AND m.until <= t.until RETURNING 1)"""
# Marks that no mark covers, with the slot of the one to extend. All parts of a statement see the tables as they
# were before it: what `trimmed` deletes is passed over here.
_JUDGED: Final = """
    judged AS MATERIALIZED (
        SELECT w.*, CASE WHEN w.request = '' THEN (SELECT pg_catalog.max(m.slot) FROM @marks m
            WHERE m.name = w.name AND m.request = '' AND m.until = w.after AND m.why = w.why AND m.whom = w.whom
                AND m.until > w.trim) END AS neighbour
        FROM $[w: place int8, name text, slot int8, until int8, count int8, why text, whom text, at int8, noted_by text,
            request text, after int8, trim int8]
        WHERE {whose} AND NOT EXISTS (SELECT 1 FROM @marks m WHERE m.name = w.name
            AND m.request = w.request AND m.until >= w.slot AND m.slot <= w.slot AND m.until > w.trim))"""
_EXTENDED: Final = """
    extended AS (
        UPDATE @marks m SET until = j.until, count = m.count + j.count, at = j.at FROM judged j
        WHERE m.name = j.name AND m.slot = j.neighbour AND m.request = '' AND m.until = j.after RETURNING j.n)"""
_NEWLY_NOTED: Final = """
    noted AS (
        INSERT INTO @marks (name, slot, request, until, count, why, whom, at, noted_by)
        SELECT j.name, j.slot, j.request, j.until, j.count, j.why, j.whom, j.at, j.noted_by
        FROM judged j CROSS JOIN {after} AS trimming WHERE j.neighbour IS NULL ORDER BY j.name, j.slot
        ON CONFLICT DO NOTHING)"""

_ALONE: Final = "SELECT $at, NULL::int8[], NULL::int8[], {again}"
_SELECTED: Final = "SELECT clock.now, ARRAY(SELECT n FROM done)"
_CURRENT: Final = """ARRAY(SELECT c.n FROM c LEFT JOIN @documents d ON d.name = c.name
    WHERE coalesce(d.version, 0) = c.version AND c.n NOT IN (SELECT n FROM done))"""
_AGAIN: Final = "ARRAY(SELECT n FROM judged WHERE neighbour IS NOT NULL AND n NOT IN (SELECT n FROM extended))"
# An insert may have waited for another of the same name that was then rolled back. If a deadline has passed
# meanwhile, the whole statement is undone: there is no other way to fail than to fail.
_LATE: Final = """CASE WHEN (SELECT pg_catalog.min(c.deadline) FROM inserted i JOIN c ON c.name = i.name) < $at
    THEN 1 / (clock.now - clock.now) END"""
_HINTED: Final = """(SELECT pg_catalog.count(pg_catalog.pg_notify(%(channel)s, told.payload)::text) FROM (
    SELECT pg_catalog.json_build_array(%(origin)s::text, pg_catalog.json_agg(h.name))::text AS payload FROM (
        SELECT c.name, pg_catalog.row_number() OVER () / $together AS part
        FROM c JOIN done ON done.n = c.n WHERE c.hint) h GROUP BY h.part OFFSET 0) told
    WHERE pg_catalog.octet_length(told.payload) <= $payload)"""

# Before several statements on the same documents: all are locked, and are of one time. A process that stands
# still between them loses its connection rather than holding up the others.
_LOCK_MANY: Final = """
    WITH locked AS MATERIALIZED (
        SELECT 1 FROM @documents WHERE name = ANY (%(names)s::text[]) ORDER BY name FOR UPDATE SKIP LOCKED)
    SELECT $clock, pg_catalog.set_config('idle_in_transaction_session_timeout', %(idle)s, true)
    FROM (SELECT pg_catalog.count(*) FROM locked) l"""
# For a transaction of the user's (R39): it waits for those who hold the row, and tells when it began.
_LOCK_ONE: Final = """
    WITH locked AS MATERIALIZED (SELECT 1 FROM @documents WHERE name = %(name)s::text FOR UPDATE)
    SELECT $clock, pg_catalog.now(), pg_catalog.set_config('idle_in_transaction_session_timeout', %(idle)s, true)
    FROM (SELECT pg_catalog.count(*) FROM locked) l"""
