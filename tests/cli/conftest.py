"""The command line in this process, in a folder of its own, and a store that holds what a test puts there."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tenure import Tenure
from tenure.doors.cli.root import cli as root
from tenure.rules import commands as c
from tenure.scheduler.jobs import define

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """No setting of the machine or of this project reaches a command, and no module of one test the next."""
    for name in list(os.environ):
        ours = name.startswith("TENURE_") and not name.startswith("TENURE_TEST_")  # those name the suite's servers
        if ours or name in ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))  # nor whom this machine's user is signed in as
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def cli():
    """Run a command; `cli("job", "list")` gives click's result, with `exit_code`, `stdout` and `stderr`."""

    def run(*words: str, **env: str) -> Result:
        result = CliRunner().invoke(root, list(words), env=dict(env))
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def read(cli):
    """The same with --json: what was printed, read."""

    def run(*words: str, code: int = 0) -> Any:
        result = cli(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return run


def plain(_run=None) -> None:
    """A handler that does nothing."""


@dataclass
class Kept:
    """A store, filled by commands to the rules, as instances would."""

    url: str
    app: Tenure
    tokens: int = 0
    jobs: dict[str, Any] = field(default_factory=dict)

    @property
    def now(self) -> int:
        return self.app.ask_now(lambda records: records.now())

    def tell(self, job: str, command: c.Command) -> Any:
        """Put one command; the rules' answer."""
        return self.app.ask_now(lambda records: records.ledger.ask_one(job, command)).answer

    def register(self, name: str, schedule: Any = None, **options: Any) -> None:
        """Make a job known, as an instance does when it starts."""
        job = self.jobs[name] = define(name, schedule, plain, options)
        identity = schedule.identity if schedule is not None else ""
        self.tell(name, c.Register(identity, job.fingerprint(), json.dumps(job.told()), job.bound_ms))

    def claim(self, name: str, slot: int, runner: str = "api-1", reason: str = "schedule", request: str = "") -> Any:
        """Claim a run; the answer, `Won` or why not."""
        self.tokens += 1
        job = self.jobs[name]
        claim = c.Claim(
            slot, f"{self.tokens:032x}", runner, job.lease_ms, job.max_attempts, 24 * HOUR, job.overlap,
            reason, reason != "takeover", request,
        )  # fmt: skip
        return self.tell(name, claim)

    def finish(
        self, name: str, slot: int, token: str, *, error: Any = None, result: Any = None, request: str = ""
    ) -> None:
        """End a run in success, or in failure with an error."""
        status = "failed" if error else "success"
        self.tell(name, c.Finish(slot, token, status, request, result, error))

    def ran(self, name: str, slot: int, runner: str = "api-1", **ending: Any) -> None:
        """A whole run."""
        self.finish(name, slot, self.claim(name, slot, runner).token, **ending)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A store in a file, which commands use by default."""
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    app = Tenure(url)
    app.ask_now(lambda records: records.now())
    monkeypatch.setenv("TENURE_STORE", url)
    yield Kept(url, app)
    app.close()
