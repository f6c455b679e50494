"""Every interleaving of a small board: one todo, two workers, the reaper, an operator and time, over the real rules.

Each step puts one command to `decide` and holds what comes back against the laws of the board; states that differ in
nothing but the hour are one. Workers remember every token they were ever given, and use it whenever they like: a
worker that was restarted, or whose reply was lost, does no more than that. Must not know a database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tenure.rules import todo_commands as c
from tenure.rules.instant import SECOND
from tenure.rules.todo import Claim, Todo
from tenure.rules.todos import RETRY_MS, Decision, decide

Decide = Callable[[Todo, c.Command, int, Claim | None], Decision]

WORKERS: Final = ("a", "b")
OPERATOR: Final = "operator"
TTL_SECONDS: Final = 2
# Mine and another's: with two attempts every answer is met; a third is for those who have the time.
ATTEMPTS: Final = 2
CAP: Final = 2


class World(NamedTuple):
    """The todo, all its claims in order, and the database's time."""

    todo: Todo
    claims: tuple[Claim, ...]
    now: int

    @property
    def open(self) -> Claim | None:
        """The open claim."""
        return next((claim for claim in self.claims if claim.end is None), None)


class Step(NamedTuple):
    """Who did what, and to which claim: the token's, or for those without a token the open one."""

    who: str
    command: c.Command | None
    attempt: int | None = None

    def __str__(self) -> str:
        return f"{self.who}: {'time passes' if self.command is None else self.command} {self.attempt or ''}".rstrip()


class Broken(NamedTuple):
    """A law that was broken, and the steps that lead there."""

    law: str
    steps: tuple[Step, ...]


class Explored(NamedTuple):
    """How much was seen, and the shortest way to a broken law."""

    states: int
    steps: int
    broken: tuple[Broken, ...]
    reached: frozenset[str]


def start() -> World:
    """One ready todo."""
    todo = Todo(
        "td", "endpoint", "inbox", "pending", True, 0, 0, None, 0, 0, 0, 0, CAP, CAP, None, None, None, None, False
    )
    return World(todo, (), 0)


def explore(decide: Decide = decide, attempts: int = ATTEMPTS) -> Explored:
    """Breadth first, so that what is found broken is reached by the fewest steps."""
    first = start()
    came: dict[World, tuple[World, Step] | None] = {first: None}
    waiting = deque([first])
    steps = 0
    broken: dict[str, Broken] = {}
    reached: set[str] = set()
    while waiting and not broken:
        world = waiting.popleft()
        for step in moves(world, attempts):
            steps += 1
            after, decision = take(world, step, decide)
            if decision is not None:
                reached.add(_named(step, decision))
            for law in laws(world, step, after, decision):
                broken.setdefault(law, Broken(law, (*_way(came, world), step)))
            after = _without_the_hour(after)
            if after not in came:
                came[after] = world, step
                waiting.append(after)
    return Explored(len(came), steps, tuple(broken.values()), frozenset(reached))


def moves(world: World, attempts: int) -> Iterator[Step]:
    """Everything that anyone may do now."""
    if len(world.claims) < attempts:
        for who in WORKERS:
            yield Step(who, _grant(who, world))
        yield Step(OPERATOR, c.Take(f"cl{len(world.claims) + 1}", OPERATOR))
    for claim in world.claims:
        if claim.worker is not None:
            for command in (
                c.Heartbeat(TTL_SECONDS, "endpoint"), c.Heartbeat(1, "call"), c.Complete(f'"{claim.attempt}"'),
                c.Fail("it broke"), c.Release(),
            ):  # fmt: skip
                yield Step(claim.worker, command, claim.attempt)
    commands: tuple[c.Command, ...] = (
        c.Complete('"operator"', operator=True), c.Fail("no", operator=True), c.Release(operator=True), c.Cancel(),
        c.Retry(), c.Move("other", "inbox"), c.EndpointEnds("revoked"),
    )  # fmt: skip
    for each in commands:
        yield Step(OPERATOR, each)
    yield Step("reaper", c.Lapse())
    yield Step("reaper", c.Wake())
    yield Step("time", None)


def take(world: World, step: Step, decide: Decide = decide) -> tuple[World, Decision | None]:
    """The world after a step, and what was decided."""
    if step.command is None:
        held = world.open
        passes = RETRY_MS * 2 if held is None or held.human is not None else SECOND
        return world._replace(now=world.now + passes), None
    claim = world.open if step.attempt is None else world.claims[step.attempt - 1]
    decision = decide(world.todo, step.command, world.now, claim)
    claims = {claim.id: claim for claim in (*world.claims, *decision.claims)}
    return World(decision.todo, tuple(claims.values()), world.now), decision


def laws(before: World, step: Step, after: World, decision: Decision | None) -> Iterator[str]:
    """The names of the laws that this step broke."""
    yield from _of_state(after)
    if decision is None:
        return
    yield from _of_step(before, step, after, decision)


