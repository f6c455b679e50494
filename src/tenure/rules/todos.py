"""One todo's life: the rules B1, B3 to B5, B7b, B11, B13, B19 and what B25 does to todos, once, for every door.

House rules of this file:
- `decide` is a pure function of the todo, the claim spoken of, the command and the database's time.
- It is total: every command has an answer in every state, and an answer is a value, never an exception.
- What is refused changes nothing but the closed claim that keeps what came too late.
- A lease is over by the clock alone; until the reaper has requeued the todo its holder may still come back.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple, assert_never

from tenure.rules import todo_commands as c
from tenure.rules.bounds import OPERATOR_LEASE_SECONDS, PRIORITY_STEP_MS
from tenure.rules.instant import MINUTE, SECOND
from tenure.rules.todo import Claim, End, Shown, Todo

RETRY_MS: Final = 30 * SECOND
RETRY_LIMIT_MS: Final = 15 * MINUTE
JITTER: Final = 0.2

# What needs a claim: its token, or an operator.
Held = c.Heartbeat | c.Complete | c.Fail | c.Release
_LATE_RESULT: Final = '{"verb": "complete"'


class Decision(NamedTuple):
    """The todo as it is to be, the answer, and the claims to be written: those closed stand before one that is new."""

    todo: Todo
    answer: c.Answer
    claims: tuple[Claim, ...] = ()


def decide(todo: Todo, command: c.Command, now: int, claim: Claim | None = None) -> Decision:
    """What `command` does to `todo` at `now`. `claim`: the one whose token was shown, else the open one if any."""
    match command:
        case c.Grant():
            return _grant(todo, command, now, claim)
        case c.Take():
            return _take(todo, command, now, claim)
        case c.Heartbeat() | c.Complete() | c.Fail() | c.Release():
            if claim is None or claim.end is not None:
                return _too_late(todo, command, now, claim)
            return _by_holder(todo, command, now, claim)
        case c.Lapse():
            return _lapse(todo, now, claim)
        case c.Wake():
            return _wake(todo, now)
        case c.Unblock():
            return _unblock(todo, command, now)
        case c.Cancel():
            return _cancel(todo, command, now, claim)
        case c.Retry():
            return _retry(todo, now)
        case c.Move():
            return _move(todo, command, now, claim)
        case c.EndpointEnds():
            return _endpoint_ends(todo, command, now, claim)
        case _:
            assert_never(command)


# --- questions --------------------------------------------------------------------------------------------


def order_ms(ready_since: int, priority: int) -> int:
    """The stored key of `claim_next`: a step of priority is worth ten minutes of waiting (B3)."""
    return ready_since - priority * PRIORITY_STEP_MS


def shown(todo: Todo, now: int, expires: int | None) -> Shown:
    """The state by the clock, for people and lists (B2, B13). `expires`: of the open claim."""
    match todo.state:
        case "pending" if todo.blockers:
            return "blocked"
        case "pending" if not _due(todo, now):
            return "waiting"
        case "claimed" if expires is not None and now >= expires:
            return "lapsed"
        case "failed":
            return "retrying" if todo.ended is None else "dead"
        case state:
            return state


def lost(todo: Todo, claim: Claim) -> str:
    """Why a claim that is closed can't act on its todo any more: the `reason` of the conflict (B13)."""
    if claim.end in ("taken_by_operator", "released_by_operator"):
        return claim.end
    if todo.state in ("done", "cancelled"):
        return "finished"
    if todo.state == "claimed":
        return "taken"
    if claim.end != "lapsed" and todo.ended is not None:
        return "finished"
    return claim.end or "lapsed"


def retry_delay_ms(failures: int, jitter: float) -> int:
    """How long after its n-th failure a todo is tried again (B5)."""
    base = min(RETRY_MS * 2 ** min(failures - 1, 10), RETRY_LIMIT_MS)
    return int(base * (1 + JITTER * jitter))


# --- claims -----------------------------------------------------------------------------------------------


def _grant(todo: Todo, grant: c.Grant, now: int, claim: Claim | None) -> Decision:
    """pending → claimed. What is due by the clock counts as ready, before the reaper has seen it (B13)."""
    closed: tuple[Claim, ...] = ()
    if todo.state == "claimed":
        lapse = _lapse(todo, now, claim)
        if not lapse.claims:
            return Decision(todo, c.Refused("taken"))
        todo, closed = lapse.todo, lapse.claims
    todo = _wake(todo, now).todo
    if todo.state != "pending":
        return Decision(todo, c.Refused("finished" if todo.ended is not None else "retrying"), closed)
    if not todo.ready:
        return Decision(todo, c.Refused("blocked" if todo.blockers else "waiting"), closed)
    won = Claim(
        grant.id, todo.id, grant.endpoint, None, grant.worker, todo.attempts + 1, grant.hash, grant.secret,
        now, now + grant.ttl_seconds * SECOND, grant.ttl_seconds, grant.ttl_source,
    )  # fmt: skip
    return Decision(_claimed(todo, won), c.Won(won), (*closed, won))


