"""A board in a process of its own, in a folder of its own, and the command line beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
