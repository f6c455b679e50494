"""No secret rests in the database, in no log and in no audit: only hashes (B21, B51)."""

import logging
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Signing

import tenure.board
from tenure.board import audit, claims, endpoints, friends, humans, signing_in, tables, todos, tokens, webhooks
from tenure.board.shapes import Completion, NewTodo, Next

# What Tenure's own secrets look like; a lease token and a webhook's secret as they are handed out.
SPELLED = re.compile(r"tenure_(endpoint|human|session|link|friend)_\w{20,}|tl_[0-9A-Za-z]{43}|whsec_[\w+/=]{20,}")
PASSWORD = "a sentence that nobody else would think of"  # noqa: S105


def use_all(board):
    """Have every kind of secret made and used once; the secrets."""
    board.write(signing_in.put_password, board.alice, signing_in.hashed_password(PASSWORD))
    link = board.write(signing_in.link_for, "alice")
    session = board.write(signing_in.by_link, link.reveal(), "a browser").cookie
    token = board.write(tokens.create, board.alice, "laptop").secret
    vended = board.vend(queues=["inbox"])
    rotated = board.write(endpoints.rotate, board.alice, vended.endpoint.slug, 3600)
    made = board.write(webhooks.create, board.alice, name="forge", ref=vended.endpoint.slug)
    now = datetime.now(UTC)
    signature = Signing(made.secret.reveal()).sign("msg_1", now, "{}")
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    board.write(webhooks.deliver, made.webhook.id, headers, b"{}")
    board.write(todos.create, board.alice, vended.endpoint, NewTodo("work"))
    worker = board.worker(rotated)
    granted = board.write(claims.claim_next, worker, Next(max=2, request_id="0123456789abcdef")).granted
    board.write(claims.claim_next, worker, Next(max=2, request_id="0123456789abcdef"))
    leases = [one.lease.token for one in granted]
    board.write(claims.complete, worker, [Completion(granted[0].todo.summary.id, leases[0].reveal(), {"ok": 1})])
    board.refused(signing_in.by_link, link.reveal())
    code = board.read(humans.friend_code, board.alice)
    asked = board.write(friends.request, board.bob, code, queues=["inbox"], verbs=["claim"])
    board.write(friends.approve, board.alice, asked.id, agent="friends")
    collected = board.write(friends.collect, board.bob, asked.id).credential
    board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
    return [link, session, token, vended.credential, rotated.credential, made.secret, *leases, collected]


@pytest.fixture
def used(board, caplog):
    """A board on which every kind of secret was used, its secrets in clear, and all that was logged."""
    caplog.set_level(logging.DEBUG)
    secrets = use_all(board)
    assert len(secrets) == 9
    return board, secrets, caplog


def dump(board):
    """Every value of every row, as text."""
    return "\n".join(str(tuple(row)) for table in tables.metadata.tables.values() for row in board.rows(table))


def test_b51_no_secret_is_in_the_database(used):
    """In clear there is none, and nothing that looks like one; the search is proved able to find what is there."""
    board, secrets, _ = used
    held = dump(board)
    assert "a browser" in held
    assert [secret for secret in [*(one.reveal() for one in secrets), PASSWORD] if secret in held] == []
    assert SPELLED.findall(held) == []


def test_b51_the_patterns_find_every_kind_of_secret(used):
    """The search above would see each of them."""
    assert all(SPELLED.fullmatch(secret.reveal()) for secret in used[1])


@pytest.mark.parametrize("board_url", ["sqlite"], indirect=True)
def test_b51_no_secret_is_in_sqlites_file_either(used):
    """Not in pages that were freed, nor in the log of what was written."""
    board, secrets, _ = used
    path = Path(board.database.url.removeprefix("sqlite:///"))
    held = b"".join(one.read_bytes() for one in path.parent.glob(path.name + "*"))
    assert b"a browser" in held
    assert not any(secret.reveal().encode() in held for secret in secrets)
    assert SPELLED.findall(held.decode("latin-1")) == []


def test_b51_no_secret_is_logged_nor_shown_by_a_value(used):
    """Not by SQLAlchemy at its most talkative, nor by the repr of anything that carries one."""
    _, secrets, caplog = used
    said = caplog.text + repr(secrets) + str(secrets)
    assert SPELLED.findall(said) == []
    assert PASSWORD not in said


