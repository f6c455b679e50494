"""Ids: drawn here, and ordered by time, so that lists by id are lists by age and indexes grow at their end."""

from __future__ import annotations

import itertools
import secrets
from typing import Final

DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_TIME, _TURN, _CHANCE = 10, 3, 13

_turns = itertools.count(secrets.randbelow(1000))


def new(kind: str, now: int) -> str:
    """A new id such as `td_01q9…`: milliseconds, a turn that keeps one process's ids in order, 65 random bits."""
    return f"{kind}_{_spelled(now, _TIME)}{_spelled(next(_turns), _TURN)}{_spelled(secrets.randbits(65), _CHANCE)}"


def _spelled(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, 32)
        digits.append(DIGITS[rest])
    return "".join(reversed(digits))
