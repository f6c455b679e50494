"""How what a human owns is spelled: endpoints, credentials, agents. The same habits as in `spelling`."""

from __future__ import annotations

from typing_extensions import TypedDict

from tenure.board import access, agents, audit, endpoints, friends, tokens, webhooks
from tenure.doors.wire.spelling import at
from tenure.rules import presence


class Presence(TypedDict):
    """In or out, why (override, shift, default), and until when."""

    value: str
    source: str
    until_at: str | None


def presence_of(one: access.Endpoint, now: int) -> Presence:
    """What holds now (B36)."""
    found = presence.effective(one.override, one.override_until, one.shift, now)
    return {"value": found.value, "source": found.source, "until_at": at(found.until)}


class Endpoint(TypedDict):
    """An endpoint, its scope, its lease and its state. Its credential is in the answer to vend and rotate alone."""

    id: str
    slug: str
    name: str
    agent: str
    queues: list[str]
    verbs: list[str]
    targets: list[str]
    webhook_ceiling: int
    state: str
    origin: str
    default_lease_ttl_seconds: int | None
    effective_lease_ttl_seconds: int
    effective_lease_ttl_source: str
    mcp_era: str | None
    presence: Presence
    shift: str | None
    revision: int
    created_at: str
    expires_at: str | None
    ended_at: str | None
    last_seen_at: str | None


def endpoint(one: access.Endpoint, now: int) -> Endpoint:
    return {
        "id": one.id,
        "slug": one.slug,
        "name": one.name,
        "agent": one.agent_name,
        "queues": list(one.queues),
        "verbs": list(one.verbs),
        "targets": list(one.targets),
        "webhook_ceiling": one.webhook_ceiling,
        "state": one.state,
        "origin": one.origin,
        "default_lease_ttl_seconds": one.default_lease_ttl_seconds,
        "effective_lease_ttl_seconds": one.effective.seconds,
        "effective_lease_ttl_source": one.effective.source,
        "mcp_era": one.mcp_era,
        "presence": presence_of(one, now),
        "shift": one.shift,
        "revision": one.revision,
        "created_at": at(one.created),
        "expires_at": at(one.expires),
        "ended_at": at(one.ended),
        "last_seen_at": at(one.seen),
    }


class Endpoints(TypedDict):
    """A human's endpoints, the newest first."""

    endpoints: list[Endpoint]


class Credential(TypedDict):
    """What can be told of a credential."""

    id: str
    hint: str
    created_at: str
    last_seen_at: str | None
    expires_at: str | None


def credential(one: endpoints.Credential) -> Credential:
    return {
        "id": one.id,
        "hint": one.hint,
        "created_at": at(one.created),
        "last_seen_at": at(one.seen),
        "expires_at": at(one.expires),
    }


class Credentials(TypedDict):
    """The valid credentials of an endpoint, the newest first."""

    credentials: list[Credential]


class Vended(TypedDict):
    """An endpoint and its credential, which is shown this once: null where the same request was answered before."""

    endpoint: Endpoint
    credential: str | None
    mcp_url: str


def vended(one: access.Endpoint, credential: str | None, now: int, public_url: str) -> Vended:
    return {
        "endpoint": endpoint(one, now),
        "credential": credential,
        "mcp_url": f"{public_url.rstrip('/')}/mcp/{one.slug}",
    }


class Agent(TypedDict):
    """A record under which endpoints stand together."""

    id: str
    name: str
    created_at: str


def agent(one: agents.Agent) -> Agent:
    return {"id": one.id, "name": one.name, "created_at": at(one.created)}


class Agents(TypedDict):
    """A human's agents, by name."""

    agents: list[Agent]


class Entry(TypedDict):
    """One line of the audit."""

    id: str
    actor: str
    actor_id: str
    action: str
    subject: str
    subject_id: str
    summary: str
    created_at: str


def entry(one: audit.Entry) -> Entry:
    return {
        "id": one.id,
        "actor": one.actor,
        "actor_id": one.actor_id,
        "action": one.action,
        "subject": one.subject,
        "subject_id": one.subject_id,
        "summary": one.summary,
        "created_at": at(one.created),
    }


class Audit(TypedDict):
    """A page of the audit, the newest first; `next_before` gives the next page, null at the end."""

    entries: list[Entry]
    next_before: str | None


class Me(TypedDict):
    """The human who asks."""

    id: str
    name: str
    friend_code: str


def me(one: access.Human, friend_code: str) -> Me:
    return {"id": one.id, "name": one.name, "friend_code": friend_code}


class Token(TypedDict):
    """What can be told of a token; `hint` is its end."""

    id: str
    name: str
    hint: str
    created_at: str
    last_seen_at: str | None
    expires_at: str | None


def token(one: tokens.Token) -> Token:
    return {
        "id": one.id,
        "name": one.name,
        "hint": one.hint,
        "created_at": at(one.created),
        "last_seen_at": at(one.seen),
        "expires_at": at(one.expires),
    }


class Tokens(TypedDict):
    """A human's valid tokens, the newest first."""

    tokens: list[Token]


class NewToken(TypedDict):
    """A token and what it is, shown this once: null where the same request was answered before."""

    token: Token
    secret: str | None


class Webhook(TypedDict):
    """An inbound webhook: signed deliveries to `url` become todos of `queue`."""

    id: str
    name: str
    queue: str
    url: str
    created_at: str
    last_delivery_at: str | None


def webhook(one: webhooks.Webhook, public_url: str) -> Webhook:
    return {
        "id": one.id,
        "name": one.name,
        "queue": one.queue,
        "url": f"{public_url.rstrip('/')}/hooks/{one.id}",
        "created_at": at(one.created),
        "last_delivery_at": at(one.seen),
    }


class Webhooks(TypedDict):
    """The webhooks of an endpoint, the oldest first."""

    webhooks: list[Webhook]


class NewWebhook(TypedDict):
    """A webhook and its signing secret, shown this once: null where the same request was answered before."""

    webhook: Webhook
    secret: str | None


class Friendship(TypedDict):
    """A friendship as one side sees it. `other` is null until the one who was asked has approved."""

    id: str
    side: str
    other: str | None
    queues: list[str]
    verbs: list[str]
    reason: str
    state: str
    endpoint: str | None
    created_at: str
    decided_at: str | None
    collect_until_at: str | None
    ended_at: str | None


def friendship(one: friends.Friendship) -> Friendship:
    return {
        "id": one.id,
        "side": one.side,
        "other": one.other,
        "queues": list(one.queues),
        "verbs": list(one.verbs),
        "reason": one.reason,
        "state": one.state,
        "endpoint": one.slug,
        "created_at": at(one.created),
        "decided_at": at(one.decided),
        "collect_until_at": at(one.collect_until),
        "ended_at": at(one.ended),
    }


class Friends(TypedDict):
    """All that a human asked for or was asked for, the newest first."""

    friendships: list[Friendship]


class Collected(TypedDict):
    """A friendship, and the credential of its endpoint, shown this once and to the requester alone."""

    friendship: Friendship
    credential: str
    mcp_url: str


def collected(one: friends.Collected, public_url: str) -> Collected:
    return {
        "friendship": friendship(one.friendship),
        "credential": one.credential.reveal(),
        "mcp_url": f"{public_url.rstrip('/')}/mcp/{one.friendship.slug}",
    }
