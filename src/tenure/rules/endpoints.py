"""Endpoints: verbs and who may be given them, scope, names, the default lease and how a lease's length is settled.

House rules of this file: a value that is not as the page says is a `Refusal`, never an exception and never mended;
what a call asks for beyond the cap is the one thing that is clamped (B8). Must not know what time it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from tenure.rules.bounds import (
    LEASE_CAP_SECONDS,
    LEASE_FLOOR_SECONDS,
    NAME_CHARS,
    QUEUE_CHARS,
    QUEUES,
    SERVER_LEASE_SECONDS,
    TARGETS,
    WEBHOOKS_LIMIT,
)
from tenure.rules.instant import DAY, LAST
from tenure.rules.refusal import Refusal, conflict, invalid

State = Literal["active", "expired", "revoked"]
Era = Literal["handshake", "both"]

DRAIN: Final = (
    "list_todos", "get_todo", "claim", "claim_next", "heartbeat", "check_claim", "complete", "fail", "release",
    "add_note",
)  # fmt: skip
PRODUCE: Final = ("create_todo", "cancel_todo")
OWN: Final = (
    "get_default_lease", "set_default_lease", "create_webhook", "list_webhooks", "rotate_webhook", "delete_webhook",
)  # fmt: skip
# Outside the allowlist: every endpoint has them.
SELF: Final = ("whoami", "clock_in", "clock_out", "presence")
ALL: Final = DRAIN + PRODUCE + OWN
# What vending grants where no verbs are named: quick vend, REST and the command line (B23).
DEFAULT_VERBS: Final = ALL
# What a friend may be given: settings are the approver's (B39).
GRANTABLE: Final = DRAIN + PRODUCE

ERAS: Final[tuple[Era, ...]] = ("handshake", "both")
DEFAULT_QUEUE: Final = "inbox"
# An endpoint's end is told of from so long before on (B24).
ENDING_MS: Final = DAY
OVERLAP_LIMIT_SECONDS: Final = 86_400

_QUEUE: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{QUEUE_CHARS - 1}}}", re.ASCII)
_BASE: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
_BASE_CHARS: Final = 40


# --- leases -----------------------------------------------------------------------------------------------


class Ttl(NamedTuple):
    """A lease's length, whose word it was, and whether a call asked for more than the cap."""

    seconds: int
    source: Literal["call", "endpoint", "server"]
    clamped: bool = False


class Effective(NamedTuple):
    """The length of a lease that nobody asks anything of, and whose default that is."""

    seconds: int
    source: Literal["endpoint", "server"]

    @property
    def words(self) -> str:
        """Whose it is, as agents read it (B29)."""
        return "this endpoint's default" if self.source == "endpoint" else "the server default"


def effective(default: int | None) -> Effective:
    """What holds on an endpoint with this default."""
    if default is None:
        return Effective(SERVER_LEASE_SECONDS, "server")
    return Effective(default, "endpoint")


def ttl(call: int | None, default: int | None) -> Ttl:
    """The call's own value, clamped to the cap; else the endpoint's default; else the server's (B8)."""
    if call is not None:
        return Ttl(min(call, LEASE_CAP_SECONDS), "call", call > LEASE_CAP_SECONDS)
    return Ttl(*effective(default))


def call_ttl(value: object) -> int | Refusal | None:
    """A call's `lease_ttl_seconds`: None where it says nothing (B9)."""
    if value is None:
        return None
    if type(value) is not int or value < 1:
        return invalid(
            "lease_ttl_seconds", "must be a whole number of seconds, 1 or more; leave it out for the default."
        )
    return value


def default_lease(value: object) -> int | Refusal | None:
    """An endpoint's `default_lease_ttl_seconds`: null, or within the bounds; never clamped (B10)."""
    if value is None:
        return None
    field, bounds = "default_lease_ttl_seconds", f"from {LEASE_FLOOR_SECONDS} to {LEASE_CAP_SECONDS}"
    least_most = {"minimum": LEASE_FLOOR_SECONDS, "maximum": LEASE_CAP_SECONDS}
    if type(value) is not int:
        return invalid(
            field, f"must be a whole number of seconds {bounds}, or null for the server default.", **least_most
        )
    if not LEASE_FLOOR_SECONDS <= value <= LEASE_CAP_SECONDS:
        why = f"must be {bounds} seconds; it is refused, not clamped. Null means the server default."
        return invalid(field, why, **least_most)
    return value


