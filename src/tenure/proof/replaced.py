"""Put something else in a place for a while: how the proof listens to shipped code, and plants faults in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(place: Any, name: str, value: Any) -> Iterator[None]:
    """`place.name` is `value` until the end of the block."""
    before = vars(place)[name]
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)
