"""Endpoints: vended, edited where they may be, rotated, revoked, expired."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tenure.board import access, audit, endpoints, tables, todos, vending
from tenure.board.refused import Refused
from tenure.board.shapes import NewTodo
from tenure.rules import endpoints as rules

HOUR = 3_600_000


def until(holds):
    """What is written aside is written by a thread of its own."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def secret(vended):
    return vended.credential.reveal()


def enters(board, credential, slug=None):
    """Whether the credential lets a worker in."""
    try:
        board.read(access.worker_by_credential, credential, slug)
    except Refused as refused:
        return refused.refusal is not access.UNAUTHENTICATED
    return True


@pytest.fixture
def heard(board):
    """The notices that were sent with the commits of this test."""
    notices, once = [], board.database._once

    def listening(case, *args, **kwargs):
        def told(tx, *more, **named):
            value = case(tx, *more, **named)
            notices.extend(tx.notices)
            return value

        return once(told, *args, **kwargs)

    board.database._once = listening
    return notices


# --- vending ----------------------------------------------------------------------------------------------


def test_b23_vending_without_a_list_grants_all_verbs_on_the_inbox(board):
    """The defaults: every verb of the allowlist, `inbox`, an agent of the same name, until revoked."""
    endpoint, credential = board.vend(name="Code Reviewer")
    assert re.fullmatch(r"code-reviewer-[a-z0-9]{4}", endpoint.slug)
    assert (endpoint.verbs, endpoint.queues) == (rules.ALL, ("inbox",))
    assert (endpoint.agent_name, endpoint.origin, endpoint.expires) == ("Code Reviewer", "own", None)
    assert enters(board, credential.reveal(), endpoint.slug)


def test_b23_a_scope_is_stored_as_it_was_given(board):
    """Queues, verbs, targets and ceiling come back from the database."""
    target = board.vend(name="target").endpoint
    scope = {"queues": ["a", "b"], "verbs": ["claim", "create_todo"], "targets": [target.id], "webhook_ceiling": 0}
    endpoint = board.vend(**scope).endpoint
    again = board.read(endpoints.get, board.alice, endpoint.id)
    assert again == endpoint
    assert (again.queues, again.verbs, again.webhook_ceiling) == (("a", "b"), ("claim", "create_todo"), 0)
    assert again.targets == (target.slug,)


def test_b20_two_endpoints_of_one_name_have_slugs_of_their_own(board, monkeypatch):
    """A slug that is taken is drawn again, without a word about whose it is."""
    drawn = iter("aaaaaaaabbbb")
    monkeypatch.setattr(vending.secrets, "choice", lambda _: next(drawn))
    assert board.vend(human=board.charlie).endpoint.slug == "reviewer-aaaa"
    assert board.vend().endpoint.slug == "reviewer-bbbb"


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"agent": "\n"}, "agent"),
        ({"default_lease": 59}, "default_lease_ttl_seconds"),
        ({"expires": 1}, "expires"),
        ({"queues": ["no spaces"]}, "queues"),
        ({"verbs": ["whoami"]}, "verbs"),
        ({"targets": ["nobody-knows"]}, "targets"),
    ],
)
def test_b23_what_can_not_be_vended_is_refused_by_its_field_and_leaves_nothing(board, scope, field):
    """No endpoint, no agent, no credential, no line of audit."""
    before = [board.rows(table) for table in (tables.endpoints, tables.agents, tables.credentials, tables.audit)]
    assert board.refused(endpoints.vend, board.alice, **{"name": "x", **scope}).details["field"] == field
    after = [board.rows(table) for table in (tables.endpoints, tables.agents, tables.credentials, tables.audit)]
    assert before == after


def test_b26_anothers_endpoint_as_a_target_is_one_that_is_not_there(board):
    """The refusal names what was written, and is the same for both."""
    others = board.vend(human=board.charlie, name="mine").endpoint
    theirs = board.refused(endpoints.vend, board.alice, name="x", targets=[others.slug])
    unknown = board.refused(endpoints.vend, board.alice, name="x", targets=["mine-2222"])
    assert theirs.message.replace(others.slug, "mine-2222") == unknown.message


def test_b21_the_credential_is_kept_as_its_hash(board):
    """The row has the SHA-256 and the last four characters."""
    vended = board.vend()
    row = board.rows(tables.credentials)[0]
    assert secret(vended) not in str(tuple(row))
    assert row.hint == secret(vended)[-4:]
    assert str(vended.credential) == "***"
    assert "tenure_endpoint_" not in repr(vended)


# --- reaching ---------------------------------------------------------------------------------------------


