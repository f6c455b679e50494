"""Ids: drawn here, and ordered by time, so that lists by id are lists by age and indexes grow at their end."""

from __future__ import annotations

import itertools
import secrets
from typing import Final

DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_PAIRS: Final = tuple(first + second for first in DIGITS for second in DIGITS)
_TURN_BITS, _CHANCE_BITS, _BITS = 15, 65, 130

_turns = itertools.count(secrets.randbelow(1000))


def new(kind: str, now: int) -> str:
    """A new id such as `td_01q9…`: milliseconds, a turn that keeps one process's ids in order, 65 random bits."""
    turn = next(_turns) % (1 << _TURN_BITS)
    number = (now << _TURN_BITS | turn) << _CHANCE_BITS | secrets.randbits(_CHANCE_BITS)
    return f"{kind}_" + "".join([_PAIRS[number >> shift & 1023] for shift in range(_BITS - 10, -1, -10)])
