"""A command that works on one todo: what it is given, what it prints, and how it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from tenure.doors.cli.output import unheard
from tenure.doors.cli.wording import clean
from tenure.doors.wire.strict import NotJson, parse
from tenure.rules.bounds import JSON_BYTES

if TYPE_CHECKING:
    from tenure.client import Task

# How long a command has after SIGTERM before it is killed.
GRACE_SECONDS: Final = 10.0
_CHUNK: Final = 65_536
_END_BYTES: Final = 4_096
_SAID_CHARS: Final = 300
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


class Child:
    """One run of the command. `result`: the last line of its stdout that was JSON."""

    def __init__(self, command: Sequence[str], task: Task) -> None:
        self.command, self.task = command, task
        self.result: Any = None
        self._end = b""

    @property
    def said(self) -> str:
        """The last line of its stderr that is not blank, so far."""
        lines = clean(self._end.decode(errors="replace").rstrip()).split("\n")
        return lines[-1].strip()[-_SAID_CHARS:]

    async def run(self) -> int:
        """Run it to its end; returns the exit code, negative for a signal. Cancelled, it is stopped first."""
        process = await self._begin()
        try:
            await asyncio.gather(self._feed(process), self._hear(process), self._overhear(process))
            return await process.wait()
        finally:
            if process.returncode is None:
                await asyncio.shield(_stop(process))

    async def _begin(self) -> asyncio.subprocess.Process:
        from tenure.errors import ConfigError

        try:
            return await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **self._environment()},
                start_new_session=True,  # Ctrl-C reaches us alone, and a stop reaches all that it started
                preexec_fn=functools.partial(_end_with, os.getpid()) if _LIBC else None,
            )
        except OSError as error:
            hint = "Name a program; a script needs a first line such as #!/bin/sh."
            raise ConfigError("command", self.command[0], f"can't be run: {error.strerror}.", hint) from None

    def _environment(self) -> dict[str, str]:
        held = self.task.held
        return {
            "TENURE_TODO_ID": held.id,
            "TENURE_TODO_TITLE": held.title,
            "TENURE_TODO_QUEUE": held.queue,
            "TENURE_TODO_ATTEMPT": str(held.attempt),
            "TENURE_LEASE_TOKEN": held.lease.token,
            "TENURE_LEASE_EXPIRES": held.raw["lease_expires_at"],
        }

    async def _feed(self, process: asyncio.subprocess.Process) -> None:
        stdin = process.stdin
        assert stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read
            stdin.write(json.dumps(self.task.held.raw["todo"], ensure_ascii=False).encode() + b"\n")
            await stdin.drain()
            stdin.close()
            await stdin.wait_closed()

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what it prints, and remember the last line that is JSON and no longer than a result may be."""
        stdout = process.stdout
        assert stdout is not None  # noqa: S101 - it is a pipe
        line, whole = b"", True
        while chunk := await stdout.read(_CHUNK):
            _pass_on(chunk, sys.stdout)
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                self._read(line + part if whole else b"")
                line, whole = b"", True
            line += rest
            if len(line) > JSON_BYTES:
                line, whole = b"", False
        self._read(line if whole else b"")

    async def _overhear(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what it says on stderr, and remember the end of it."""
        stderr = process.stderr
        assert stderr is not None  # noqa: S101 - it is a pipe
        while chunk := await stderr.read(_CHUNK):
            _pass_on(chunk, sys.stderr)
            self._end = (self._end + chunk)[-_END_BYTES:]

    def _read(self, line: bytes) -> None:
        with contextlib.suppress(NotJson):
            self.result = parse(line)  # as the board will read it: what it would refuse is no result


def _pass_on(chunk: bytes, stream: TextIO) -> None:
    """To whoever listens to us; that nobody does any more is no reason to stop the command."""
    try:
        stream.buffer.write(chunk)
        stream.buffer.flush()
    except OSError:
        unheard(stream)


def _end_with(worker: int) -> None:
    """In the command's process: SIGTERM when its worker dies, even of SIGKILL; who has died by now is no parent."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != worker:
        os.kill(os.getpid(), signal.SIGTERM)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """SIGTERM to all that the command started, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            return