def _take(todo: Todo, take: c.Take, now: int, claim: Claim | None) -> Decision:
    """A human takes what is pending, ready or not, or what another holds; their own claim is extended (B19)."""
    expires = now + OPERATOR_LEASE_SECONDS * SECOND
    if claim is not None and todo.state == "claimed" and claim.human == take.human:
        longer = claim._replace(expires=expires, heartbeats=claim.heartbeats + 1, heartbeat=now)
        return Decision(todo, c.Won(longer), (longer,))
    if todo.state not in ("pending", "claimed"):
        return Decision(todo, c.Refused("finished" if todo.ended is not None else "retrying"))
    closed = () if claim is None else (_closed(claim, "taken_by_operator", now),)
    won = Claim(
        take.id, todo.id, None, take.human, None, todo.attempts + 1, None, None,
        now, expires, OPERATOR_LEASE_SECONDS, "board",
    )  # fmt: skip
    return Decision(_claimed(todo, won), c.Won(won), (*closed, won))


def _by_holder(todo: Todo, command: Held, now: int, claim: Claim) -> Decision:
    """By whoever holds the open claim, or by an operator in their place; lapsed or not (B13)."""
    match command:
        case c.Heartbeat():
            return _heartbeat(todo, command, now, claim)
        case c.Complete(result, operator):
            after = _unclaimed(todo)._replace(state="done", ended=now, reason=None, result=result)
            return Decision(after, c.Accepted(), (_closed(claim, _by(claim, "completed", operator), now),))
        case c.Fail():
            return _fail(todo, command, now, claim)
        case c.Release(reason, operator):
            closed = _closed(claim, _by(claim, "released", operator), now, reason)
            return Decision(_pending(_unclaimed(todo), now), c.Accepted(), (closed,))
        case _:
            assert_never(command)


def _heartbeat(todo: Todo, beat: c.Heartbeat, now: int, claim: Claim) -> Decision:
    """Bare: the later of what it is and now + ttl, so that it never shortens; a call's own value is set as it is."""
    asked = now + beat.ttl_seconds * SECOND
    expires = asked if beat.ttl_source == "call" else max(claim.expires, asked)
    renewed = claim._replace(expires=expires, heartbeats=claim.heartbeats + 1, heartbeat=now)
    if expires == asked:
        renewed = renewed._replace(ttl_seconds=beat.ttl_seconds, ttl_source=beat.ttl_source)
    longer, shorter = expires > claim.expires, expires < claim.expires
    return Decision(todo, c.Renewed(renewed, longer, shorter, claim.lapsed(now)), (renewed,))


def _fail(todo: Todo, fail: c.Fail, now: int, claim: Claim) -> Decision:
    """claimed → failed: tried again later, or a dead letter when its failures are used up (B4, B5)."""
    failures = todo.failures + 1
    after = _unclaimed(todo)._replace(state="failed", failures=failures, reason=fail.reason or None)
    if failures >= todo.failures_cap:
        after = after._replace(ended=now, reason=_dead(f"It failed {_times(failures)}.", fail.reason))
    else:
        after = after._replace(retry_at=now + retry_delay_ms(failures, fail.jitter))
    return Decision(after, c.Accepted(), (_closed(claim, _by(claim, "failed", fail.operator), now, fail.reason),))


def _too_late(todo: Todo, command: Held, now: int, claim: Claim | None) -> Decision:
    """By a claim that is closed: it ended that very way, or it is refused and what it brings is kept (B13)."""
    if claim is None:
        return Decision(todo, c.Refused("finished" if todo.state in ("done", "cancelled") else "not_claimed"))
    end: End | None = None
    late: dict[str, object] | None = None
    match command:
        case c.Complete(result):
            end, late = "completed", {"verb": "complete", "result": None if result is None else json.loads(result)}
        case c.Fail(reason):
            end = "failed"
            if not (claim.late or "").startswith(_LATE_RESULT):  # which is worth more than a reason
                late = {"verb": "fail", "reason": reason}
        case c.Release():
            end = "released"
        case c.Heartbeat():
            pass
        case _:
            assert_never(command)
    if end is not None and claim.end == end:
        return Decision(todo, c.Accepted(already=True))
    refused = c.Refused(lost(todo, claim))
    if late is None:
        return Decision(todo, refused)
    return Decision(todo, refused, (claim._replace(late=json.dumps(late, ensure_ascii=False), late_at=now),))


# --- the reaper -------------------------------------------------------------------------------------------


def _lapse(todo: Todo, now: int, claim: Claim | None) -> Decision:
    """claimed → pending at once; its own cap makes it a dead letter (B4, B5)."""
    if claim is None or claim.end is not None or not claim.lapsed(now):
        return Decision(todo, c.Accepted(already=True))
    lapses = todo.lapses + 1
    after = _unclaimed(todo)._replace(lapses=lapses)
    if lapses >= todo.lapses_cap:
        after = after._replace(state="failed", ended=now, reason=_dead(f"Its lease lapsed {_times(lapses)}."))
    else:
        after = _pending(after, now)
    return Decision(after, c.Accepted(), (_closed(claim, "lapsed", now),))


