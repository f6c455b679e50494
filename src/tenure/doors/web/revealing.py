"""What is shown once: secrets, and a new credential with settings to paste and the light that tells of its first use.

The form that makes one carries a number of its own. Sent again, by a reload or a second click, it neither makes another
nor shows the first again (case 46).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tenure.board.database import Tx
from tenure.board.endpoints import Vended
from tenure.board.repeats import Repeat
from tenure.board.secrets import Secret
from tenure.doors.web.forms import text
from tenure.doors.web.guard import board_of
from tenure.doors.web.rendering import link, render
from tenure.doors.wire.clients import CLIENTS, VARIABLE, settings

KINDS: Final = {"vend": "was vended", "rotate": "has a new credential", "collect": "is yours to use"}
T = TypeVar("T")


def fresh() -> str:
    """What makes a form one form: sent twice, it still does its work once (case 46)."""
    return secrets.token_hex(16)


async def once(request: Request, kind: str, make: Callable[[Tx], T], where: Callable[[T], str]) -> T | Response:
    """Make it; or, where this very form has made it, the way to where it is. Raises Refused as `make` does."""
    board, human = board_of(request), request.state.human
    number = text(request.state.form, "once") or None

    def case(tx: Tx) -> T | Response:
        repeat = Repeat(tx, human.id, f"web {kind}", number, [request.url.path])
        if repeat.answer is not None:
            return RedirectResponse(link(request, f"{repeat.answer[0]}?said=once"), 303)
        made = make(tx)
        repeat.answered([where(made)])
        return made

    return await board.database.write(case)


async def reveal(request: Request, kind: str, make: Callable[[Tx], Vended]) -> Response:
    """Make it, once, and show it. Raises Refused as `make` does."""
    made = await once(request, kind, make, lambda vended: f"/endpoints/{vended.endpoint.slug}")
    if isinstance(made, Response):
        return made
    return shown(request, kind, made.endpoint.slug, made.endpoint.name, made.credential)


def shown(request: Request, kind: str, slug: str, name: str, credential: Secret, *, own: bool = True) -> Response:
    """The page with the credential. `own`: the endpoint is this human's, not a friend's."""
    url = board_of(request).settings.public_url.rstrip("/")
    clear = credential.reveal()
    pasted = [
        (key, client.title, str(client.path), json.dumps(settings(client, slug, url, stdio=False), indent=2))
        for key, client in CLIENTS.items()
    ]
    shell = f"export TENURE_URL={url}\nexport {VARIABLE}={clear}"
    curl = (
        f"curl {url}/work/v1/claim_next -H 'Authorization: Bearer {clear}' "
        "-H 'Content-Type: application/json' -d '{\"wait_seconds\": 20}'"
    )
    return render(
        request,
        "endpoints/revealed.html",
        nav="endpoints" if own else "friends",
        path=link(request, f"/endpoints/{slug}" if own else "/friends"),
        headline=f"{name} {KINDS[kind]}",
        slug=slug,
        own=own,
        credential=clear,
        mcp_url=f"{url}/mcp/{slug}",
        pasted=pasted,
        shell=shell,
        curl=curl,
        seen=False,
        ref=slug,
    )