def test_b26_an_endpoint_is_reached_by_slug_and_by_id_by_its_human_alone(board, bobs_pass):
    """Alice's is Alice's; to Charlie, and to Bob her friend, it is not there."""
    own, shared = board.vend().endpoint, bobs_pass.friendship.slug
    for ref in (own.slug, own.id):
        assert board.read(endpoints.get, board.alice, ref).id == own.id
    for human in (board.bob, board.charlie):
        for ref in (own.slug, own.id, shared, "never-was", "", "\0", "\ud800", "x" * 10_000):
            assert board.refused(endpoints.get, human, ref) is endpoints.MISSING
        assert board.read(endpoints.list_all, human) == []


def test_b27_a_credential_opens_its_own_slug_alone(board):
    """At another's slug, or an unknown one, it is as if it were unknown."""
    one, other = board.vend(name="one"), board.vend(name="other")
    assert enters(board, secret(one), one.endpoint.slug)
    assert not enters(board, secret(one), other.endpoint.slug)
    assert not enters(board, secret(one), "no-such-slug")
    assert not enters(board, secret(one)[:-1] + "x")


def test_b40_secrets_of_one_kind_open_no_door_of_another(board):
    """A credential is no token, and no session."""
    vended = board.vend()
    for door in (access.human_by_token, access.human_by_session):
        assert board.refused(door, secret(vended)) is access.UNAUTHENTICATED


def test_b20_when_it_was_last_seen_is_noted_by_a_call_that_only_reads(board):
    """After it, on endpoint and credential; a second call in the same minute has nothing written."""
    vended = board.vend()

    def written(tx, _board):
        access.worker_by_credential(tx, board, secret(vended))
        return len(tx.aside)

    assert board.read(written) == 1
    until(lambda: board.read(endpoints.get, board.alice, vended.endpoint.slug).seen is not None)
    assert board.read(written) == 0
    board.clock.turn(minutes=1.1)
    assert board.read(written) == 1


def test_b20_when_it_was_last_seen_is_noted_at_most_once_a_minute(board):
    """On endpoint and credential."""
    vended = board.vend()
    board.write(access.worker_by_credential, secret(vended))
    first = board.read(endpoints.get, board.alice, vended.endpoint.slug).seen
    assert first == board.read(endpoints.credentials, board.alice, vended.endpoint.slug)[0].seen is not None
    for minutes, changed in ((0.5, False), (0.6, True)):
        board.clock.turn(minutes=minutes)
        board.write(access.worker_by_credential, secret(vended))
        assert (board.read(endpoints.get, board.alice, vended.endpoint.slug).seen > first) is changed


# --- editing ----------------------------------------------------------------------------------------------


def test_b22_an_edit_grows_the_revision_and_is_heard_of(board, heard):
    """A new default: another revision, a notice to the endpoint's sessions, a line in the audit."""
    endpoint = board.vend().endpoint
    heard.clear()
    edited = board.write(endpoints.edit_lease, board.alice, endpoint.slug, 1800)
    assert (edited.default_lease_ttl_seconds, edited.revision) == (1800, endpoint.revision + 1)
    assert edited == board.read(endpoints.get, board.alice, endpoint.slug)
    assert heard == [("endpoint", endpoint.id), ("board", board.alice.id)]
    assert board.read(audit.list_page, board.alice)[0].action == "edit"


def test_b30_the_same_stored_value_again_tells_nobody(board, heard):
    """No notice, no revision, no line of audit; null → 300 is another value, for it changes whose it is."""
    endpoint = board.vend(default_lease=600).endpoint
    lines, _ = board.rows(tables.audit), heard.clear()
    assert board.write(endpoints.edit_lease, board.alice, endpoint.slug, 600) == endpoint
    assert (heard, board.rows(tables.audit)) == ([], lines)
    for value in (None, 300):
        heard.clear()
        board.write(endpoints.edit_lease, board.alice, endpoint.slug, value)
        assert ("endpoint", endpoint.id) in heard


def test_b42_refusals_come_in_their_order(board):
    """Reach, then state, then If-Match, then the value."""
    endpoint = board.vend().endpoint
    call = (endpoints.edit_lease, board.charlie, endpoint.slug, "bad", [99])
    assert board.refused(*call).code == "not_found"
    assert board.refused(endpoints.edit_lease, board.alice, endpoint.slug, "bad", [99]).code == "precondition_failed"
    assert board.refused(endpoints.edit_lease, board.alice, endpoint.slug, "bad", [1]).code == "invalid_argument"
    board.write(endpoints.revoke, board.alice, endpoint.slug)
    ended = board.refused(endpoints.edit_lease, board.alice, endpoint.slug, "bad", [99])
    assert (ended.code, ended.details) == ("conflict", {"state": "revoked"})