# --- scope ------------------------------------------------------------------------------------------------


class Scope(NamedTuple):
    """What an endpoint may do: fixed when it is vended (B20). `targets` are slugs, which never change."""

    queues: tuple[str, ...]
    verbs: tuple[str, ...]
    targets: tuple[str, ...]
    webhook_ceiling: int


def scope(queues: Sequence[str], verbs: Sequence[str], targets: Sequence[str], webhook_ceiling: int) -> Scope | Refusal:
    """A scope in the page's order and without repetitions. Without queues: `inbox`."""
    named = tuple(dict.fromkeys(queues)) or (DEFAULT_QUEUE,)
    if len(named) > QUEUES:
        return invalid("queues", f"may name {QUEUES} at most.")
    for one in named:
        refused = queue(one, "queues")
        if isinstance(refused, Refusal):
            return refused
    unknown = [verb for verb in verbs if verb not in ALL]
    if unknown:
        return invalid(
            "verbs", f"names no verb that can be granted: {_shown(unknown[0])}. There are: {', '.join(ALL)}."
        )
    if len(set(targets)) > TARGETS:
        return invalid("targets", f"may name {TARGETS} at most.")
    if type(webhook_ceiling) is not int or not 0 <= webhook_ceiling <= WEBHOOKS_LIMIT:
        return invalid("webhook_ceiling", f"must be a whole number from 0 to {WEBHOOKS_LIMIT}.")
    return Scope(named, tuple(verb for verb in ALL if verb in verbs), tuple(dict.fromkeys(targets)), webhook_ceiling)


def narrowed(asked: Sequence[str], granted: Sequence[str] | None, field: str) -> tuple[str, ...] | Refusal:
    """What an approver grants of what was asked for: all of it, or less, never more (B39)."""
    if granted is None:
        return tuple(asked)
    wider = [one for one in granted if one not in asked]
    if wider:
        return invalid(field, f"may only be narrowed: {_shown(wider[0])} was not asked for.")
    return tuple(one for one in asked if one in granted)


def friendly(verbs: Sequence[str]) -> Refusal | None:
    """A request of a friend is refused whole for a verb that friends are not given, naming it (B39)."""
    for verb in verbs:
        if verb not in GRANTABLE:
            why = f"names {_shown(verb)}, which a friend can't be given. There are: {', '.join(GRANTABLE)}."
            return invalid("verbs", why)
    return None


def queue(value: object, field: str = "queue") -> str | Refusal:
    """The name of a queue: letters, digits, `.`, `_` and `-`."""
    if isinstance(value, str) and _QUEUE.fullmatch(value):
        return value
    return invalid(field, f"must be a name of 1 to {QUEUE_CHARS} letters, digits, '.', '_' or '-'.")


def label(value: object, field: str, limit: int = NAME_CHARS) -> str | Refusal:
    """A name for people: one line of up to `limit` characters, blanks around it taken off."""
    text = value.strip() if isinstance(value, str) else ""
    if not 1 <= len(text) <= limit or not text.isprintable():
        return invalid(field, f"must be one line of 1 to {limit} characters.")
    return text


def slug(name: str, ending: str) -> str:
    """The slug of a name: its letters and digits, and four characters at the end, which no id's last group has."""
    plain = "".join(one for one in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(one))
    base = _BASE.sub("-", plain).strip("-")[:_BASE_CHARS].rstrip("-")
    return f"{base or 'endpoint'}-{ending}"


# --- state ------------------------------------------------------------------------------------------------


def state_at(stored: State, expires: int | None, now: int) -> State:
    """Expired counts at once, before the reaper has written it down (B24)."""
    return "expired" if stored == "active" and expires is not None and now >= expires else stored


def writable(state: State) -> Refusal | None:
    """Every write to an endpoint that has ended is refused, with its state (B25)."""
    if state == "active":
        return None
    how = "was revoked" if state == "revoked" else "has expired"
    return conflict(f"This endpoint {how}: it can be read, and not changed. Vend a new one.", state=state)


def expiry(value: int | None, now: int, what: str = "endpoint") -> int | Refusal | None:
    """When an endpoint, or a token, is to end: never, or at any later time."""
    if value is not None and (value <= now or value > LAST):
        return invalid("expires", f"must lie in the future; leave it out and the {what} is valid until revoked.")
    return value


def _shown(text: str) -> str:
    return repr(text if len(text) <= NAME_CHARS else text[:NAME_CHARS] + "…")
