"""Signing in: passwords, sessions, tokens, and what may be tried how often."""

import asyncio
import dataclasses
import types

import pytest
from argon2 import PasswordHasher
from board_hall import open_hall

from tenure.board import access, audit, buckets, humans, signing_in, tables, tokens
from tenure.board.board import BoardSettings, Rate
from tenure.board.refused import Refused
from tenure.rules.bucket import Taken
from tenure.rules.refusal import MISSING

WORDS = "a horse that counts to nine"


@pytest.fixture
def password(board, monkeypatch):
    """Alice and Bob have one, cheaply hashed; the default costs are looked at elsewhere."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(signing_in, "_HASHER", cheap)
    signing_in._nobodys.cache_clear()
    for human in (board.alice, board.bob):
        board.write(signing_in.put_password, human, signing_in.hashed_password(f"{WORDS}, says {human.name}"))
    yield lambda human: f"{WORDS}, says {human.name}"
    signing_in._nobodys.cache_clear()


async def refused(call):
    with pytest.raises(Refused) as wrong:
        await call
    return wrong.value.refusal


def test_b51_passwords_are_argon2id_with_the_librarys_own_costs(board):
    """The stored text says so, and holds no password."""
    board.write(signing_in.put_password, board.alice, signing_in.hashed_password(WORDS))
    stored = next(row.password for row in board.rows(tables.humans) if row.name == "alice")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert WORDS not in stored


@pytest.mark.parametrize("text", ["", "short", "x" * 1001])
def test_b51_a_password_has_a_sensible_length(text):
    """Too short, or too long to hash, is refused by its field."""
    with pytest.raises(Refused) as wrong:
        signing_in.hashed_password(text)
    assert wrong.value.refusal.details["field"] == "password"


async def test_b51_name_and_password_begin_a_session(board, password):
    """The cookie lets Alice in for twelve hours; csrf belongs to the session; a line stands in the audit."""
    human, cookie = await signing_in.by_password(
        board, "alice", password(board.alice), address="::1", agent="a\nbrowser"
    )
    known = board.read(access.human_by_session, cookie.reveal())
    assert known == human
    assert (known.id, known.via, len(known.csrf)) == (board.alice.id, "session", 64)
    (session,) = board.read(signing_in.sessions, board.alice)
    assert (session.agent, session.expires - session.created) == ("abrowser", 12 * 3_600_000)
    assert board.read(audit.list_page, board.alice)[0].action == "sign_in"
    board.clock.turn(hours=12)
    assert board.refused(access.human_by_session, cookie.reveal()) is access.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("name", "text"),
    [("alice", "wrong"), ("charlie", WORDS), ("nobody", WORDS), ("alice\0", WORDS), ("", ""), ("\ud800", "\ud800"),
     ("x" * 100_000, WORDS), ("alice", "x" * 100_000)],
)  # fmt: skip
async def test_b51_what_does_not_fit_is_one_answer(board, password, name, text, monkeypatch):
    """A wrong password, a human without one, an unknown name, nonsense: the same refusal, after the same work."""
    hashed, verify = [], PasswordHasher.verify

    def counted(hasher, stored, given):
        hashed.append(stored)
        return verify(hasher, stored, given)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    answer = await refused(signing_in.by_password(board, name, text, address="::1"))
    assert answer is signing_in.NOT_SIGNED_IN
    assert len(hashed) == 1
    assert board.rows(tables.sessions) == []


async def test_b51_a_password_that_was_changed_while_it_was_proved_lets_nobody_in(board, password, monkeypatch):
    """The session is begun only if the stored hash is still the one that was verified."""
    fits = signing_in._fits

    def slowly(stored, given):
        other = signing_in.hashed_password("quite another sentence")
        board.write(signing_in.put_password, board.alice, other)
        return fits(stored, given)

    monkeypatch.setattr(signing_in, "_fits", slowly)
    call = signing_in.by_password(board, "alice", password(board.alice), address="::1")
    assert await refused(call) is signing_in.NOT_SIGNED_IN


async def test_b51_a_hash_of_other_costs_is_renewed_at_the_next_sign_in(board, password, monkeypatch):
    """The password stays the same, its hash has the costs of now."""
    monkeypatch.setattr(signing_in, "_HASHER", PasswordHasher(time_cost=2, memory_cost=8, parallelism=1))
    await signing_in.by_password(board, "alice", password(board.alice), address="::1")
    stored = next(row.password for row in board.rows(tables.humans) if row.name == "alice")
    assert "t=2" in stored
    await signing_in.by_password(board, "alice", password(board.alice), address="::1")


async def test_b51_a_new_password_ends_the_other_sessions(board, password):
    """The one that asks stays; the old password is no more."""
    first, second = [
        await signing_in.by_password(board, "alice", password(board.alice), address="::1") for _ in range(2)
    ]
    await signing_in.set_password(board, second.human, "another good sentence")
    assert board.refused(access.human_by_session, first.cookie.reveal()) is access.UNAUTHENTICATED
    assert board.read(access.human_by_session, second.cookie.reveal())
    call = signing_in.by_password(board, "alice", password(board.alice), address="::1")
    assert await refused(call) is signing_in.NOT_SIGNED_IN


async def test_b51_sessions_are_listed_and_ended_by_their_human_alone(board, password):
    """Bob does not find Alice's; she ends her own, and it opens nothing any more."""
    human, cookie = await signing_in.by_password(board, "alice", password(board.alice), address="::1")
    assert board.read(signing_in.sessions, board.bob) == []
    for who, session_id in ((board.bob, human.via_id), (board.alice, "se_never")):
        assert board.refused(signing_in.end_session, who, session_id) is MISSING
    board.write(signing_in.end_session, human, human.via_id)
    assert board.refused(access.human_by_session, cookie.reveal()) is access.UNAUTHENTICATED


