"""Servers of a measurement's own, made and removed by it, with the helpers of the tests.

As durable as a careful operator sets them, unless a row says otherwise: SQLite synchronous=FULL, PostgreSQL fsync and
synchronous_commit on, Valkey appendonly with appendfsync everysec.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from fleet import Fleet
from postgres_server import Postgres, wheel
from redis_server import Server, free_port, program

__all__ = [
    "DURABLE",
    "PREFIX",
    "STORES",
    "Fleet",
    "Postgres",
    "Server",
    "postgres",
    "store",
    "valkey",
    "versions",
    "wheel",
]

PREFIX = "tenure-bench-"
STORES = ("SQLite", "PostgreSQL", "Valkey")
DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_connections": "200",
}


@contextmanager
def postgres(**settings: str) -> Iterator[Postgres]:
    """A PostgreSQL 18."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o755)  # the user that PostgreSQL runs as reads it
    server = Postgres(wheel(), folder, **{**DURABLE, **settings})
    try:
        yield server.make()
    finally:
        server.remove()


@contextmanager
def valkey(*, port: bool = False, **settings: str) -> Iterator[Server]:
    """A Valkey 9 on a socket, with `port` on loopback too."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        server = Server("valkey9", folder, free_port() if port else 0, **{"appendonly": "yes", **settings})
        try:
            yield server.start()
        finally:
            server.stop()


@contextmanager
def store(kind: str) -> Iterator[str]:
    """The URL of a fresh store: one of STORES."""
    if kind == "SQLite":
        with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
            yield f"sqlite:///{folder}/t.db"
    elif kind == "PostgreSQL":
        with postgres() as server:
            yield server.url
    else:
        with valkey() as server:
            yield server.url


def versions() -> str:
    """Of both servers."""
    told = [_told(str(wheel() / "postgres")).split()[2], _told(program("valkey9")).split("v=")[1].split()[0]]
    return f"PostgreSQL {told[0]}, Valkey {told[1]}"


def _told(server: str) -> str:
    return subprocess.run([server, "--version"], check=True, capture_output=True, text=True).stdout
