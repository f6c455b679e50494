"""A board in a process of its own, in a folder of its own, and the command line beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from serving import served

TENURE = (sys.executable, "-m", "tenure")


class Desk:
    """A user's folder: the board that serves from it, and the commands typed in it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
        self.environ = {**kept, "XDG_CONFIG_HOME": str(self.folder / "config"), "USER": "alice", "NO_COLOR": "1"}
        self.server = None
        self.url = None
        self.printed = []

    def serve(self, *options, port="0"):
        """Start `tenure board`, and read what it prints until it answers."""
        with (self.folder / "board.log").open("a") as log:
            self.server = subprocess.Popen(
                [*TENURE, "board", "--no-open", "--port", port, *options],
                cwd=self.folder,
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        first = self.server.stdout.readline()
        assert first.startswith("board "), (self.folder / "board.log").read_text()
        self.printed = [first]
        self.url = first.split()[1]
        return self

    def stop(self):
        """SIGTERM, and the exit code."""
        if self.server is None:
            return None
        self.server.terminate()
        code = self.server.wait(timeout=20)
        self.printed += self.server.stdout.readlines()
        self.server.stdout.close()
        self.server = None
        return code

    def run(self, *words, code=0, stdin=None, **env):
        """Type a command; its result, which has this exit code."""
        done = subprocess.run(
            [*TENURE, *words],
            cwd=self.folder,
            env={**self.environ, **env},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def read(self, *words, **options):
        """The same with --json, read."""
        return json.loads(self.run(*words, "--json", **options).stdout)

    def script(self, name, *lines):
        """A program in the folder."""
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
        path.chmod(0o755)
        return f"./{name}"


@pytest.fixture
def desk(tmp_path):
    """A desk whose board runs."""
    desk = Desk(tmp_path).serve()
    yield desk
    desk.stop()


@pytest.fixture
def quiet_desk(tmp_path):
    """A desk whose board was not started."""
    desk = Desk(tmp_path)
    yield desk
    desk.stop()


class Live:
    """A board of the hall, served in this process, and the command line typed in it as one of the three."""

    def __init__(self, board, url, folder, monkeypatch):
        self.board, self.url = board, url
        self._folder, self._patch, self._tokens = folder, monkeypatch, {}

    def as_(self, name):
        """From here on it is this human who types."""
        from tenure.board import tokens

        if name not in self._tokens:
            human = self.board.people[name]
            self._tokens[name] = self.board.write(tokens.create, human, "cli").secret.reveal()
        self._patch.setenv("TENURE_URL", self.url)
        self._patch.setenv("TENURE_TOKEN", self._tokens[name])
        self._patch.setenv("XDG_CONFIG_HOME", str(self._folder / name))
        return self

    def type(self, *words, code=0, stdin=None):
        """Type a command; click's result, which has this exit code."""
        from tenure.doors.cli.root import cli

        result = CliRunner().invoke(cli, list(words), input=stdin)
        assert "Traceback" not in result.stderr, result.stderr
        assert result.exit_code == code, result.output
        return result

    def read(self, *words, **options):
        """The same with --json, read."""
        return json.loads(self.type(*words, "--json", **options).stdout)


@pytest.fixture
def live(board, tmp_path, monkeypatch):
    """A served board; Alice types."""
    for name in list(os.environ):
        ours = name.startswith("TENURE_") and not name.startswith("TENURE_TEST_")
        if ours or name in ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    with served(board) as url:
        yield Live(board, url, tmp_path, monkeypatch).as_("alice")
