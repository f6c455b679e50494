"""One spelling of every refusal: for programs a code and fields, for people and models a sentence.

Over HTTP it is a problem of RFC 9457; in a tool's result, and for one item of a batch, the plain `fault`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from tenure.rules.refusal import Code, Refusal, invalid

STATUS: Final[Mapping[Code, int]] = {
    "invalid_argument": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "precondition_failed": 412,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "unavailable": 503,
}
PROBLEM: Final = "application/problem+json"
# What a bug of ours looks like from outside: no word of where or why, both are in the log.
BROKEN: Final = "The board failed to answer this; the fault is the board's. Its log has the details, by the request id."


def fault(refusal: Refusal) -> dict[str, Any]:
    """The refusal as an object: `code`, `message`, and the fields for programs."""
    return {**refusal.details, "code": refusal.code, "message": refusal.message}


def problem(refusal: Refusal) -> dict[str, Any]:
    """The refusal as a problem. `code` says what kind it is, so `type` adds nothing and is `about:blank`."""
    return spelled_problem(STATUS[refusal.code], refusal.code, refusal.message, refusal.details)


def spelled_problem(status: int, code: str, detail: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A problem of any status, for what is refused before or after all use cases."""
    title = HTTPStatus(status).phrase
    return {**(more or {}), "type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}


def check(value: Any) -> Any:
    """For a model's validator: the value that a rule found good, or its refusal, carried through the model."""
    if isinstance(value, Refusal):
        raise PydanticCustomError("refused", "{refusal}", {"refusal": value})
    return value


def wrong(why: str) -> PydanticCustomError:
    """For a model's validator to raise: `why` continues the sentence that the field's name begins."""
    return PydanticCustomError("why", "{why}", {"why": why})


def of_validation(error: ValidationError, known: Iterable[str] = ()) -> Refusal:
    """The refusal for arguments that a model did not take. `known`: the names that there are."""
    return of_errors(error.errors(include_url=False, include_input=False), known)


def of_errors(errors: Iterable[ErrorDetails | Mapping[str, Any]], known: Iterable[str] = ()) -> Refusal:
    """The refusal for one of the faults: an unknown key before a missing one, values last. No value is shown."""
    first = min(errors, key=lambda one: _TURN.get(one["type"], 2))
    field = ".".join(str(part) for part in first["loc"])
    context = first.get("ctx", {})
    match first["type"]:
        case "refused":
            refusal: Refusal = context["refusal"]
            return refusal
        case "extra_forbidden":
            return unknown_key(str(first["loc"][-1]), known, field)
        case "missing":
            return invalid(field, "is required.")
        case "why":
            return invalid(field, context["why"])
        case kind if kind in _PHRASES:
            return invalid(field, f"{_PHRASES[kind].format(**context)}.")
        case _:
            return invalid(field, f"is not as it should be: {first['msg']}.")


def unknown_key(key: str, known: Iterable[str], field: str = "") -> Refusal:
    """A key that nothing reads is refused, so that nobody believes it was heeded; the nearest that is read is named."""
    names = sorted(known)
    field = field or (key if len(key) <= 64 else key[:64] + "…")
    near = [name for name in names if len(key) > 2 and key in name][:1] or difflib.get_close_matches(key, names, 1)
    if near:
        return invalid(field, f"is not known here. Did you mean {near[0]}?", did_you_mean=near[0])
    return invalid(field, f"is not known here. There are: {', '.join(names) or 'none'}.")


# Which of several faults is told first.
_TURN: Final = {"extra_forbidden": 0, "missing": 1}
_PHRASES: Final = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters at most",
    "string_pattern_mismatch": "must look like {pattern}",
    "list_type": "must be an array",
    "too_short": "must have {min_length} items or more",
    "too_long": "must have {max_length} items at most",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} at most",
    "none_required": "must be null",
}
