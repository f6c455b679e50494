"""Many todos at once, written past the use cases: a deep board in seconds. Nine of ten are dead, the rest ready."""

import sqlalchemy as sa

_COLUMNS = (
    "id, endpoint, queue, title, body, state, ready, order_ms, priority, blockers, content_hash, attempts, failures,"
    " lapses, source, created, ended"
)
_VALUES = (
    "'td_' || {pad}, :endpoint, :queue, 'deep', '', CASE WHEN n % :every = 0 THEN 'pending' ELSE 'failed' END,"
    " n % :every = 0, :now - 1000000 + n, 0, 0, '', 0, 0, 0, 'human', :now - 1000000 + n,"
    " CASE WHEN n % :every = 0 THEN NULL ELSE :now - 1000000 + n END"
)
_PAD = {"postgresql": "lpad(CAST(n AS text), 26, '0')", "sqlite": "printf('%026d', n)"}
_SERIES = {
    "postgresql": "SELECT n FROM generate_series({first}, {last}) AS n",
    "sqlite": "WITH RECURSIVE c(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM c WHERE n < {last}) SELECT n FROM c",
}


def deepen(board, endpoint, count, *, every=10, queue="inbox"):
    """Put `count` todos on the endpoint, one of `every` ready and the rest dead; statistics are left as they were."""
    kind = board.database.engine.dialect.name
    values = _VALUES.format(pad=_PAD[kind])
    with board.database.engine.begin() as connection:
        if kind == "postgresql":
            connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
        now = board.database.reading(lambda tx: tx.now())
        for start in range(1, count + 1, 100_000):
            series = _SERIES[kind].format(first=start, last=min(start + 99_999, count))
            connection.execute(
                sa.text(f"INSERT INTO todos ({_COLUMNS}) SELECT {values} FROM ({series}) AS series"),  # noqa: S608
                {"endpoint": endpoint, "queue": queue, "now": now, "every": every},
            )
