"""What the adapters share: the marks, the job that hangs, and the words by which the bench calls them.

An adapter runs in the environment of its peer and knows nothing of Tenure:

    python NAME_peer.py setup    make what the store needs
    python NAME_peer.py put      put one job, which hangs when it is started first
    python NAME_peer.py work     a worker, at its defaults, until it is killed
    python NAME_peer.py tick     worker and scheduler of a job due each second, until it is killed

PEER_URL names the store. PEER_MARKS is a file in which each start of a handler is a line: wall time and pid.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

URL = os.environ["PEER_URL"]
MARKS = os.environ["PEER_MARKS"]
HANGS_SECONDS = 3_600


def mark() -> bool:
    """One line for this start; whether it was the first of all. O_APPEND keeps lines of several processes whole."""
    file = os.open(MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    first = os.fstat(file).st_size == 0
    os.write(file, f"{time.time():.6f} {os.getpid()}\n".encode())
    os.close(file)
    return first


async def hang() -> None:
    """The job of a takeover, where handlers are coroutines."""
    if mark():
        await asyncio.sleep(HANGS_SECONDS)


def hang_in_thread() -> None:
    """The same where they are functions."""
    if mark():
        time.sleep(HANGS_SECONDS)


def become(program: str, *arguments: str) -> None:
    """Go on as the peer's own command line, which finds the adapter as a module."""
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    path = str(Path(sys.executable).with_name(program))
    os.execv(path, [path, *arguments])  # noqa: S606 - there is no shell to want


def main(**commands) -> None:
    """Do what the command line says; a peer without `setup` needs none."""
    commands.get(sys.argv[1], lambda: None)()
