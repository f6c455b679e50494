"""The server's log: lines for people on a terminal, JSON elsewhere; and in none of them a secret."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog

from tenure.errors import ConfigError

FORMATS: Final = ("text", "json")
# Every secret of ours is known by its beginning; so is what stands in the URL of a database before its host.
_SECRET: Final = re.compile(
    r"(tenure_(?:endpoint|human|session|link|friend)_|tl_|whsec_)[0-9A-Za-z+/=]{20,}|(?<=://)[^/\s:@]*:[^/\s@]*(?=@)"
)


def configure(environ: Mapping[str, str], stream: TextIO = sys.stderr) -> None:
    """Write the log of this process to `stream`. Raises ConfigError for a format that is none."""
    told = environ.get("TENURE_LOG_FORMAT") or ("text" if stream.isatty() else "json")
    if told not in FORMATS:
        raise ConfigError("TENURE_LOG_FORMAT", told, "is no format of the log.", "Write text or json.")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(told, colours=stream.isatty() and not environ.get("NO_COLOR")))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("tenure").setLevel(logging.INFO)
    requests = environ.get("TENURE_ACCESS_LOG", "").lower() in ("1", "true", "yes")
    logging.getLogger("tenure.access").setLevel(logging.INFO if requests else logging.WARNING)
    # What uvicorn says of requests holds their paths; its other lines of the ordinary say nothing new.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.ERROR)


def formatter(form: str, *, colours: bool = False) -> logging.Formatter:
    """How a line of the log is written, whoever logged it."""
    if form == "json":
        last: list[Any] = [structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer()]
    else:
        last = [structlog.dev.ConsoleRenderer(colors=colours)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            masked,
            *last,
        ],
    )


def masked(_: Any, __: str, told: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The line without what looks like a secret, wherever in it that stands."""
    for key, value in told.items():
        if isinstance(value, str):
            told[key] = mask(value)
        elif not isinstance(value, (int, float, bool, type(None))):
            told[key] = mask(str(value))
    return told


def mask(text: str) -> str:
    """The text with each secret cut down to its beginning."""
    return _SECRET.sub(lambda found: f"{found[1] or ''}***", text)