def _wake(todo: Todo, now: int) -> Decision:
    """failed → pending when its retry is due; pending becomes ready when its time has come (B3, B5)."""
    if todo.state == "failed" and todo.retry_at is not None and todo.retry_at <= now:
        return Decision(_again(todo, todo.retry_at, now), c.Accepted())
    if todo.state == "pending" and not todo.ready and not todo.blockers and _due(todo, now):
        return Decision(todo._replace(ready=True), c.Accepted())
    return Decision(todo, c.Accepted(already=True))


def _unblock(todo: Todo, done: c.Unblock, now: int) -> Decision:
    after = todo._replace(blockers=max(0, todo.blockers - done.by))
    return Decision(_pending(after, now) if after.state == "pending" else after, c.Accepted())


# --- humans -----------------------------------------------------------------------------------------------


def _cancel(todo: Todo, cancel: c.Cancel, now: int, claim: Claim | None) -> Decision:
    if todo.state == "cancelled":
        return Decision(todo, c.Accepted(already=True))
    todo, refused, closed = _off_hands(todo, now, claim)
    if refused is not None:
        return Decision(todo, refused)
    after = todo._replace(state="cancelled", ready=False, retry_at=None, ended=now, reason=cancel.reason or None)
    return Decision(after, c.Accepted(), closed)


def _retry(todo: Todo, now: int) -> Decision:
    """Also a dead letter's: one more attempt where they are used up."""
    if todo.state != "failed":
        return Decision(todo, c.Refused(todo.state if todo.ended is None else "finished"))
    more = todo._replace(
        failures_cap=max(todo.failures_cap, todo.failures + 1), lapses_cap=max(todo.lapses_cap, todo.lapses + 1)
    )
    return Decision(_again(more, now, now), c.Accepted())


def _move(todo: Todo, move: c.Move, now: int, claim: Claim | None) -> Decision:
    """What waits for this todo goes on waiting; what this todo waited for is dropped."""
    if todo.state == "cancelled":
        return Decision(todo, c.Refused("finished"))
    todo, refused, closed = _off_hands(todo, now, claim)
    if refused is not None:
        return Decision(todo, refused)
    fresh = todo._replace(failures=0, lapses=0, blockers=0, retry_at=None, ended=None, reason=None)
    after = fresh._replace(endpoint=move.endpoint, queue=move.queue)
    return Decision(_pending(after, now), c.Accepted(), closed)


def _endpoint_ends(todo: Todo, ends: c.EndpointEnds, now: int, claim: Claim | None) -> Decision:
    if todo.ended is not None:
        return Decision(todo, c.Accepted(already=True))
    after = _unclaimed(todo)._replace(state="failed", retry_at=None, ended=now, reason=endpoint_ended(ends.how))
    closed = () if claim is None else (_closed(claim, ends.how, now),)
    return Decision(after, c.Accepted(), closed)


def endpoint_ended(how: str) -> str:
    """The reason of todos that died with their endpoint."""
    return f"Its endpoint {'was revoked' if how == 'revoked' else 'has expired'}."


# --- steps ------------------------------------------------------------------------------------------------


def _due(todo: Todo, now: int) -> bool:
    return todo.not_before is None or todo.not_before <= now


def _pending(todo: Todo, now: int) -> Todo:
    return todo._replace(state="pending", ready=not todo.blockers and _due(todo, now))


def _again(todo: Todo, due: int, now: int) -> Todo:
    """failed → pending; it is ready since `due`, if not since later."""
    since = max(todo.order_ms + todo.priority * PRIORITY_STEP_MS, due)
    return _pending(todo._replace(retry_at=None, ended=None, order_ms=order_ms(since, todo.priority)), now)


def _claimed(todo: Todo, claim: Claim) -> Todo:
    return todo._replace(state="claimed", ready=False, attempts=claim.attempt, claim=claim.id)


def _unclaimed(todo: Todo) -> Todo:
    return todo._replace(ready=False, claim=None)


def _off_hands(todo: Todo, now: int, claim: Claim | None) -> tuple[Todo, c.Refused | None, tuple[Claim, ...]]:
    """For what needs a todo that nobody holds: a lapsed lease holds nothing, and is closed."""
    if todo.state == "done":
        return todo, c.Refused("finished"), ()
    if claim is None or todo.state != "claimed":
        return todo, None, ()
    if not claim.lapsed(now):
        return todo, c.Refused("claimed"), ()
    return _unclaimed(todo)._replace(lapses=todo.lapses + 1), None, (_closed(claim, "lapsed", now),)


def _closed(claim: Claim, end: End, now: int, reason: str = "") -> Claim:
    return claim._replace(ended=now, end=end, reason=reason or None)


def _by(claim: Claim, end: End, operator: bool) -> End:
    """How a claim ended: by its holder, a human's own on the Board too, or by an operator over the holder's head."""
    over: dict[str, End] = {
        "completed": "completed_by_operator", "failed": "failed_by_operator", "released": "released_by_operator",
    }  # fmt: skip
    return over[end] if operator and claim.human is None else end


def _dead(why: str, said: str = "") -> str:
    return f"{why} No attempt is left. {said}".rstrip()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
