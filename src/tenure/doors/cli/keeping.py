"""What the command line keeps for its user: tokens by server, and the credentials of endpoints that it vended (B48a).

One file, `$XDG_CONFIG_HOME/tenure/credentials.json`, readable by its owner alone and replaced whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tenure.errors import ConfigError

DEFAULT_URL: Final = "http://127.0.0.1:8420"


def place() -> Path:
    """Where the file is, or would be."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    return folder / "tenure" / "credentials.json"


def server() -> str:
    """The board's address: TENURE_URL, else the one that was signed in to last, else this machine's."""
    return (os.environ.get("TENURE_URL") or read().get("server") or DEFAULT_URL).rstrip("/")


def read() -> dict[str, Any]:
    """What is kept; nothing where there is no file yet. Raises ConfigError for one that can't be read."""
    path = place()
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError("credentials", str(path), f"can't be read: {error}.", "Mend or remove it.") from None
    if not _well_shaped(told):
        hint = "Mend or remove it."
        raise ConfigError("credentials", str(path), "can't be read: it is not of the shape that is written here.", hint)
    return dict(told)


def _well_shaped(told: Any) -> bool:
    """Whether it is what is written here: objects in objects, down to each endpoint's, and text in them."""
    if not _holds_text(told, besides="servers"):
        return False
    servers = told.get("servers", {})
    if not isinstance(servers, dict) or not all(_holds_text(one, besides="endpoints") for one in servers.values()):
        return False
    endpoints = [one.get("endpoints", {}) for one in servers.values()]
    return all(isinstance(one, dict) and all(_holds_text(kept) for kept in one.values()) for one in endpoints)


def _holds_text(told: Any, besides: str = "") -> bool:
    """Whether it is an object of texts, but for one field."""
    return isinstance(told, dict) and all(isinstance(value, str) for key, value in told.items() if key != besides)


def keep_token(url: str, token: str, name: str) -> None:
    """Keep a human's token for a server, which is the one to ask from now on."""
    with _changing() as told:
        told["server"] = url
        _servers(told, url).update(token=token, human=name)


def drop_token(url: str) -> bool:
    """Forget the token for a server; whether there was one."""
    if _servers(read(), url).get("token") is None:
        return False
    with _changing() as told:
        _servers(told, url).pop("human", None)
        return _servers(told, url).pop("token", None) is not None


def token(url: str) -> str | None:
    """The token for a server: TENURE_TOKEN, else the one kept."""
    return os.environ.get("TENURE_TOKEN") or _servers(read(), url).get("token")


def human(url: str) -> str | None:
    """Whose token it is, as it was when it was kept."""
    found = _servers(read(), url).get("human")
    return found if isinstance(found, str) else None


def keep_credential(url: str, slug: str, endpoint_id: str, name: str, credential: str) -> None:
    """Keep an endpoint's credential, so that `tenure work` finds it."""
    with _changing() as told:
        kept = _servers(told, url).setdefault("endpoints", {})
        kept[slug] = {"id": endpoint_id, "name": name, "credential": credential}


def keep_shown(url: str, slug: str, endpoint_id: str, name: str, credential: str) -> str:
    """The same for a credential that is told just once, kept or not: where it is kept now, or why it is not."""
    try:
        keep_credential(url, slug, endpoint_id, name, credential)
    except ConfigError as error:
        return f"It is not kept here, so note it down: {error}"
    return f"It is kept in {place()}."


def drop_credential(url: str, slug: str) -> None:
    """Forget the credential of an endpoint that has ended."""
    if slug in _servers(read(), url).get("endpoints", {}):
        with _changing() as told:
            _servers(told, url).get("endpoints", {}).pop(slug, None)


def credential(url: str, endpoint: str) -> str | None:
    """The credential of an endpoint named by slug, id, or a name that one kept endpoint has."""
    given = os.environ.get("TENURE_ENDPOINT_CREDENTIAL")
    if given:
        return given
    kept: dict[str, dict[str, str]] = _servers(read(), url).get("endpoints", {})
    exact = [one for slug, one in kept.items() if endpoint in (slug, one.get("id"))]
    named = exact or [one for one in kept.values() if one.get("name") == endpoint]
    return named[0].get("credential") if len(named) == 1 else None


def _servers(told: dict[str, Any], url: str) -> dict[str, Any]:
    found: dict[str, Any] = told.setdefault("servers", {}).setdefault(url, {})
    return found


@contextlib.contextmanager
def _changing() -> Iterator[dict[str, Any]]:
    """What is kept, to be changed; it is written at the end. Commands that run at once wait for each other."""
    path = place().with_suffix(".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise ConfigError("credentials", str(place()), f"can't be written: {error.strerror}.") from None
    with lock:
        if sys.platform != "win32":
            import fcntl

            with contextlib.suppress(OSError):  # a file system that knows no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        told = read()
        yield told
        _write(told)


def _write(told: dict[str, Any]) -> None:
    path = place()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".credentials")  # made with mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=2)
            file.write("\n")
        Path(name).replace(path)
    except OSError as error:
        raise ConfigError("credentials", str(path), f"can't be written: {error.strerror}.") from None
