"""What a refused worker or human is told about a todo: for each reason a sentence of what, why and what to do."""

from __future__ import annotations

from typing import Final

from tenure.rules.refusal import Refusal, conflict

_HOLDER: Final = {
    "wrong_token": "This lease_token is of no claim of this todo. Use the one that its claim answered.",
    "lapsed": "Your lease lapsed and the todo is no longer yours. Claim it again if it is still to be done.",
    "taken": "Your claim has ended and another claim of this todo is open: stop working on it.",
    "finished": "This todo has ended: stop working on it.",
    "taken_by_operator": "A human has taken this todo in hand on the Board: stop working on it.",
    "released_by_operator": "A human has released your claim on the Board: stop working on it.",
    "failed_by_operator": "A human has failed your claim on the Board: stop working on it.",
    "released": "You have released this todo already: claim it again to work on it.",
    "failed": "You have failed this todo already: it will be tried again later.",
    "revoked": "The endpoint of this claim was revoked: stop working on it.",
    "expired": "The endpoint of this claim has expired: stop working on it.",
}
_ASKER: Final = {
    "taken": "This todo is claimed and its lease is live. Take another, or wait until it is released.",
    "finished": "This todo has ended, and can only be read; if it failed, its human may retry or move it.",
    "blocked": "This todo waits for others that are not done yet.",
    "waiting": "This todo's time has not come: see not_before.",
    "retrying": "This todo failed and is tried again later: see retry_at. A human may retry it now.",
    "claimed": "This todo is claimed and its lease is live. Release it first.",
    "pending": "This todo is pending already.",
    "not_claimed": "Nobody holds this todo. Retry it if it failed, then take it on the Board of the web page.",
}
_KEPT: Final = " What you sent is kept for its human to read."


def refused_holder(reason: str, *, kept: bool = False) -> Refusal:
    """The conflict that a claim's holder is told (B12, B13); `kept`: what came too late was put aside."""
    return conflict(_HOLDER[reason] + (_KEPT if kept else ""), reason)


def refused(reason: str) -> Refusal:
    """The conflict that whoever has no token is told: claiming, or a human's action."""
    return conflict(_ASKER[reason], reason)
