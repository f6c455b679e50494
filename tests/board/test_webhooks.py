"""Webhooks: rightly signed deliveries become one todo each; all others are one and the same 401."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook as Signing

from tenure.board import access, endpoints, reaper, tables, webhooks
from tenure.board.refused import Refused
from tenure.board.secrets import ring_of
from tenure.rules.refusal import MISSING

BODY = json.dumps({"type": "change.opened", "data": {"change": 552}}).encode()


@pytest.fixture
def vended(board):
    """Alice's endpoint with two queues."""
    return board.vend(queues=["inbox", "review"])


@pytest.fixture
def made(board, vended):
    """A webhook of it, into `review`."""
    return board.write(webhooks.create, board.alice, name="forge", queue="review", ref=vended.endpoint.slug)


def signed(made, body=BODY, message="msg_1", age=timedelta()):
    """The headers of a delivery."""
    at = datetime.now(UTC) - age
    signature = Signing(made.secret.reveal()).sign(message, at, body.decode())
    return {"Webhook-Id": message, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


def deliver(board, made, headers, body=BODY):
    return board.write(webhooks.deliver, made.webhook.id, headers, body)


def todos(board):
    return board.rows("SELECT title, queue, body, payload, source, source_id FROM todos ORDER BY id")


def test_b38a_a_delivery_makes_one_todo_in_the_webhooks_queue(board, made, vended):
    """Its JSON is the payload, its type stands in the title, its source is the webhook."""
    assert made.secret.reveal().startswith("whsec_")
    delivered = deliver(board, made, signed(made))
    (row,) = todos(board)
    assert (row.title, row.queue, row.source, row.source_id) == (
        "forge: change.opened", "review", "webhook", made.webhook.id,
    )  # fmt: skip
    assert json.loads(row.payload) == json.loads(BODY)
    assert delivered.existing is False
    assert board.read(webhooks.list_all, board.alice, vended.endpoint.slug)[0].seen is not None


def test_b38a_a_message_that_comes_again_makes_no_second_todo(board, made):
    """The same id: the same todo, also when the todo has ended, and also at the same moment."""
    first = deliver(board, made, signed(made))
    assert deliver(board, made, signed(made)) == (first.todo_id, True)
    with ThreadPoolExecutor(4) as threads:
        headers = signed(made, message="msg_2")
        both = list(threads.map(lambda _: deliver(board, made, headers), range(4)))
    assert len({one.todo_id for one in both}) == 1
    assert sorted(one.existing for one in both) == [False, True, True, True]
    assert len(todos(board)) == 2


def test_b38a_a_message_that_comes_again_after_days_makes_no_second_todo(board, made):
    """It is remembered for as long as todos are kept, a day or not; then it is forgotten."""
    first = deliver(board, made, signed(made))
    board.clock.turn(days=29)
    board.write(reaper.prune)
    assert deliver(board, made, signed(made)) == (first.todo_id, True)
    assert len(todos(board)) == 1
    board.clock.turn(days=1)
    board.write(reaper.prune)
    assert board.rows(tables.requests) == []


@pytest.mark.parametrize(
    ("body", "title", "text"),
    [(b"plain words", "forge", "plain words"), (b"[1, 2]", "forge", ""), (b'{"type": "a\\nb"}', "forge", ""),
     (b'{"type": 5}', "forge", ""), (b"NaN", "forge", "NaN"), (b"", "forge", ""),
     (b"[" * 9_000, "forge", "[" * 9_000),
     (b"[" * 32 + b"]" * 32, "forge", ""), (b"[" * 33 + b"]" * 33, "forge", "[" * 33 + "]" * 33),
     (b'{"type": "a", "type": "b"}', "forge", '{"type": "a", "type": "b"}'),
     (b'{"a": "\\u0000"}', "forge", '{"a": "\\u0000"}'), (b'["\\ud800"]', "forge", '["\\ud800"]'),
     (b"1e999", "forge", "1e999")],
)  # fmt: skip
def test_b38a_whatever_was_signed_becomes_a_todo(board, made, body, title, text):
    """What is no JSON becomes the todo's body; a type that is no line of text is left in the payload."""
    deliver(board, made, signed(made, body), body)
    (row,) = todos(board)
    assert (row.title, row.body) == (title, text)


def test_b38a_what_is_not_rightly_signed_is_one_401_and_leaves_nothing(board, made, vended):
    """Wrong secret, another body, too old, no headers, garbage, an unknown webhook, a deleted one: the same answer."""
    other = board.write(webhooks.create, board.alice, name="other", ref=vended.endpoint.slug)
    gone = board.write(webhooks.create, board.alice, name="gone", ref=vended.endpoint.slug)
    board.write(webhooks.delete, board.alice, gone.webhook.id, vended.endpoint.slug)
    right = signed(made)
    tries = [
        (made.webhook.id, signed(other), BODY),
        (made.webhook.id, right, BODY + b" "),
        (made.webhook.id, signed(made, age=timedelta(seconds=301)), BODY),
        (made.webhook.id, signed(made, age=timedelta(seconds=-301)), BODY),
        (made.webhook.id, {}, BODY),
        (made.webhook.id, {**right, "webhook-signature": "garbage"}, BODY),
        (made.webhook.id, {**right, "webhook-signature": "v1,&&&"}, BODY),
        (made.webhook.id, {**right, "webhook-timestamp": "yesterday"}, BODY),
        (made.webhook.id, right, b"\xff\xfe"),
        (gone.webhook.id, signed(gone), BODY),
        ("wh_never_was", right, BODY),
        ("\0", right, BODY),
    ]
    for webhook_id, headers, body in tries:
        assert board.refused(webhooks.deliver, webhook_id, headers, body) is access.UNAUTHENTICATED, headers
    assert todos(board) == []
    assert board.rows(tables.requests) == []


def test_b38a_a_rotation_makes_another_secret_and_ends_the_one_before(board, made, vended):
    """At once; a signature may name several, and one that is right is enough."""
    again = board.write(webhooks.rotate, board.alice, made.webhook.id, vended.endpoint.slug)
    assert board.refused(webhooks.deliver, made.webhook.id, signed(made), BODY) is access.UNAUTHENTICATED
    both = signed(again)
    both["webhook-signature"] = f"v1,AAAA {both['webhook-signature']}"
    assert not deliver(board, again, both).existing


def test_b12_a_secret_outlives_a_rotation_of_the_servers_own(board, made):
    """The newest of the ring makes new ones; the one that made this is still on it, and when it goes: 401."""
    board.ring._keys.update(ring_of("another-secret-of-this-server-much-newer")._keys)
    assert not deliver(board, made, signed(made)).existing
    board.ring._keys.clear()
    assert board.refused(webhooks.deliver, made.webhook.id, signed(made), BODY) is access.UNAUTHENTICATED


def test_b38a_the_secret_stands_nowhere_in_the_database(board, made):
    """It is made of the server's own; the row has the id of that one and a generation."""
    assert made.secret.reveal() not in str(board.rows(tables.webhooks)[0])
    assert repr(made).count("whsec_") == 0


def test_b38a_the_ceiling_is_how_many_an_endpoint_may_have(board):
    """Two, not three; after a deletion there is room; 0 means none."""
    slug = board.vend(webhook_ceiling=2).endpoint.slug
    first, _ = (board.write(webhooks.create, board.alice, name="x", ref=slug) for _ in range(2))
    assert board.refused(webhooks.create, board.alice, name="x", ref=slug).details["reason"] == "webhook_ceiling"
    board.write(webhooks.delete, board.alice, first.webhook.id, slug)
    board.write(webhooks.create, board.alice, name="x", ref=slug)
    none = board.vend(name="none", webhook_ceiling=0).endpoint.slug
    refused = board.refused(webhooks.create, board.alice, name="x", ref=none)
    assert (refused.details["reason"], "Delete one" in refused.message) == ("webhook_ceiling", False)


def test_b38a_the_ceiling_holds_when_they_are_made_at_once(board):
    """The endpoint's row is locked while they are counted."""
    slug = board.vend(webhook_ceiling=1).endpoint.slug

    def make(_):
        try:
            return bool(board.write(webhooks.create, board.alice, name="x", ref=slug))
        except Refused:
            return False

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(make, range(4))) == 1


