"""Endpoints: their cards, one whole, what may be edited in place, its webhooks, and the ends: rotate and revoke.

A refusal stands beside the field that it is about, on the page that the form was on, with what was typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import endpoints, todos, webhooks
from tenure.board.access import Endpoint, Human, writable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.web.forms import Filled, Form, lease, lease_words, problem_of, text
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.rendering import link, render
from tenure.doors.web.revealing import fresh, once, reveal
from tenure.rules import presence
from tenure.rules.instant import SECOND, span
from tenure.rules.refusal import MISSING, invalid

OVERLAPS: Final = {"0": "at once", "600": "in 10 minutes", "3600": "in an hour", "86400": "in 24 hours"}
FIELDS: Final = {
    "lease": "default_lease_ttl_seconds",
    "presence": "for",
    "shift": "shift",
    "name": "name",
    "era": "mcp_era",
    "revoke": "revoke",
    "rotate": "overlap_seconds",
    "webhook": "webhook_name",
}


class Card(NamedTuple):
    """An endpoint in the list: whether it is in, and how many of its todos stand where."""

    endpoint: Endpoint
    presence: presence.Presence
    lanes: dict[str, int]


def _present(endpoint: Endpoint, now: int) -> presence.Presence:
    return presence.effective(endpoint.override, endpoint.override_until, endpoint.shift, now)


# --- pages ------------------------------------------------------------------------------------------------


async def index(request: Request) -> Response:
    """All endpoints as cards, and the quick vend."""
    return await cards(request)


async def cards(
    request: Request, status: int = 200, at: str = "", problems: Filled | None = None, typed: Filled | None = None
) -> Response:
    """The list. `at`: on which card, by id, what was typed was refused; "vend": the quick vend."""
    board, human = board_of(request), request.state.human

    def read(tx: Tx) -> tuple[int, list[Card]]:
        now, lanes = tx.now(), dict[str, dict[str, int]]()
        for lane in todos.counts(tx, board, human):
            lanes.setdefault(lane.endpoint_id, {})[lane.shown] = lane.total
        found = endpoints.list_all(tx, board, human)
        return now, [Card(one, _present(one, now), lanes.get(one.id, {})) for one in found]

    now, found = await board.database.read(read)
    return render(
        request,
        "endpoints/index.html",
        status=status,
        nav="endpoints",
        path=link(request, "/endpoints"),
        live="/live/board",
        now=now,
        active=[card for card in found if card.endpoint.state == "active"],
        ended=[card for card in found if card.endpoint.state != "active"],
        at=at,
        problems=problems or Filled(),
        typed=typed or Filled(),
        once=fresh(),
        lease_words=lease_words,
    )


async def page(request: Request) -> Response:
    """One endpoint, whole."""
    return await whole(request)


async def whole(
    request: Request, status: int = 200, problems: Filled | None = None, typed: Filled | None = None, **more: Any
) -> Response:
    """The page of one endpoint, with what was refused beside its field."""
    board, human, ref = board_of(request), request.state.human, request.path_params["ref"]

    def read(tx: Tx) -> dict[str, Any]:
        now, endpoint = tx.now(), endpoints.get(tx, board, human, ref)
        every = endpoints.list_all(tx, board, human)
        lanes = {lane.shown: lane.total for lane in todos.counts(tx, board, human) if lane.endpoint_id == endpoint.id}
        return {
            "now": now,
            "endpoint": endpoint,
            "presence": _present(endpoint, now),
            "credentials": endpoints.credentials(tx, board, human, ref) if endpoint.state == "active" else [],
            "hooks": webhooks.list_all(tx, board, human, ref),
            "targets": [one.slug for one in every if one.id in endpoint.targets],
            "lanes": lanes,
        }

    values = await board.database.read(read)
    shown = {
        "made": None,
        "once": fresh(),
        "overlaps": OVERLAPS,
        "hook_url": f"{board.settings.public_url.rstrip('/')}/hooks/",
    }
    return render(
        request,
        "endpoints/page.html",
        status=status,
        nav="endpoints",
        path=link(request, f"/endpoints/{ref}"),
        live="/live/board",
        problems=problems or Filled(),
        typed=typed or Filled(),
        lease_words=lease_words,
        **{**shown, **values, **more},
    )


# --- edits ------------------------------------------------------------------------------------------------

Edit = Callable[[Tx, Board, Human, str, Form], Any]


def _lease(tx: Tx, board: Board, human: Human, ref: str, form: Form) -> Any:
    return endpoints.edit_lease(tx, board, human, ref, lease(text(form, FIELDS["lease"]), vending=False))


def _presence(tx: Tx, board: Board, human: Human, ref: str, form: Form) -> Any:
    value, typed = text(form, "presence"), text(form, "for").strip()
    seconds = None
    if typed:
        try:
            seconds = span(typed) // SECOND
        except ValueError:
            raise Refused(invalid("for", "is no length of time. Write 45m or 2h, or leave it out.")) from None
    chosen: Any = None if value == "shift" else value
    return endpoints.set_presence(tx, board, human, ref, chosen, seconds if chosen else None)


def _shift(tx: Tx, board: Board, human: Human, ref: str, form: Form) -> Any:
    return endpoints.set_shift(tx, board, human, ref, text(form, "shift").strip() or None)


def _name(tx: Tx, board: Board, human: Human, ref: str, form: Form) -> Any:
    return endpoints.set_display_name(tx, board, human, ref, text(form, "name"))


def _era(tx: Tx, board: Board, human: Human, ref: str, form: Form) -> Any:
    chosen: Any = text(form, "mcp_era") or None
    return endpoints.set_era(tx, board, human, ref, chosen)


def _revoke(tx: Tx, board: Board, human: Human, ref: str, _: Form) -> Any:
    return endpoints.revoke(tx, board, human, ref)


EDITS: Final[dict[str, Edit]] = {
    "lease": _lease, "presence": _presence, "shift": _shift, "name": _name, "era": _era, "revoke": _revoke,
}  # fmt: skip


async def edit(request: Request) -> Response:
    """One edit, from a card or from the endpoint's page."""
    word, ref = request.path_params["edit"], request.path_params["ref"]
    if word not in EDITS:
        raise Refused(MISSING)
    board, human, form = board_of(request), request.state.human, request.state.form

    def case(tx: Tx) -> Any:
        writable(endpoints.get(tx, board, human, ref), tx.now())  # reach and state are refused before any value (B42)
        return EDITS[word](tx, board, human, ref, form)

    on_card = text(form, "at") == "card"
    try:
        await board.database.write(case)
    except Refused as refused:
        problems = problem_of(refused.refusal, FIELDS[word])
        typed = Filled({key: text(form, key) for key in form})
        if not on_card:
            return await whole(request, 400, problems, typed)
        endpoint = await board.database.read(endpoints.get, board, human, ref)
        return await cards(request, 400, endpoint.id, problems, typed)
    said = "revoked" if word == "revoke" else "saved"
    back = "/endpoints" if on_card else f"/endpoints/{ref}"
    return RedirectResponse(link(request, f"{back}?said={said}"), 303)


