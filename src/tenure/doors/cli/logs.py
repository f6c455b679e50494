"""How `tenure run` writes the log: one line per event, as text or as JSON. The library itself configures nothing."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from typing import Any, Final

from tenure.doors.cli.output import Look, look, say
from tenure.doors.cli.wording import clean
from tenure.errors import ConfigError
from tenure.rules.instant import iso

FORMATS: Final = ("text", "json")
_STYLES: Final = {"takeover": "move", "handed-over": "move", "success": "good", "failed": "bad", "lost": "bad"}


class Voice:
    """What `tenure run` itself has to say, in the form of its log."""

    def __init__(self, form: str) -> None:
        self.form = form

    def say(self, text: str, **fields: Any) -> None:
        """One thing; the fields stand in JSON only. Whoever listened may be gone: that keeps nothing from its stop."""
        with contextlib.suppress(OSError):
            if self.form == "json":
                told = {"time": _now(), "level": "info", "logger": "tenure.cli", "message": text, **fields}
                sys.stderr.write(json.dumps(told) + "\n")
                sys.stderr.flush()
            else:
                say(text)


def _now() -> str:
    import time

    return iso(time.time_ns() // 1_000_000)


def log_format() -> str:
    """TENURE_LOG_FORMAT, or text. Raises ConfigError."""
    form = os.environ.get("TENURE_LOG_FORMAT") or "text"
    if form not in FORMATS:
        raise ConfigError("TENURE_LOG_FORMAT", form, "is no format of the log; write text or json.")
    return form


def configure(form: str, *, verbose: bool) -> None:
    """Write the log to stderr, unless the application has set up logging of its own."""
    log = logging.getLogger("tenure")
    log.setLevel(logging.DEBUG if verbose else logging.INFO)
    if log.hasHandlers():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines(look(sys.stderr)))
    # On the root, so that the application's own warnings are seen too.
    logging.getLogger().addHandler(handler)


class TextLines(logging.Formatter):
    """`2026-12-01 01:30:00.123Z  won report …`; warnings say that they are."""

    def __init__(self, seen: Look) -> None:
        super().__init__()
        self._seen = seen

    def format(self, record: logging.LogRecord) -> str:
        at = iso(round(record.created * 1000)).replace("T", " ")
        at = at if "." in at else at.replace("Z", ".000Z")
        warns = record.levelno >= logging.WARNING
        style = _STYLES.get(getattr(record, "event", ""), "warn" if warns else "")
        text = clean(record.getMessage())
        if record.name == "tenure.run":
            text = f"{_run(record)}: {text}"
        level = f"{record.levelname.lower()}: " if warns and not hasattr(record, "event") else ""
        line = f"{self._seen.paint(at, 'dim')}  {self._seen.paint(level + text, style)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _run(record: logging.LogRecord) -> str:
    """Which attempt a handler's own line is of."""
    told = vars(record)
    slot = told.get("slot")
    return f"{told.get('job')} {iso(slot) if slot is not None else ''} attempt {told.get('attempt')}"


class JsonLines(logging.Formatter):
    """One object per line: time, level, logger, message, and of what run it speaks."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": iso(round(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in ("event", "job", "request", "attempt", "runner", "token8", "detail"):
            value = getattr(record, name, None)
            if value:
                told[name] = value
        for name in ("slot", "store_time"):
            value = getattr(record, name, None)
            if value is not None:
                told |= {name: iso(value), f"{name}_ms": value}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)
