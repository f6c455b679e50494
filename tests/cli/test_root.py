"""The tree of commands: help, exit codes, errors in one line, and how little is loaded for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from tenure.doors.cli.root import COMMANDS
from tenure.doors.cli.root import cli as root


def tree() -> list[list[str]]:
    """All commands, groups left out."""
    context = click.Context(root)

    def below(command: click.Command, *words: str) -> list[list[str]]:
        if not isinstance(command, click.Group):
            return [list(words)]
        return [path for name, one in command.commands.items() for path in below(one, *words, name)]

    return [path for name in COMMANDS for path in below(root.get_command(context, name), name)]


EXIT_CODES = {
    "run": {0, 1, 2, 3, 5, 130},
    "demo": {0, 1, 2, 130},
    "explain": {0, 2, 130},
    "job list": {0, 1, 2, 3, 130},
    "job show": {0, 1, 2, 3, 130},
    "job next": {0, 1, 2, 3, 5, 130},
    "job pause": {0, 1, 2, 3, 5, 130},
    "job resume": {0, 1, 2, 3, 5, 130},
    "job trigger": {0, 1, 2, 3, 130},
    "job why": {0, 1, 2, 3, 130},
    "runs list": {0, 1, 2, 3, 130},
    "runs show": {0, 1, 2, 3, 130},
    "runs timeline": {0, 1, 2, 3, 130},
    "runs tail": {1, 2, 3, 130},
    "instance list": {0, 1, 2, 3, 130},
    "db plan": {0, 1, 2, 5, 130},
    "db upgrade": {0, 1, 2, 5, 130},
    "db check": {0, 1, 2, 3, 5, 130},
    "db backup": {0, 1, 2, 3, 130},
    "doctor": {0, 1, 2, 3, 130},
    "prove": {0, 1, 2, 130},
    "board": {0, 1, 2, 130},
    "auth login": {0, 1, 2, 4, 130},
    "auth logout": {0, 2, 5, 130},
    "auth status": {0, 1, 2, 4, 130},
    "auth token": {0, 2, 4, 130},
    "endpoint connect": {0, 1, 2, 3},
    "work": {0, 1, 2, 3, 4, 5, 130},
    "mcp": {0, 1, 2, 4, 130},
    **{f"human {one}": {0, 1, 2, 3, 130} for one in ("list", "add", "link", "password")},
    **{
        words: {0, 1, 2, 4, 130}
        for words in ("endpoint list", "endpoint vend", "schedule preview", "friend list", "friend request")
    },
    **{
        f"{noun} {one}": {0, 1, 2, 3, 4, 130}
        for noun, steps in {
            "endpoint": ("show", "edit", "rotate", "revoke", "presence", "shift"),
            "endpoint webhook": ("list", "add", "rotate", "delete"),
            "todo": ("list", "show", "add", "cancel", "retry", "release", "complete", "fail", "move"),
            "schedule": ("list", "show", "add", "edit", "pause", "resume", "remove"),
            "friend": ("approve", "decline", "collect", "end"),
        }.items()
        for one in steps
    },
    "todo watch": {0, 1, 2, 3, 4, 5, 130},
    "schedule trigger": {0, 1, 2, 3, 4, 5, 130},
}


def test_the_table_of_commands_is_whole():
    """Every command is in the table above, and the short help of the root is that of the command."""
    assert {" ".join(words) for words in tree()} == set(EXIT_CODES)


@pytest.mark.parametrize("words", tree(), ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_tells_exit_codes(cli, words, flag):
    """Every command has help under -h and --help, and tells its exit codes there."""
    result = cli(*words, flag)
    assert result.exit_code == 0
    assert result.stderr == ""
    told = result.stdout.split("Exit codes:\n")[1]
    codes = {int(line.split()[0]) for line in told.splitlines() if line.strip()[:1].isdigit()}
    assert codes == EXIT_CODES[" ".join(words)]


# They ask a store; the board's ask a server, and explain, demo and prove neither.
STORE = ("run", "job", "runs", "instance", "db", "doctor")


@pytest.mark.parametrize("words", [words for words in tree() if words[0] in STORE], ids=" ".join)
def test_every_store_command_has_the_common_options(cli, words):
    """--store, --app and --json stand on every command that uses a store."""
    told = cli(*words, "--help").stdout
    assert all(option in told for option in ("--store URL", "--app MODULE:OBJECT", "--json"))


def test_help_of_the_root(cli):
    """The root's help names every command, with what it does."""
    told = cli("--help").stdout
    for name, (_, _, says) in COMMANDS.items():
        assert f"  {name} " in told
        assert says.split(",")[0] in told


