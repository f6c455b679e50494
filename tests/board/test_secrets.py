"""Secrets: spelled so that typing errors show, hashed at rest, and silent in whatever is printed."""

import logging
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.board import secrets
from tenure.board.secrets import DIGITS, Ring, Secret, digest, draw, new_key, ring_beside, ring_of, well_spelled
from tenure.errors import ConfigError

KINDS = ("endpoint", "human", "session", "link", "friend")
_BODY = "tenure_endpoint_" + "0123456789AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQ"
SPELLED = _BODY + secrets._checksum(_BODY)


@pytest.mark.parametrize("kind", KINDS)
def test_b21_a_secret_is_prefix_random_and_checksum(kind):
    """Of its own kind and no other; no two are the same."""
    one, other = draw(kind).reveal(), draw(kind).reveal()
    assert one != other
    assert one.startswith(f"tenure_{kind}_")
    assert [other for other in KINDS if well_spelled(one, other)] == [kind]


@given(st.integers(0, len(SPELLED) - 1), st.sampled_from(DIGITS + "_- é\0"))
def test_b21_one_wrong_character_is_known_without_asking_the_database(place, sign):
    """Wherever it stands, and whatever it is."""
    wrong = SPELLED[:place] + sign + SPELLED[place + 1 :]
    assert well_spelled(wrong, "endpoint") is (wrong == SPELLED)


@given(st.integers(0, len(SPELLED) - 2))
def test_b21_two_characters_that_changed_places_are_known_too(place):
    """The most frequent slip of a hand."""
    first, second = SPELLED[place], SPELLED[place + 1]
    wrong = SPELLED[:place] + second + first + SPELLED[place + 2 :]
    assert well_spelled(wrong, "endpoint") is (first == second)


@pytest.mark.parametrize("text", ["", SPELLED + " ", " " + SPELLED, SPELLED + "\n", SPELLED.upper(), "\ud800"])
def test_b21_what_is_longer_or_shorter_is_none(text):
    """Not even by a blank or a line's end."""
    assert not well_spelled(text, "endpoint")


def test_b51_a_secret_prints_nothing_of_itself(caplog):
    """By no way of making text of a value but the one that says so."""
    secret = Secret("tenure_human_clear")
    logging.getLogger("tenure.test").warning("it is %s, %r, %s", secret, secret, {"token": secret})
    shown = f"{secret} {secret!r} {secret!s} {[secret]} {secret:>5}" + caplog.text
    assert "clear" not in shown
    assert secret.reveal() == "tenure_human_clear"
    assert type(secret.reveal()) is str


def test_b12_what_is_derived_is_the_same_for_ever_and_another_for_each_name():
    """For the same purpose, name and key; a lease token is made again from the claim's id."""
    ring, again = ring_of("k" * 32), ring_of("k" * 32)
    assert ring.derive("lease", "x") == again.derive("lease", "x")
    assert len({ring.derive("lease", "x"), ring.derive("lease", "y"), ring.derive("webhook", "x")}) == 3
    token = ring.lease_token("cl_1")
    assert token.reveal() == again.lease_token("cl_1").reveal()
    assert len(token.reveal()) == len("tl_") + 43


def test_b12_several_secrets_newest_first_let_them_be_rotated():
    """New things are made by the newest; old ones by the key that they name, for as long as it is on the ring."""
    before, both, after = ring_of("a" * 32), ring_of(f"{'b' * 32},{'a' * 32}"), ring_of("b" * 32)
    assert both.newest == after.newest != before.newest
    assert both.derive("x", "y", before.newest) == before.derive("x", "y")
    assert both.knows(before.newest)
    with pytest.raises(KeyError):
        after.derive("x", "y", before.newest)


@pytest.mark.parametrize("text", ["", " ", "short", f"{'a' * 32},short", "é" * 15])
def test_b12_a_secret_that_is_too_short_is_refused_with_one_to_use(text):
    """The refusal shows a fresh one and nothing of what was given."""
    with pytest.raises(ConfigError) as refused:
        ring_of(text)
    assert f"TENURE_SECRET={refused.value.hint.partition('TENURE_SECRET=')[2]}" in str(refused.value)
    assert not text.strip() or text not in str(refused.value)
    assert ring_of(new_key())


def test_b12_the_file_beside_the_database_is_its_owners_alone_and_stays(tmp_path):
    """Made once, mode 0600, read again; the ring shows ids and no key."""
    first = ring_beside(tmp_path / "x.secret")
    assert stat.S_IMODE((tmp_path / "x.secret").stat().st_mode) == 0o600
    assert ring_beside(tmp_path / "x.secret").newest == first.newest
    assert (tmp_path / "x.secret").read_text().strip() not in repr(first)
    assert isinstance(first, Ring)


@pytest.mark.parametrize("held", [b"", b"\n", b"short", b"\xff" * 40])
def test_b12_a_file_that_holds_no_secret_is_named_and_left(tmp_path, held):
    """Cut off while it was made, or overwritten: the refusal speaks of the file, and none is made in its place."""
    file = tmp_path / "x.secret"
    file.write_bytes(held)
    with pytest.raises(ConfigError) as refused:
        ring_beside(file)
    assert "is no file with the board's secret in it." in str(refused.value)
    assert f"delete {file}," in str(refused.value)  # whole, however long
    assert file.read_bytes() == held


def test_b21_what_rests_is_the_sha_256():
    """Of the whole, in hexadecimal."""
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
