"""The first five minutes of the board, typed as interface.md has them; and what else is typed on the way."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

EVERYWHERE = "0.0.0.0"  # noqa: S104 - it must be refused
RESULT = """echo '{"ok": 552}'"""


def test_the_first_five_minutes(desk):
    """From nothing to a completed todo, with the five commands as they are written."""
    script = desk.script(
        "review.sh", "cat > got.json", "env | grep ^TENURE_ | sort > env.txt", "echo talk", "echo '{\"ok\": 552}'"
    )
    vended = desk.run("endpoint", "vend", "reviewer", "--queue", "review", "--lease-ttl", "30m", "--expires", "30d")
    assert "lease       30m" in vended.stdout
    todo = desk.run("todo", "add", "reviewer", "Review change 552", "--queue", "review", "--payload", '{"change": 552}')
    worked = desk.run("work", "reviewer", "--max", "1", "--", script)
    assert worked.stdout == 'talk\n{"ok": 552}\n'
    got = json.loads((desk.folder / "got.json").read_text())
    assert (got["title"], got["payload"]) == ("Review change 552", {"change": 552})
    env = dict(line.split("=", 1) for line in (desk.folder / "env.txt").read_text().splitlines())
    assert env["TENURE_TODO_ID"] == todo.stdout.strip() == got["id"]
    assert env["TENURE_TODO_TITLE"] == "Review change 552"
    assert env["TENURE_LEASE_EXPIRES"].endswith("Z")
    shown = desk.read("todo", "show", got["id"])["todo"]
    assert (shown["state"], shown["result"]) == ("done", {"ok": 552})
    (attempt,) = shown["attempts"]
    assert (attempt["lease_ttl_seconds"], attempt["lease_ttl_source"], attempt["end"]) == (
        1800,
        "endpoint",
        "completed",
    )


def test_b52_the_first_start_prints_a_link_and_signs_the_command_line_in(desk):
    """One sign-in link, once; a token kept with mode 0600; a second start prints no link."""
    told = desk.read("auth", "status")
    assert told["name"] == "alice"
    kept = desk.folder / "config" / "tenure" / "credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    port = desk.url.rsplit(":", 1)[1]
    assert desk.stop() == 0
    assert sum("/login/tenure_link_" in line for line in desk.printed) == 1
    desk.serve(port=port)
    assert desk.read("auth", "status")["name"] == "alice"
    desk.stop()
    assert not any("/login/" in line for line in desk.printed)
    assert f"sign in  tenure human link alice --url {desk.url}" in "".join(desk.printed)


def test_b51_the_log_of_a_board_holds_no_secret(desk):
    """Neither the link, nor the token, nor a credential is in what the server wrote to its log."""
    told = desk.read("endpoint", "vend", "reviewer")
    desk.run("todo", "add", "reviewer", "x")
    desk.run("work", "reviewer", "--max", "1", "--", "true")
    desk.stop()
    log = (desk.folder / "board.log").read_text()
    token = desk.run("auth", "status", code=1).stderr  # it is down by now, and says so
    assert "can't be reached" in token
    for secret in ("tenure_link_", "tenure_human_", "tenure_endpoint_", told["credential"]):
        assert secret not in log


def test_b52_another_address_needs_a_password(quiet_desk):
    """On all addresses the board refuses to start until a human has a password, and says how."""
    refused = quiet_desk.run("board", "--host", EVERYWHERE, "--port", "0", code=2)
    assert refused.stderr.splitlines()[-1].endswith("Run: tenure human password alice")
    quiet_desk.run("human", "password", "alice", "--stdin", stdin="correct horse battery\n")
    quiet_desk.serve("--host", EVERYWHERE)
    assert "loopback only" not in quiet_desk.printed[0]


@pytest.mark.parametrize(
    "url",
    [
        "board.example.com",
        "https://",
        "ftp://board.example.com",
        "https://board:x",
        "https://me:pw@board",
        "https://b?x",
    ],
)
def test_b51_a_public_address_that_is_none_is_refused(quiet_desk, url):
    """By it no browser could call the board: one line, before anything is opened; no password of it is repeated."""
    refused = quiet_desk.run("board", "--port", "0", "--public-url", url, code=2)
    assert refused.stderr.startswith("tenure: --public-url=")
    assert refused.stderr.endswith("is no address of a web server. Write https://board.example.com.\n")
    assert "pw@" not in refused.stderr
    assert not (quiet_desk.folder / "tenure.db").exists()


def test_work_fails_gives_back_and_says_why(desk):
    """Exit 0 completes, 75 gives back, others fail with their code; the exit code of work says so."""
    desk.run("endpoint", "vend", "w")
    script = desk.script(
        "job.sh", 'case "$TENURE_TODO_TITLE" in back) exit 75;; bad) echo "no disk" >&2; exit 9;; esac'
    )
    ids = {title: desk.run("todo", "add", "w", title).stdout.strip() for title in ("good", "bad", "back")}
    assert desk.run("work", "w", "--max", "3", "--", script, code=1).stdout == ""
    shown = {title: desk.read("todo", "show", todo)["todo"] for title, todo in ids.items()}
    assert {title: one["shown"] for title, one in shown.items()} == {
        "good": "done",
        "bad": "retrying",
        "back": "pending",
    }
    assert shown["bad"]["attempts"][0]["reason"] == "./job.sh ended with exit 9: no disk"
    assert (shown["back"]["failures"], shown["bad"]["failures"]) == (0, 1)


def test_work_says_that_there_was_nothing(desk):
    """An idle exit without any todo is exit code 5."""
    desk.run("endpoint", "vend", "w")
    desk.run("work", "w", "--idle-exit", "0", "--", "true", code=5)


def test_work_stops_a_command_whose_lease_was_lost(desk):
    """The human takes the todo over: the command gets SIGTERM, work says why, and goes on."""
    desk.run("endpoint", "vend", "w", "--lease-ttl", "60")
    todo = desk.run("todo", "add", "w", "long").stdout.strip()
    script = desk.script("long.sh", "trap 'echo told > told.txt; exit 0' TERM", "echo up > up.txt", "sleep 600 & wait")
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "work", "w", "--max", "1", "--", script],
        cwd=desk.folder, env=desk.environ, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    line = worker.stderr.readline()
    while "claimed" not in line:
        line = worker.stderr.readline()
    appears(desk.folder / "up.txt")
    desk.run("todo", "release", todo)
    _, said = worker.communicate(timeout=60)
    assert worker.returncode == 3, said
    assert "gave it back" in said or "released" in said
    assert (desk.folder / "told.txt").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells a child that its parent died")
def test_work_that_is_killed_takes_its_command_with_it(desk):
    """SIGKILL to `tenure work`: its command gets SIGTERM, or it would go on beside the next worker's."""
    desk.run("endpoint", "vend", "w")
    desk.run("todo", "add", "w", "long")
    script = desk.script(
        "long.sh", "trap 'echo told > told.txt; kill $!; exit 0' TERM", "echo up > up.txt", "sleep 600 & wait"
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "work", "w", "--", script], cwd=desk.folder, env=desk.environ
    )
    appears(desk.folder / "up.txt")
    worker.kill()
    worker.wait(60)
    appears(desk.folder / "told.txt")


