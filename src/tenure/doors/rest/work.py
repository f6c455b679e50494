"""`/work/v1/{verb}`: the door for programs that speak no MCP. Its verbs, arguments and answers are the tools' (B41a).

A call is one transaction: the credential is read in the one that does the work. What this door remembers of a
credential is only in which bucket its calls are counted; it opens nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tenure.board.access import Worker, worker_by_credential
from tenure.board.board import Board
from tenure.board.buckets import spend
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.secrets import digest
from tenure.doors.rest import answers, reading
from tenure.doors.wire.arguments import Arguments, ClaimNext, Labelled
from tenure.doors.wire.verb import Batch, Verb, call, read
from tenure.doors.wire.verbs import VERBS
from tenure.rules import bounds
from tenure.rules.refusal import MISSING, Refusal, invalid

PREFIX: Final = "/work/v1/"
BODY_BYTES: Final = 4 * 1024 * 1024
# So many calls may wait at one server for one endpoint.
WAITING_LIMIT: Final = 200
REMEMBERED: Final = 10_000


class ClaimMany(ClaimNext):
    """Programs may claim more at once than a model."""

    max: Annotated[int, Field(ge=1, le=bounds.BATCH)] = 1


class Items(Labelled):
    """A batch; its items are judged one by one."""

    items: Annotated[list[Any], Field(min_length=1, max_length=bounds.BATCH)]


_MODELS: Final[Mapping[str, type[Arguments]]] = {"claim_next": ClaimMany}


class WorkDoor:
    """The ASGI app of `/work/v1`. `drain()` ends the calls that wait, with a clean "nothing"."""

    def __init__(self, board: Board, origins: Sequence[str]) -> None:
        self._board, self._origins = board, origins
        self._endpoints: OrderedDict[str, str] = OrderedDict()  # of credentials' digests, for the bucket
        self._waiting: dict[asyncio.Event, str] = {}
        self._draining = False
        board.notices.on_deaf.append(self._end_waiting)

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def drain(self) -> None:
        """End all waiting calls, and later ones at once: this server stops."""
        self._draining = True
        self._end_waiting()

    def _end_waiting(self) -> None:
        for gone in self._waiting:
            gone.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as error:
            response = answers.refused(error.refusal)
        except reading.Gone:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if (stranger := reading.foreign(request, self._origins)) is not None:
            raise Refused(stranger)
        name = request.url.path.removeprefix(PREFIX)
        verb = VERBS.get(name)
        if verb is None:
            raise Refused(MISSING)
        if request.method != "POST":
            detail = "A verb is called by POST."
            return answers.unrouted(405, detail, "method_not_allowed", {"Allow": "POST"})
        credential = reading.bearer(request)
        try:
            return await self._called(request, verb, credential)
        except Refused as error:
            if error.refusal.code == "unauthenticated":  # or it could go on emptying the bucket of those who are let in
                self._endpoints.pop(digest(credential), None)
            raise

    async def _called(self, request: Request, verb: Verb, credential: str) -> Response:
        endpoint_id = await self._count(credential)
        async with self._only_if_let_in(credential):
            raw = await reading.body(request, BODY_BYTES)
        asked = _asked(verb, reading.json_object(request, raw))

        def worker_of(tx: Tx) -> Worker:
            return worker_by_credential(tx, self._board, credential)

        if isinstance(asked, Arguments) and verb.waits(asked):
            with self._waiting_for(request, endpoint_id) as gone:
                return answers.Json(await call(self._board, verb, worker_of, asked, gone))
        return answers.Json(await call(self._board, verb, worker_of, asked))

    async def _count(self, credential: str) -> str:
        """Count the call in its endpoint's bucket. Raises Refused; a credential that is new here is asked for first."""
        key = digest(credential)
        endpoint_id = self._endpoints.get(key)
        if endpoint_id is None:
            worker = await self._board.database.read(worker_by_credential, self._board, credential)
            self._endpoints[key] = endpoint_id = worker.endpoint.id
            if len(self._endpoints) > REMEMBERED:
                self._endpoints.popitem(last=False)
        async with self._only_if_let_in(credential):
            await spend(self._board, "worker", endpoint_id)
        return endpoint_id

    @contextlib.asynccontextmanager
    async def _only_if_let_in(self, credential: str) -> AsyncIterator[None]:
        """What the block refuses is said to who is let in; whoever is so no more is told that alone (B27)."""
        try:
            yield
        except Refused:
            await self._board.database.read(worker_by_credential, self._board, credential)
            raise

    @contextlib.contextmanager
    def _waiting_for(self, request: Request, endpoint_id: str) -> Iterator[Awaitable[object]]:
        """While a call may wait: what is done when nobody is there any more to be told. Raises Refused for too many."""
        if list(self._waiting.values()).count(endpoint_id) >= WAITING_LIMIT:
            raise Refused(_TOO_MANY)
        gone = asyncio.Event()
        self._waiting[gone] = endpoint_id
        if self._draining:
            gone.set()
        hearing, leaving = asyncio.create_task(_hear(request, gone)), asyncio.create_task(gone.wait())
        try:
            yield leaving
        finally:
            del self._waiting[gone]
            hearing.cancel()
            leaving.cancel()


async def _hear(request: Request, gone: asyncio.Event) -> None:
    """Set `gone` when the caller hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _asked(verb: Verb, told: dict[str, Any] | Refusal) -> Arguments | Batch | Refusal:
    """What a body asks: one thing, or with `items` many."""
    if isinstance(told, Refusal):
        return told
    if "items" not in told or verb.many is None or verb.item is None:
        return read(_MODELS.get(verb.name, verb.arguments), told)
    batch = read(Items, told)
    if isinstance(batch, Refusal):
        return batch
    return Batch(verb.many, [_item(verb.item, item) for item in batch.items], batch.worker)


def _item(model: type[Arguments], raw: Any) -> Arguments | Refusal:
    return read(model, raw) if isinstance(raw, dict) else invalid("items", "must hold objects.")


_TOO_MANY: Final = Refusal(
    "rate_limited",
    f"{WAITING_LIMIT} calls of this endpoint wait already. Try again in a moment, or wait with fewer.",
    {"retry_after_seconds": 5},
)
