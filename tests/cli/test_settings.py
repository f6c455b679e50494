"""Twenty and more wrong settings: each one line that names the field, the value and the bound, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.settings import misspelt, resolve

HEAD = "from datetime import timedelta\nfrom tenure import Tenure\n"

IN_CODE = [
    ('app = Tenure(lease="50ms")', ["lease='50ms'", "1s to 1d"]),
    ('app = Tenure(lease="25h")', ["lease='25h'", "1s to 1d"]),
    ('app = Tenure(lease="30s", heartbeat=15)', ["heartbeat=15", "half of the lease (30s / 2 = 15s)"]),
    ("app = Tenure(max_attempts=0)", ["max_attempts=0", "1 or more"]),
    ("app = Tenure(max_attempts=2.5)", ["max_attempts=2.5", "whole number"]),
    ('app = Tenure(overlap="skp")', ["overlap='skp'", "Did you mean 'skip'?"]),
    ("app = Tenure(jitter=-1)", ["jitter=-1", "is negative"]),
    ('app = Tenure(catch_up="soon")', ["catch_up='soon'", "is no length of time"]),
    ("app = Tenure(max_late=True)", ["max_late=True", "is no length of time"]),
    ("app = Tenure(history=-1)", ["history=-1", "0 or more"]),
    ("app = Tenure(timeout=0)", ["timeout=0", "out of bounds"]),
    ("app = Tenure(timeout=timedelta(days=-1))", ["timeout=", "is negative"]),
    ("app = Tenure(retries=1.5)", ["retries=1.5", "whole number"]),
    ('app = Tenure(when_unsure="stop")', ["when_unsure='stop'", "'abort', 'continue'"]),
    ('app = Tenure(lese="30s")', ["lese='30s'", "Did you mean lease?"]),
    ('app = Tenure(name="")', ["name=''", "1 to 200"]),
    ('app = Tenure("sqlit:///x.db")', ["store='sqlit:///x.db'", "Did you mean sqlite://?"]),
    ("app = Tenure(threads=0)", ["threads=0", "1 or more"]),
    ('app = Tenure(threads="x")', ["threads='x'", "whole number"]),
    ("import pathlib\napp = Tenure(pathlib.Path('x.db'))", ["is a path", "Write sqlite:///x.db"]),
    ("app = Tenure(5)", ["store=5", "is no URL of a store"]),
    ("app = Tenure()\napp.simulate(None)", ["start=None", "is no time"]),
    ('app = Tenure()\napp.on("failed", None)', ["listener=None", "can't be called"]),
    ('app = Tenure()\n@app.on("failed")\nasync def f(event): ...', ["listener='f'", "is async", "app.events()"]),
    ("app = Tenure()\n@app.every('1s')\ndef f():\n    yield", ["handler='f'", "is a generator"]),
    ("app = Tenure()\n@app.every('1s')\nasync def f():\n    yield", ["handler='f'", "is a generator"]),
    ("app = Tenure()\n@app.every\ndef f(): ...", ["handler='f'", "without parentheses", '@app.every("10s")']),
    ("app = Tenure()\n@app.cron\ndef f(): ...", ["handler='f'", "without parentheses"]),
    ("app = Tenure()\n@app.job\ndef f(): ...", ["handler='f'", "without parentheses", "@app.job()"]),
    ("app = Tenure()\n@app.job('f')\ndef f(): ...", ["job='f'", 'Write @app.job(name="report")']),
    ("app = Tenure()\n@app.cron(5)\ndef f(): ...", ["expression=5", "is no cron expression"]),
    ('app = Tenure("x.db")', ["store='x.db'", "is no URL of a store"]),
    ('app = Tenure("sqlite:///x.db?prefx=a")', ["prefx", "Did you mean prefix?"]),
    ("app = Tenure()\n@app.every(0)\ndef f(): ...", ["interval=", "1 ms to 100 years"]),
    ('app = Tenure()\n@app.every("10x")\ndef f(): ...', ["interval='10x'", "is no length of time"]),
    ('app = Tenure()\n@app.cron("61 * * * *")\ndef f(): ...', ["minute='61': is over 59", "0-59"]),
    ('app = Tenure()\n@app.cron("0 0 * * *", tz="Europe/Berln")\ndef f(): ...', ["tz=", "Europe/Berlin?"]),
    ('app = Tenure()\n@app.cron("0 0 * * *", dst_gap="jump")\ndef f(): ...', ["dst_gap=", "'skip'"]),
    ('app = Tenure()\n@app.every("1s", name="a\\tb")\ndef f(): ...', ["name='a\\tb'", "control character"]),
    ('app = Tenure()\n@app.every("1s", name="x" * 201)\ndef f(): ...', ["name='xxx", "1 to 200"]),
    ('app = Tenure()\n@app.every("1s")\ndef f(a, b): ...', ["handler='f'", "Take the run alone"]),
    ('app = Tenure()\n@app.every("1s")\ndef f(): ...\n@app.every("2s")\ndef f(): ...', ["name='f'", "another job"]),
]


def refused(result, *parts: str) -> str:
    """One line, exit 2, nothing on stdout, with all the parts."""
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("tenure: ")
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr
    return result.stderr


@pytest.mark.parametrize(("code", "parts"), IN_CODE, ids=[code.rsplit("app", 1)[-1][:40] for code, _ in IN_CODE])
def test_wrong_in_code(cli, code, parts):
    """What the application asks wrongly is told with its file and line."""
    Path("wrong.py").write_text(HEAD + code)
    assert refused(cli("run", "wrong:app"), *parts).startswith("tenure: wrong.py:")


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("TENURE_LEASE", "1ms", ["TENURE_LEASE='1ms' (environment): ", "1s to 1d"]),
        ("TENURE_MAX_ATTEMPTS", "many", ["TENURE_MAX_ATTEMPTS='many'", "whole number"]),
        ("TENURE_OVERLAP", "both", ["TENURE_OVERLAP='both' (environment): ", "'skip', 'allow'"]),
        ("TENURE_STORE", "sqlite://x.db", ["TENURE_STORE='sqlite://x.db' (environment): ", "two slashes"]),
        ("TENURE_STORE", "env:DATABASE_URL_THAT_IS_NOT", ["names the variable DATABASE_URL_THAT_IS_NOT"]),
        ("TENURE_STORE", "mysql://x", ["no store has the scheme mysql://"]),
        ("TENURE_STOP_TIMEOUT", "never", ["TENURE_STOP_TIMEOUT='never' (environment): ", "is no length of time"]),
    ],
)
def test_wrong_in_the_environment(cli, name, value, parts):
    """So is what stands in the environment."""
    refused(cli("job", "list", **{name: value}), *parts)


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ('lese = "30s"', ["tool.tenure.lese='30s'", "Did you mean lease?"]),
        ('lease = "1ms"', ["lease='1ms' in /", "pyproject.toml: ", "1s to 1d"]),
        ("store = 5", ["store=5 in /", "pyproject.toml: ", "is no URL of a store"]),
        ('timeout = "nne"', ["timeout='nne' in /", "is no length of time"]),
        ('history = "all"', ["history='all'", "whole number"]),
        ('store = "nothing"', ["store='nothing'", "is no URL of a store"]),
        ("lease = ", ["pyproject.toml", "can't be read"]),
    ],
)
def test_wrong_in_the_file(cli, table, parts):
    """And what stands in pyproject.toml."""
    Path("pyproject.toml").write_text(f"[tool.tenure]\n{table}\n")
    refused(cli("job", "list"), *parts)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["job", "list", "--store", "redi://x"], ["store='redi://x'", "Did you mean redis://?"]),
        (["job", "list", "--app", "nowhere:app"], ["app='nowhere:app'", "'nowhere'"]),
        (["run", "fine:app", "--stop-timeout", "soon"], ["--stop-timeout='soon'", "is no length of time"]),
        (["demo", "--lease", "1ms"], ["--lease='1ms'", "1s to 60s"]),
        (["demo", "--store", "memory://"], ["--store='memory://'", "can't be shared"]),
        (["runs", "list", "--since", "soon", "--store", "memory://"], ["--since='soon'", "is no time"]),
        (
            ["runs", "list", "--until", "0001-01-01", "--store", "memory://"],
            ["--until='0001-01-01'", "is out of reach"],
        ),
    ],
)
def test_wrong_on_the_command_line(cli, words, parts):
    """And what was typed."""
    Path("fine.py").write_text(HEAD + 'app = Tenure("memory://")\n@app.every("1s")\ndef f(): ...\n')
    refused(cli(*words), *parts)


def test_what_is_set_outside_is_blamed_outside(cli):
    """A refusal names the variable, not the line of the code that took its value; the job's own option is its own."""
    Path("fine.py").write_text(HEAD + 'app = Tenure("memory://")\n@app.every("1s", lease=10)\ndef f(): ...\n')
    refused(cli("run", "fine:app", TENURE_LEASE="abc"), "tenure: TENURE_LEASE='abc' (environment): is no length")
    refused(cli("run", "fine:app", TENURE_HEARTBEAT="6"), "tenure: TENURE_HEARTBEAT='6' (environment): is not under")