def test_b22_of_two_edits_of_one_revision_one_wins(board):
    """If-Match holds under concurrency: the row is locked before it is compared."""
    endpoint = board.vend().endpoint

    def edit(value):
        try:
            return board.write(endpoints.edit_lease, board.alice, endpoint.slug, value, [endpoint.revision])
        except Refused as refused:
            return refused.refusal.code

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(edit, [100, 200, 300, 400]))
    assert answers.count("precondition_failed") == 3
    assert board.read(endpoints.get, board.alice, endpoint.slug).revision == endpoint.revision + 1


def test_b22_name_and_era_are_edited_in_place(board):
    """The slug stays; an era that is none is refused."""
    slug = board.vend().endpoint.slug
    assert board.write(endpoints.set_display_name, board.alice, slug, " Deep Reviewer ").name == "Deep Reviewer"
    assert board.write(endpoints.set_era, board.alice, slug, "both").mcp_era == "both"
    assert board.refused(endpoints.set_era, board.alice, slug, "stone").details["field"] == "mcp_era"
    assert board.write(endpoints.set_era, board.alice, slug, None).mcp_era is None
    assert board.read(endpoints.get, board.alice, slug).slug == slug


def test_b36_presence_and_shift_are_the_humans_and_a_new_shift_ends_an_override(board):
    """Out for ten minutes, then the shift's word; and who waits is told to look again."""
    slug = board.vend().endpoint.slug
    out = board.write(endpoints.set_presence, board.alice, slug, "out", 600)
    assert (out.override, out.presence(out.override_until - 1).value) == ("out", "out")
    assert out.presence(out.override_until).value == "in"
    shifted = board.write(endpoints.set_shift, board.alice, slug, "TZ=Europe/Berlin  Mon-Fri 09:00-18:00")
    assert (shifted.override, shifted.shift) == (None, "TZ=Europe/Berlin Mon-Fri 09:00-18:00")
    assert board.refused(endpoints.set_shift, board.alice, slug, "always").details["field"] == "shift"
    assert board.refused(endpoints.set_presence, board.alice, slug, "away").details["field"] == "presence"
    assert board.refused(endpoints.set_presence, board.alice, slug, "in", 0).details["field"] == "for"
    assert board.write(endpoints.set_shift, board.alice, slug, None).shift is None


def test_b36_an_endpoint_clocks_itself_in_and_out(board):
    """Its own, for an hour at most eight; without a shift, out lasts until it comes in again."""
    worker = board.worker(board.vend())
    out = board.write(endpoints.clock_out, worker)
    assert (out.override, out.override_until) == ("out", None)
    back = board.write(endpoints.clock_in, worker)
    assert back.override_until - board.database.reading(lambda tx: tx.now()) == pytest.approx(HOUR, abs=60_000)
    assert board.refused(endpoints.clock_in, worker, 28_801).details["field"] == "for"


def test_b31_an_endpoint_reads_and_sets_its_own_default(board):
    """Effective value, source and bounds; the other endpoint is not touched."""
    one, other = board.vend(name="one"), board.vend(name="other", default_lease=900)
    worker = board.worker(one)
    assert board.read(endpoints.get_default_lease, worker) == (None, (300, "server"), 60, 86_400)
    assert board.write(endpoints.set_default_lease, worker, 3600) == (3600, (3600, "endpoint"), 60, 86_400)
    assert board.read(endpoints.get, board.alice, other.endpoint.slug) == other.endpoint
    line = board.read(audit.list_page, board.alice)[0]
    assert (line.actor, line.actor_id, line.action) == ("endpoint", one.endpoint.id, "edit")


def test_b31_an_own_setting_is_stored_against_what_is_there_now(board):
    """A worker whose row was read before another edit does not undo that edit's revision."""
    vended = board.vend()
    worker = board.worker(vended)
    board.write(endpoints.edit_lease, board.alice, vended.endpoint.slug, 600)
    board.write(endpoints.set_default_lease, worker, 1200)
    assert board.read(endpoints.get, board.alice, vended.endpoint.slug).revision == 3


# --- rotation ---------------------------------------------------------------------------------------------


def test_case_b42_the_first_credential_lives_through_the_overlap_and_not_longer(board):
    """Both are valid for the hour; then the second alone."""
    first = board.vend()
    second = board.write(endpoints.rotate, board.alice, first.endpoint.slug, 3600)
    assert enters(board, secret(first))
    assert enters(board, secret(second))
    board.clock.turn(minutes=60)
    assert not enters(board, secret(first))
    assert enters(board, secret(second))


