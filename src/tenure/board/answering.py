"""PostgreSQL connections that wait for an answer no longer than one can take.

A server that stands still, or a proxy that swallows, keeps its connection alive and says nothing: for keepalive and
`tcp_user_timeout` the peer is well, and `statement_timeout` is the server's own. A thread would wait for ever (B16).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg


@functools.cache
def patient(seconds: float) -> type[psycopg.Connection[Any]]:
    """psycopg's connection, which is closed where an answer takes longer; `patience` of one may be changed."""
    import psycopg

    class Patient(psycopg.Connection[Any]):
        patience = seconds

        def wait(self, gen: Any, *words: Any, **options: Any) -> Any:
            try:
                return super().wait(_within(gen, self.patience), *words, **options)
            except _SilentError as error:
                self.pgconn.finish()  # what it may still answer belongs to nobody
                raise psycopg.OperationalError(f"the server did not answer within {error.seconds:g} s") from None

    return Patient


class _SilentError(Exception):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


def _within(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The driver's steps, as long as they may take; it is woken ten times a second although nothing came."""
    end = time.monotonic() + seconds
    ready = None
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as done:
            return done.value
        ready = yield wanted
        if not ready and time.monotonic() > end:
            raise _SilentError(seconds)
