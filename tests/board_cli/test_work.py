"""`tenure work` against a board that a test plays."""

import json
import os
import sys
import time

import httpx2
import pytest
from click.testing import CliRunner

from tenure.client import AsyncBoard, Unreachable, calls
from tenure.doors.cli.work import LOST, Bench
from tenure.errors import ConfigError

AT = "2026-12-01T00:00:00Z"
NOTHING = {"empty": True, "claims": [], "server_time": AT}
TODO = {"id": "td_1", "title": "one", "body": "", "payload": None, "queue": "inbox"}
CLAIM = {
    "todo": TODO, "attempt": 1, "lease_token": "tl_x", "lease_expires_at": "2026-12-01T00:05:00Z",
    "lease_ttl_seconds": 300, "lease_ttl_source": "server",
}  # fmt: skip
ONE = {"empty": False, "claims": [CLAIM], "server_time": AT}
YES = {"state": "done", "seconds_left": 300}
GONE = httpx2.ConnectError("gone")


class Played:
    """A board whose claims are answered from a list, and everything else with yes, or as `answers` says."""

    def __init__(self, *claims, **answers):
        self.claims, self.answers, self.asked = list(claims), answers, []

    def __call__(self, request):
        name = request.url.path.rsplit("/", 1)[1]
        self.asked.append((name, request.read()))
        told = self.claims.pop(0) if name == "claim_next" else self.answers.get(name, YES)
        if isinstance(told, Exception):
            raise told
        return told if isinstance(told, httpx2.Response) else httpx2.Response(200, json=told)

    async def work(self, *command, most=1, idle_seconds=None, **options):
        transport = httpx2.MockTransport(self)
        async with AsyncBoard(transport=transport, credential="c", patience_seconds=0) as board:
            return await Bench(board, command, **options).work([], most, idle_seconds)


async def test_a_worker_waits_for_a_board_that_went_away(capsys, monkeypatch):
    """It was there, and can't be reached, or only a proxy answers: told once, and waited for until there is a todo."""
    monkeypatch.setattr(calls, "LONGEST_PAUSE_SECONDS", 0)
    played = Played(NOTHING, GONE, httpx2.Response(502), GONE, NOTHING, GONE, ONE)
    assert await played.work("true") == 0
    assert capsys.readouterr().err.count("Waiting for it.") == 2
    assert played.asked[-1][0] == "complete"


@pytest.mark.parametrize(("claims", "idle_seconds"), [([GONE], None), ([NOTHING, GONE], 60)])
async def test_a_worker_does_not_wait_for_a_board_that_never_was_there(claims, idle_seconds):
    """At the start, and where an end was asked for with --idle-exit, it is an error."""
    with pytest.raises(Unreachable, match="can't be reached"):
        await Played(*claims).work("true", idle_seconds=idle_seconds)


async def test_a_worker_does_not_hurry_a_board_that_asks_for_time(monkeypatch):
    """Told to come back in two minutes, which is beyond its patience, it asks no more often than its longest pause."""
    monkeypatch.setattr(calls, "LONGEST_PAUSE_SECONDS", 0.1)
    busy = httpx2.Response(503, headers={"Retry-After": "120"})
    began = time.monotonic()
    assert await Played(NOTHING, busy, busy, busy, ONE).work("true") == 0
    assert time.monotonic() - began >= 0.3


def sh(line):
    return ("sh", "-c", line)


async def test_a_command_that_takes_too_long_is_stopped_and_its_todo_fails(capsys):
    """It gets SIGTERM, and the reason names the limit."""
    played = Played(ONE)
    line = "trap 'echo stopped >&2; exit 0' TERM; echo half way >&2; sleep 600 & wait"
    assert await played.work(*sh(line), limit_ms=300) == 1
    ((_, body),) = [one for one in played.asked if one[0] == "fail"]
    assert json.loads(body)["reason"].startswith("sh ran into the timeout of 300ms")
    assert not [one for one in played.asked if one[0] == "complete"]
    assert "ran into the timeout" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("echo no such branch >&2; echo >&2; exit 3", "sh ended with exit 3: no such branch"),
        ("exit 3", "sh ended with exit 3"),
        (r"printf '\033[31mred\033[0m' >&2; kill -9 $$", "sh ended with signal SIGKILL: "),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "sh ended with exit 1: " + 300 * "x"),
    ],
    ids=["a line", "nothing", "colours", "much"],
)
async def test_the_last_line_of_stderr_is_in_the_reason(line, reason, capfd):
    """Why it failed is with the todo, not only in the worker's log, which has it whole."""
    played = Played(ONE)
    assert await played.work(*sh(line)) == 1
    ((_, body),) = [one for one in played.asked if one[0] == "fail"]
    told = json.loads(body)["reason"]
    assert told.startswith(reason)
    assert len(told) <= len(reason) + 40
    assert "\x1b" not in told
    if "branch" in line:
        assert "no such branch\n" in capfd.readouterr().err


