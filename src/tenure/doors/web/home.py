"""The overview: what needs an eye, on the board and among the runs, what comes next, and what happened last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tenure.board import audit, endpoints, friends, todos
from tenure.board.database import Tx
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.rendering import render
from tenure.doors.web.sources import Source
from tenure.errors import TenureError
from tenure.rules.instant import MINUTE
from tenure.scheduler.overview import Overview, overview
from tenure.scheduler.records import Records

LAST: Final = 10
# So long without a call, an endpoint that has ready todos is called silent.
SILENT: Final = 10 * MINUTE


class Store(NamedTuple):
    """One scheduler's store at one look; `trouble` where it can't be asked."""

    source: Source
    seen: Overview | None
    trouble: str
    titles: Mapping[str, str] = {}


async def page(request: Request) -> Response:
    """The overview."""
    board, human = board_of(request), request.state.human

    def read(tx: Tx) -> dict[str, Any]:
        now, totals = tx.now(), dict[str, int]()
        ready: dict[str, int] = {}
        for lane in todos.counts(tx, board, human):
            totals[lane.shown] = totals.get(lane.shown, 0) + lane.total
            if lane.shown == "pending":
                ready[lane.endpoint_id] = lane.total
        mine = [one for one in endpoints.list_all(tx, board, human) if one.state == "active"]
        return {
            "now": now,
            "totals": totals,
            "endpoints": mine,
            "silent": [
                (one, ready[one.id])
                for one in mine
                if one.id in ready and (one.seen is None or now - one.seen > SILENT)
            ],
            "ending": [one for one in mine if one.expires is not None and one.expires - now < 24 * 60 * MINUTE],
            "asked": [
                one for one in friends.list_all(tx, board, human) if one.state == "requested" and one.side == "approver"
            ],
            "entries": audit.list_page(tx, board, human, limit=LAST),
        }

    values = await board.database.read(read)
    stores = [await _store(request, source) for source in request.app.state.sources.values()]
    return render(request, "overview.html", nav="overview", live="/live/board", stores=stores, **values)


async def _store(request: Request, source: Source) -> Store:
    owned = None if source.owned is None else await source.owned(request.state.human)

    async def ask(records: Records) -> Overview:
        return await overview(records, [job for job in await records.jobs() if owned is None or job.name in owned])

    try:
        return Store(source, await source.ask(ask), "", await source.titles_for(request.state.human))
    except TenureError as error:
        return Store(source, None, str(error))


ROUTES: Final = [Route("/", signed_in(page))]
