"""A worker's verbs as calls, once for both clients: here stands what is sent; the clients send it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tenure.client import calls
from tenure.rules.bounds import REASON_CHARS


class Verbs:
    """What the board can be asked. In `AsyncBoard` each gives an awaitable, in `Board` the answer itself.

    Worker's verbs need an endpoint's credential; their answers are the JSON of the MCP tools of the same names.
    """

    worker: str | None

    def ask(self, call: calls.Call, patience_seconds: float | None = None) -> Any:
        """Send a call."""
        raise NotImplementedError  # the clients send; here stands only what

    def claim_next(
        self,
        *queues: str,
        wait_seconds: int = 0,
        at_once: int = 1,
        lease_ttl_seconds: int | None = None,
    ) -> Any:
        """Claim the next todos of these queues; waits up to 50 s for one. `empty` is true where there was none."""
        return self._verb(
            "claim_next",
            queues=list(queues) or None,
            max=at_once if at_once != 1 else None,
            wait_seconds=wait_seconds or None,
            lease_ttl_seconds=lease_ttl_seconds,
            request_id=calls.request_id(),
        )

    def claim(self, todo: str, *, lease_ttl_seconds: int | None = None) -> Any:
        """Claim one todo by its id."""
        request_id = calls.request_id()
        return self._verb("claim", todo_id=todo, lease_ttl_seconds=lease_ttl_seconds, request_id=request_id)

    def heartbeat(self, todo: str, lease_token: str, *, lease_ttl_seconds: int | None = None) -> Any:
        """Extend a lease: by the endpoint's default, or to `lease_ttl_seconds` from now."""
        return self._verb("heartbeat", todo_id=todo, lease_token=lease_token, lease_ttl_seconds=lease_ttl_seconds)

    def beat(self, todo: str, lease_token: str, left_seconds: float) -> calls.Call:
        """A bare heartbeat as a call, to be sent with a patience of its own; no answer is waited for past the lease."""
        call = self._call("heartbeat", todo_id=todo, lease_token=lease_token)
        return replace(call, timeout_seconds=min(call.timeout_seconds, left_seconds))

    def check_claim(self, todo: str, lease_token: str) -> Any:
        """Ask whether a claim is still held; for before what can't be undone."""
        return self._verb("check_claim", todo_id=todo, lease_token=lease_token)

    def complete(self, todo: str, lease_token: str, result: Any = None) -> Any:
        """End a todo as done, with its result."""
        return self._verb("complete", todo_id=todo, lease_token=lease_token, result=result)

    def fail(self, todo: str, lease_token: str, reason: str) -> Any:
        """End this attempt as failed; the board tries again later, unless its cap is reached."""
        return self._verb("fail", todo_id=todo, lease_token=lease_token, reason=_sendable(reason))

    def release(self, todo: str, lease_token: str, reason: str | None = None) -> Any:
        """Give a todo back undone; it counts as no failure."""
        told = None if reason is None else _sendable(reason)
        return self._verb("release", todo_id=todo, lease_token=lease_token, reason=told)

    def get_todo(self, todo: str) -> Any:
        """One todo, whole."""
        return self._verb("get_todo", todo_id=todo)

    def list_todos(self, **filters: Any) -> Any:
        """A page of todos, compact."""
        return self._verb("list_todos", **filters)

    def add_note(self, todo: str, text: str) -> Any:
        """Write a note onto a todo."""
        return self._verb("add_note", todo_id=todo, text=text)

    def create_todo(self, title: str, **fields: Any) -> Any:
        """Put a todo on the caller's own endpoint, or with `to` on one that its scope lists."""
        return self._verb("create_todo", **{"title": title, "request_id": calls.request_id(), **fields})

    def cancel_todo(self, idempotency_key: str, **fields: Any) -> Any:
        """Cancel a todo by the key it was created with."""
        return self._verb("cancel_todo", idempotency_key=idempotency_key, **fields)

    def many(self, verb: str, items: Sequence[dict[str, Any]]) -> Any:
        """Up to 100 heartbeats, completions, failures or releases in one call; each is answered for itself."""
        return self._verb(verb, items=list(items))

    def _call(self, name: str, **arguments: Any) -> calls.Call:
        return calls.verb(name, {"worker": self.worker, **arguments})

    def _verb(self, name: str, **arguments: Any) -> Any:
        return self.ask(self._call(name, **arguments))


def _sendable(reason: str) -> str:
    """As much of a reason as is kept, without what is no character: it may be an error's words, with any bytes in."""
    return reason[:REASON_CHARS].replace("\0", "?").encode(errors="replace").decode()
