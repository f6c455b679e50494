"""Jobs that put todos on a board: what `app.cron(...).todo(...)` and `run.put(...)` send, once per slot and call."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tenure.errors import ConfigError
from tenure.rules.bounds import KEY_CHARS
from tenure.scheduler.run import Run
from tenure.scheduler.seams import Handler

H = TypeVar("H", bound=Handler)
REQUEST_ID_CHARS: Final = 32


class Putter:
    """The board that an application's jobs put todos on, asked with an endpoint's credential."""

    def __init__(self, url: str | None, credential: str | None) -> None:
        self._url, self._credential = url, credential
        self._board: Any = None
        self._pid = 0

    def put(self, key: str, fields: Mapping[str, Any]) -> str:
        """Put one todo; the same key again is the same todo. Blocks. Raises ConfigError, and the client's errors."""
        if self._board is None or self._pid != os.getpid():  # a forked child shares no connection (R45a)
            self._board, self._pid = self._open(), os.getpid()
        digest = hashlib.sha256(key.encode()).hexdigest()
        told = self._board.create_todo(
            request_id=digest[:REQUEST_ID_CHARS],
            idempotency_key=key if len(key) <= KEY_CHARS else digest,
            **{name: value for name, value in fields.items() if value is not None},
        )
        return str(told["todo"]["id"])

    def close(self) -> None:
        """Close the connections; a later put makes new ones."""
        board, self._board = self._board, None
        if board is not None:
            board.close()

    def _open(self) -> Any:
        from tenure.client import Board

        credential = self._credential or os.environ.get("TENURE_ENDPOINT_CREDENTIAL")
        if not credential:
            hint = "Set TENURE_URL and TENURE_ENDPOINT_CREDENTIAL, or give Tenure board= and board_credential=."
            raise ConfigError("board_credential", None, "is needed to put todos on a board.", hint)
        url = self._url or os.environ.get("TENURE_URL") or "http://127.0.0.1:8420"
        return Board(url, credential=credential)


class Adding:
    """What `app.cron(...)`, `app.every(...)` and `app.job(...)` give: a decorator for a handler, or `.todo(...)`."""

    def __init__(self, add: Callable[[Any], Any], name: str | None) -> None:
        self._add, self._name = add, name

    def __call__(self, handler: H) -> H:
        """Add the handler as the job; gives the handler back."""
        self._add(handler)
        return handler

    def todo(
        self,
        to: str | None = None,
        *,
        title: str,
        queue: str | None = None,
        body: str | None = None,
        payload: Any = None,
        priority: int | None = None,
    ) -> None:
        """Each run puts one todo on the board: on the endpoint `to`, by its slug, or on the credential's own.

        Title and body may hold `{slot}` and `{name}`, as those of the board's own schedules. Raises ConfigError.
        """
        from tenure.rules.plans import fill, plan
        from tenure.rules.refusal import Refusal

        word = to or "todo"
        said = {"title": title, "queue": queue, "body": body, "payload": payload, "priority": priority}
        if isinstance(refused := plan({"expression": "@daily", **said}, self._name or word), Refusal):
            field = refused.details["field"]
            raise ConfigError(field, said.get(field), refused.message.removeprefix(f"{field} "))

        async def put(run: Run) -> None:
            zone = str(run.slot.tzinfo)
            await run.put(
                fill(title, zone, run.job, run.slot_ms),
                to=to,
                queue=queue,
                body=None if body is None else fill(body, zone, run.job, run.slot_ms),
                payload=payload,
                priority=priority,
            )

        put.__name__ = word
        self._add(put)
