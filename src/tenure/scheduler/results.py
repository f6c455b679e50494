"""What is kept of how a handler ended: its value as JSON, or its error as text, each within bounds (R15)."""

from __future__ import annotations

import json
import traceback
from typing import Any, Final

RESULT_BYTES: Final = 64 * 1024
MESSAGE_LETTERS: Final = 2_000
TRACE_LETTERS: Final = 8_000
DEPTH: Final = 64

Error = tuple[str, str, str]


def complaint(value: Any) -> str:
    """Why a value can't be kept as a run's result; empty where it can."""
    try:
        size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        return f"the result is no JSON: {text_of(error)}. Return plain values."
    if _deeper(value, DEPTH):
        return f"the result is nested more than {DEPTH} deep. Return plain values."
    return f"the result has {size} bytes; at most {RESULT_BYTES} are kept." if size > RESULT_BYTES else ""


def result_of(value: Any) -> tuple[Any, Error | None]:
    """A handler's value, or the error that it can't be kept."""
    why = complaint(value) if value is not None else ""
    return (None, ("ResultError", why, "")) if why else (value, None)


def error_of(error: BaseException | None) -> Error:
    """Type, message and the end of the traceback."""
    return (type(error).__name__, text_of(error)[:MESSAGE_LETTERS], trace_of(error))


def trace_of(error: BaseException | None) -> str:
    """The end of a traceback: that is where the fault is named."""
    return _clean("".join(traceback.format_exception(error)))[-TRACE_LETTERS:] if error is not None else ""


def short(error: BaseException | None) -> str:
    """One line of it."""
    return f"{type(error).__name__}: {text_of(error)}"[:200]


def text_of(error: BaseException | None) -> str:
    """An error's message; also of one that can't say it."""
    try:
        return _clean(str(error))
    except Exception:  # noqa: BLE001 - the handler's own class, which may do anything
        return "(its message could not be had)"


def _deeper(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return False
    return depth == 0 or any(_deeper(one, depth - 1) for one in value)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
