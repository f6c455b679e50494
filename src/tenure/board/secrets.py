"""Secrets: how they are drawn, spelled, checked and hashed, and what is derived from the server's own.

A secret is `tenure_<kind>_`, 43 characters of base 62 (256 random bits) and six of a checksum, so that a typing error
is known without asking the database. At rest there is only the SHA-256 of the whole. A `Secret` never prints itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import threading
import zlib
from pathlib import Path
from typing import Final, Literal

from tenure.errors import ConfigError

Kind = Literal["endpoint", "human", "session", "link", "friend"]
DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = tuple(first + second for first in DIGITS for second in DIGITS)
_SPELLED: Final = re.compile(r"tenure_(endpoint|human|session|link|friend)_[0-9A-Za-z]{49}")
LEAST_BYTES: Final = 32
_making: Final = threading.Lock()


class Secret(str):
    """A secret in clear, on its one way to who it is for. In logs and errors it shows nothing of itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def reveal(self) -> str:
        """The secret itself, as a plain string."""
        return str.__str__(self)


def draw(kind: Kind) -> Secret:
    """A new secret of this kind."""
    body = f"tenure_{kind}_{_base62(secrets.token_bytes(32), 43)}"
    return Secret(body + _checksum(body))


def well_spelled(text: str, kind: Kind) -> bool:
    """Whether `text` could be a secret of this kind: prefix, length and checksum."""
    return (
        _SPELLED.fullmatch(text) is not None
        and text.startswith(f"tenure_{kind}_")
        and hmac.compare_digest(text[-6:].encode(), _checksum(text[:-6]).encode())
    )


def digest(text: str) -> str:
    """What stands in the database for a secret: its SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()).to_bytes(4, "big"), 6)


def _base62(raw: bytes, length: int) -> str:
    """Two digits at a time: each claim spells a token."""
    number, pairs = int.from_bytes(raw, "big"), []
    while number:
        number, rest = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[rest])
    return "".join(reversed(pairs)).rjust(length, DIGITS[0])[-length:]


class Ring:
    """The server's own secrets, newest first (B12). What is derived names its secret by id: they can be rotated."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = {hashlib.sha256(b"id" + key).hexdigest()[:12]: key for key in keys}
        self.newest = next(iter(self._keys))

    def __repr__(self) -> str:
        return f"Ring({', '.join(self._keys)})"

    def knows(self, key_id: str) -> bool:
        """Whether a secret of that id is still on the ring."""
        return key_id in self._keys

    def derive(self, purpose: str, name: str, key_id: str | None = None) -> bytes:
        """32 bytes for a purpose and a name: the same for ever, and told by nobody without the ring.

        Raises KeyError when the secret has left the ring.
        """
        key = self._keys[key_id or self.newest]
        return hmac.new(key, f"{purpose}:{name}".encode(), hashlib.sha256).digest()

    def lease_token(self, claim_id: str, key_id: str | None = None) -> Secret:
        """The lease token of a claim: made again for a repeated request, stored nowhere."""
        return Secret("tl_" + _base62(self.derive("lease", claim_id, key_id), 43))


def ring_of(text: str) -> Ring:
    """The ring in `TENURE_SECRET`: secrets of 32 bytes or more, newest first, separated by commas or spaces."""
    keys = tuple(part.encode() for part in re.split(r"[,\s]+", text.strip()) if part)
    if not keys or any(len(key) < LEAST_BYTES for key in keys):
        hint = f"Use this one, made just now, on every server of the board: TENURE_SECRET={new_key()}"
        raise ConfigError("TENURE_SECRET", "***", f"needs secrets of {LEAST_BYTES} characters or more.", hint)
    return Ring(keys)


def ring_beside(path: Path) -> Ring:
    """The ring in a file beside a SQLite database, made at the first start and readable by its owner alone.

    Raises ConfigError for a file that holds none: it is not made anew, for what was derived from the lost one is void.
    """
    try:
        with open(path, "x", opener=private, encoding="ascii") as file:
            file.write(new_key() + "\n")
    except FileExistsError:
        pass
    try:
        return ring_of(path.read_text(encoding="ascii"))
    except (ConfigError, UnicodeDecodeError):
        hint = f"Put back the file that was there; or delete {path}, and give every webhook a new secret."
        raise ConfigError("secret", str(path), "is no file with the board's secret in it.", hint) from None


def new_key() -> str:
    """A secret for a server, in the alphabet that environments and files take unharmed."""
    return _base62(secrets.token_bytes(32), 43)


def private(path: str, flags: int) -> int:
    """An opener of files that only their owner may read."""
    return os.open(path, flags, 0o600)


def make_private(path: str | Path) -> None:
    """Make the file that SQLite is about to make, for its owner alone; one that is there is not touched."""
    # Closing any descriptor of a file drops all locks that this process holds on it, and SQLite's are such locks:
    # without them another process takes itself for the last one, and deletes the log with what was committed.
    with _making, contextlib.suppress(OSError):  # SQLite says it better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