def slowly(board, **bursts):
    """The board's buckets of these kinds let a call in each 600 s, so that no test is too slow for them."""
    rates = {kind: Rate(1 / 600, burst) for kind, burst in bursts.items()}
    object.__setattr__(board, "settings", dataclasses.replace(board.settings, **rates))


def test_b43_the_rates_are_those_of_the_page():
    """Writes, reads, workers, own settings, sign-in by account and by address."""
    rates = BoardSettings()
    assert (rates.writes, rates.reads) == (Rate(5, 20), Rate(20, 40))
    assert (rates.worker, rates.own_settings) == (Rate(200, 400), Rate(1, 10))
    assert (rates.sign_in_account, rates.sign_in_address) == (Rate(5 / 60, 5), Rate(20 / 60, 20))


async def test_b43_sign_in_is_tried_five_times_per_account(board, password):
    """The sixth is refused, with the right password too, and for a name that nobody has; Bob is not locked out."""
    slowly(board, sign_in_account=5)
    for name in ("alice", "nobody"):
        for _ in range(5):
            assert await refused(signing_in.by_password(board, name, "wrong", address=f"a{name}"))
        answer = await refused(signing_in.by_password(board, name, password(board.alice), address=f"a{name}"))
        assert answer.code == "rate_limited"
        assert 500 < answer.details["retry_after_seconds"] <= 600
    assert await signing_in.by_password(board, "bob", password(board.bob), address="b")
    board.clock.turn(seconds=600)
    assert await signing_in.by_password(board, "alice", password(board.alice), address="a")


async def test_b43_sign_in_is_tried_twenty_times_per_address(board, password):
    """Whatever names are tried from there."""
    slowly(board, sign_in_address=20)
    for number in range(20):
        answer = await refused(signing_in.by_password(board, f"name{number}", "wrong", address="192.0.2.1"))
        assert answer.code == "unauthenticated"
    answer = await refused(signing_in.by_password(board, "alice", password(board.alice), address="192.0.2.1"))
    assert answer.code == "rate_limited"


def test_b51_links_and_sessions_that_are_over_are_pruned(board):
    """Those that are not stay."""
    board.write(signing_in.by_link, board.write(signing_in.link_for, "alice").reveal())
    board.clock.turn(hours=11)
    board.write(signing_in.link_for, "bob")
    assert board.write(signing_in.prune) == 1
    board.clock.turn(hours=1)
    assert board.write(signing_in.prune) == 2
    assert [board.rows(table) for table in (tables.links, tables.sessions)] == [[], []]


# --- humans and tokens ------------------------------------------------------------------------------------


def test_b52_humans_are_added_by_name_and_names_are_taken_once(board):
    """The command on the server's machine; who is not there is told how to add them."""
    assert board.write(humans.add, "  dora ").name == "dora"
    assert board.refused(humans.add, "dora").details["reason"] == "name_taken"
    assert board.refused(humans.add, "").details["field"] == "name"
    assert [person.name for person in board.read(humans.list_all)] == ["alice", "bob", "charlie", "dora"]
    assert board.read(humans.named, "dora").has_password is False
    assert "tenure human add" in board.refused(humans.named, "zoe").message


def test_b40_a_token_is_shown_once_listed_by_its_hint_and_revoked(board):
    """It lets its human in until then; Charlie can't end it, and a second end finds nothing."""
    token, secret = board.write(tokens.create, board.alice, "laptop")
    assert board.read(access.human_by_token, secret.reveal())[:3] == (board.alice.id, "alice", "token")
    assert [one.hint for one in board.read(tokens.list_all, board.alice)] == [secret.reveal()[-4:]]
    assert board.read(tokens.list_all, board.charlie) == []
    assert board.refused(tokens.revoke, board.charlie, token.id) is MISSING
    board.write(tokens.revoke, board.alice, token.id)
    assert board.refused(access.human_by_token, secret.reveal()) is access.UNAUTHENTICATED
    assert board.refused(tokens.revoke, board.alice, token.id) is MISSING
    assert board.read(tokens.list_all, board.alice) == []


