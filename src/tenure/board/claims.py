"""The drain verbs: how an endpoint's workers take, keep and end claims. Each takes a batch; one is a batch of one.

These, and `waiting.py` around `claim_next`, are the only paths on which an endpoint takes or extends a lease.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tenure.board import ids, todo_rows, todo_views
from tenure.board.access import Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.repeats import Repeat
from tenure.board.secrets import Secret, digest
from tenure.board.shapes import (
    Beat,
    Checked,
    Claimed,
    Completion,
    Ended,
    Failing,
    Granted,
    Handback,
    Lease,
    Next,
    Renewed,
)
from tenure.board.telling import tell, verb
from tenure.board.todo_rows import Kept
from tenure.board.todo_writes import Changes, unblock
from tenure.board.warned import warnings
from tenure.rules import bounds, endpoints, todo_content, todo_words
from tenure.rules import todo_commands as c
from tenure.rules.instant import SECOND
from tenure.rules.refusal import MISSING, Refusal, conflict, invalid
from tenure.rules.todo import Claim, Todo
from tenure.rules.todos import decide, lost

__all__ = [
    "check_claim",
    "claim",
    "claim_next",
    "complete",
    "ended",
    "fail",
    "heartbeat",
    "lease_of",
    "release",
    "warnings",
]


# --- taking -----------------------------------------------------------------------------------------------


def claim_next(tx: Tx, board: Board, worker: Worker, ask: Next) -> Claimed:
    """Claim up to `ask.max` ready todos in their order (B3). Raises Refused; nothing to do is an empty answer."""
    verb(worker, "claim_next")
    ttl = _ttl(worker, ask.lease_ttl_seconds)
    queues = _queues(worker, ask.queues)
    granted(todo_content.worker(ask.worker_label))
    if type(ask.max) is not int or not 1 <= ask.max <= bounds.BATCH:
        raise Refused(invalid("max", f"must be a whole number from 1 to {bounds.BATCH}."))
    arguments = [queues, ask.max, ask.lease_ttl_seconds, ask.worker_label]
    repeat = Repeat(tx, worker.id, "claim_next", ask.request_id, arguments)
    if repeat.answer is not None:
        return _repeated(tx, board, worker, repeat.answer, ttl)
    found, now = todo_rows.ready(tx, worker.id, queues, ask.max)
    changes = Changes()
    won = [_grant(board, worker, kept, None, ttl, ask.worker_label, now, changes) for kept in found]
    repeat.answered([claim.id for claim, _ in won])
    return _claimed(tx, worker, found, won, changes, now)


def claim(
    tx: Tx,
    board: Board,
    worker: Worker,
    todo_id: str,
    lease_ttl_seconds: object = None,
    worker_label: str | None = None,
    request_id: str | None = None,
) -> Claimed:
    """Claim this todo; one whose lease has lapsed is requeued and claimed at once (B13). Raises Refused."""
    verb(worker, "claim")
    ttl = _ttl(worker, lease_ttl_seconds)
    granted(todo_content.worker(worker_label))
    repeat = Repeat(tx, worker.id, "claim", request_id, [todo_id, lease_ttl_seconds, worker_label])
    if repeat.answer is not None:
        return _repeated(tx, board, worker, repeat.answer, ttl)
    found = todo_rows.of_endpoint(tx, todo_id, worker.id)
    if found is None:
        raise Refused(MISSING)
    todo, open_claim, now = found
    changes = Changes()
    kept = todo_views.kept(tx, todo)
    won = _grant(board, worker, kept, open_claim, ttl, worker_label, now, changes)
    repeat.answered([won[0].id])
    return _claimed(tx, worker, [kept], [won], changes, now)


def _grant(
    board: Board, worker: Worker, kept: Kept, open_claim: Claim | None, ttl: endpoints.Ttl, label: str | None,
    now: int, changes: Changes,
) -> tuple[Claim, Lease]:  # fmt: skip
    claim_id = ids.new("cl", now)
    token = board.ring.lease_token(claim_id)
    command = c.Grant(claim_id, worker.id, label, digest(token.reveal()), board.ring.newest, ttl.seconds, ttl.source)
    answer = changes.put(kept.todo, decide(kept.todo, command, now, open_claim)).answer
    if not isinstance(answer, c.Won):
        raise Refused(todo_words.refused(answer.reason if isinstance(answer, c.Refused) else "taken"))
    return answer.claim, lease_of(answer.claim, token, clamped=ttl.clamped)


def lease_of(claim: Claim, token: Secret | None, *, clamped: bool = False) -> Lease:
    """The lease that a claim gives."""
    return Lease(claim.id, token, claim.granted, claim.expires, claim.ttl_seconds, claim.ttl_source, clamped)


def _claimed(
    tx: Tx, worker: Worker, found: Sequence[Kept], won: Sequence[tuple[Claim, Lease]], changes: Changes, now: int
) -> Claimed:
    """Write the grants, and tell of them with how earlier attempts at these todos ended (B32)."""
    changes.write(tx)
    earlier = todo_views.histories(tx, [kept.todo for kept in found])  # now, for a claim by id may have ended one
    if won:
        tx.notify("board", worker.endpoint.human)
    answers = []
    for kept, (claim, lease) in zip(found, won, strict=True):
        after = kept._replace(todo=changes.todos[kept.todo.id])
        ended = tuple(one for one in earlier.get(kept.todo.id, ()) if one.id != claim.id)
        told = todo_views.detail(after, worker.endpoint.slug, now, todo_views.held(claim), ended)
        answers.append(Granted(told, lease, claim.attempt))
    return Claimed(tuple(answers), now, worker.endpoint.expires)


def _repeated(tx: Tx, board: Board, worker: Worker, claim_ids: Sequence[str], ttl: endpoints.Ttl) -> Claimed:
    """What the same request was answered before: the same claims; all closed is a conflict (B12a)."""
    before = todo_rows.by_claim(tx, worker.id, claim_ids)
    if all(one.end for one in before):
        ends = ", ".join(sorted({one.end for one in before if one.end})) or "pruned"
        message = f"This request was answered before, and its claims have ended: {ends}. Draw a new request_id."
        raise Refused(conflict(message, "request_over"))
    now, answers = tx.now(), []
    for one in before:
        kept = todo_views.kept_by_id(tx, one.todo)
        if kept is None:
            continue
        open_ = one.end is None and one.secret is not None and board.ring.knows(one.secret)
        token = board.ring.lease_token(one.id, one.secret) if open_ else None
        earlier = [past for past in todo_views.histories(tx, [kept.todo])[one.todo] if past.attempt < one.attempt]
        told = todo_views.detail(kept, worker.endpoint.slug, now, todo_views.held(one), earlier)
        told = told if kept.todo.endpoint == worker.id else todo_views.elsewhere(told)
        state = one.end or ("lapsed" if one.lapsed(now) else "open")
        answers.append(Granted(told, lease_of(one, token, clamped=ttl.clamped), one.attempt, state))
    return Claimed(tuple(answers), now, worker.endpoint.expires, repeated=True)


# --- keeping ----------------------------------------------------------------------------------------------


def heartbeat(tx: Tx, board: Board, worker: Worker, beats: Sequence[Beat]) -> list[Renewed | Refusal]:
    """Extend the leases, each answered for itself (B11)."""
    verb(worker, "heartbeat")
    answers: dict[int, Renewed | Refusal] = {}
    asked: dict[int, tuple[Beat, endpoints.Ttl]] = {}
    for place, beat in enumerate(beats):
        call = endpoints.call_ttl(beat.lease_ttl_seconds)
        if isinstance(call, Refusal):
            answers[place] = call
        else:
            asked[place] = beat, endpoints.ttl(call, worker.endpoint.default_lease_ttl_seconds)
    held = _Held(tx, worker, [beat for beat, _ in asked.values()], lock="claims")
    for place, (beat, ttl) in asked.items():
        answers[place] = _renewed(held, beat, ttl)
    held.changes.write(tx)
    return [answers[place] for place in range(len(beats))]


def _renewed(held: _Held, beat: Beat, ttl: endpoints.Ttl) -> Renewed | Refusal:
    answer = held.ask(beat, c.Heartbeat(ttl.seconds, ttl.source))
    if isinstance(answer, Refusal):
        return answer
    if not isinstance(answer, c.Renewed):
        raise TypeError(answer)
    now, expires = held.now, answer.claim.expires
    return Renewed(
        beat.todo_id, expires, _seconds(expires - now), ttl.seconds, ttl.source, ttl.clamped,
        answer.extended, answer.shortened, answer.revived, now,
    )  # fmt: skip


def check_claim(tx: Tx, board: Board, worker: Worker, todo_id: str, lease_token: str) -> Checked | Refusal:
    """Is it still mine, and how long (B17)? One read; may run in `database.read`."""
    verb(worker, "check_claim")
    held = _Held(tx, worker, [Beat(todo_id, lease_token)], lock="")
    found = held.find(Beat(todo_id, lease_token))
    if isinstance(found, Refusal):
        return found
    todo, claim = found
    open_, lapsed = claim.end is None, claim.lapsed(held.now)
    reason = lost(todo, claim) if not open_ else "lapsed" if lapsed else None
    left = _seconds(claim.expires - held.now) if open_ else 0
    return Checked(todo_id, open_ and not lapsed, open_ and lapsed, reason, claim.expires, left, held.now)


# --- ending -----------------------------------------------------------------------------------------------


def complete(tx: Tx, board: Board, worker: Worker, items: Sequence[Completion]) -> list[Ended | Refusal]:
    """End the claims with their results. A refused result is kept on its claim (B13): commit the refusals too."""
    verb(worker, "complete")
    return _end(tx, worker, items, _completing)


def fail(tx: Tx, board: Board, worker: Worker, items: Sequence[Failing]) -> list[Ended | Refusal]:
    """End the claims as failed; the todos are retried later, or are dead letters (B4, B5)."""
    verb(worker, "fail")
    return _end(tx, worker, items, lambda item: todo_content.reason(item.reason) or c.Fail(item.reason, _jitter()))


def release(tx: Tx, board: Board, worker: Worker, items: Sequence[Handback]) -> list[Ended | Refusal]:
    """Give the todos back: ready at once, and nothing is counted (B4)."""
    verb(worker, "release")
    return hand_back(tx, worker, items)


def hand_back(tx: Tx, worker: Worker, items: Sequence[Handback]) -> list[Ended | Refusal]:
    """`release` by the server itself, whatever the endpoint's verbs: nobody heard that these were claimed."""
    return _end(tx, worker, items, lambda item: todo_content.reason(item.reason) or c.Release(item.reason))