def test_version(cli):
    """--version gives name and version, alone."""
    assert cli("--version").stdout == "tenure 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["explane", "10s"], "no such command 'explane'. Did you mean 'explain'? See: tenure --help"),
        (["job", "lst"], "no such command 'lst'. Did you mean 'list'? See: tenure job --help"),
        (["job", "list", "--jsn"], "no such option '--jsn'. Did you mean '--json'? See: tenure job list --help"),
        (["job", "show"], "missing argument 'JOB'. See: tenure job show --help"),
        (["job", "list", "--store"], "option '--store' requires an argument. See: tenure --help"),
        (
            ["runs", "list", "--limit", "x"],
            "invalid value for '--limit': 'x' is not a valid integer range. See: tenure runs list --help",
        ),
        (
            ["demo", "--instances", "1"],
            "invalid value for '--instances': 1 is not in the range 2<=x<=9. See: tenure demo --help",
        ),
    ],
)
def test_wrong_usage_is_one_line(cli, words, says):
    """What was typed wrongly is said in one line on stderr, with exit code 2."""
    result = cli(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"tenure: {says}\n")


def test_ls_is_list(cli):
    """`ls` is understood where `list` is."""
    for noun in ("job", "runs", "instance"):
        assert cli(noun, "ls", "--help").exit_code == 0


def test_a_wrong_choice_names_the_nearest(cli):
    """A word that is none of the choices gets the nearest."""
    result = cli("runs", "list", "--status", "sucess")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "Did you mean 'success'? See: tenure runs list --help" in result.stderr


def test_nothing_typed_gives_help(cli):
    """Without a command the help is shown, and the exit code is that of wrong usage."""
    for words in ([], ["job"], ["runs"]):
        result = cli(*words)
        assert result.exit_code == 2
        assert "Commands:" in result.stderr


def test_a_fault_of_our_own_is_one_line(cli, monkeypatch):
    """An exception that nobody expected is one line too; the traceback comes when asked for."""
    monkeypatch.setattr("tenure.rules.plans.cron", None)
    result = cli("explain", "* * * * *")
    assert result.exit_code == 1
    assert result.stderr.startswith("tenure: this is a fault of Tenure's own: TypeError: ")
    assert result.stderr.count("\n") == 1


def test_the_traceback_when_asked_for(monkeypatch):
    """TENURE_DEBUG=1 shows where it was."""
    from click.testing import CliRunner

    monkeypatch.setattr("tenure.rules.plans.cron", None)
    result = CliRunner().invoke(root, ["explain", "* * * * *"], env={"TENURE_DEBUG": "1"})
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("tenure: this is a fault")


def test_interrupted(cli, monkeypatch):
    """Ctrl-C ends a command with 130."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tenure.rules.plans.cron", interrupt)
    result = cli("explain", "* * * * *")
    assert (result.exit_code, result.stderr) == (130, "\ntenure: interrupted\n")


# --- as a process -----------------------------------------------------------------------------------------


def tenure(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "tenure", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
        timeout=30,
    )


def test_both_ways_to_call_it_are_one():
    """`python -m tenure` and `tenure` print the same."""
    from pathlib import Path

    script = Path(sys.executable).with_name("tenure")
    by_script = subprocess.run([script, "--help"], capture_output=True, text=True, check=False, timeout=30)
    by_module = tenure("--help")
    assert by_module.returncode == by_script.returncode == 0
    assert by_module.stdout == by_script.stdout


LOADED = """
import sys
from tenure.doors.cli import main
code = main(sys.argv[1:])
heavy = ("sqlite3", "asyncio", "cronsim", "fastapi", "rich", "psycopg", "redis", "tenure.app", "tenure.scheduler",
         "tenure.stores", "tenure.rules.schedule")
print(*(name for name in heavy if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["job", "--help"], set()),
        (["demo", "--help"], set()),
        (["doctor", "--help"], set()),
        (["explain", "30 2 * * *", "--tz", "Europe/Berlin"], {"cronsim", "tenure.rules.schedule"}),
        (["explain", "30 2 * * *", "--json"], {"cronsim", "tenure.rules.schedule"}),
    ],
)
def test_little_is_loaded(words, allowed):
    """Help loads no scheduler and no store, and `explain` only the rules of schedules."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0
    assert set(done.stderr.split()) <= allowed


def test_a_reader_that_has_enough():
    """A pipe that is closed early is no error."""
    line = f"{sys.executable} -m tenure explain 1s --count 1000 | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no other system has a device that is always full")
def test_a_disk_that_is_full_is_no_fault_of_ours():
    """What can't be written where stdout leads is told in a sentence."""
    line = f"{sys.executable} -m tenure explain 1s > /dev/full"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr.startswith("tenure: what is to be written has no place: No space left on device.")


def test_a_stdout_that_was_closed():
    """What is written goes nowhere; the answer is the exit code."""
    line = f"{sys.executable} -m tenure explain 1s >&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_ascii_terminals():
    """Where the other end can't take Unicode, everything is still said."""
    done = tenure("explain", "30 2 * * *", "--tz", "Europe/Berlin", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
