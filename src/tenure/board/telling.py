"""What the use cases of todos have in common around their decisions: is the verb granted, and who is told."""

from __future__ import annotations

from tenure.board.access import Worker
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.todo_writes import Changes
from tenure.rules.refusal import Refusal


def verb(worker: Worker, name: str) -> None:
    """Raises Refused: a verb that the endpoint's scope does not list is as unknown as one that never was (B27)."""
    if name not in worker.endpoint.verbs:
        raise Refused(Refusal("not_found", f"Unknown tool: {name}"))


def tell(tx: Tx, changes: Changes, human: str) -> None:
    """Notices of what has become ready, and that the human's board looks different."""
    for todo in changes.todos.values():
        if todo.ready:
            tx.notify("todo", todo.endpoint)
    if changes.todos:
        tx.notify("board", human)
