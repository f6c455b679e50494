"""What a demo is made of: its figures, all derived from the lease. Shared by the stage and the instances."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Final

from tenure.errors import ConfigError
from tenure.rules.instant import MINUTE, SECOND, span

VARIABLE: Final = "TENURE_DEMO"


@dataclass(frozen=True, slots=True)
class Plan:
    """The figures. `store` None: a file of its own; `work_file`: where handlers write what they did."""

    instances: tuple[str, ...]
    job: str
    lease_ms: int
    store: str | None
    work_file: str = ""

    @property
    def heartbeat_ms(self) -> int:
        return min(5 * SECOND, self.lease_ms // 6)

    @property
    def bound_ms(self) -> int:
        """The longest from the last heartbeat of a dead runner to the takeover (R22)."""
        return self.lease_ms + 2 * self.heartbeat_ms

    # A run is longer than the lease, so that it lives on heartbeats; and slots come so often that some find a
    # run alive. Killed half-way between two slots, its lease ends between two slots as well, where no newer slot
    # can come before the takeover: 4/8 + 6/8 of the distance, less at most a heartbeat.

    @property
    def interval_ms(self) -> int:
        return self.lease_ms * 4 // 3

    @property
    def work_ms(self) -> int:
        return self.lease_ms * 3 // 2

    @property
    def jitter_ms(self) -> int:
        return self.lease_ms // 24

    def told(self) -> str:
        """As an environment variable for the instances."""
        return json.dumps(asdict(self))


def plan(instances: int, lease: str, store: str | None) -> Plan:
    """A checked plan. Raises ConfigError."""
    try:
        lease_ms = span(lease)
    except ValueError as error:
        raise ConfigError("--lease", lease, str(error)) from None
    if not SECOND <= lease_ms <= MINUTE:
        raise ConfigError("--lease", lease, "is out of bounds; use 1s to 60s.")
    if store is not None and store.strip().startswith("memory:"):
        raise ConfigError("--store", store, "can't be shared by processes.", "Leave it out, or use sqlite:///demo.db.")
    mark = "" if store is None else f"demo-{os.getpid()}-"  # in a store of yours nothing is to be mistaken for yours
    names = tuple(f"{mark}api-{number}" for number in range(1, instances + 1))
    return Plan(names, f"{mark}letters", lease_ms, store)


def read() -> Plan:
    """The plan of the demo that this process is an instance of."""
    told = json.loads(os.environ[VARIABLE])
    return Plan(**{**told, "instances": tuple(told["instances"])})