def _of_state(world: World) -> Iterator[str]:
    todo, claims = world.todo, world.claims
    open_claims = [claim for claim in claims if claim.end is None]
    if len(open_claims) > 1:
        yield "at most one claim is open"
    if (todo.state == "claimed") != bool(open_claims) or todo.claim != (open_claims[0].id if open_claims else None):
        yield "a todo is claimed by its open claim, and by nothing else"
    if [claim.attempt for claim in claims] != list(range(1, todo.attempts + 1)):
        yield "attempts are the count of claims"
    if sum(claim.end in ("completed", "completed_by_operator") for claim in claims) != (todo.state == "done"):
        yield "a todo is done by one completion, and by no other"
    if todo.ready and (todo.state != "pending" or todo.blockers):
        yield "only what is pending and unblocked is ready"
    if todo.state == "failed" and (todo.ended is None) != (todo.retry_at is not None):
        yield "a failed todo is tried again or dead"
    if (todo.ended is not None) != (
        todo.state in ("done", "cancelled") or (todo.state == "failed" and todo.retry_at is None)
    ):
        yield "what has ended is done, cancelled or dead"
    if todo.state == "pending" and not todo.ready and not todo.blockers and todo.not_before is None:
        yield "no todo is lost: what nothing holds back is ready"
    if todo.ended is None and (todo.failures >= todo.failures_cap or todo.lapses >= todo.lapses_cap):
        yield "a cap that is reached makes a dead letter"


def _of_step(before: World, step: Step, after: World, decision: Decision) -> Iterator[str]:
    command, answer = step.command, decision.answer
    spoken = before.open if step.attempt is None else before.claims[step.attempt - 1]
    refused = isinstance(answer, c.Refused)
    changed = after.todo != before.todo or len(after.claims) != len(before.claims)
    if refused and changed and not isinstance(command, c.Grant):  # which may have found a lapse
        yield "what is refused changes nothing"
    if before.todo.state == "done" and after.todo != before.todo:
        yield "what is done stays as it is"
    for was, now in zip(before.claims, after.claims, strict=False):
        if was.end is not None and was != now._replace(late=was.late, late_at=was.late_at):
            yield "a closed claim is history, but for what came too late"
    if isinstance(command, c.Complete | c.Fail | c.Release | c.Heartbeat) and spoken is not None:
        closed = spoken.end is not None
        if closed and not refused and not (isinstance(answer, c.Accepted) and answer.already):
            yield "a token of a closed claim does nothing"
        if not closed and refused:
            yield "until the reaper has come the holder is heard"
        kept = after.claims[spoken.attempt - 1].late is not None
        if refused and isinstance(command, c.Complete) and not kept:
            yield "a result that is refused is kept"
    if isinstance(command, c.Heartbeat) and isinstance(answer, c.Renewed) and command.ttl_source != "call":
        least = max(spoken.expires if spoken else 0, before.now + TTL_SECONDS * SECOND)
        if answer.claim.expires < least:
            yield "a bare heartbeat never shortens, and extends by the ttl"
    yield from _of_counts(before, command, after)


def _of_counts(before: World, command: c.Command | None, after: World) -> Iterator[str]:
    """What ticks which counter, and who may take what is live."""
    held, won = before.open, len(after.claims) > len(before.claims)
    if isinstance(command, c.Grant) and won and held is not None and not held.lapsed(before.now):
        yield "a live lease keeps other workers out"
    if isinstance(command, c.Grant) and won and held is not None and held.human and not held.lapsed(before.now):
        yield "no endpoint touches a Board claim"
    ended = [now.end for was, now in zip(before.claims, after.claims, strict=False) if was.end != now.end]
    if isinstance(command, c.Move):
        return
    if after.todo.lapses - before.todo.lapses != ended.count("lapsed"):
        yield "lapses are counted, once each"
    if after.todo.failures - before.todo.failures != ended.count("failed") + ended.count("failed_by_operator"):
        yield "failures are counted, once each"
    if isinstance(command, c.Lapse) and ended and held is not None and not held.lapsed(before.now):
        yield "nothing lapses before its time"


def _grant(who: str, world: World) -> c.Grant:
    number = len(world.claims) + 1
    return c.Grant(f"cl{number}", "endpoint", who, f"hash{number}", "secret", TTL_SECONDS, "endpoint")


def _named(step: Step, decision: Decision) -> str:
    answer = decision.answer
    told = answer.reason if isinstance(answer, c.Refused) else type(answer).__name__
    return f"{type(step.command).__name__}: {told}"


def _without_the_hour(world: World) -> World:
    """The same world at midnight: of times it counts how far off they are.

    Who of the workers holds a claim makes no difference to the rules, so it makes none here.
    """
    todo, now = world.todo, world.now
    plain = todo._replace(
        order_ms=0,
        retry_at=None if todo.retry_at is None else max(todo.retry_at - now, 0),
        ended=None if todo.ended is None else 0,
        reason=None,
        result=None,
    )
    return World(plain, tuple(_plain(claim, now) for claim in world.claims), 0)


def _plain(claim: Claim, now: int) -> Claim:
    open_ = claim.end is None
    return claim._replace(
        worker=claim.worker and WORKERS[0],
        granted=0,
        expires=max(claim.expires - now, 0) if open_ else 0,
        ttl_seconds=0,
        ttl_source="server",
        heartbeats=0,
        heartbeat=None,
        ended=None if open_ else 0,
        reason=None,
        late=claim.late and "late",
        late_at=None,
    )


def _way(came: dict[World, tuple[World, Step] | None], world: World) -> tuple[Step, ...]:
    steps: list[Step] = []
    while (before := came[world]) is not None:
        world, step = before
        steps.append(step)
    return tuple(reversed(steps))
