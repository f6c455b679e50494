"""The one exception by which a use case refuses; its value is spelled by the doors."""

from __future__ import annotations

from typing import TypeVar

from tenure.errors import TenureError
from tenure.rules.refusal import Refusal

T = TypeVar("T")


class Refused(TenureError):
    """A use case refused, and its transaction was rolled back: nothing changed, but what it says was kept."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def granted(answer: T | Refusal) -> T:
    """The answer of a rule, or Refused with what it refused."""
    if isinstance(answer, Refusal):
        raise Refused(answer)
    return answer