def test_none_can_be_said_outside():
    """`lease` and `timeout` may be none in the environment and in the file."""
    Path("pyproject.toml").write_text('[tool.tenure]\nlease = "none"\ntimeout = "None"\nname = "none"\n')
    assert resolve({}, {}) == {"lease": None, "timeout": None, "name": "none"}
    assert resolve({}, {"TENURE_LEASE": "none"})["lease"] is None


def test_names_that_are_nearly_right():
    """A TENURE_ name that looks like a setting and is none is told; those of others are left alone."""
    (said,) = misspelt({"TENURE_LEAS": "3s", "TENURE_LEASE": "3s", "TENURE_CITY": "x", "TENURE_DEBUG": "1"})
    assert said == "TENURE_LEAS in the environment is no setting, and nothing reads it. Did you mean TENURE_LEASE?"


def test_a_password_is_not_shown(cli):
    """A URL that is refused is repeated without its password."""
    result = cli("job", "list", "--store", "mysql://me:secret@host/x")
    assert result.exit_code == 2
    assert "secret" not in result.output


def test_a_wrong_format_of_the_log(cli):
    """TENURE_LOG_FORMAT is text or json."""
    refused(cli("run", "fine:app", TENURE_LOG_FORMAT="xml"), "TENURE_LOG_FORMAT='xml'", "text or json")


