"""Todos as answers: summaries for lists, and details with their claims and notes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from tenure.board.database import Tx
from tenure.board.shapes import Attempt, Detail, Note, Summary
from tenure.board.todo_rows import CLAIM, Kept, among, claim_from, columns, kept_columns, kept_from, listed
from tenure.rules.todo import Claim, Todo
from tenure.rules.todo_content import Content
from tenure.rules.todos import shown

# How many of a todo's last claims its details tell of.
ATTEMPTS: Final = 50


class Held(NamedTuple):
    """What a list tells of the open claim."""

    worker: str | None
    on_board: bool
    expires: int


def held(claim: Claim | None) -> Held | None:
    """What a list tells of this claim, if it is open."""
    if claim is None or claim.end is not None:
        return None
    return Held(claim.worker, claim.human is not None, claim.expires)


def summary(todo: Todo, content: Content, created: int, slug: str, now: int, by: Held | None) -> Summary:
    """A todo in a list, as it shows at this time."""
    expires = by.expires if by else None
    return Summary(
        id=todo.id,
        endpoint_id=todo.endpoint,
        endpoint_slug=slug,
        queue=todo.queue,
        title=content.title,
        state=todo.state,
        shown=shown(todo, now, expires),
        priority=todo.priority,
        not_before=todo.not_before,
        blockers=todo.blockers,
        attempts=todo.attempts,
        failures=todo.failures,
        lapses=todo.lapses,
        failures_cap=todo.failures_cap,
        lapses_cap=todo.lapses_cap,
        retry_at=todo.retry_at,
        reason=todo.reason,
        source=content.source,
        idempotency_key=content.idempotency_key,
        created=created,
        ended=todo.ended,
        claim_id=todo.claim,
        claimed_by=by.worker if by else None,
        held_on_board=bool(by and by.on_board),
        expires=expires,
    )


def detail(
    kept: Kept, slug: str, now: int, by: Held | None, attempts: Sequence[Attempt] = (), notes: Sequence[Note] = ()
) -> Detail:
    """A todo whole."""
    return Detail(
        summary(kept.todo, kept.content, kept.created, slug, now, by),
        kept.content.body,
        _json(kept.content.payload),
        _json(kept.todo.result),
        kept.content.source_id,
        kept.depends_on,
        tuple(attempts),
        tuple(notes),
    )


def elsewhere(detail: Detail) -> Detail:
    """What may be told of a todo that is another endpoint's (now): its state, and not what it holds."""
    return detail._replace(summary=detail.summary._replace(reason=None), body="", payload=None, result=None)


def attempt(claim: Claim) -> Attempt:
    """One claim, for the history."""
    return Attempt(
        claim.id, claim.attempt, "human" if claim.human else "endpoint", claim.worker, claim.granted, claim.expires,
        claim.ttl_seconds, claim.ttl_source, claim.heartbeats, claim.heartbeat, claim.ended, claim.end, claim.reason,
        _json(claim.late), claim.late_at,
    )  # fmt: skip


def kept(tx: Tx, todo: Todo) -> Kept:
    """What stands beside a todo in its row; the todo is as it was given."""
    found = kept_by_id(tx, todo.id)
    if found is None:
        raise LookupError(todo.id)
    return found._replace(todo=todo)


def kept_by_id(tx: Tx, todo_id: str) -> Kept | None:
    """A todo, with its result, and what stands beside it. For ids that the caller was found to reach."""
    row = tx.one(sa.text(f"SELECT {kept_columns(tx)}, todos.result FROM todos WHERE id = :id"), {"id": todo_id})
    if row is None:
        return None
    found = kept_from(row)
    return found._replace(todo=found.todo._replace(result=row.result))


def notes(tx: Tx, todo_id: str) -> list[Note]:
    """The todo's notes, oldest first."""
    statement = sa.text(f"SELECT {', '.join(Note._fields)} FROM notes WHERE todo = :todo ORDER BY id")
    return [Note._make(row) for row in tx.all(statement, {"todo": todo_id})]


def histories(tx: Tx, todos: Iterable[Todo]) -> dict[str, tuple[Attempt, ...]]:
    """The last claims of each todo, first to last."""
    made = [todo.id for todo in todos if todo.attempts]
    found: defaultdict[str, list[Attempt]] = defaultdict(list)
    if made:
        statement = (
            f"SELECT {columns(CLAIM, 'claims')} FROM claims JOIN todos ON todos.id = claims.todo"
            f" WHERE {among(tx, 'claims.todo', 'todos')} AND claims.attempt > todos.attempts - {ATTEMPTS}"
            " ORDER BY claims.todo, claims.attempt"
        )
        for row in tx.all(sa.text(statement), {"todos": listed(tx, made)}):
            claim = claim_from(row)
            found[claim.todo].append(attempt(claim))
    return {todo: tuple(attempts) for todo, attempts in found.items()}


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
