"""What stands before every route of `/api/v1`, in the order of refusals that the page gives (B42).

Authentication, rate, size, media type, JSON and its keys are settled here, for all routes alike; reach, state,
If-Match and values are the use case's. A route declares a model for its body, parameters, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from fastapi import Depends
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from tenure.board import buckets
from tenure.board.access import Human, human_by_token
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.repeats import Repeat
from tenure.doors.rest import answers, reading
from tenure.doors.wire.refusals import of_errors, unknown_key
from tenure.rules import bounds
from tenure.rules.bucket import Taken
from tenure.rules.refusal import MISSING, Refusal, invalid
from tenure.rules.todo_content import request_id as wrong_id

BODY_BYTES: Final = 64 * 1024
# For creating todos and giving results (B43).
LARGE_BODY_BYTES: Final = 512 * 1024
ID_CHARS: Final = 200
_TAG: Final = re.compile('"([0-9]{1,15})"')

P = ParamSpec("P")
T = TypeVar("T")
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Kind = Literal["reads", "writes"]


class Asked:
    """Who asks, of which board; and what the request's headers say to the use case."""

    def __init__(self, request: Request, board: Board, human: Human) -> None:
        self.board, self.human, self._request = board, human, request

    async def read(self, case: Callable[Concatenate[Tx, Board, Human, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case that only reads."""
        return await self.board.database.read(case, self.board, self.human, *args, **kwargs)

    async def write(self, case: Callable[Concatenate[Tx, Board, Human, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a use case that writes."""
        return await self.board.database.write(case, self.board, self.human, *args, **kwargs)

    async def create(
        self,
        make: Callable[[Tx, Board, Human], tuple[str, T]],
        again: Callable[[Tx, Board, Human, str], T],
    ) -> tuple[T, bool]:
        """Run a use case that makes something, once per Idempotency-Key; (what it is, whether it was there before).

        make: answers with the id of what was made, and what to tell. again: tells of it by that id.
        """
        request = self._request
        key, arguments = _idempotency_key(request), await request.json()

        def case(tx: Tx) -> tuple[T, bool]:
            try:
                repeat = Repeat(tx, self.human.id, f"{request.method} {request.url.path}", key, arguments)
            except Refused as error:
                raise Refused(error.refusal._replace(message=_REUSED)) from None
            if repeat.answer is not None:
                return again(tx, self.board, self.human, repeat.answer[0]), True
            made, told = make(tx, self.board, self.human)
            repeat.answered([made])
            return told, False

        return await self.board.database.write(case)

    @property
    def revisions(self) -> list[int] | None:
        """The revisions that If-Match names; None without it, or for `*`. An unknown or weak tag matches nothing."""
        given = self._request.headers.getlist("if-match")
        if not given or "*" in given:
            return None
        tags = (_TAG.fullmatch(tag.strip()) for line in given for tag in line.split(","))
        return [int(tag[1]) for tag in tags if tag]


def _asked(request: Request) -> Asked:
    found: Asked = request.state.asked
    return found


# What a route's function takes first.
Who = Annotated[Asked, Depends(_asked)]


def large(endpoint: Endpoint) -> Endpoint:
    """Mark a route whose body may be large."""
    endpoint.body_bytes = LARGE_BODY_BYTES  # type: ignore[attr-defined]
    return endpoint


class Gate(APIRoute):
    """A route of `/api/v1`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()
        limit = getattr(self.endpoint, "body_bytes", BODY_BYTES)
        names = [field.alias for field in self.dependant.query_params]
        model = self.body_field.field_info.annotation if self.body_field is not None else None
        known = list(getattr(model, "model_fields", ()))

        async def handle(request: Request) -> Response:
            beside: dict[str, str] = {}
            try:
                await _enter(request, beside)
                raw = await reading.body(request, limit)
                if model is not None:
                    _give(request, reading.json_object(request, raw))
                else:
                    _check_empty(raw)
                _check_names(request, names)
                response = await inner(request)
            except Refused as error:
                response = answers.refused(error.refusal)
            except RequestValidationError as error:
                response = answers.refused(_wrong(error, known))
            except reading.Gone:
                response = Response(status_code=400)  # nobody reads it
            response.headers.update(beside)
            return response

        return handle


async def _enter(request: Request, beside: dict[str, str]) -> None:
    """Authentication, then rate. Raises Refused; what is left of the rate is put into `beside`."""
    board: Board = request.app.state.board
    if (stranger := reading.foreign(request, request.app.state.origins)) is not None:
        raise Refused(stranger)
    kind: Kind = "reads" if request.method == "GET" else "writes"
    rate = getattr(board.settings, kind)
    human, taken = await board.database.write(enter, board, reading.bearer(request), kind)
    beside.update(answers.rate_headers(kind, rate, taken))
    if not taken.allowed:
        raise Refused(buckets.refusal(taken))
    request.state.asked = Asked(request, board, human)


def enter(tx: Tx, board: Board, token: str, kind: Kind) -> tuple[Human, Taken]:
    """Who a token belongs to, and a place in their bucket of this kind, if there is one."""
    human = human_by_token(tx, board, token)
    rate = getattr(board.settings, kind)
    return human, buckets.take(tx, board, f"{kind}:{human.id}", rate)


def _give(request: Request, value: dict[str, Any] | Refusal) -> None:
    """Hand the parsed body to FastAPI, which would parse it less strictly."""
    if isinstance(value, Refusal):
        raise Refused(value)
    request._body, request._json = b"{}", value  # noqa: SLF001 - there is no other way to hand them over


def _check_empty(raw: bytes) -> None:
    if raw.strip() not in (b"", b"{}"):
        raise Refused(Refusal("invalid_argument", "This takes no body; send none, or {}."))


def _check_names(request: Request, known: list[str]) -> None:
    """Ids that no database can hold name nothing; parameters that nothing reads are refused, so are repeated ones."""
    if not all(text.isprintable() and len(text) <= ID_CHARS for text in request.path_params.values()):
        raise Refused(MISSING)
    seen: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Refused(unknown_key(name, known))
        if name in seen:
            raise Refused(invalid(name, "stands twice in the query; give it once."))
        if not value.isprintable():
            raise Refused(invalid(name, "holds a character that is none."))
        seen.add(name)


def _wrong(error: RequestValidationError, known: list[str]) -> Refusal:
    return of_errors(({**one, "loc": one["loc"][1:] or one["loc"]} for one in error.errors()), known)


def _idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key of a creation. Raises Refused for one that can't be kept."""
    key = request.headers.get("idempotency-key")
    if key is not None and wrong_id(key):
        raise Refused(invalid("Idempotency-Key", _KEY))
    return key


_REUSED: Final = "This Idempotency-Key was sent before with another body. Draw a new one for each creation."
_KEY: Final = "must have {} to {} letters, digits or signs; draw it at random for each creation.".format(
    *bounds.REQUEST_ID_CHARS
)
