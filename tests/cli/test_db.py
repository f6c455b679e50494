"""`tenure db`: what is to be applied, applying it, and what is wrong."""

from __future__ import annotations

import sqlite3

import pytest
from redis_server import fresh_prefix, shared, with_options


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def url(request, tmp_path):
    """A store with tables that has none yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new.db"
    schema = request.getfixturevalue("postgres_schema")
    return with_options(request.getfixturevalue("postgres_url"), schema=schema)


def test_plan_upgrade_check(cli, read, url, tmp_path):
    """The plan is shown and changes nothing; upgrade applies it; after that nothing is left and all is well."""
    for _ in range(2):
        planned = cli("db", "plan", "--store", url)
        assert planned.exit_code == 0, planned.output
        assert planned.stdout.startswith("-- 0001 tables\n")
        assert "tenure_history" in planned.stdout
    assert not (tmp_path / "new.db").exists()
    told = read("db", "plan", "--store", url)
    assert [(one["number"], one["name"]) for one in told["pending"]] == [(1, "tables")]
    applied = cli("db", "upgrade", "--store", url)
    assert (applied.exit_code, applied.stdout) == (0, "0001 tables applied\n")
    again = cli("db", "upgrade", "--store", url)
    assert (again.exit_code, again.stdout) == (5, "")
    assert again.stderr.endswith("is up to date.\n")
    assert read("db", "plan", "--store", url, code=5)["pending"] == []
    assert read("db", "upgrade", "--store", url, code=5)["applied"] == []
    assert cli("db", "check", "--store", url).stdout.startswith("ok: the tables of ")
    told = read("db", "check", "--store", url)
    assert (told["ok"], told["keeps_schema"], told["faults"]) == (True, True, [])
    assert cli("job", "list", "--store", url).exit_code == 0  # and the store works


@pytest.mark.parametrize("what", ["memory://", pytest.param("valkey9", marks=pytest.mark.servers)])
@pytest.mark.parametrize("command", ["plan", "upgrade", "check"])
def test_stores_without_a_schema(cli, read, what, command):
    """Nothing to do, and it says why."""
    url = what if "://" in what else with_options(shared(what), prefix=fresh_prefix())
    result = cli("db", command, "--store", url)
    assert (result.exit_code, result.stdout) == (5, "")
    assert "keeps no schema" in result.stderr
    assert read("db", command, "--store", url, code=5)["keeps_schema"] is False


def test_a_file_that_is_not_there(cli, tmp_path):
    """It can be planned, and not be checked."""
    url = f"sqlite:///{tmp_path}/none.db"
    assert cli("db", "check", "--store", url).exit_code == 3
    assert not (tmp_path / "none.db").exists()


def test_a_file_with_other_tables_only(cli, tmp_path):
    """Ours may be made beside them; until then the check says so."""
    url = f"sqlite:///{tmp_path}/app.db"
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    missing = cli("db", "check", "--store", url)
    assert missing.exit_code == 1
    assert "has no tables of Tenure's. Run `tenure db upgrade`" in missing.stdout
    assert cli("db", "upgrade", "--store", url).exit_code == 0
    assert cli("db", "check", "--store", url).exit_code == 0


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DROP TABLE tenure_marks", "not all of Tenure's (missing: tenure_marks)"),
        ("DROP INDEX tenure_history_slot", "lacks the index tenure_history_slot"),
        ("UPDATE tenure_meta SET value = 99", "set up by a newer Tenure"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_tables_that_are_not_right(read, tmp_path, statement, says):
    """Each fault is one sentence, and nothing is changed."""
    connection = sqlite3.connect(tmp_path / "kept.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    told = read("db", "check", code=1)
    assert told["ok"] is False
    assert says in told["faults"][0]


def test_a_newer_store_can_not_be_planned(cli, kept, tmp_path):
    """It is refused, not downgraded."""
    connection = sqlite3.connect(tmp_path / "kept.db")
    connection.execute("UPDATE tenure_meta SET value = 99")
    connection.commit()
    connection.close()
    for command in ("plan", "upgrade"):
        result = cli("db", command)
        assert result.exit_code == 1
        assert "set up by a newer Tenure" in result.stderr


def test_a_damaged_file(cli, tmp_path):
    """Damage is told, and nothing is repaired."""
    file = tmp_path / "damaged.db"
    url = f"sqlite:///{file}"
    assert cli("db", "upgrade", "--store", url).exit_code == 0
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE big (what TEXT)")
    connection.executemany("INSERT INTO big VALUES (?)", [("x" * 3000,)] * 40)
    connection.commit()
    connection.close()
    content = bytearray(file.read_bytes())
    at = len(content) - 3 * 4096
    content[at : at + 2000] = b"\xff" * 2000
    file.write_bytes(content)
    result = cli("db", "check", "--store", url)
    assert result.exit_code == 1
    assert "is damaged" in result.stdout


@pytest.mark.servers
def test_a_user_without_rights(cli, postgres_url, postgres_schema):
    """On PostgreSQL the check names what is to be granted."""
    import psycopg

    url = with_options(postgres_url, schema=postgres_schema)
    assert cli("db", "upgrade", "--store", url).exit_code == 0
    user = f"reader_{postgres_schema}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN")
        try:
            connection.execute(f"GRANT USAGE ON SCHEMA {postgres_schema} TO {user}")
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {postgres_schema} TO {user}")
            result = cli("db", "check", "--store", with_options(url, user=user))
        finally:
            connection.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")
    assert result.exit_code == 1
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON" in result.stdout