def test_b38a_a_queue_must_be_the_endpoints(board, vended):
    """Default its first; another is refused by its field."""
    slug = vended.endpoint.slug
    assert board.write(webhooks.create, board.alice, name="x", ref=slug).webhook.queue == "inbox"
    refused = board.refused(webhooks.create, board.alice, name="x", queue="other", ref=slug)
    assert refused.details["field"] == "queue"


def test_b38a_an_endpoint_manages_its_own_webhooks(board, vended):
    """The same four operations, with the worker for the human and no endpoint to name."""
    worker = board.worker(vended)
    made = board.write(webhooks.create, worker, name="own")
    assert board.read(webhooks.list_all, worker) == [made.webhook]
    again = board.write(webhooks.rotate, worker, made.webhook.id)
    assert not deliver(board, again, signed(again)).existing
    other = board.worker(board.vend(name="other"))
    for step in (webhooks.rotate, webhooks.delete):
        assert board.refused(step, other, made.webhook.id) is MISSING
    board.write(webhooks.delete, worker, made.webhook.id)
    assert board.read(webhooks.list_all, worker) == []


def test_b26_anothers_webhooks_are_not_there(board, made, vended):
    """Charlie finds neither endpoint nor webhook; Alice finds it under its own endpoint alone."""
    slug, other = vended.endpoint.slug, board.vend(name="other").endpoint.slug
    mine = board.vend(human=board.charlie).endpoint.slug
    for step in (webhooks.rotate, webhooks.delete):
        assert board.refused(step, board.charlie, made.webhook.id, slug) is MISSING
        assert board.refused(step, board.charlie, made.webhook.id, mine) is MISSING
        assert board.refused(step, board.alice, made.webhook.id, other) is MISSING
    assert board.refused(webhooks.list_all, board.charlie, slug) is MISSING
    assert board.refused(webhooks.create, board.charlie, name="x", ref=slug) is MISSING


def test_b25_a_revoked_endpoint_takes_no_delivery_and_no_change(board, made, vended):
    """Signed or not: with the right signature it is told that the endpoint has ended."""
    slug = vended.endpoint.slug
    board.write(endpoints.revoke, board.alice, slug)
    assert board.refused(webhooks.deliver, made.webhook.id, signed(made), BODY).details == {"state": "revoked"}
    assert board.refused(webhooks.deliver, made.webhook.id, {}, BODY) is access.UNAUTHENTICATED
    assert board.refused(webhooks.rotate, board.alice, made.webhook.id, slug).details == {"state": "revoked"}
    assert board.read(webhooks.list_all, board.alice, slug) == [made.webhook]
