"""A lease: who holds something, by which token, until when on the store's clock.

A lease is no lock. It prevents nothing by itself; it records that the holder was alive recently.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tenure.rules.instant import SECOND

# A decision reaches the store within the smaller of this and a sixth of the lease, or changes nothing (R40).
VALIDITY: Final = 2 * SECOND


class Lease(NamedTuple):
    """Held by `holder` through `token` until `until` (store milliseconds), unless `released` before."""

    token: str
    holder: str
    until: int
    released: bool = False

    def live(self, now: int) -> bool:
        """Whether the holder is known to be alive at `now`; a released lease never is (R2)."""
        return not self.released and now < self.until

    def held_by(self, token: str) -> bool:
        """Whether `token` may still act through this lease, lapsed or not (R13, R15)."""
        return self.token == token and not self.released

    def renewed(self, until: int) -> Lease:
        """The same lease, moved forward."""
        return Lease(self.token, self.holder, until)

    def given_back(self, now: int) -> Lease:
        """The lease ended at `now` by its holder; no heartbeat renews it any more (R16)."""
        return Lease(self.token, self.holder, now, True)


def validity(lease_ms: int | None) -> int:
    """How long after the read that it rests on a decision may still be written, in milliseconds."""
    return VALIDITY if lease_ms is None else min(VALIDITY, lease_ms // 6)


def unsure_after(lease_ms: int, heartbeat_ms: int) -> int:
    """How long after the read of its last renewal a runner may go on before it must doubt its lease (R26)."""
    return lease_ms - min(heartbeat_ms, lease_ms // 6)


def provable(lease_ms: int) -> int:
    """How long after the read of its last renewal a lease can't have run out: less 1 % for clock rates (R26)."""
    return lease_ms - lease_ms // 100
