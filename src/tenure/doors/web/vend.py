"""Vending: the quick form, and the wizard, which asks one thing at a time (B23).

The wizard keeps nothing on the server: each step sends along what the others were told, so that going back loses
nothing, and two of them in two windows don't meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tenure.board import agents, endpoints
from tenure.board.access import Endpoint
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.doors.web.endpoints import cards
from tenure.doors.web.forms import LIFETIME_DAYS, Filled, Form, lease, names, problem_of, text, texts, until
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.rendering import render
from tenure.doors.web.revealing import fresh, reveal
from tenure.rules import endpoints as rules
from tenure.rules.bounds import LEASE_CAP_SECONDS, LEASE_FLOOR_SECONDS, SERVER_LEASE_SECONDS, WEBHOOKS_DEFAULT
from tenure.rules.refusal import invalid

STEPS: Final = ("agent", "queues", "verbs", "webhooks", "lifetime", "confirm")
LEASE: Final = "default_lease_ttl_seconds"
# Each verb in a sentence, for whoever decides what an agent may do.
SAYS: Final = {
    "list_todos": "see which todos it has",
    "get_todo": "read one todo whole",
    "claim": "take a certain todo on a lease",
    "claim_next": "take the next todo on a lease",
    "heartbeat": "keep a lease that it holds",
    "check_claim": "ask whether a lease is still its own",
    "complete": "finish a todo with a result",
    "fail": "give a todo up as failed",
    "release": "hand a todo back for others",
    "add_note": "write notes on its todos",
    "create_todo": "make new todos, for itself and the targets below",
    "cancel_todo": "cancel a todo by its key",
    "get_default_lease": "read its own default lease",
    "set_default_lease": "change its own default lease; unchecked, that is yours alone",
    "create_webhook": "open a webhook that makes todos for it",
    "list_webhooks": "see its webhooks",
    "rotate_webhook": "change a webhook's secret",
    "delete_webhook": "close a webhook",
}


class Told(Filled):
    """What the wizard was told so far, in all its steps."""


def read(form: Form) -> Told:
    """What the form carries, of this step and of the others."""
    single = ("name", "agent", "queues", "webhook_ceiling", LEASE, "days", "once")
    told = Told({key: text(form, key) for key in single})
    told["verbs"] = [verb for verb in texts(form, "verbs") if verb in rules.ALL]
    told["targets"] = texts(form, "targets")
    return told


def beginning() -> Told:
    """Before anything was told: the drain verbs are offered checked, every other one unchecked."""
    return Told(verbs=list(rules.DRAIN), targets=[], webhook_ceiling=str(WEBHOOKS_DEFAULT), once=fresh())


# --- what each step refuses -------------------------------------------------------------------------------


def _check_agent(told: Told) -> None:
    granted(rules.label(told["name"], "name"))
    if told["agent"].strip():
        granted(rules.label(told["agent"], "agent"))


def _check_queues(told: Told) -> None:
    granted(rules.scope(names(told["queues"]), (), (), 0))


def _check_verbs(told: Told) -> None:
    if not told["verbs"]:
        raise Refused(invalid("verbs", "are none: an endpoint that may do nothing is of no use. Check one at least."))
    granted(rules.scope((), told["verbs"], told["targets"], 0))


def _check_webhooks(told: Told) -> None:
    granted(rules.scope((), (), (), _ceiling(told)))


def _check_lifetime(told: Told) -> None:
    granted(rules.default_lease(lease(told[LEASE], vending=True)))


CHECKS: Final[dict[str, tuple[Callable[[Told], None], tuple[str, ...]]]] = {
    "agent": (_check_agent, ("name", "agent")),
    "queues": (_check_queues, ("queues",)),
    "verbs": (_check_verbs, ("verbs", "targets")),
    "webhooks": (_check_webhooks, ("webhook_ceiling",)),
    "lifetime": (_check_lifetime, (LEASE, "expires")),
}


def _ceiling(told: Told) -> Any:
    typed = told["webhook_ceiling"].strip()
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 6 else None


# --- pages ------------------------------------------------------------------------------------------------


async def wizard(request: Request) -> Response:
    """One step; the last one vends."""
    if request.method == "GET":
        return await _step(request, "agent", beginning())
    form = request.state.form
    told, step = read(form), text(form, "step")
    if step not in STEPS:
        return await _step(request, "agent", told)
    at = STEPS.index(step)
    if text(form, "go") == "back":
        return await _step(request, STEPS[max(0, at - 1)], told)
    for one in STEPS[: at + 1]:
        problems = _problems(one, told)
        if problems:
            return await _step(request, one, told, 400, problems)
    if step != "confirm":
        return await _step(request, STEPS[at + 1], told)
    try:
        return await _vend(request, told)
    except Refused as refused:
        named = str(refused.refusal.details.get("field", ""))
        owner = next((one for one, (_, fields) in CHECKS.items() if named in fields), "agent")
        problems = problem_of(refused.refusal, *CHECKS[owner][1])
        return await _step(request, owner, told, 400, problems)


def _problems(step: str, told: Told) -> Filled | None:
    if step not in CHECKS:
        return None
    check, fields = CHECKS[step]
    try:
        check(told)
    except Refused as refused:
        return problem_of(refused.refusal, *fields)
    return None


async def _step(request: Request, step: str, told: Told, status: int = 200, problems: Filled | None = None) -> Response:
    board, human = board_of(request), request.state.human

    def known(tx: Tx) -> tuple[list[str], list[Endpoint]]:
        return [one.name for one in agents.list_all(tx, board, human)], endpoints.list_all(tx, board, human)

    mine, others = await board.database.read(known)
    groups = [("Work on todos", rules.DRAIN), ("Make todos", rules.PRODUCE), ("Its own settings", rules.OWN)]
    return render(
        request,
        "endpoints/wizard.html",
        status=status,
        nav="endpoints",
        step=step,
        steps=STEPS,
        told=told,
        problems=problems or Filled(),
        groups=groups,
        says=SAYS,
        agents=mine,
        others=[one for one in others if one.state == "active"],
        days=LIFETIME_DAYS,
        queues=names(told["queues"]) or [rules.DEFAULT_QUEUE],
        bounds=(LEASE_FLOOR_SECONDS, LEASE_CAP_SECONDS, SERVER_LEASE_SECONDS),
    )


async def _vend(request: Request, told: Told) -> Response:
    board, human = board_of(request), request.state.human

    def make(tx: Tx) -> endpoints.Vended:
        return endpoints.vend(
            tx,
            board,
            human,
            name=told["name"],
            agent=told["agent"].strip() or None,
            queues=names(told["queues"]),
            verbs=told["verbs"],
            targets=told["targets"],
            webhook_ceiling=_ceiling(told),
            default_lease=lease(told[LEASE], vending=True),
            expires=until(request.state.form, tx.now()),
        )

    return await reveal(request, "vend", make)


async def quick(request: Request) -> Response:
    """Name, queues, lease and lifetime on one page; all verbs."""
    board, human, form = board_of(request), request.state.human, request.state.form

    def make(tx: Tx) -> endpoints.Vended:
        return endpoints.vend(
            tx,
            board,
            human,
            name=text(form, "name"),
            queues=names(text(form, "queues")),
            default_lease=lease(text(form, LEASE), vending=True),
            expires=until(form, tx.now()),
        )

    try:
        return await reveal(request, "vend", make)
    except Refused as refused:
        problems = problem_of(refused.refusal, "name", "queues", LEASE)
        return await cards(request, 400, "vend", problems, Filled({key: text(form, key) for key in form}))


ROUTES: Final = [
    Route("/endpoints", signed_in(quick), methods=["POST"]),
    Route("/endpoints/new", signed_in(wizard), methods=["GET", "POST"]),
]