def test_b40_a_token_may_end_by_itself(board):
    """At its very time; a time that is past is refused."""
    now = board.database.reading(lambda tx: tx.now())
    token, secret = board.write(tokens.create, board.alice, "short", now + 60_000)
    board.clock.turn(minutes=1)
    assert board.refused(access.human_by_token, secret.reveal()) is access.UNAUTHENTICATED
    assert board.read(tokens.list_all, board.alice) == []
    assert board.refused(tokens.create, board.alice, "past", token.created).details["field"] == "expires"


# --- buckets ----------------------------------------------------------------------------------------------


async def test_b43_a_bucket_lets_its_burst_through_and_then_its_rate(board):
    """Twenty at once, then one each ten minutes; each human has their own, and reads another."""
    slowly(board, writes=20)
    left = [(await buckets.spend(board, "writes", board.alice.id)).remaining for _ in range(20)]
    assert left == list(range(19, -1, -1))
    assert (await refused(buckets.spend(board, "writes", board.alice.id))).code == "rate_limited"
    assert await buckets.spend(board, "writes", board.bob.id)
    assert await buckets.spend(board, "reads", board.alice.id)
    board.clock.turn(seconds=3 * 600)
    for _ in range(3):
        await buckets.spend(board, "writes", board.alice.id)
    assert (await refused(buckets.spend(board, "writes", board.alice.id))).code == "rate_limited"


async def test_b43_several_servers_agree_on_a_bucket(board, board_url):
    """Two servers on one database let through one burst between them."""
    other, allowed = open_hall(board_url, clock=board.clock), 0
    for server in [board, other] * 15:
        slowly(server, writes=20)
        try:
            await buckets.spend(server, "writes", "x")
            allowed += 1
        except Refused:
            pass
    other.database.shut()
    assert allowed == 20


async def test_b43_workers_are_let_through_in_chunks_and_not_beyond_their_burst(board, monkeypatch):
    """400 calls cost a few writes of the row, and the calls beyond are refused."""
    slowly(board, worker=400)
    writes, write = [], board.database.write

    async def counted(*args, **kwargs):
        writes.append(args[0])
        return await write(*args, **kwargs)

    monkeypatch.setattr(board.database, "write", counted)
    for _ in range(400):
        await buckets.spend(board, "worker", "an endpoint")
    assert len(writes) == 400 // buckets.CHUNK
    assert (await refused(buckets.spend(board, "worker", "an endpoint"))).code == "rate_limited"
    assert await buckets.spend(board, "worker", "another endpoint", cost=100)


async def test_b43_workers_who_call_at_once_have_the_whole_burst(board, board_url):
    """Sixty-four at once share what is taken from the row: none is refused, and another server finds the rest there."""
    other, allowed = open_hall(board_url, clock=board.clock), 0
    for server in (board, other):
        slowly(server, worker=400)
    told = await asyncio.gather(*(buckets.spend(board, "worker", "an endpoint") for _ in range(64)))
    assert all(one.allowed for one in told)
    for server in (other, board):
        more = (buckets.spend(server, "worker", "an endpoint") for _ in range(400))
        told = await asyncio.gather(*more, return_exceptions=True)
        assert {one.refusal.code for one in told if isinstance(one, Refused)} == {"rate_limited"}
        allowed += sum(not isinstance(one, Refused) for one in told)
    other.database.shut()
    assert allowed == 400 - 64
    assert board.refills == {}


async def test_b43_a_call_that_comes_as_a_refill_ends_takes_one_of_its_own():
    """What was taken is used up in that very moment: who finds nothing left asks the row again, not what is over."""

    class Spare(dict):
        looks = 0

        def get(self, *args):
            self.looks += 1
            assert self.looks < 100, "it asks for ever, and nothing else of the server goes on"
            return super().get(*args)

    late, database = [], types.SimpleNamespace()
    settings = BoardSettings(worker=Rate(1, 1))  # so that one call is taken at a time
    board = types.SimpleNamespace(settings=settings, spare=Spare(), refills={}, database=database)

    async def write(*_):
        if not late:  # they begin once this task is over, and before anybody hears that it is
            late.extend(asyncio.ensure_future(buckets.spend(board, "worker", "x")) for _ in range(2))
        return Taken(True, 0, 0, 0)

    database.write = write
    told = [await buckets.spend(board, "worker", "x"), *await asyncio.gather(*late)]
    assert [one.allowed for one in told] == [True] * 3
    assert board.refills == {}


def test_b43_buckets_that_are_full_again_are_pruned(board):
    """Nothing is lost with them."""
    board.write(buckets.take, "a", Rate(1 / 60, 10), 10)
    assert board.write(buckets.prune) == 0
    board.clock.turn(minutes=11)
    assert board.write(buckets.prune) == 1
