"""JSON as the doors take it: one reading of every text, or a refusal that says what is wrong and where.

Python's own parser lets pass what other programs read otherwise: duplicate keys, NaN, half a surrogate pair, numbers
without end. What two readers may read in two ways is refused here. This module knows nothing of the board.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, Final

from tenure.rules.bounds import JSON_DEPTH
from tenure.rules.refusal import Refusal

DEPTH: Final = JSON_DEPTH
# Whole numbers that every common reader keeps exactly are within these; larger ones belong into a string.
_LEAST, _MOST = -(2**63), 2**64 - 1
_DIGITS: Final = len(str(_MOST))
# Strings are stepped over whole; neither part of the pattern can be read in two ways, so that it never goes back.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")


class NotJson(ValueError):
    """What is wrong with the text, as the end of a sentence."""


def parse(raw: bytes) -> Any:
    """The value that `raw` spells. Raises NotJson."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise NotJson(f"is not UTF-8 (byte {error.start})") from None
    # Deeper nesting needs more brackets than DEPTH; most texts have fewer, and need no look at each of their parts.
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _check_depth(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"is no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    if "\\u" in text:
        _check_text(value)
    return value


def parse_object(raw: bytes) -> dict[str, Any] | Refusal:
    """The object that a body spells, or the refusal that says what else it is."""
    try:
        value = parse(raw)
    except NotJson as error:
        return Refusal("invalid_argument", f"The body {error}.")
    if isinstance(value, dict):
        return value
    return Refusal("invalid_argument", f"The body must be a JSON object, and is {_named(value)}.")


def _named(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise NotJson(f"has the key {json.dumps(twice[:64])} twice in one object")
    return value


def _constant(word: str) -> Any:
    raise NotJson(f"holds {word}, which is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) <= _DIGITS + 1 and _LEAST <= (value := int(digits)) <= _MOST:
        return value
    raise NotJson("holds a whole number of more than 64 bits; send it as a string")


def _fraction(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise NotJson("holds a number that is too large; send it as a string")
    return value


def _check_depth(text: str) -> None:
    """Count the nesting before the parser recurses into it."""
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += _STEP.get(found[0], 0)
        if depth > DEPTH:
            raise NotJson(f"is nested deeper than {DEPTH} levels")


def _check_text(value: Any) -> None:
    """Refuse what only an escape can spell: NUL, which PostgreSQL keeps in no text, and half of a surrogate pair."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text if found := _UNFIT.search(text):
                raise NotJson(f"holds U+{ord(found[0]):04X} in a string, which is no character")
            case list() as items:
                waiting += items
            case dict() as fields:
                waiting += (*fields, *fields.values())
            case _:
                pass


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_whole, parse_float=_fraction
)