def _completing(item: Completion) -> c.Complete | Refusal:
    result = todo_content.json_text(item.result, "result")
    return result if isinstance(result, Refusal) else c.Complete(result)


def _end(
    tx: Tx, worker: Worker, items: Sequence[I], command_of: Callable[[I], c.Complete | c.Fail | c.Release | Refusal]
) -> list[Ended | Refusal]:
    asked = [(item, command_of(item)) for item in items]
    held = _Held(tx, worker, [item for item, command in asked if not isinstance(command, Refusal)])
    answers = [command if isinstance(command, Refusal) else held.end(item, command) for item, command in asked]
    unblock(tx, held.changes, held.now)
    held.changes.write(tx)
    tell(tx, held.changes, worker.endpoint.human)
    return answers


def ended(todo: Todo, now: int, *, already: bool) -> Ended:
    """What became of a todo whose claim was ended."""
    return Ended(todo.id, todo.state, already, todo.retry_at, todo.state == "failed" and todo.ended is not None, now)


# --- what a token opens -----------------------------------------------------------------------------------


class _Item(Protocol):
    @property
    def todo_id(self) -> str: ...
    @property
    def lease_token(self) -> str: ...


I = TypeVar("I", bound=_Item)  # noqa: E741 - an item


class _Held:
    """The claims that the tokens of a batch open, each as the batch has left it so far."""

    def __init__(self, tx: Tx, worker: Worker, items: Sequence[_Item], lock: str = "todos, claims") -> None:
        self._hashes = {item.lease_token: digest(item.lease_token) for item in items}
        todo_ids = sorted({item.todo_id for item in items})
        self.changes = Changes()
        self._found: dict[tuple[str, str], tuple[Todo, Claim]] = {}
        self._own: set[str] = set()
        self.now = 0
        if not items:
            return
        self._found, self.now = todo_rows.by_token(tx, worker.id, todo_ids, list(self._hashes.values()), lock=lock)
        if lock == "claims" and any(claim.end is not None for _, claim in self._found.values()):
            # Why it was lost stands in the todo, which may have changed meanwhile. It is read without its lock: todos
            # are locked before claims, and a claim that is closed stays so.
            self._found, _ = todo_rows.by_token(tx, worker.id, todo_ids, list(self._hashes.values()), lock="")
        opened = {todo_id for todo_id, _ in self._found}
        self._own = opened | todo_rows.own(tx, worker.id, [one for one in todo_ids if one not in opened])

    def find(self, item: _Item) -> tuple[Todo, Claim] | Refusal:
        """The todo and the claim that the item's token opens, or the refusal."""
        if not item.lease_token:
            return invalid("lease_token", "is required: the claim of this todo answered it.")
        found = self._found.get((item.todo_id, self._hashes[item.lease_token]))
        if found is None:
            return todo_words.refused_holder("wrong_token") if item.todo_id in self._own else MISSING
        todo, claim = found
        return self.changes.todos.get(todo.id, todo), self.changes.claims.get(claim.id, claim)

    def ask(self, item: _Item, command: c.Heartbeat | c.Complete | c.Fail | c.Release) -> c.Answer | Refusal:
        """Put the command to the rules; the refusal tells what became of what was sent."""
        found = self.find(item)
        if isinstance(found, Refusal):
            return found
        todo, claim = found
        decision = self.changes.put(todo, decide(todo, command, self.now, claim))
        if isinstance(decision.answer, c.Refused):
            return todo_words.refused_holder(decision.answer.reason, kept=bool(decision.claims))
        return decision.answer

    def end(self, item: _Item, command: c.Complete | c.Fail | c.Release) -> Ended | Refusal:
        """`ask`, for the verbs that end a claim."""
        answer = self.ask(item, command)
        if isinstance(answer, Refusal):
            return answer
        todo, _ = self._found[item.todo_id, self._hashes[item.lease_token]]
        todo = self.changes.todos.get(todo.id, todo)
        return ended(todo, self.now, already=isinstance(answer, c.Accepted) and answer.already)


# --- steps ------------------------------------------------------------------------------------------------


def _ttl(worker: Worker, call: object) -> endpoints.Ttl:
    return endpoints.ttl(granted(endpoints.call_ttl(call)), worker.endpoint.default_lease_ttl_seconds)


def _queues(worker: Worker, asked: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in asked if name not in worker.endpoint.queues]
    if unknown:
        why = f"names one that this endpoint does not have. It has: {', '.join(worker.endpoint.queues)}."
        raise Refused(invalid("queues", why))
    return tuple(dict.fromkeys(asked)) or worker.endpoint.queues


def _seconds(ms: int) -> int:
    """Whole seconds left; never more than there are, never less than none."""
    return max(0, ms // SECOND)


def _jitter() -> float:
    return random.random()  # noqa: S311 - it only spreads retries
