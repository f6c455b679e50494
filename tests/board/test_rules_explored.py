"""Every interleaving of two workers, the reaper, an operator and time over the rules of a todo; and planted faults."""

import pytest

from tenure.proof import boardworld
from tenure.rules import todo_commands as c
from tenure.rules import todos

# What each verb may be told, found by exploring: a world too tame to meet all of it would prove little.
MET = {
    "Grant: Won", "Grant: taken", "Grant: finished", "Grant: retrying", "Take: Won", "Take: finished", "Take: retrying",
    "Heartbeat: Renewed", "Heartbeat: lapsed", "Heartbeat: taken", "Heartbeat: finished", "Complete: Accepted",
    "Complete: lapsed", "Complete: taken", "Complete: finished", "Complete: taken_by_operator",
    "Complete: released_by_operator", "Fail: Accepted", "Fail: lapsed", "Fail: taken", "Release: Accepted",
    "Release: lapsed", "Release: taken", "Cancel: Accepted", "Cancel: claimed", "Cancel: finished", "Retry: Accepted",
    "Retry: claimed", "Retry: pending", "Retry: finished", "Move: Accepted", "Move: claimed", "Lapse: Accepted",
    "Wake: Accepted", "EndpointEnds: Accepted",
}  # fmt: skip


def _told(broken):
    return "\n".join(f"{one.law}:\n  " + "\n  ".join(map(str, one.steps)) for one in broken)


def test_b01_no_interleaving_breaks_a_law():
    """Two workers with all their old tokens, reaper, operator: no double completion, no lost todo."""
    seen = boardworld.explore()
    assert not seen.broken, _told(seen.broken)
    assert MET - seen.reached == set()
    assert seen.states > 1_000


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_b01_no_interleaving_of_three_attempts_breaks_a_law():
    """The same with a third attempt."""
    seen = boardworld.explore(attempts=3)
    assert not seen.broken, _told(seen.broken)


def _a_lapsed_token_still_completes(todo, command, now, claim):
    if isinstance(command, c.Complete) and claim is not None and claim.end == "lapsed":
        claim = claim._replace(end=None, ended=None)
    return todos.decide(todo, command, now, claim)


def _a_late_result_is_thrown_away(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    refused = isinstance(command, c.Complete) and isinstance(decision.answer, c.Refused)
    return decision._replace(claims=()) if refused else decision


def _the_reaper_is_early(todo, command, now, claim):
    return todos.decide(todo, command, now + 1_000 if isinstance(command, c.Lapse) else now, claim)


def _the_lapsed_claim_stays_open(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    return decision._replace(claims=()) if isinstance(command, c.Lapse) else decision


def _a_second_worker_gets_a_live_todo(todo, command, now, claim):
    if isinstance(command, c.Grant) and claim is not None:
        claim = claim._replace(expires=now)
    return todos.decide(todo, command, now, claim)


def _a_bare_heartbeat_shortens(todo, command, now, claim):
    if isinstance(command, c.Heartbeat):
        command = command._replace(ttl_seconds=1, ttl_source="call")
    return todos.decide(todo, command, now, claim)


def _a_release_counts_as_a_failure(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    if isinstance(command, c.Release) and decision.todo is not todo:
        decision = decision._replace(todo=decision.todo._replace(failures=todo.failures + 1))
    return decision


def _a_lapse_counts_as_a_failure(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    if isinstance(command, c.Lapse) and decision.todo is not todo:
        moved = {"lapses": todo.lapses, "failures": todo.failures + 1}
        decision = decision._replace(todo=decision.todo._replace(**moved))
    return decision


def _a_lapsed_holder_is_refused_before_the_reaper(todo, command, now, claim):
    held = isinstance(command, c.Heartbeat) and claim is not None and claim.end is None
    if held and claim.lapsed(now):
        return todos.Decision(todo, c.Refused("lapsed"))
    return todos.decide(todo, command, now, claim)


def _a_failed_todo_is_forgotten(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    return decision._replace(todo=decision.todo._replace(retry_at=None)) if isinstance(command, c.Fail) else decision


def _a_released_todo_is_not_ready(todo, command, now, claim):
    decision = todos.decide(todo, command, now, claim)
    return decision._replace(todo=decision.todo._replace(ready=False)) if isinstance(command, c.Release) else decision


def _the_last_lapse_is_not_the_end(todo, command, now, claim):
    patient = todo._replace(lapses_cap=todo.lapses_cap + 1)
    decision = todos.decide(patient if isinstance(command, c.Lapse) else todo, command, now, claim)
    return decision._replace(todo=decision.todo._replace(lapses_cap=todo.lapses_cap))


def _an_operator_completes_what_is_done(todo, command, now, claim):
    if isinstance(command, c.Complete) and command.operator and todo.state == "done":
        return todos.Decision(todo._replace(result=command.result, version=2), c.Accepted())
    return todos.decide(todo, command, now, claim)


PLANTED = [
    _a_lapsed_token_still_completes, _a_late_result_is_thrown_away, _the_reaper_is_early,
    _the_lapsed_claim_stays_open, _a_second_worker_gets_a_live_todo, _a_bare_heartbeat_shortens,
    _a_release_counts_as_a_failure, _a_lapse_counts_as_a_failure, _a_lapsed_holder_is_refused_before_the_reaper,
    _a_failed_todo_is_forgotten, _a_released_todo_is_not_ready, _the_last_lapse_is_not_the_end,
    _an_operator_completes_what_is_done,
]  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.__name__.strip("_"))
def test_b01_a_planted_fault_is_found(fault):
    """The laws are sharp: each fault breaks one, and the way there is short."""
    seen = boardworld.explore(fault)
    assert seen.broken
    assert len(seen.broken[0].steps) <= 8