async def rotate(request: Request) -> Response:
    """Another credential, shown once; sent again, the same form makes no third."""
    board, human, form, ref = board_of(request), request.state.human, request.state.form, request.path_params["ref"]
    overlap = text(form, FIELDS["rotate"])

    def make(tx: Tx) -> endpoints.Vended:
        seconds = int(overlap) if overlap in OVERLAPS else -1
        return endpoints.rotate(tx, board, human, ref, seconds)

    try:
        return await reveal(request, "rotate", make)
    except Refused as refused:
        return await whole(request, 400, problem_of(refused.refusal, FIELDS["rotate"]))


async def light(request: Request) -> Response:
    """Whether the newest credential was used: the light that turns green by itself."""
    board, human, ref = board_of(request), request.state.human, request.path_params["ref"]
    found = await board.database.read(endpoints.credentials, board, human, ref)
    seen = bool(found) and found[0].seen is not None
    return render(request, "endpoints/light.html", ref=ref, seen=seen)


# --- webhooks ---------------------------------------------------------------------------------------------


async def add_webhook(request: Request) -> Response:
    """A webhook; its secret is shown once, here."""
    board, human, form, ref = board_of(request), request.state.human, request.state.form, request.path_params["ref"]
    name, queue = text(form, "webhook_name"), text(form, "queue") or None

    def make(tx: Tx) -> webhooks.Made:
        return webhooks.create(tx, board, human, name=name, queue=queue, ref=ref)

    try:
        return await _webhook_made(request, "webhook", make)
    except Refused as refused:
        problems = Filled({FIELDS["webhook"]: problem_of(refused.refusal, "name")["name"]})
        return await whole(request, 400, problems, Filled(webhook_name=name, queue=queue or ""))


async def rotate_webhook(request: Request) -> Response:
    """Another secret of a webhook."""
    board, human = board_of(request), request.state.human
    ref, id_ = request.path_params["ref"], request.path_params["id"]
    return await _webhook_made(request, "webhook secret", lambda tx: webhooks.rotate(tx, board, human, id_, ref))


async def _webhook_made(request: Request, kind: str, make: Callable[[Tx], webhooks.Made]) -> Response:
    made = await once(request, kind, make, lambda _: f"/endpoints/{request.path_params['ref']}")
    if isinstance(made, Response):
        return made
    return await whole(request, made=(made.webhook, made.secret.reveal()))


async def delete_webhook(request: Request) -> Response:
    """End a webhook."""
    board, human = board_of(request), request.state.human
    ref, id_ = request.path_params["ref"], request.path_params["id"]
    await board.database.write(webhooks.delete, board, human, id_, ref)
    return RedirectResponse(link(request, f"/endpoints/{ref}?said=ended"), 303)


ROUTES: Final = [
    Route("/endpoints", signed_in(index)),
    Route("/endpoints/{ref}", signed_in(page)),
    Route("/endpoints/{ref}/light", signed_in(light)),
    Route("/endpoints/{ref}/rotate", signed_in(rotate), methods=["POST"]),
    Route("/endpoints/{ref}/webhooks", signed_in(add_webhook), methods=["POST"]),
    Route("/endpoints/{ref}/webhooks/{id}/rotate", signed_in(rotate_webhook), methods=["POST"]),
    Route("/endpoints/{ref}/webhooks/{id}/delete", signed_in(delete_webhook), methods=["POST"]),
    Route("/endpoints/{ref}/{edit}", signed_in(edit), methods=["POST"]),
]
