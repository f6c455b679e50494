"""Signals while a demo is played: it ends in order, and once."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the demo in order, once; the handlers that were there before come back.

    Cleaning up is not to be interrupted: a launcher may send a signal on that the terminal has sent already.
    """

    def end(number: int, _: FrameType | None) -> None:
        deaf()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def deaf() -> None:
    """Hear no signal any more."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