def test_b21_at_most_two_credentials_are_valid(board):
    """A second rotation within the overlap ends the first one at once."""
    first = board.vend()
    slug = first.endpoint.slug
    second, third = (board.write(endpoints.rotate, board.alice, slug, 3600) for _ in range(2))
    assert [enters(board, secret(one)) for one in (first, second, third)] == [False, True, True]
    assert [one.hint for one in board.read(endpoints.credentials, board.alice, slug)] == [
        secret(third)[-4:], secret(second)[-4:],
    ]  # fmt: skip


def test_b21_without_an_overlap_the_first_ends_at_once_and_its_streams_are_told(board, heard):
    """Zero is the default; whoever came in by the old one must look whether it is still valid."""
    first = board.vend()
    heard.clear()
    board.write(endpoints.rotate, board.alice, first.endpoint.slug)
    assert not enters(board, secret(first))
    assert ("ended", first.endpoint.id) in heard


@pytest.mark.parametrize("seconds", [-1, 86_401, 1.5, True, "60"])
def test_b21_an_overlap_is_from_nothing_to_a_day(board, seconds):
    """Whole seconds, refused outside."""
    slug = board.vend().endpoint.slug
    assert board.refused(endpoints.rotate, board.alice, slug, seconds).details["field"] == "overlap_seconds"


# --- the end ----------------------------------------------------------------------------------------------


def test_b25_a_revoked_endpoint_lets_nobody_in_and_takes_no_write_and_can_be_read(board, heard):
    """At once; each write is a 409 with its state; a second revoke too."""
    vended = board.vend()
    slug, worker = vended.endpoint.slug, board.worker(vended)
    heard.clear()
    assert board.write(endpoints.revoke, board.alice, slug).state == "revoked"
    assert ("ended", vended.endpoint.id) in heard
    assert not enters(board, secret(vended))
    writes = [
        (endpoints.revoke, board.alice, slug),
        (endpoints.edit_lease, board.alice, slug, 600),
        (endpoints.set_display_name, board.alice, slug, "x"),
        (endpoints.set_presence, board.alice, slug, "in"),
        (endpoints.set_shift, board.alice, slug, None),
        (endpoints.set_era, board.alice, slug, None),
        (endpoints.rotate, board.alice, slug, 60),
        (endpoints.set_default_lease, worker, 600),
        (endpoints.clock_in, worker),
        (endpoints.clock_out, worker),
    ]
    for call in writes:
        refused = board.refused(*call)
        assert (refused.code, refused.details) == ("conflict", {"state": "revoked"}), call
    assert board.read(endpoints.get, board.alice, slug).state == "revoked"
    assert len(board.read(endpoints.list_all, board.alice)) == 1


def test_b25_revoking_ends_the_todos_of_the_endpoint(board):
    """Live ones are dead letters with that reason."""
    vended = board.vend()
    made = board.write(todos.create, board.alice, vended.endpoint, NewTodo("x"))
    board.write(endpoints.revoke, board.alice, vended.endpoint.slug)
    row = board.rows("SELECT state, ended FROM todos WHERE id = :id", id=made.todo.summary.id)[0]
    assert row.state == "failed"
    assert row.ended is not None


def test_b24_an_endpoint_expires_by_the_clock_and_then_by_the_reaper(board, heard):
    """At its very time it lets nobody in and takes no write; the reaper does the rest, once, with that reason."""
    now = board.database.reading(lambda tx: tx.now())
    vended, other = board.vend(expires=now + HOUR), board.vend(name="other", expires=now + 2 * HOUR)
    assert board.write(vending.expire_due) == 0
    board.clock.turn(hours=1)
    assert not enters(board, secret(vended))
    assert board.refused(endpoints.edit_lease, board.alice, vended.endpoint.slug, 600).details == {"state": "expired"}
    heard.clear()
    assert [board.write(vending.expire_due) for _ in range(2)] == [1, 0]
    assert ("ended", vended.endpoint.id) in heard
    assert board.read(endpoints.get, board.alice, vended.endpoint.slug).ended is not None
    line = board.read(audit.list_page, board.alice)[0]
    assert (line.actor, line.action, line.subject_id) == ("server", "expire", vended.endpoint.id)
    assert enters(board, secret(other))


def test_b25_of_two_revokes_at_once_one_succeeds(board):
    """The other is told that it was revoked; one line of audit stands."""
    slug = board.vend().endpoint.slug

    def revoke(_):
        try:
            return board.write(endpoints.revoke, board.alice, slug).state
        except Refused as refused:
            return refused.refusal.details["state"], refused.refusal.code

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(revoke, range(2)))
    assert sorted(answers, key=str) == [("revoked", "conflict"), "revoked"]
    assert [line.action for line in board.read(audit.list_page, board.alice)].count("revoke") == 1
