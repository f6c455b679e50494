"""The tables of the SQLite store and every statement that it runs, in one place.

The power-cut test runs the same statements through another driver: nothing here knows sqlite3, files or threads.

Statements work on sets: names and values go in as one JSON array and come back as one row. A driver gives up
the interpreter's lock at every row, so beside a handler that computes in another thread a thousand rows
wait a thousand times for it (measured: seconds), and one row once. For a single name there is a shorter form.

In the texts below `@` stands for the prefix of the tables, and `$0` for the first part of the JSON array that
stands at this place of the argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol

from tenure.errors import StoreCorrupt, StoreError

# The version of the tables that this code makes and knows.
SCHEMA: Final = 1

# With FULL a commit is on the disk when it is answered, also where a plain fsync stops at the drive's cache
# (macOS). With NORMAL a power cut forgets acknowledged commits.
DURABILITY: Final = {
    "full": ("PRAGMA synchronous = FULL", "PRAGMA fullfsync = 1", "PRAGMA checkpoint_fullfsync = 1"),
    "normal": ("PRAGMA synchronous = NORMAL",),
}
WRITE_AHEAD: Final = "PRAGMA journal_mode = WAL"
# A write-ahead log that grew while a long reader held it is cut back to 16 MiB.
LEAN: Final = "PRAGMA journal_size_limit = 16777216"

BEGIN_READ: Final = "BEGIN"
BEGIN_WRITE: Final = "BEGIN IMMEDIATE"
COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"
DATA_VERSION: Final = "PRAGMA data_version"

# unixepoch('subsec') is NULL, silently, before SQLite 3.42; julianday is exact to the millisecond everywhere.
CLOCK: Final = "SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"


class Rows(Protocol):
    """What a statement gave."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Executes(Protocol):
    """The part of a driver's connection that the statements need."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...


_TABLES: Final = {
    "meta": "CREATE TABLE @meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "documents": """CREATE TABLE @documents (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID""",
    "history": """CREATE TABLE @history (
        name TEXT NOT NULL, run TEXT NOT NULL, slot INTEGER NOT NULL, status TEXT NOT NULL,
        ended INTEGER NOT NULL, keep INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (name, run)) STRICT, WITHOUT ROWID""",
    "marks": """CREATE TABLE @marks (
        name TEXT NOT NULL, slot INTEGER NOT NULL, request TEXT NOT NULL, until INTEGER NOT NULL,
        count INTEGER NOT NULL, why TEXT NOT NULL, whom TEXT NOT NULL, at INTEGER NOT NULL,
        noted_by TEXT NOT NULL, PRIMARY KEY (name, slot, request)) STRICT, WITHOUT ROWID""",
    # AUTOINCREMENT: a number used again would be passed over by a poller that remembers the last it saw.
    "hints": """CREATE TABLE @hints (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, origin TEXT NOT NULL,
        at INTEGER NOT NULL) STRICT""",
}
_INDEXES: Final = (
    "CREATE INDEX @history_slot ON @history (name, slot, run)",
    "CREATE INDEX @marks_until ON @marks (name, request, until)",
)


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements over documents, history, marks and hints. Bodies travel as one blob of all of them."""

    version: str = """
        SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), (
            SELECT version FROM @documents WHERE name = ?)"""
    # Takes names; gives the store's time, and (place, version) of those that are there.
    versions: str = """
        SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), (
            SELECT json_group_array(json_array(w.key, d.version))
            FROM json_each(?) w CROSS JOIN @documents d ON d.name = w.value)"""
    put_one: str = """
        INSERT INTO @documents (name, version, body) VALUES (?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body"""
    # Takes the bodies, and rows (name, version, begin of the body, its length).
    put: str = """
        INSERT INTO @documents (name, version, body)
        SELECT $0, $1, substr(?, $2, $3) FROM json_each(?) WHERE true
        ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body"""
    # Take names.
    delete: str = "DELETE FROM @documents WHERE name IN (SELECT value FROM json_each(?))"
    delete_history: str = "DELETE FROM @history WHERE name IN (SELECT value FROM json_each(?))"
    delete_marks: str = "DELETE FROM @marks WHERE name IN (SELECT value FROM json_each(?))"
    record_one: str = """
        INSERT OR REPLACE INTO @history (name, run, slot, status, ended, keep, body) VALUES (?, ?, ?, ?, ?, ?, ?)"""
    # Takes the bodies, and rows (name, run, slot, status, ended, keep, begin of the body, its length).
    record: str = """
        INSERT OR REPLACE INTO @history (name, run, slot, status, ended, keep, body)
        SELECT $0, $1, $2, $3, $4, $5, substr(?, $6, $7) FROM json_each(?)"""
    # Takes rows (name, run).
    forget: str = "DELETE FROM @history WHERE (name, run) IN (SELECT $0, $1 FROM json_each(?))"
    # Takes rows (name, until).
    trim: str = """
        DELETE FROM @marks WHERE (name, slot, request) IN (
            SELECT m.name, m.slot, m.request FROM json_each(?) w
            CROSS JOIN @marks m ON m.name = $0 AND m.until <= $1)"""
    # Takes rows (name, request, slot, after, why, whom); gives (place, is it covered, slot of the one to extend).
    # The + keeps the planner from walking all marks by slot: those that end at `after` are few, and found by index.
    neighbours: str = """
        SELECT json_group_array(json_array(w.key,
            EXISTS (SELECT 1 FROM @marks m
                WHERE m.name = $0 AND m.request = $1 AND m.until >= $2 AND m.slot <= $2),
            (SELECT max(+m.slot) FROM @marks m
                WHERE m.name = $0 AND m.request = '' AND m.until = $3 AND m.why = $4 AND m.whom = $5)))
        FROM json_each(?) w"""
    # Takes rows (name, slot, request, until, count, why, whom, at, by).
    mark: str = """
        INSERT INTO @marks (name, slot, request, until, count, why, whom, at, noted_by)
        SELECT $0, $1, $2, $3, $4, $5, $6, $7, $8 FROM json_each(?) WHERE true
        ON CONFLICT (name, slot, request) DO UPDATE
        SET until = excluded.until, count = count + excluded.count, at = excluded.at"""
    # Takes the origin, the store's time, names.
    hint: str = "INSERT INTO @hints (name, origin, at) SELECT value, ?, ? FROM json_each(?)"
    sweep: str = "DELETE FROM @hints WHERE at < ?"

    # A document and at most one record of its history: of one moment without a transaction. Takes run, name.
    page: str = """
        SELECT d.version, d.body, (SELECT h.body FROM @history h WHERE h.name = d.name AND h.run = ?)
        FROM @documents d WHERE d.name = ?"""
    document: str = "SELECT version, body FROM @documents WHERE name = ?"
    # Takes names; gives (place, version, length of the body), and the bodies.
    documents: str = """
        SELECT json_group_array(json_array(w.key, d.version, length(d.body))),
            CAST(group_concat(d.body, '') AS BLOB)
        FROM json_each(?) w CROSS JOIN @documents d ON d.name = w.value"""
    past_one: str = "SELECT body FROM @history WHERE name = ? AND run = ?"
    # Takes rows (name, run); gives (place, length of the body), and the bodies.
    past: str = """
        SELECT json_group_array(json_array(w.key, length(h.body))), CAST(group_concat(h.body, '') AS BLOB)
        FROM json_each(?) w CROSS JOIN @history h ON h.name = $0 AND h.run = $1"""
    # Takes rows (name, slot); gives (name, slot, the last one below it with a record, with a mark). A mark that
    # spans the slot counts up to it, and of the others the newest end does: so both are found by the index.
    before: str = """
        SELECT json_group_array(json_array($0, $1,
            (SELECT slot FROM @history WHERE name = $0 AND slot < $1 AND instr(run, '#') = 0
                ORDER BY slot DESC LIMIT 1),
            CASE WHEN EXISTS (SELECT 1 FROM @marks
                    WHERE name = $0 AND request = '' AND until >= $1 - 1 AND slot < $1) THEN $1 - 1
                ELSE (SELECT max(until) FROM @marks WHERE name = $0 AND request = '' AND until < $1) END))
        FROM json_each(?) w"""
    # Takes how many records to keep and to tell, names; gives (name, rows (run, slot, keep)).
    # The boundary is sought from the newest: a million records may lie beyond it, of which few are told.
    heads: str = """
        SELECT json_group_array(json_array(w.value, (
            SELECT json_group_array(json_array(run, slot, keep)) FROM (
                SELECT run, slot, keep FROM @history WHERE name = w.value AND (slot, run) <= (
                    SELECT slot, run FROM @history WHERE name = w.value
                    ORDER BY slot DESC, run DESC LIMIT 1 OFFSET ?)
                ORDER BY slot, run LIMIT ?))))
        FROM json_each(?) w"""
    # Takes how many marks to keep, names; gives (name, until).
    marks_until: str = """
        SELECT json_group_array(json_array(w.value, (
            SELECT max(until) FROM (SELECT until FROM @marks WHERE name = w.value
                ORDER BY slot DESC, until DESC, request DESC LIMIT -1 OFFSET ?))))
        FROM json_each(?) w"""
    # Takes the prefix, three times.
    names: str = """
        SELECT json_group_array(name) FROM @documents
        WHERE name >= ? AND substr(name, 1, length(?)) = ?"""
    records: str = """
        SELECT run, slot, status, ended, keep, body FROM @history
        WHERE name = ? AND slot BETWEEN ? AND ? ORDER BY slot DESC, run LIMIT ?"""
    marks: str = """
        SELECT slot, until, count, why, whom, at, noted_by, request FROM @marks
        WHERE name = ? AND until >= ? AND slot <= ?
        ORDER BY slot DESC, until DESC, request DESC LIMIT ?"""
    hints: str = "SELECT id, name FROM @hints WHERE id > ? AND origin <> ? ORDER BY id"
    newest_hint: str = "SELECT coalesce(max(id), 0) FROM @hints"


def statements(prefix: str) -> Statements:
    """The statements for tables whose names begin with `prefix`, a plain identifier."""
    return Statements(**{field.name: _spelled(str(field.default), prefix) for field in fields(Statements)})


def _spelled(text: str, prefix: str) -> str:
    return re.sub(r"\$(\d)", r"json_extract(value, '$[\1]')", text.replace("@", prefix))


def creation(prefix: str) -> tuple[str, ...]:
    """The statements that make the tables and their indexes."""
    return tuple(_spelled(text, prefix) for text in (*_TABLES.values(), *_INDEXES))


def prepare(connection: Executes, prefix: str, where: str) -> None:
    """Make the tables where there are none, else check that they are ours; inside a write transaction.

    Raises as `created`.
    """
    if not created(connection, prefix, where):
        for text in creation(prefix):
            connection.execute(text)
        connection.execute(_spelled("INSERT INTO @meta (key, value) VALUES ('schema', ?)", prefix), (SCHEMA,))


def created(connection: Executes, prefix: str, where: str) -> bool:
    """Whether the tables are there.

    Raises StoreError for the tables of a newer Tenure, StoreCorrupt for tables that are not Tenure's.
    """
    ours = {prefix + name for name in _TABLES}
    present = {row[0] for row in connection.execute("SELECT name FROM sqlite_master").fetchall()} & ours
    if not present:
        return False
    schema = None
    if prefix + "meta" in present:
        schema = connection.execute(_spelled("SELECT value FROM @meta WHERE key = 'schema'", prefix)).fetchone()
    if schema is not None and schema[0] > SCHEMA:
        raise StoreError(
            f"{where} was set up by a newer Tenure: its tables are of version {schema[0]}, and this Tenure knows "
            f"{SCHEMA}. Upgrade Tenure here, or use another file."
        )
    if schema is None or present != ours:
        raise StoreCorrupt(
            f"{where} has tables named {prefix}... that are not all of Tenure's (missing: "
            f"{', '.join(sorted(ours - present)) or 'the version in ' + prefix + 'meta'}). "
            f"Choose another prefix (?prefix=...) or another file; nothing was changed."
        )
    return True
