"""A refusal of the board as a value: a code that programs match and a sentence that people and models read."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Code = Literal[
    "invalid_argument",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "precondition_failed",
    "payload_too_large",
    "unsupported_media_type",
    "rate_limited",
    "unavailable",
]


class Refusal(NamedTuple):
    """What was refused: `message` says what, why and what to do; `details` are fields for programs, never secrets."""

    code: Code
    message: str
    details: dict[str, Any] = {}  # noqa: RUF012 - never changed; a NamedTuple has no factories


def invalid(field: str, why: str, **details: Any) -> Refusal:
    """`invalid_argument` that names its field; `why` continues the sentence that the field's name begins."""
    return Refusal("invalid_argument", f"{field} {why}", {"field": field, **details})


def conflict(message: str, reason: str = "", **details: Any) -> Refusal:
    """`conflict`, with the reason that programs match where there is one."""
    return Refusal("conflict", message, {**({"reason": reason} if reason else {}), **details})


# Another's and never existed are one answer, byte for byte (B26): it names nothing that was asked for.
MISSING = Refusal("not_found", "There is nothing here by that name, or it is not yours.")
