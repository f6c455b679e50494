"""Reading a request: who it says it is, and its body with a limit, whether or not it names a length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request

from tenure.board.access import UNAUTHENTICATED
from tenure.board.refused import Refused
from tenure.doors.wire.strict import parse_object
from tenure.rules.refusal import Refusal

KIB: Final = 1024
_BEARER: Final = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
_JSON: Final = re.compile(r'application/json *(?:; *charset *= *"?utf-8"? *)?', re.IGNORECASE)


class Gone(Exception):
    """The caller hung up before its request was whole."""


def bearer(request: Request) -> str:
    """The secret in the one `Authorization` header. Raises Refused for none, several, or another scheme."""
    given = request.headers.getlist("authorization")
    found = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        raise Refused(UNAUTHENTICATED)
    return found[1]


async def body(request: Request, limit: int) -> bytes:
    """The whole body. Raises Refused as soon as it is known to be larger than `limit` bytes, and Gone."""
    told = request.headers.get("content-length")
    if told is not None and int(told) > limit:
        raise Refused(_too_large(limit))
    read = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        read += message.get("body", b"")
        if len(read) > limit:
            raise Refused(_too_large(limit))
        if not message.get("more_body"):
            return bytes(read)


def _too_large(limit: int) -> Refusal:
    return Refusal("payload_too_large", f"The body may have {limit} bytes at most here.", {"limit_bytes": limit})


def json_object(request: Request, raw: bytes) -> dict[str, Any] | Refusal:
    """The object in a body that says it is JSON, uncompressed; or what is wrong with it."""
    kind = request.headers.get("content-type")
    if (raw or kind is not None) and not _JSON.fullmatch(kind or ""):
        return Refusal("unsupported_media_type", "Send JSON, with Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        return Refusal("unsupported_media_type", "Send the body uncompressed, without Content-Encoding.")
    if not raw:
        return Refusal("invalid_argument", "The body is empty, and must be a JSON object.")
    return parse_object(raw)


def foreign(request: Request, origins: Sequence[str]) -> Refusal | None:
    """The refusal of a request that a page of another origin makes a browser send."""
    origin = request.headers.get("origin")
    if origin is None or origin in origins:
        return None
    return Refusal("forbidden", "This request comes from a page of another origin, which may not use the board.")
