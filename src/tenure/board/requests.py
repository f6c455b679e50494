"""Requests that may come twice: the first one's answer is remembered and given again (B12a, Idempotency-Key of REST).

Remembered are ids, never contents or secrets. Whoever asks first holds the row until the commit; the same request
beside it waits there, and then reads what the first one left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from tenure.board import tables
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.rules.instant import HOUR
from tenure.rules.refusal import conflict

REUSED: Final = conflict(
    "This request's id was used before with other arguments; draw a new one for each request.", "request_id_reused"
)


def digest(*arguments: Any) -> str:
    """What a repeated request must agree with."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def once(
    tx: Tx, board: Board, owner: str, verb: str, request_id: str | None, arguments: str, make: Callable[[], Any]
) -> tuple[Any, bool]:
    """(What `make` answered, False), or (what it answered to the same request before, True); JSON either way.

    owner: the id of the endpoint or human who asks. An answer of None is not remembered. Raises Refused for an id
    that was used with other arguments.
    """
    if request_id is None:
        return make(), False
    table, now = tables.requests, tx.now()
    here = (table.c.owner == owner) & (table.c.verb == verb) & (table.c.request_id == request_id)
    tx.execute(sa.delete(table).where(here, table.c.created <= now - board.settings.requests_hours * HOUR))
    row = {"owner": owner, "verb": verb, "request_id": request_id, "arguments": arguments, "created": now}
    if not tx.insert_new(table, **row, answer="null"):
        known = tx.execute(sa.select(table.c.arguments, table.c.answer).where(here)).one()
        if known.arguments != arguments:
            raise Refused(REUSED)
        return json.loads(known.answer), True
    answer = make()
    if answer is None:
        tx.execute(sa.delete(table).where(here))
    else:
        tx.execute(sa.update(table).where(here).values(answer=json.dumps(answer)))
    return answer, False
