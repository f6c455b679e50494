"""What a human does with a todo on the Board: cancel, retry, move, take in hand; and notes, which workers add too.

Each locks the endpoint against its end, then the todo, then its open claim; decides; and leaves a line in the audit.
"""

from __future__ import annotations

import json
from typing import Any, Final

import sqlalchemy as sa

from tenure.board import access, audit, ids, tables, todo_rows
from tenure.board.access import Endpoint, Human, Worker
from tenure.board.board import Board
from tenure.board.claims import ended, lease_of
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.shapes import Detail, Ended, Granted, Note
from tenure.board.telling import tell, verb
from tenure.board.todo_lists import get
from tenure.board.todo_writes import Changes, unblock
from tenure.rules import bounds, todo_content, todo_words
from tenure.rules import todo_commands as c
from tenure.rules.refusal import MISSING, conflict, invalid
from tenure.rules.todo import Claim, Todo
from tenure.rules.todos import Decision, decide

_SAME_KEY: Final = "uq_todos_live_key"


def cancel(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Detail:
    """Cancel a pending or failed todo; one that is claimed must be released first."""
    granted(todo_content.reason(reason))
    _act(tx, human, todo_id, c.Cancel(reason), reason)
    return get(tx, board, human, todo_id)


def retry(tx: Tx, board: Board, human: Human, todo_id: str) -> Detail:
    """Make a failed or dead todo ready now; one more attempt where they were used up (B1)."""
    _act(tx, human, todo_id, c.Retry())
    return get(tx, board, human, todo_id)


def move(tx: Tx, board: Board, human: Human, todo_id: str, target: Endpoint, queue: str | None = None) -> Detail:
    """Put an unclaimed todo on another endpoint of the human (B7b). queue None: the same, else its first."""
    if queue is not None and queue not in target.queues:
        raise Refused(invalid("queue", f"must be one of the endpoint's: {', '.join(target.queues)}."))
    access.writable(_kept_alive(tx, human, tables.endpoints.c.id == target.id), tx.now())
    todo, claim, now = _locked(tx, human, todo_id)
    onto = queue or (todo.queue if todo.queue in target.queues else target.queues[0])
    _decide(tx, human, todo, c.Move(target.id, onto), now, claim, f"to {target.slug}, {onto}")
    tx.execute(sa.delete(tables.dependencies).where(tables.dependencies.c.todo == todo_id))
    return get(tx, board, human, todo_id)


def board_claim(tx: Tx, board: Board, human: Human, todo_id: str) -> Granted:
    """Take the todo in hand for 300 s; an open claim of a worker is closed as `taken_by_operator` (B1, B19)."""
    todo, claim, now = _writable(tx, human, todo_id)
    decision = _decide(tx, human, todo, c.Take(ids.new("cl", now), human.id), now, claim)
    return _in_hand(tx, board, human, decision)


def board_extend(tx: Tx, board: Board, human: Human, todo_id: str) -> Granted:
    """Another 300 s from now on one's own Board claim."""
    todo, claim, now = _writable(tx, human, todo_id)
    if claim is None or claim.human != human.id:
        raise Refused(todo_words.refused("not_claimed"))
    decision = _decide(tx, human, todo, c.Take(claim.id, human.id), now, claim)
    return _in_hand(tx, board, human, decision)


def board_complete(tx: Tx, board: Board, human: Human, todo_id: str, result: Any = None) -> Ended:
    """Complete a claimed todo, whoever holds it."""
    return _end(tx, human, todo_id, c.Complete(granted(todo_content.json_text(result, "result")), operator=True))


def board_fail(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Ended:
    """Fail a claimed todo, whoever holds it."""
    granted(todo_content.reason(reason))
    return _end(tx, human, todo_id, c.Fail(reason, operator=True), reason)


def board_release(tx: Tx, board: Board, human: Human, todo_id: str, reason: str = "") -> Ended:
    """End the open claim, whoever holds it, and make the todo ready."""
    granted(todo_content.reason(reason))
    return _end(tx, human, todo_id, c.Release(reason, operator=True), reason)


def add_note(
    tx: Tx, board: Board, caller: Human | Worker, todo_id: str, text: str, worker_label: str | None = None
) -> Note:
    """Add a note to a todo."""
    granted(todo_content.text(text, "text", bounds.NOTE_BYTES) or todo_content.worker(worker_label))
    if not text:
        raise Refused(invalid("text", "must not be empty."))
    if isinstance(caller, Worker):
        verb(caller, "add_note")
        found, human = todo_rows.of_endpoint(tx, todo_id, caller.id), caller.endpoint.human
        if found is None:
            raise Refused(MISSING)
    else:
        found, human = _writable(tx, caller, todo_id), caller.id
    now = found[2]
    note = Note(
        ids.new("no", now), "endpoint" if isinstance(caller, Worker) else "human", caller.id, worker_label, text, now
    )
    tx.execute(sa.insert(tables.notes).values(todo=todo_id, **note._asdict()))
    if isinstance(caller, Human):
        audit.write(tx, human, caller, "note", ("todo", todo_id), _named(tx, todo_id), now)
    tx.notify("board", human)
    return note


# --- steps ------------------------------------------------------------------------------------------------


def _kept_alive(tx: Tx, human: Human, which: sa.ColumnElement[bool]) -> Endpoint:
    """The human's endpoint, locked so that it can't end before the commit."""
    table = tables.endpoints
    statement = sa.select(*access.ENDPOINT).where(which, table.c.human == human.id)
    row = tx.one(statement.with_for_update(read=True, key_share=True, of=table) if tx.postgres else statement)
    if row is None:
        raise Refused(MISSING)
    return access.endpoint_from(row, tx.now())


def _locked(tx: Tx, human: Human, todo_id: str) -> tuple[Todo, Claim | None, int]:
    found = todo_rows.of_owner(tx, todo_id, human.id) if access.storable(todo_id) else None
    if found is None:
        raise Refused(MISSING)
    return found


def _writable(tx: Tx, human: Human, todo_id: str) -> tuple[Todo, Claim | None, int]:
    """The todo under its lock, on an endpoint that has not ended (B25). Raises Refused."""
    if not access.storable(todo_id):
        raise Refused(MISSING)
    on = sa.select(tables.todos.c.endpoint).where(tables.todos.c.id == todo_id).scalar_subquery()
    endpoint = _kept_alive(tx, human, tables.endpoints.c.id == on)
    found = _locked(tx, human, todo_id)
    if found[0].endpoint != endpoint.id:  # it was moved in between
        return _writable(tx, human, todo_id)
    access.writable(endpoint, found[2])
    return found


def _act(tx: Tx, human: Human, todo_id: str, command: c.Command, summary: str = "") -> tuple[Decision, int]:
    todo, claim, now = _writable(tx, human, todo_id)
    return _decide(tx, human, todo, command, now, claim, summary), now


def _decide(
    tx: Tx, human: Human, todo: Todo, command: c.Command, now: int, claim: Claim | None, summary: str = ""
) -> Decision:
    """Put it to the rules, and write what they decide with its audit and its notices. Raises Refused."""
    changes = Changes()
    decision = changes.put(todo, decide(todo, command, now, claim))
    if isinstance(decision.answer, c.Refused):
        raise Refused(todo_words.refused(decision.answer.reason))
    unblock(tx, changes, now)
    try:
        changes.write(tx)
    except sa.exc.IntegrityError as error:
        if not _is_same_key(error):
            raise
        message = "A live todo of that endpoint has the same idempotency_key. Cancel or complete it first."
        raise Refused(conflict(message, "idempotency_key")) from None
    action = type(command).__name__.lower()
    audit.write(tx, human.id, human, action, ("todo", todo.id), _named(tx, todo.id, summary), now)
    tell(tx, changes, human.id)
    tx.notify("board", human.id)
    return decision


def _named(tx: Tx, todo_id: str, summary: str = "") -> str:
    """What the audit says of an action: which todo it was of, and what more there is to tell."""
    title = tx.execute(sa.select(tables.todos.c.title).where(tables.todos.c.id == todo_id)).scalar_one()
    told = json.dumps(title, ensure_ascii=False)
    return f"{told}: {summary}" if summary else told


def _is_same_key(error: sa.exc.IntegrityError) -> bool:
    return _SAME_KEY in str(error.orig) or "todos.endpoint, todos.idempotency_key" in str(error.orig)


def _end(tx: Tx, human: Human, todo_id: str, command: c.Complete | c.Fail | c.Release, summary: str = "") -> Ended:
    decision, now = _act(tx, human, todo_id, command, summary)
    return ended(decision.todo, now, already=False)


def _in_hand(tx: Tx, board: Board, human: Human, decision: Decision) -> Granted:
    claim = decision.claims[-1]
    return Granted(get(tx, board, human, claim.todo), lease_of(claim, None), claim.attempt)
