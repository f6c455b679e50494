"""A server of a board in a process of its own: `python board_server.py URL PORT`. Prints `ready` when it answers."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class BoardServer:
    """A server's process on a port; it can be ended, killed and started again."""

    def __init__(self, url, port, log=None):
        self.url, self.port, self.log, self.process, self._next = url, port, log, None, None

    async def start(self):
        """Start it and wait until it answers."""
        await asyncio.to_thread(self._start)
        return self

    async def prepare(self):
        """Load a second process, which takes the place of the first at the next `start`: so that this is quick."""
        self._next = await asyncio.to_thread(self._loaded)

    def _loaded(self):
        command = [sys.executable, str(Path(__file__)), self.url, str(self.port)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with Path(self.log).open("a") if self.log else contextlib.nullcontext() as errors:
            process = subprocess.Popen(command, stderr=errors, text=True, **pipes)
        line = process.stdout.readline()
        assert line == "loaded\n", line
        return process

    def _start(self):
        self.process, self._next = self._next or self._loaded(), None
        self.process.stdin.close()
        line = self.process.stdout.readline()
        assert line == "ready\n", line

    async def end(self, how=signal.SIGTERM):
        """End it by a signal; how many seconds that took."""
        if self.process.poll() is not None:
            return 0.0
        began = time.monotonic()
        self.process.send_signal(how)
        await asyncio.to_thread(self.process.wait, 30)
        self.process.stdout.close()
        return time.monotonic() - began


def main(url, port):
    from board_hall import SECRET

    from tenure.board.board import Board, BoardSettings, Rate
    from tenure.board.database import Database
    from tenure.board.secrets import ring_of
    from tenure.serve import listen, run

    print("loaded", flush=True)
    sys.stdin.read()
    much = Rate(1e6, 10**6)
    settings = BoardSettings(
        mcp_era="both", worker=much, own_settings=much, writes=much, public_url=f"http://127.0.0.1:{port}"
    )
    board = Board(Database(url), ring_of(SECRET), settings)
    return run(board, listen("127.0.0.1", int(port)), environ=os.environ, ready=lambda: print("ready", flush=True))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(*sys.argv[1:]))
