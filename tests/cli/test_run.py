"""`tenure run`: a small application as a real process, and how an application is found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

APP = """
from tenure import Tenure

app = Tenure("sqlite:///own.db", name="api-1", lease="5s")

@app.cron("30 2 * * *", tz="Europe/Berlin")
def report(): ...

@app.every("1s", jitter=0)
async def tick(run):
    run.log.info("works")
    if await run.lost.within(30):
        run.check()
"""


@contextmanager
def running(*words: str, **env: str):
    """`tenure run` in this folder; ended at the latest when the block is left."""
    import os

    process = subprocess.Popen(
        [sys.executable, "-m", "tenure", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        if process.stderr.closed:
            process.stderr = None
        process.communicate()


def read_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """What it says, up to the line that holds the word."""
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if word in line:
            return lines
    raise AssertionError(f"it ended without saying {word!r}:\n" + "\n".join(lines))


@pytest.fixture
def tasks():
    Path("tasks.py").write_text(APP)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_from_start_to_stop(cli, tasks, number):
    """It says what it runs, logs what happens, and on the signal hands its run over and ends with 0."""
    with running("tasks:app") as process:
        said = read_until(process, "started tick ")
        process.send_signal(number)
        rest = read_until(process, "tenure: stopped")
        assert process.wait(20) == 0
        assert process.stdout.read() == ""
    text = "\n".join(said)
    assert (
        "tenure 0.1.0\n  store     sqlite:///own.db\n  instance  api-1\n  lease     5s, heartbeat every 833ms; " in text
    )
    assert "a takeover comes at most 6.666s after a dead runner's last heartbeat" in text
    assert "  report  At 02:30 every day, Europe/Berlin time\n          next " in text
    assert text.count("clocks go forward") == text.count("clocks go back") == 1
    assert "02:30 does not exist: runs at 03:30 (+02:00)" in text
    assert "02:30 comes twice: runs the first time only (+02:00)" in text
    assert "  tick  Every second, counted from 1970-01-01 00:00 UTC" in text
    assert "warning: report: clocks in Europe/Berlin go from" in text
    ending = "\n".join(rest)
    assert "tenure: stopping: running handlers are finished or handed over (once more to leave at once)" in ending
    assert "handed-over tick " in ending
    assert ending.endswith("tenure: stopped; runs: 1 handed over")
    (run,) = json.loads(cli("runs", "list", "tick", "--json", "--store", "sqlite:///own.db").stdout)[-1:]
    assert run["attempts"][0]["how"] == "handed-over"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize("form", ["text", "json"])
def test_r28_it_stops_in_order_although_nobody_reads_its_log_any_more(cli, tasks, form):
    """The other end of its pipe is gone, as `tee` after Ctrl-C: its run is handed over all the same."""
    with running("tasks:app", TENURE_LOG_FORMAT=form) as process:
        read_until(process, "started tick ")
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    (run,) = json.loads(cli("runs", "list", "tick", "--json", "--store", "sqlite:///own.db").stdout)[-1:]
    assert run["attempts"][0]["how"] == "handed-over"


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_set_and_not_heeded(tasks, form):
    """TENURE_STORE where the application names a store of its own, and names that are nearly settings."""
    env = {"TENURE_LOG_FORMAT": form, "TENURE_STORE": "sqlite:///other.db", "TENURE_LEAS": "3s"}
    with running("tasks:app", **env) as process:
        text = "\n".join(read_until(process, "started tick "))
    assert "TENURE_STORE names another store; the application names its own, which wins. --store beats both." in text
    assert "Did you mean TENURE_LEASE?" in text
    with running("tasks:app", "--store", "sqlite:///other.db", TENURE_STORE="sqlite:///own.db") as process:
        assert "TENURE_STORE" not in "\n".join(read_until(process, "started tick "))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
def test_json_log_and_only_one_job(tasks):
    """TENURE_LOG_FORMAT=json: every line is an object, that of the start too; --only leaves the other jobs out."""
    with running("tasks:app", "--only", "tick", "--stop-timeout", "2s", "-v", TENURE_LOG_FORMAT="json") as process:
        said = read_until(process, '"works"')
        process.send_signal(signal.SIGTERM)
        rest = read_until(process, "tenure: stopped")
        assert process.wait(20) == 0
    told = [json.loads(line) for line in (*said, *rest)]
    begun = next(line for line in told if line.get("event") == "begun")
    assert (begun["version"], begun["store"], begun["instance"], begun["takeover_ms"]) == (
        "0.1.0", "sqlite:///own.db", "api-1", 6_666,
    )  # fmt: skip
    won = next(line for line in told if line.get("event") == "won")
    assert (won["job"], won["attempt"], won["runner"]) == ("tick", 1, "api-1")
    assert won["slot_ms"] % 1_000 == 0
    works = next(line for line in told if line["message"] == "works")
    assert (works["logger"], works["job"], len(works["token8"])) == ("tenure.run", "tick", 8)
    assert not any("report" in json.dumps(line) for line in told)


def test_the_applications_own_logging_is_left_alone():
    """An application that has set up logging keeps it: no second line, no other form."""
    Path("logged.py").write_text(
        "import logging\nlogging.basicConfig(format='MINE %(message)s', level='INFO')\n" + APP.replace("30 2", "31 2")
    )
    with running("logged:app") as process:
        said = read_until(process, "started tick ")
    assert said[-1].startswith("MINE started tick ")
    assert sum("started tick " in line for line in said) == 1


@pytest.mark.parametrize(
    ("files", "words", "code", "says"),
    [
        ({}, [], 2, "which application is to be run? Give MODULE:OBJECT (tenure run tasks:app), or set TENURE_APP"),
        ({}, ["tasks:app"], 2, "names the module 'tasks', which is neither in "),
        ({"taskz.py": APP}, ["tasks:app"], 2, "Did you mean taskz?"),
        ({"tasks.py": APP}, ["tasks:ap"], 2, "names 'ap', which is not in tasks. Did you mean tasks:app?"),
        ({"tasks.py": APP}, ["tasks:report"], 2, "is of type function, not a Tenure. There is tasks:app."),
        ({"tasks.py": APP}, ["tasks.py"], 2, "is a path; write MODULE:OBJECT, here tasks:app."),
        ({"tasks.py": APP}, ["./tasks.py:app"], 2, "is a path; write MODULE:OBJECT, here tasks:app."),
        ({"tasks.py": APP}, ["tasks app"], 2, "is not of the form MODULE:OBJECT"),
        ({"tasks.py": APP}, ["tasks:app", "--only", "tik"], 3, "no job 'tik' in this application. Did you mean 'tick'"),
        ({"tasks.py": "x = 1"}, ["tasks"], 2, 'which holds no Tenure: make one there, app = Tenure("sqlite:///tenure.db").'),
        ({"tasks.py": APP + "b = Tenure()"}, ["tasks"], 2, "which holds tasks:app and tasks:b."),
        ({"tasks.py": "\nimport nowhere_at_all"}, ["tasks:app"], 1,
         "tasks.py:2: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ({"tasks.py": "def f(:"}, ["tasks:app"], 1, "tasks.py:1: SyntaxError: "),
        ({"tasks.py": "raise SystemExit('no')"}, ["tasks:app"], 1, "tasks.py:1: SystemExit: no"),
        ({"tasks.py": "import helper", "helper.py": "def f():\n    1 / 0\nf()"}, ["tasks:app"], 1,
         "helper.py:2: ZeroDivisionError: division by zero (TENURE_DEBUG=1 shows the traceback)"),
        ({"tasks.py": "from tenure import Tenure\napp = Tenure()"}, ["tasks:app"], 5, "there is nothing to run"),
        ({"tasks.py": APP.replace("own.db", "no/such/folder/x.db")}, ["tasks:app"], 1, "doesn't exist. Make it first."),
    ],
)  # fmt: skip
def test_what_can_not_be_run(cli, files, words, code, says):
    """One line that says what is wrong, with the place in the application's code, and an exit code."""
    for name, text in files.items():
        Path(name).write_text(text)
    result = cli("run", *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert result.stderr.splitlines()[-1].startswith("tenure: ")
    assert sum(line.startswith("tenure: ") for line in result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("sqlite:///nowhere/own.db", "the folder {here}/nowhere doesn't exist. Make it first."),
        ("sqlite:///.", "{here} is a folder. Name a file in it, such as {here}/tenure.db."),
        ("sqlite:///tasks.py", "{here}/tasks.py is damaged or no SQLite database"),
    ],
)
def test_a_store_that_can_not_be_used_is_told_in_one_line(tasks, store, says):
    """Waiting would not mend it: the process ends, and says once, without a traceback, why."""
    with running("tasks:app", "--store", store) as process:
        told = [line for line in process.stderr if "warning: report: clocks in" not in line]
        assert process.wait(20) == 1
    assert len(told) == 1
    assert told[0].startswith("tenure: ")
    assert says.format(here=Path.cwd()) in told[0]


def test_where_the_application_is_named(cli):
    """The argument, else TENURE_APP, else pyproject.toml; a module with one Tenure needs no object's name."""
    Path("empty.py").write_text("from tenure import Tenure\nanything = Tenure()")
    Path("pyproject.toml").write_text('[tool.tenure]\napp = "nowhere1:app"\n')
    assert "nowhere1" in cli("run").stderr
    assert "nowhere2" in cli("run", TENURE_APP="nowhere2:app").stderr
    assert "nowhere3" in cli("run", "nowhere3:app", TENURE_APP="nowhere2:app").stderr
    assert cli("run", "empty", TENURE_APP="nowhere2:app").exit_code == 5
