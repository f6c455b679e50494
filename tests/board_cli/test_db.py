"""`tenure db --database`: a board's tables planned, made, checked, and copied while they are used."""

import contextlib
import os
import sqlite3
import stat

import pytest
from click.testing import CliRunner

from tenure.board import backup
from tenure.board.database import Database
from tenure.board.upgrade import upgrade_in
from tenure.doors.cli.root import cli as root


@pytest.fixture
def typed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*words, code=0):
        result = CliRunner().invoke(root, list(words))
        assert "Traceback" not in result.stderr, result.stderr
        assert result.exit_code == code, result.output
        return result

    return run


def test_b50_the_boards_tables_are_planned_made_and_checked(typed, empty_url):
    """The SQL is shown and changes nothing; upgrade makes the tables; after that nothing is missing."""
    typed("db", "upgrade", "--database", empty_url) if empty_url.startswith("sqlite") else None
    if empty_url.startswith("postgres"):
        planned = typed("db", "plan", "--database", empty_url).stdout
        assert "CREATE TABLE todos" in planned
        assert typed("db", "check", "--database", empty_url, code=1).stdout.startswith("step 0001 is missing")
        assert typed("db", "upgrade", "--database", empty_url).stdout == "0001 applied\n"
    typed("db", "plan", "--database", empty_url, code=5)
    typed("db", "upgrade", "--database", empty_url, code=5)
    assert typed("db", "check", "--database", empty_url).stdout.startswith("ok: ")


def test_b50_no_file_is_made_by_looking(typed, tmp_path):
    """plan and check of a file that is not there: exit 3, and it still is not there."""
    for command in ("plan", "check"):
        typed("db", command, "--database", f"sqlite:///{tmp_path}/none.db", code=3)
    assert not (tmp_path / "none.db").exists()


def test_b50_a_board_s_file_and_its_copies_are_their_owner_s_alone(typed, tmp_path):
    """Todos and digests of credentials stand in it: nobody else of the machine reads them, in the log neither."""
    url = f"sqlite:///{tmp_path}/a.db"
    old = os.umask(0o022)
    try:
        database = Database(url)
        database.writing(upgrade_in)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("a.db*")}
        database.shut()
        typed("db", "backup", str(tmp_path / "b.db"), "--database", url)
    finally:
        os.umask(old)
    assert {"a.db", "a.db-wal"} <= set(modes)
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "b.db").stat().st_mode) == 0o600


def test_a_backup_is_whole_while_it_is_written_to(typed, tmp_path):
    """A copy of a database with an open writer: it holds what was committed; nothing is overwritten."""
    source, copy = tmp_path / "a.db", tmp_path / "b.db"
    with sqlite3.connect(source) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        writer.execute("INSERT INTO t VALUES (2)")
        typed("db", "backup", str(copy), "--database", f"sqlite:///{source}")
        typed("db", "backup", str(copy), "--database", f"sqlite:///{source}", code=2)
    writer.close()
    reader = sqlite3.connect(copy)
    assert reader.execute("SELECT x FROM t").fetchall() == [(1,)]
    reader.close()


def test_a_backup_ends_however_often_it_is_written_to(monkeypatch, tmp_path):
    """A commit between any two of its parts: it goes on, and holds what was there at its beginning."""
    monkeypatch.setattr(backup, "PAGES", 1)
    source, copy, parts = tmp_path / "a #1 50%41.db", tmp_path / "b.db", []
    writer = sqlite3.connect(source, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE t (x)")
    writer.executemany("INSERT INTO t VALUES (?)", [("x" * 4_000,)] * 20)

    def write(left, _total):
        writer.execute("INSERT INTO t VALUES ('late')")
        parts.append(left)
        assert len(parts) < 200, parts

    backup.backup(source, copy, write)
    writer.close()
    reader = sqlite3.connect(copy)
    assert reader.execute("SELECT count(*), max(x) = 'late' FROM t").fetchall() == [(20, False)]
    reader.close()
    assert len(parts) > 10


def test_a_backup_that_is_cut_off_leaves_no_file_behind(monkeypatch, tmp_path):
    """By Ctrl-C, say: half of one is not to be taken for a backup, and its name is free for the next."""
    monkeypatch.setattr(backup, "PAGES", 1)
    source, copy = tmp_path / "a.db", tmp_path / "b.db"
    with contextlib.closing(sqlite3.connect(source)) as writer, writer:
        writer.execute("CREATE TABLE t (x)")
        writer.executemany("INSERT INTO t VALUES (?)", [("x" * 4_000,)] * 20)

    def cut_off(left, total):
        if left < total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup.backup(source, copy, cut_off)
    assert list(tmp_path.iterdir()) == [source]
    assert backup.backup(source, copy) == copy.stat().st_size


def test_a_backup_of_what_is_no_file_says_what_to_use(typed, tmp_path):
    """PostgreSQL has pg_dump; a file that is not there is exit 3."""
    refused = typed("db", "backup", "x.db", "--database", "postgresql://alice:secret@localhost/x", code=2)
    assert "pg_dump" in refused.stderr
    assert "secret" not in refused.stderr
    typed("db", "backup", "x.db", "--store", f"sqlite:///{tmp_path}/none.db", code=3)


@pytest.mark.parametrize(
    "words",
    [("human", "list"), ("human", "add", "bob"), ("db", "check"), ("db", "plan"), ("db", "upgrade"), ("board",)],
)
def test_b50_a_file_that_is_no_database_is_said_to_be_none(typed, tmp_path, words):
    """It is no fault of ours, it is not touched, and what to do is said."""
    file = tmp_path / "a.db"
    file.write_text("nobody's database")
    said = typed(*words, "--database", f"sqlite:///{file}", *(["--port", "0"] if words == ("board",) else []), code=1)
    assert "a.db is damaged or no SQLite database" in said.stderr
    assert "restore a backup or name another file" in said.stderr
    assert file.read_text() == "nobody's database"


@pytest.mark.parametrize("words", [("human", "list"), ("db", "check"), ("board", "--port", "0")])
def test_b50_a_folder_is_no_database(typed, tmp_path, words):
    """And nothing is put beside it."""
    (tmp_path / "a").mkdir()
    assert "is a folder. Name a file in it" in typed(*words, "--database", f"sqlite:///{tmp_path}/a", code=2).stderr
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_b52_a_human_who_is_not_there_is_not_found(typed, tmp_path):
    """Exit 3, as the help says."""
    url = f"sqlite:///{tmp_path}/a.db"
    typed("human", "add", "bob", "--database", url)
    assert "no human of that name" in typed("human", "link", "alice", "--database", url, code=3).stderr


@pytest.mark.parametrize("command", ["add", "link"])
def test_b52_a_link_to_no_address_is_not_made(typed, tmp_path, command):
    """The human whom the link is for is not added either."""
    url = f"sqlite:///{tmp_path}/a.db"
    typed("human", "add", "bob", "--database", url)
    said = typed("human", command, "alice", "--database", url, "--url", "board.example.com", code=2).stderr
    assert "is no address of a board. Write http://board.example.com" in said
    assert "alice" not in typed("human", "list", "--database", url).stdout