def test_what_comes_first_wins(cli, tmp_path):
    """The store: --store, then TENURE_STORE, then pyproject.toml, then the default; each is the one that is missed."""

    def missed(*words: str, **env: str) -> str:
        result = cli("job", "list", *words, **env)
        assert result.exit_code == 3
        return result.stderr.split("no file ")[1].split(",")[0].rpartition("/")[2]

    assert missed() == "tenure.db"
    Path("pyproject.toml").write_text('[tool.tenure]\nstore = "sqlite:///of_file.db"\n')
    assert missed() == "of_file.db"
    assert missed(TENURE_STORE="sqlite:///of_environment.db") == "of_environment.db"
    assert missed("--store", "sqlite:///of_option.db", TENURE_STORE="sqlite:///x.db") == "of_option.db"
    Path("theirs.py").write_text(HEAD + 'app = Tenure("sqlite:///of_app.db")\n')
    assert missed("--app", "theirs:app", TENURE_STORE="sqlite:///x.db") == "of_app.db"
    Path("pyproject.toml").write_text('[tool.tenure]\napp = "theirs:app"\n')
    assert missed() == "of_app.db"
    assert missed("--app", "theirs:app", "--store", "sqlite:///both.db") == "both.db"
    assert not list(tmp_path.glob("*.db"))