def test_b51_each_step_that_counts_has_its_line_in_the_audit(used):
    """Vend, rotation, revoke, sign-in, token, webhook and friend steps, in order; workers leave claims, no lines."""
    board, _, _ = used
    lines = [(line.action, line.subject) for line in reversed(board.read(audit.list_page, board.alice))]
    assert lines == [
        ("add", "human"), ("edit", "human"), ("link", "human"), ("sign_in", "session"), ("add", "token"),
        ("add", "agent"), ("vend", "endpoint"), ("rotate", "endpoint"), ("add", "webhook"), ("create", "todo"),
        ("request", "friendship"), ("add", "agent"), ("vend", "endpoint"), ("approve", "friendship"),
        ("collect", "friendship"), ("revoke", "endpoint"),
    ]  # fmt: skip


def test_b51_each_edit_and_each_action_on_the_board_has_its_line(board):
    """Whatever a human changes: one line by them, about what they changed, in order."""
    slug = board.vend().endpoint.slug
    made = [board.write(todos.create, board.alice, board.read(endpoints.get, board.alice, slug), NewTodo("work"))]
    made += [board.write(todos.create, board.alice, board.read(endpoints.get, board.alice, slug), NewTodo("more"))]
    one, two = (created.todo.summary.id for created in made)
    link = board.write(signing_in.link_for, "alice")
    session = board.write(signing_in.by_link, link.reveal(), "a browser").human
    steps = [
        (endpoints.set_presence, slug, "out"), (endpoints.set_presence, slug, None),
        (endpoints.set_shift, slug, "TZ=Europe/Berlin Mon-Fri 09:00-18:00"), (endpoints.set_display_name, slug, "x"),
        (endpoints.set_era, slug, "both"), (endpoints.edit_lease, slug, 900), (humans.new_friend_code,),
        (todos.board_claim, one), (todos.board_extend, one), (todos.add_note, one, "a note"),
        (todos.board_release, one), (todos.board_claim, one), (todos.board_fail, one), (todos.retry, one),
        (todos.cancel, one), (todos.board_claim, two), (todos.board_complete, two),
        (signing_in.end_session, session.via_id),
    ]  # fmt: skip
    before = len(board.read(audit.list_page, board.alice))
    for case, *args in steps:
        board.write(case, board.alice, *args)
    lines = list(reversed(board.read(audit.list_page, board.alice)))[before:]
    assert [(line.action, line.subject) for line in lines] == [
        *[("edit", "endpoint")] * 6, ("edit", "human"), ("take", "todo"), ("take", "todo"), ("note", "todo"),
        ("release", "todo"), ("take", "todo"), ("fail", "todo"), ("retry", "todo"), ("cancel", "todo"),
        ("take", "todo"), ("complete", "todo"), ("sign_out", "session"),
    ]  # fmt: skip
    assert {(line.actor, line.actor_id) for line in lines} == {("human", board.alice.id)}


def test_b51_the_audit_is_written_with_what_it_tells_or_not_at_all(board, monkeypatch):
    """A failure after the line takes the line away with the effect."""
    before = dump(board)

    def broken(*_args):
        raise RuntimeError("after the line")

    monkeypatch.setattr("tenure.board.vending.mint", broken)
    with pytest.raises(RuntimeError):
        board.vend()
    assert dump(board) == before


def test_b51_lines_of_the_audit_are_added_and_never_changed():
    """No code of the board updates or deletes one."""
    changes = re.compile(r"(update|delete)\(\s*(tables\.)?audit\b|(UPDATE|DELETE FROM) audit\b")
    sources = list(Path(tenure.board.__file__).parent.rglob("*.py"))
    assert any("sa.insert(tables.audit)" in path.read_text() for path in sources)
    assert [path for path in sources if changes.search(path.read_text())] == []


def test_b51_the_audit_is_paged_newest_first_and_is_the_humans_own(board):
    """By the id of the last line seen; Charlie's has nothing of Alice's."""
    for number in range(5):
        board.write(tokens.create, board.alice, f"token {number}")
    first = board.read(audit.list_page, board.alice, limit=2)
    second = board.read(audit.list_page, board.alice, limit=2, before=first[-1].id)
    assert [line.summary[:13] for line in (*first, *second)] == [f"token token {number}" for number in (4, 3, 2, 1)]
    assert [line.action for line in board.read(audit.list_page, board.charlie)] == ["add"]
