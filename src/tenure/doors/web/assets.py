"""The files that pages ask for: stylesheet, scripts, icon. Read once; their address changes with what is in them."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """One file, its media type, and the part of its address that says what is in it."""

    body: bytes
    media_type: str
    version: str


def _read() -> dict[str, Asset]:
    found = {}
    for file in files("tenure.doors.web").joinpath("static").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            found[file.name] = Asset(body, kind, hashlib.sha256(body).hexdigest()[:12])
    return found


ASSETS: Final = _read()


def address(name: str) -> str:
    """The path of an asset below the page's root."""
    return f"/static/{ASSETS[name].version}/{name}"


async def serve(request: Request) -> Response:
    """An asset; under another version's address it is the present one, not to be kept."""
    asset = ASSETS.get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    current = asset.version == request.path_params["version"]
    kept = _FOR_EVER if current else "no-cache"
    return Response(asset.body, media_type=asset.media_type, headers={"Cache-Control": kept})
