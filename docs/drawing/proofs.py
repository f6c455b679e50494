"""What the pages of the proof show: the scenarios that ship, and the faults that are planted in whole instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources.abc import Traversable
from typing import Final

from drawing.tables import table
from tenure.proof.faults import KINDS
from tenure.proof.sabotage import SABOTAGES
from tenure.proof.scenario import scenarios


def _shown(file: Traversable) -> str:
    """A scenario as it stands in its file."""
    return f"```text\n{file.read_text(encoding='utf-8').rstrip()}\n```"


def planted() -> str:
    """Each planted fault, the law that finds it, and the first seed that does."""
    rows = ((one.place, one.what, one.laws[0], str(one.seed)) for one in SABOTAGES)
    return table(("where", "what goes wrong", "found by", "first seed"), rows)


def faults() -> str:
    """The kinds of faults: how often each comes, and how long it lasts."""
    whole = sum(weight for weight, _, _ in KINDS.values())
    rows = (
        (kind, f"{100 * weight / whole:.0f} %", f"{low:g} to {high:g} s" if high else "at once")
        for kind, (weight, (low, high), _) in KINDS.items()
    )
    return table(("fault", "share", "lasts"), rows)


SCENARIOS: Final[dict[str, Callable[[], str]]] = {
    f"scenario {file.name.removesuffix('.txt')}": partial(_shown, file) for file in scenarios()
}
