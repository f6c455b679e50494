"""The board's connections: engines for either kind of database, and what each connection is told at its beginning."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from tenure.board.answering import patient
from tenure.board.secrets import make_private
from tenure.errors import ConfigError, MissingExtra

BUSY_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 10
# The server ends a statement before this; of one that may take as long as it needs an answer is waited for an hour.
ANSWER_SECONDS: Final = 15.0
LONG_SECONDS: Final = 3600.0
_URL: Final = re.compile(r"^(sqlite|postgres(?:ql)?)(?:\+\w+)?://")
# A plan is kept for as long as its connection, and one made while a table was small walks through it whole: on a young
# board, until its statistics are taken, all of it is read for each call. What is asked here has an index.
_SESSION: Final = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": "60s",
    "enable_seqscan": "off",
    "jit": "off",
}


def plain_url(url: str) -> tuple[str, str]:
    """(`sqlite` or `postgresql`, the URL without a driver's name). Raises ConfigError for any other."""
    found = _URL.match(url)
    if found is None:
        hint = "Write sqlite:///tenure.db or postgresql://…"
        raise ConfigError("database", url.rsplit("@", 1)[-1], "is no URL of a board.", hint)
    kind = "sqlite" if found[1] == "sqlite" else "postgresql"
    return kind, f"{kind}://{url[found.end() :]}"


def engine_of(url: str, threads: int) -> sa.Engine:
    """An engine for so many threads, on PostgreSQL one connection each. Raises ConfigError, MissingExtra."""
    kind, plain = plain_url(url)
    if kind == "sqlite":
        engine = sa.create_engine(
            plain,
            poolclass=QueuePool,
            pool_size=8,
            hide_parameters=True,  # what was sent stands in no error, and so in no log
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        )
        sa.event.listen(engine, "do_connect", _make_private)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        return engine
    try:
        engine = sa.create_engine(
            plain.replace("postgresql://", "postgresql+psycopg://", 1),
            pool_size=threads,
            max_overflow=0,
            hide_parameters=True,
            pool_timeout=BUSY_SECONDS,
            pool_pre_ping=False,
            connect_args={
                "connect_timeout": BUSY_SECONDS,
                "application_name": "tenure board",
                "prepare_threshold": 3,
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": STATEMENT_SECONDS * 1000,
                "options": " ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
            },
        )
    except ModuleNotFoundError:
        raise MissingExtra("postgresql://", "postgres") from None
    sa.event.listen(
        engine, "do_connect", lambda _d, _r, words, options: patient(ANSWER_SECONDS).connect(*words, **options)
    )
    sa.event.listen(engine, "checkout", _hurried)
    return engine


def _hurried(connection: Any, _record: object, _proxy: object) -> None:
    connection.patience = ANSWER_SECONDS


def _make_private(_dialect: object, _record: object, words: Sequence[Any], _options: object) -> None:
    if words[0] != ":memory:":
        make_private(words[0])


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # we begin ourselves: a deferred begin finds the lock too late
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
