"""HTTP answers: JSON, problems, and the headers that stand beside them. Must not know what was asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from tenure.board.board import Rate
from tenure.doors.wire.refusals import PROBLEM, STATUS, problem, spelled_problem
from tenure.rules.bucket import Taken
from tenure.rules.refusal import Refusal


class Json(Response):
    """JSON as UTF-8, with nothing escaped that need not be."""

    media_type: str | None = "application/json"

    def render(self, content: Any) -> bytes:
        return _ENCODER.encode(content).encode()


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def refused(refusal: Refusal) -> Json:
    """A refusal as an answer, after RFC 9457."""
    return Json(problem(refusal), STATUS[refusal.code], _beside(refusal), PROBLEM)


def unrouted(status: int, detail: str, code: str, headers: Mapping[str, str] | None = None) -> Json:
    """A refusal that no use case knows, such as that of a method."""
    return Json(spelled_problem(status, code, detail), status, headers, PROBLEM)


def _beside(refusal: Refusal) -> dict[str, str]:
    if refusal.code == "unauthenticated":
        return {"WWW-Authenticate": 'Bearer realm="tenure"'}
    if "retry_after_seconds" in refusal.details:
        return {"Retry-After": str(math.ceil(refusal.details["retry_after_seconds"]))}
    return {}


def etag(revision: int) -> str:
    """The entity tag of a revision."""
    return f'"{revision}"'


def rate_headers(name: str, rate: Rate, taken: Taken) -> dict[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers-11: what is left, and after how long there is all again."""
    full_seconds = math.ceil((rate.burst - taken.remaining) / rate.per_second)
    return {
        "RateLimit-Policy": f'"{name}";q={rate.burst};w={math.ceil(rate.burst / rate.per_second)}',
        "RateLimit": f'"{name}";r={max(0, math.floor(taken.remaining))};t={full_seconds}',
    }
