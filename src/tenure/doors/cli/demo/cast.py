"""The instances of a demo as processes: started, heard through their logs, killed, stopped, and always cleaned up."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any, Final, Self

from tenure.doors.cli.demo.plan import VARIABLE, Plan

Heard = tuple[str, dict[str, Any]]
PATIENCE: Final = 5.0


class Member:
    """One process of one instance."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], heard: queue.SimpleQueue[Heard]) -> None:
        self.name, self.process = name, process
        self.noise: deque[str] = deque(maxlen=20)
        self.expected_end = False
        self._heard = heard
        self._reader = threading.Thread(target=self._read, name=f"demo-{name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Its log, line by line; what is no JSON is kept for the case that it dies of it."""
        assert self.process.stderr is not None  # noqa: S101 - it was started with a pipe
        for line in self.process.stderr:
            try:
                told = json.loads(line)
            except ValueError:
                self.noise.append(line.decode(errors="replace").rstrip())
            else:
                self._heard.put((self.name, told))

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Gone for good, its pipes too."""
        if self.alive:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Cast:
    """All instances. A context manager: nothing of it outlives the block."""

    def __init__(self, plan: Plan, store: str, folder: Path) -> None:
        self.plan, self._folder = plan, folder
        self._environment = _environment(plan, store)
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self.members: dict[str, Member] = {}
        self._ended: list[Member] = []

    def start(self, name: str) -> int:
        """Start an instance, or start it again; its pid."""
        before = self.members.get(name)
        if before is not None:
            self._ended.append(before)
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure", "run", "tenure.doors.cli.demo.app:app", "-v"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env={**self._environment, "TENURE_NAME": name},
            start_new_session=True,  # Ctrl-C is for the stage; it tells the cast
        )
        self.members[name] = Member(name, process, self._heard)
        return process.pid

    def alive(self) -> list[str]:
        """The names of those whose process runs."""
        return [name for name, member in self.members.items() if member.alive]

    def hear(self, seconds: float) -> list[Heard]:
        """What was logged since; waits so long for the first line."""
        told: list[Heard] = []
        with contextlib.suppress(queue.Empty):
            told.append(self._heard.get(timeout=seconds))
            while True:
                told.append(self._heard.get_nowait())
        return told

    def kill(self, name: str) -> None:
        """SIGKILL: it can do nothing any more."""
        self.members[name].expected_end = True
        self.members[name].process.kill()
        self.members[name].process.wait()

    def terminate(self, name: str) -> None:
        """SIGTERM: it is to stop in order."""
        self.members[name].expected_end = True
        self.members[name].process.send_signal(signal.SIGTERM)

    def fallen(self) -> Member | None:
        """One that ended although nobody told it to."""
        ended = (one for one in self.members.values() if not one.alive and not one.expected_end)
        return next(ended, None)

    def stop(self) -> None:
        """Stop all in order, within a few seconds."""
        for name in self.alive():
            self.terminate(name)
        for member in self.members.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                member.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in (*self.members.values(), *self._ended):
            member.end()


def _environment(plan: Plan, store: str) -> dict[str, str]:
    """Ours without its settings of Tenure, and with those of the demo."""
    import tenure

    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_")}
    home = str(Path(tenure.__file__).parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "TENURE_STORE": store,
        "TENURE_LOG_FORMAT": "json",
        VARIABLE: plan.told(),
    }
