"""The process of a server: its socket, its loop, its signals and its end."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import uvicorn

from tenure.app import Tenure
from tenure.board.board import Board
from tenure.bridge import Bridge
from tenure.doors.web.sources import Source
from tenure.errors import ConfigError
from tenure.serve import logs
from tenure.serve.limits import Protocol
from tenure.serve.site import Site

BACKLOG: Final = 1024
KEEP_ALIVE_SECONDS: Final = 75
# What is still under way after so long, although all waits were ended, is cut off.
END_SECONDS: Final = 5
METRICS_VARIABLE: Final = "TENURE_METRICS_TOKEN"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, before anything is opened or printed; port 0: any free one. Raises ConfigError."""
    if not 0 <= port <= 65_535:
        raise ConfigError("port", port, "must be from 0 to 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror:
        raise ConfigError("host", host, "is no address of this machine.", "Write 127.0.0.1, or 0.0.0.0.") from None
    listening = socket.socket(found[0], socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(found[4])
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            why, hint = "is in use by another program.", "Choose another with --port, or end that program."
            raise ConfigError("port", port, why, hint) from None
        raise ConfigError("host", host, f"can't be listened on: {error.strerror or error}.") from None
    listening.setblocking(False)
    return listening


def run(
    board: Board,
    listening: socket.socket,
    *,
    environ: Mapping[str, str],
    runs: Sequence[str] = (),
    hosts: Collection[str] = (),
    ready: Callable[[], None] = lambda: None,
) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. `ready` is called once requests are answered.

    runs: URLs of stores whose scheduled jobs are shown.
    hosts: names, beside those of `public_url` and this machine, by which requests may call the board.
    """
    logs.configure(environ)
    apps = [Tenure(url) for url in runs]
    sources = [Source(f"runs-{place}", app.store_url, app) for place, app in enumerate(apps, start=1)]
    token = environ.get(METRICS_VARIABLE) or None
    site = Site(board, sources=sources, hosts=hosts, metrics_token=token, bridge=Bridge(board))
    config = configured(site)
    server = Server(config, site, ready)
    gc.freeze()  # what was imported lives as long as the server: no collection need walk it, nor the end of the process
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            return runner.run(server.until_told(listening))
    finally:
        gc.freeze()
        for app in apps:
            app.close()


def configured(site: Site) -> uvicorn.Config:
    """How uvicorn serves a site: with our limits, and without its own words in answers and log."""
    return uvicorn.Config(
        site,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
    )


class Server(uvicorn.Server):
    """uvicorn's server, which ends what waits before it waits for what is under way."""

    def __init__(self, config: uvicorn.Config, site: Site, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._site, self._ready, self._code = site, ready, 0

    async def until_told(self, listening: socket.socket) -> int:
        """Serve, and end in order: nothing is raised at the end for the signal that asked for it."""
        loop = asyncio.get_running_loop()
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
            loop.add_signal_handler(number, self._told, code)
        async with self._site.open():
            await self._serve([listening])
        return self._code

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.drain()
        await super().shutdown(sockets)

    def _told(self, code: int) -> None:
        """Stop; told a second time by Ctrl-C: wait for nothing any more."""
        self.force_exit = self.should_exit and code == 130
        self.should_exit, self._code = True, code
