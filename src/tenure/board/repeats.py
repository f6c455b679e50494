"""Calls that may be sent again: what a request id was answered with, for a day, per owner and verb (B12a).

The row is written before the answer is known, so that the same call, sent twice at the same moment, waits for itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.rules.refusal import conflict
from tenure.rules.todo_content import request_id as wrong_id

_BEGIN: Final = sa.text(
    "INSERT INTO requests (owner, verb, request_id, arguments, answer, created)"
    " VALUES (:owner, :verb, :request_id, :arguments, '', :now) ON CONFLICT DO NOTHING RETURNING owner"
)
_KEY: Final = "owner = :owner AND verb = :verb AND request_id = :request_id"
_READ: Final = sa.text(f"SELECT arguments, answer FROM requests WHERE {_KEY}")  # noqa: S608
_ANSWER: Final = sa.text(f"UPDATE requests SET answer = :answer WHERE {_KEY}")  # noqa: S608
_FORGET: Final = sa.text(f"DELETE FROM requests WHERE {_KEY}")  # noqa: S608


class Repeat:
    """One call of one owner that may have been answered before."""

    def __init__(self, tx: Tx, owner: str, verb: str, request_id: str | None, arguments: Any) -> None:
        """Raises Refused: the id is malformed, or was used with other arguments. `answer`: the ids answered before."""
        self._tx = tx
        self.answer: list[str] | None = None
        self._key = {"owner": owner, "verb": verb, "request_id": request_id}
        if request_id is None:
            return
        if wrong := wrong_id(request_id):
            raise Refused(wrong)
        spelled = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
        if tx.one(_BEGIN, {**self._key, "arguments": spelled, "now": tx.now()}) is not None:
            return
        before = tx.one(_READ, self._key)
        if before is None or before.arguments != spelled:
            raise Refused(conflict(_REUSED, "request_id_reused"))
        self.answer = json.loads(before.answer)

    def answered(self, ids: Sequence[str]) -> None:
        """Remember the answer; an empty one is not remembered."""
        if self._key["request_id"] is None:
            return
        if ids:
            self._tx.execute(_ANSWER, {**self._key, "answer": json.dumps(list(ids))})
        else:
            self._tx.execute(_FORGET, self._key)


_REUSED: Final = "This request_id was sent before with other arguments. Draw a new one for each call."
