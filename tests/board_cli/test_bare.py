"""Tenure as `pip install tenure` leaves it: what the board needs is not there, and one line says so."""

import subprocess
import sys

import pytest

HIDING = """
import sys
for name in ("alembic", "argon2", "fastapi", "httpx2", "mcp", "sqlalchemy", "starlette", "uvicorn"):
    sys.modules[name] = None
"""
RUN = 'pip install "tenure[board]"'


def python(code, *words, folder, **env):
    return subprocess.run(
        [sys.executable, "-c", HIDING + code, *words],
        cwd=folder, env={"XDG_CONFIG_HOME": str(folder), **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["board", "--port", "0"],
        ["human", "list"],
        ["db", "upgrade", "--database", "sqlite:///board.db"],
        ["endpoint", "list"],
        ["work", "reviewer", "--", "true"],
        ["mcp", "reviewer"],
    ],
    ids=" ".join,
)
def test_a_command_of_the_board_names_the_extra(tmp_path, words):
    """One line, with what to run, and exit code 2."""
    code = "from tenure.doors.cli import main; sys.exit(main(sys.argv[1:]))"
    done = python(code, *words, folder=tmp_path, TENURE_TOKEN="t", TENURE_ENDPOINT_CREDENTIAL="c")  # noqa: S106
    assert done.returncode == 2, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("tenure: ")
    assert RUN in done.stderr


def test_help_names_both_halves(tmp_path):
    """Jobs and the board are in the first sentence, and reading it needs no extra."""
    done = python("from tenure.doors.cli import main; sys.exit(main(['--help']))", folder=tmp_path)
    told = " ".join(done.stdout.split())
    assert "scheduled jobs that run once" in told
    assert "a board of todos" in told


def test_the_client_names_the_extra(tmp_path):
    """`import tenure.client` too."""
    done = python("import tenure.client", folder=tmp_path)
    assert done.stderr.splitlines()[-1].endswith(f"tenure.client needs the board extra. Run: {RUN}")
