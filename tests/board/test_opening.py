"""A board is opened: secrets, tables, the first human."""

import errno
import fcntl
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenure.board import access, humans, signing_in, tables
from tenure.board.database import Database
from tenure.board.opening import open_board, open_where_it_is, served_alone
from tenure.errors import ConfigError

SECRET = {"TENURE_SECRET": "a-secret-for-a-board-that-is-only-opened", "USER": "ada"}


@pytest.fixture
def opening(empty_url):
    """Opens boards on one empty database, and closes them all."""
    opened = []

    def open_it(environ=SECRET):
        opened.append(open_board(empty_url, environ))
        return opened[-1]

    yield open_it
    for one in opened:
        one.board.database.shut()


def test_b52_the_first_start_makes_one_human_a_link_and_a_token(opening):
    """An empty database gets its tables and a human named after who started it; link and token both let in."""
    board, said, first = opening()
    assert first.name == "ada"
    assert said == ["database: step 0001 applied", "first start: ada was added"]
    signed_in = board.database.writing(signing_in.by_link, board, first.link.reveal(), "a browser")
    by_cookie = board.database.reading(access.human_by_session, board, signed_in.cookie.reveal())
    by_token = board.database.reading(access.human_by_token, board, first.token.reveal())
    assert by_cookie.name == by_token.name == "ada"
    assert by_cookie.id == by_token.id


def test_b52_the_second_start_makes_nobody(opening):
    """A board that has a human gets no other, and nothing is told."""
    opening()
    again = opening()
    assert (again.said, again.first) == ([], None)


def test_b52_of_servers_that_start_at_once_one_makes_the_human(opening):
    """The lock of migrations holds for the first human too."""
    with ThreadPoolExecutor(4) as threads:
        opened = [future.result() for future in [threads.submit(opening) for _ in range(4)]]
    assert sum(one.first is not None for one in opened) == 1
    assert len(opened[0].board.database.reading(humans.list_all, opened[0].board)) == 1


def test_b12_the_secret_of_a_sqlite_board_stands_beside_it(tmp_path):
    """Without TENURE_SECRET a file is made, for its owner alone, and found again."""
    url = f"sqlite:///{tmp_path}/board.db"
    first = open_board(url, {"USER": "ada"})
    path = tmp_path / "board.db.secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert any(str(path) in line for line in first.said)
    again = open_board(url, {"USER": "ada"})
    assert again.board.ring.derive("x", "y") == first.board.ring.derive("x", "y")
    for one in (first, again):
        one.board.database.shut()


def test_b12_a_postgresql_board_without_a_secret_is_refused_with_one_to_use(monkeypatch):
    """The sentence brings a fresh secret; no connection is tried."""
    monkeypatch.setattr(Database, "__init__", None)
    with pytest.raises(ConfigError, match=r"TENURE_SECRET=\w{43}$"):
        open_board("postgresql://nowhere.invalid/board", {"USER": "ada"})
    with pytest.raises(ConfigError, match="32 characters or more"):
        open_board("postgresql://nowhere.invalid/board", {"TENURE_SECRET": "too short"})


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://x/y", "sqlite:////nowhere/at/all/x.db"])
def test_a_database_that_will_not_do_is_refused_in_a_sentence(url):
    """Bad input is a ConfigError that says what to write."""
    with pytest.raises(ConfigError, match=r"Write|Name"):
        open_board(url, {"USER": "ada"})


def test_b51_no_secret_of_the_first_start_is_in_the_database(tmp_path):
    """The file holds hashes, of link and of token, and neither in clear."""
    board, said, first = open_board(f"sqlite:///{tmp_path}/board.db", {"USER": "ada"})
    board.database.shut()
    held = b"".join(path.read_bytes() for path in Path(tmp_path).glob("board.db*") if path.suffix != ".secret")
    for secret in (first.link, first.token):
        assert secret.reveal().encode() not in held
        assert secret.reveal() not in repr((said, first))


def test_b51_a_link_is_good_once_and_for_ten_minutes(board):
    """Used, or late, it gets the answer of one that never was."""
    link = board.write(signing_in.link_for, "alice").reveal()
    late = board.write(signing_in.link_for, "alice").reveal()
    assert board.write(signing_in.by_link, link).human.name == "alice"
    assert board.refused(signing_in.by_link, link) is signing_in.LINK_OVER
    board.clock.turn(minutes=10)
    for secret in (link, late, "tenure_link_" + "0" * 49, ""):
        assert board.refused(signing_in.by_link, secret) is signing_in.LINK_OVER
    assert len(board.rows(tables.sessions)) == 1


def test_b50_a_file_has_one_name_however_its_url_spells_it(tmp_path, monkeypatch):
    """`%20` is a blank, as SQLAlchemy reads it: secret, lock, and commands on the server's machine find one file."""
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///my%20board.db"
    with served_alone(url):
        open_board(url, {"USER": "ada"}).board.database.shut()
        with pytest.raises(ConfigError, match="served by another"), served_alone("sqlite:///my board.db"):
            pass
    board = open_where_it_is(url, {})
    assert [one.name for one in board.database.reading(humans.list_all, board)] == ["ada"]
    board.database.shut()
    names = {"my board.db", "my board.db.lock", "my board.db.secret"}
    assert {one.name for one in tmp_path.iterdir()} == names


def test_b50_one_server_at_a_time_serves_a_sqlite_file(tmp_path):
    """The second is told why and what to do; when the first has ended it may. The lock's file is its owner's alone."""
    url = f"sqlite:///{tmp_path}/a.db"
    with served_alone(url):
        with (
            pytest.raises(ConfigError, match=r"served by another.*one server\. End that one.*PostgreSQL"),
            served_alone(url),
        ):
            pass
        with served_alone(f"sqlite:///{tmp_path}/b.db"):
            pass
        (tmp_path / "link.db").symlink_to("a.db")
        with pytest.raises(ConfigError, match="served by another"), served_alone(f"sqlite:///{tmp_path}/link.db"):
            pass
    with served_alone(url):
        pass
    assert stat.S_IMODE((tmp_path / "a.db.lock").stat().st_mode) == 0o600


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "postgresql://board.example/app"])
def test_b50_other_boards_may_have_many_servers(tmp_path, monkeypatch, url):
    """In memory each is alone anyway, and on PostgreSQL they hear each other: nothing is locked, and no file made."""
    monkeypatch.chdir(tmp_path)
    with served_alone(url), served_alone(url):
        assert list(tmp_path.iterdir()) == []


def test_b50_a_folder_that_knows_no_locks_has_its_board_all_the_same(tmp_path, monkeypatch):
    """A network file system, say, or a lock file that another user made: served as it was before there were locks."""

    def no_lock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    url = f"sqlite:///{tmp_path}/a.db"
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", no_lock)
        with served_alone(url), served_alone(url):
            pass
    (tmp_path / "a.db.lock").unlink()
    (tmp_path / "a.db.lock").mkdir()
    with served_alone(url), served_alone(url):
        pass
