"""The schema: migrations make what `tables.py` says, and what it bounds are the rules' own numbers."""

import re

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tenure.board import tables, upgrade
from tenure.board.database import Database
from tenure.errors import StoreTooOld
from tenure.rules import bounds


@pytest.fixture
def migrated(empty_url):
    """A database that the migrations alone have made."""
    database = Database(empty_url)
    assert upgrade.missing(database) == ["0001"]
    assert upgrade.upgrade(database) == ["0001"]
    yield database
    database.shut()


@pytest.fixture
def declared(migrated):
    """The tables as `tables.py` makes them by itself, in the same database after the migrated ones are gone."""

    def make(tx):
        tables.metadata.drop_all(tx.connection)
        tables.metadata.create_all(tx.connection)

    def declare():
        migrated.writing(make)
        return migrated

    return declare


def index(told):
    """An index as a value: what it is over, whether it is unique, and its condition."""
    options = {name: str(value) for name, value in told.get("dialect_options", {}).items()}
    return told["column_names"], bool(told["unique"]), options


def facts(database):
    """All that the database itself says of each table: columns, keys, CHECKs and indexes."""

    def ask(tx):
        inspector, found = sa.inspect(tx.connection), {}
        for name in tables.metadata.tables:
            found[name] = {
                "columns": {
                    c["name"]: (str(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(name)
                },
                "primary": inspector.get_pk_constraint(name)["constrained_columns"],
                "foreign": sorted(str(sorted(f.items(), key=str)) for f in inspector.get_foreign_keys(name)),
                "unique": sorted((u["name"], *u["column_names"]) for u in inspector.get_unique_constraints(name)),
                "checks": {c["name"]: c["sqltext"] for c in inspector.get_check_constraints(name)},
                "indexes": {i["name"]: index(i) for i in inspector.get_indexes(name)},
            }
        return found

    return database.reading(ask)


def test_b50_migrations_and_tables_make_the_same_schema(migrated, declared):
    """Read back from the database, column by column, CHECK by CHECK and index by index."""
    by_migrations = facts(migrated)
    assert by_migrations == facts(declared())
    assert sum(len(table["checks"]) for table in by_migrations.values()) > 20


def test_b50_alembic_finds_nothing_left_to_do(migrated):
    """Autogenerate, run against a migrated database, proposes no step."""

    def compare(tx):
        context = MigrationContext.configure(
            tx.connection, opts={"version_table": "board_version", "compare_server_default": True}
        )
        return compare_metadata(context, tables.metadata)

    assert migrated.reading(compare) == []


def test_b50_an_upgraded_database_is_upgraded_no_further(migrated):
    """The second time there is nothing to do."""
    assert upgrade.missing(migrated) == []
    assert upgrade.upgrade(migrated) == []


def test_b50_a_database_of_a_later_version_is_left_alone(migrated):
    """A step that this version does not know is refused in a sentence that says what to do."""
    migrated.writing(lambda tx: tx.execute(sa.text("UPDATE board_version SET version_num = '9999'")))
    with pytest.raises(StoreTooOld, match="9999"):
        upgrade.upgrade(migrated)


@pytest.mark.parametrize(
    ("table", "check", "numbers"),
    [
        ("endpoints", "default_lease", (bounds.LEASE_FLOOR_SECONDS, bounds.LEASE_CAP_SECONDS)),
        ("endpoints", "name", (1, bounds.NAME_CHARS)),
        ("endpoints", "webhook_ceiling", (0, bounds.WEBHOOKS_LIMIT)),
        ("humans", "name", (1, bounds.NAME_CHARS)),
        ("agents", "name", (1, bounds.NAME_CHARS)),
        ("todos", "title", (1, bounds.TITLE_CHARS)),
        ("todos", "priority", (-bounds.PRIORITY_LIMIT, bounds.PRIORITY_LIMIT)),
        ("claims", "ttl", (1, bounds.LEASE_CAP_SECONDS)),
    ],
)
def test_b10_the_checks_hold_the_constants_of_the_rules(migrated, table, check, numbers):
    """The numbers in a CHECK, as the database tells it, are those of rules/bounds.py."""
    text = facts(migrated)[table]["checks"][f"ck_{table}_{check}"]
    found = [int(number) for number in re.findall(r"-?\d+", text.replace("(-", "-").replace("- ", "-"))]
    assert tuple(found) == numbers, text


def test_b10_on_sqlite_the_type_is_checked_too(tmp_path):
    """SQLite stores what it is given: a CHECK of its own keeps floats and text out of the default lease."""
    database = Database(f"sqlite:///{tmp_path}/x.db")
    upgrade.upgrade(database)
    assert "typeof" in facts(database)["endpoints"]["checks"]["ck_endpoints_default_lease_type"]
    database.shut()