def appears(path, seconds=60):
    """Wait for a file that another process writes."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not appear"
        time.sleep(0.02)


def test_work_gives_back_at_the_second_signal(desk):
    """SIGTERM while a command runs waits for it; a second one stops it and gives the todo back."""
    desk.run("endpoint", "vend", "w")
    todo = desk.run("todo", "add", "w", "long").stdout.strip()
    script = desk.script("long.sh", "echo up > up.txt", "exec sleep 600")
    worker = subprocess.Popen(
        [sys.executable, "-m", "tenure", "work", "w", "--", script],
        cwd=desk.folder, env=desk.environ, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    appears(desk.folder / "up.txt")
    os.kill(worker.pid, signal.SIGTERM)
    while "once more" not in worker.stderr.readline():
        pass
    os.kill(worker.pid, signal.SIGTERM)
    worker.communicate(timeout=60)
    shown = desk.read("todo", "show", todo)["todo"]
    assert (shown["shown"], shown["failures"], shown["attempts"][0]["end"]) == ("pending", 0, "released")


def test_b52_a_first_start_without_a_place_for_the_token_still_tells_the_link(quiet_desk):
    """The link is told just once; that the command line is not signed in is said beside it."""
    (quiet_desk.folder / "config").write_text("")
    quiet_desk.serve()
    assert quiet_desk.server.poll() is None
    assert quiet_desk.stop() == 0
    assert any(line.startswith("sign in  http") and "/login/" in line for line in quiet_desk.printed)
    assert "is not signed in" in (quiet_desk.folder / "board.log").read_text()


@pytest.mark.timeout(180)
def test_b50_a_board_on_sqlite_has_one_server(quiet_desk):
    """A second one would hear none of its notices: refused until the first one is gone, however it went."""
    quiet_desk.serve()
    refused = quiet_desk.run("board", "--port", "0", code=2)
    assert refused.stderr.startswith("tenure: database='sqlite:///tenure.db': is served by another `tenure board`")
    assert "PostgreSQL" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert "alice" in quiet_desk.run("human", "list").stdout
    quiet_desk.server.kill()
    quiet_desk.server.wait(60)
    quiet_desk.server.stdout.close()
    assert quiet_desk.serve().stop() == 0
