"""The tables: numbered SQL files, applied in their order under a lock, each once.

What was applied is written in the table `meta`, with a checksum of each file. A file that was released is never
changed; what comes later is a new one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import Final

import psycopg

from tenure.errors import StoreCorrupt, StoreError
from tenure.stores.postgres.connecting import Link
from tenure.stores.postgres.refusals import refusal

_META: Final = 'CREATE TABLE IF NOT EXISTS @meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL)'
_TABLES: Final = ("documents", "history", "marks", "meta")
_NEEDED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step: its SQL, as it is run."""

    number: int
    name: str
    sql: str
    checksum: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one schema and prefix."""

    schema: str
    prefix: str
    where: str

    def spelled(self, text: str) -> str:
        """`@` is the place of the tables, `@@` the beginning of a name of an index."""
        return text.replace("@@", self.prefix).replace("@", f'"{self.schema}".{self.prefix}')

    def migrations(self) -> tuple[Migration, ...]:
        """All that this Tenure knows, in their order."""
        files = resources.files("tenure.stores.postgres") / "migrations"
        found = []
        for file in files.iterdir():
            match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
            if match:
                text = file.read_text(encoding="utf-8")
                checksum = hashlib.sha256(text.encode()).hexdigest()[:16]
                found.append(Migration(int(match[1]), match[2], self.spelled(text), checksum))
        return tuple(sorted(found, key=lambda one: one.number))

    async def applied(self, link: Link) -> dict[int, str]:
        """The numbers of what was applied, with checksums. Raises StoreCorrupt for tables that are not ours."""
        present = await self._present(link)
        if not present:
            return {}
        if "meta" not in present:
            raise StoreCorrupt(
                f"{self.where} has tables named {self.prefix}... without {self.prefix}meta, so they are not Tenure's. "
                f"Choose another prefix (?prefix=...) or schema; nothing was changed."
            )
        rows = await link.rows(self.spelled("SELECT key, value FROM @meta WHERE key LIKE 'migration %%'"), {})
        return {int(key.split()[1]): value for key, value in rows}

    async def _present(self, link: Link) -> set[str]:
        rows = await link.rows(
            "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = ANY (%s::text[])",
            (self.schema, [self.prefix + name for name in _TABLES]),
        )
        return {str(name)[len(self.prefix) :] for (name,) in rows}

    async def pending(self, link: Link) -> tuple[Migration, ...]:
        """What is still to be applied. Raises StoreError where a newer Tenure was here."""
        applied, known = await self.applied(link), self.migrations()
        newest = max(applied, default=0)
        if newest > known[-1].number:
            raise StoreError(
                f"{self.where} was set up by a newer Tenure: its tables are of version {newest}, and this Tenure knows "
                f"{known[-1].number}. Upgrade Tenure here, or use another schema or prefix."
            )
        return tuple(one for one in known if one.number not in applied)

    async def upgrade(self, link: Link) -> tuple[Migration, ...]:
        """Apply what is pending, in one transaction under a lock; what was applied.

        Raises StoreError, and psycopg.Error.
        """
        name = hashlib.sha256(f"tenure {self.schema}.{self.prefix}".encode()).digest()
        try:
            # Whoever waited for the lock must see what was made meanwhile, whatever the level of sessions here.
            await link.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            await link.execute(
                "SELECT pg_catalog.pg_advisory_xact_lock(%s::int8)", (int.from_bytes(name[:8], "big", signed=True),)
            )
            await self._make_schema(link)
            pending = await self.pending(link)
            if pending:
                await link.execute(self.spelled(_META).encode())
            for one in pending:
                await link.execute(one.sql.encode())
                record = self.spelled("INSERT INTO @meta (key, value) VALUES (%s, %s)")
                await link.execute(record.encode(), (f"migration {one.number}", one.checksum))
            await link.execute("COMMIT")
        except BaseException:
            await link.undo()
            raise
        return pending

    async def _make_schema(self, link: Link) -> None:
        rows = await link.rows("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (self.schema,))
        if not rows:
            await link.execute(f'CREATE SCHEMA "{self.schema}"'.encode())

    async def faults(self, link: Link) -> tuple[str, ...]:
        """What is wrong with the tables, one sentence each."""
        try:
            applied = await self.applied(link)
        except StoreError as error:
            return (str(error),)
        found = [f"{self.where} lacks migration {one.number} ({one.name}). Run `tenure db upgrade`." for one in
                 self.migrations() if one.number not in applied]  # fmt: skip
        found += [
            f"Migration {one.number} ({one.name}) in {self.where} was applied from another text. Compare the tables "
            f"with those of a fresh database."
            for one in self.migrations()
            if applied.get(one.number, one.checksum) != one.checksum
        ]
        missing = sorted(set(_TABLES) - await self._present(link)) if applied else []
        if missing:
            tables = ", ".join(self.prefix + name for name in missing)
            found.append(f"{self.where} lacks {tables}. Restore them from a backup; nothing was changed.")
        elif applied:
            found += await self.denied(link)
        return tuple(found)

    async def denied(self, link: Link) -> tuple[str, ...]:
        """What this user may not do with the tables, one sentence each."""
        rows = await link.rows(
            "SELECT t, pg_catalog.string_agg(p, ', ') FROM pg_catalog.unnest(%s::text[]) t, "
            "pg_catalog.unnest(%s::text[]) p WHERE NOT pg_catalog.has_table_privilege(t, p) GROUP BY t",
            ([self.spelled("@" + name) for name in _TABLES[:3]], list(_NEEDED)),
        )
        return tuple(
            f"This user has no {rights} permission on {table} in {self.where}. "
            f"Run: GRANT {', '.join(_NEEDED)} ON {table} TO that user."
            for table, rights in rows
        )


async def prepare(link: Link, tables: Tables, upgrade: bool) -> None:
    """Make or upgrade the tables where that is needed and wanted, and see that they can be used.

    Raises StoreError.
    """
    try:
        if await tables.pending(link):
            if not upgrade:
                raise StoreError(
                    f"Tenure's tables in {tables.where} are missing or of an older version. Run `tenure db upgrade` "
                    f"with a user that may make tables, or open the store without ?upgrade=0."
                )
            await tables.upgrade(link)
        denied = await tables.denied(link)
    except psycopg.Error as error:
        raise refusal(error, tables.where) from error
    if denied:
        raise StoreError(denied[0])