@pytest.mark.parametrize("line", ['{"a": 1e999}', r'"\ud800"', r'{"a": "\u0000"}', "[" * 500 + "]" * 500, "NaN"])
async def test_a_line_that_the_board_would_not_read_is_no_result(line):
    """It is completed with the line before, instead of being left to its lease."""
    played = Played(ONE)
    assert await played.work("printf", "%s\n", '{"ok": true}', line) == 0
    ((_, body),) = [one for one in played.asked if one[0] == "complete"]
    assert json.loads(body)["result"] == {"ok": True}


@pytest.mark.parametrize("name", ["stdout", "stderr"])
async def test_a_command_is_not_stopped_because_nobody_listens(name, monkeypatch):
    """`tenure work … | head` has read enough: the work goes on, and no todo fails for it."""
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w") as closed:
        monkeypatch.setattr(sys, name, closed)
        played = Played(ONE)
        assert await played.work(*sh('echo one; echo two >&2; echo "{}"')) == 0
        assert [name for name, _ in played.asked if name in ("complete", "fail")] == ["complete"]


@pytest.mark.parametrize(("command", "verb"), [("true", "complete"), ("false", "fail")])
async def test_an_end_that_comes_too_late_is_told_as_that(command, verb, capsys):
    """The command came to its end, so nobody says that it was stopped."""
    detail = "Your lease on this todo lapsed, and another worker holds it now."
    taken = httpx2.Response(409, json={"code": "conflict", "reason": "taken", "detail": detail})
    assert await Played(ONE, **{verb: taken}).work(command) == LOST
    said = capsys.readouterr().err
    assert f"td_1: {detail}" in said
    assert "was stopped" not in said


async def test_a_program_that_can_not_be_run_is_told_in_a_sentence(tmp_path):
    """It may be executed, and is no program: it is the user's to mend, and the todo is not left to its lease."""
    script = tmp_path / "script"
    script.write_bytes(b"\0\0no program")
    script.chmod(0o755)
    played = Played(ONE)
    with pytest.raises(ConfigError, match="can't be run: Exec format error"):
        await played.work(str(script))
    assert played.asked[-1][0] == "fail"


@pytest.mark.parametrize("option", ["--queue", "--worker"])
def test_words_that_are_no_text_are_a_usage_error(option):
    """Before any board is asked."""
    from tenure.doors.cli.root import cli

    result = CliRunner().invoke(cli, ["work", "reviewer", option, "caf\udce9", "--", "true"])
    assert result.exit_code == 2, result.output
    assert "holds bytes that are no text in UTF-8. See: tenure work --help" in result.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["reviewer", "--tiemout", "3", "--", "true"], "--tiemout"),
        (["--tiemout", "3", "reviewer", "--", "true"], "--tiemout"),
        (["reviewer", "--tiemout", "true"], "--tiemout"),
    ],
)
def test_an_option_that_is_none_is_refused(words, option):
    """It is not taken for the command."""
    from tenure.doors.cli.root import cli

    result = CliRunner().invoke(cli, ["work", *words])
    assert result.exit_code == 2
    assert f"no such option '{option}'" in result.stderr.lower()


def test_a_credential_that_opens_nothing_any_more_says_so(live):
    """Revoked elsewhere: exit 4, and where a new one comes from."""
    live.type("endpoint", "vend", "reviewer")
    kept = live.read("endpoint", "rotate", "reviewer", "--no-save")
    refused = live.type("work", "reviewer", "--idle-exit", "0", "--", "true", code=4)
    assert "revoked, expired or rotated" in refused.stderr
    live._patch.setenv("TENURE_ENDPOINT_CREDENTIAL", kept["credential"])
    live.type("work", "reviewer", "--idle-exit", "0", "--", "true", code=5)
