"""One figure of a measurement, and the means to take it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A figure: what, how much, what was to be reached, and whether it was; None where none was taken.

    `detail` is for JSON, `remark` for the reader of the table.
    """

    what: str
    value: float | None
    unit: str = ""
    goal: str = ""
    reached: bool | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    remark: str = ""

    @property
    def shown(self) -> str:
        if self.value is None:
            return "–"
        number = f"{self.value:,.0f}" if abs(self.value) >= 100 else f"{self.value:.3g}"
        return f"{number} {self.unit}".strip()

    @property
    def verdict(self) -> str:
        return {None: "", True: "reached", False: "NOT reached"}[self.reached]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "goal": self.goal,
            "reached": self.reached,
            "remark": self.remark,
            **self.detail,
        }


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def p50(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)
