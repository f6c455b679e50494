"""A peer that a user might pick instead: its own environment, its processes, and the marks of its handlers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
from servers import PREFIX

ADAPTERS = Path(__file__).parent / "peers"
ENVIRONMENTS = Path(__file__).parents[1] / ".bench"


class PeerError(Exception):
    """Why a peer could not be measured: one line for its row."""


@dataclass(frozen=True)
class Peer:
    """One row of peers.toml, which says what the fields mean; or Tenure itself, which needs no environment."""

    name: str
    title: str
    store: str
    package: str = ""
    install: tuple[str, ...] = ()
    beside: str = ""
    no_takeover: str = ""
    no_ticks: str = ""
    alone: str = ""
    rhythm: bool = False
    env: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> str:
        return str(ENVIRONMENTS / self.name / "bin" / "python") if self.install else sys.executable

    def prepare(self) -> str:
        """Make its environment, unless it is there as peers.toml wants it; its version. Raises PeerError."""
        if not self.install:
            return ""
        made = ENVIRONMENTS / self.name / "installed"
        if not made.is_file() or made.read_text() != "\n".join(self.install):
            self._install()
            made.write_text("\n".join(self.install))
        code = f"import importlib.metadata as m; print(m.version({self.package!r}))"
        return _run([self.python, "-c", code]).strip()

    def _install(self) -> None:
        folder = ENVIRONMENTS / self.name
        if uv := shutil.which(os.environ.get("UV", "uv")):
            _run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(folder)])
            _run([uv, "pip", "install", "-q", "--python", self.python, *self.install])
        else:
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            _run([self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *self.install])


def peers() -> list[Peer]:
    """All of peers.toml, in its order."""
    table = tomllib.loads((ADAPTERS / "peers.toml").read_text(encoding="utf-8"))
    return [Peer(name, **{**row, "install": tuple(row["install"])}) for name, row in table.items()]


def ours(title: str, store: str, **env: str) -> Peer:
    """Tenure as a peer of the peers."""
    return Peer("tenure", title, store, env=env)


def _run(command: list[str], **options: Any) -> str:
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"{Path(command[0]).name}: {error}"[:200]) from None
    if told.returncode:
        last = [line for line in told.stderr.splitlines() if line.strip()][-1:] or ["no word"]
        raise PeerError(f"{Path(command[0]).name} failed: {last[0].strip()[:160]}")
    return told.stdout


class Crew:
    """The processes of one peer on one store. Use it as a context manager: it kills all that it started."""

    def __init__(self, peer: Peer, url: str) -> None:
        self.peer = peer
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._marks = self.folder / "marks"
        self._env = {**os.environ, **peer.env, "PEER_URL": url, "PEER_MARKS": str(self._marks)}
        self.started: list[subprocess.Popen[bytes]] = []

    def _command(self, word: str) -> list[str]:
        return [self.peer.python, str(ADAPTERS / f"{self.peer.name}_peer.py"), word]

    def do(self, word: str) -> None:
        """Run one command of the adapter to its end."""
        _run(self._command(word), env=self._env, cwd=self.folder)

    def start(self, word: str) -> None:
        """Start a process, in a session of its own: whatever it starts itself is in that too."""
        log = (self.folder / f"log{len(self.started)}").open("wb")
        with log:
            self.started.append(
                subprocess.Popen(
                    self._command(word), env=self._env, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
                )
            )

    def marks(self) -> list[tuple[float, int]]:
        """The starts of handlers so far: wall time and pid."""
        with contextlib.suppress(FileNotFoundError):
            lines = self._marks.read_text().splitlines()
            return [(float(at), int(pid)) for at, pid in (line.split() for line in lines)]
        return []

    def wait(self, enough: Callable[[list[tuple[float, int]]], bool], seconds: float) -> bool:
        """Whether there were enough marks within that time. Raises PeerError if a process ends meanwhile."""
        end = time.monotonic() + seconds
        while not enough(self.marks()):
            if time.monotonic() > end:
                return False
            for at, process in enumerate(self.started):
                if process.poll() is not None:
                    log = (self.folder / f"log{at}").read_text(errors="replace").strip()
                    raise PeerError(f"a process ended by itself: {(log.splitlines() or [''])[-1][:160]}")
            time.sleep(0.02)
        return True

    def kill(self, pid: int) -> None:
        """SIGKILL to the process that this pid belongs to, and to all of its session."""
        session = os.getsid(pid)
        victim = next(one for one in self.started if one.pid == session)
        self.started.remove(victim)
        _kill(victim)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            _kill(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill(leader: subprocess.Popen[bytes]) -> None:
    """Kill a session: its leader first, so that nothing is started again."""
    for pid in (leader.pid, *psutil.pids()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid == leader.pid or os.getsid(pid) == leader.pid:
                os.kill(pid, signal.SIGKILL)
    leader.wait()
