"""Buckets over REST and /work/v1 (B43): what is left is told, and what is too much must wait."""

import pytest


@pytest.fixture
def settings():
    """Rates so slow that nothing comes back while a test runs; bursts of the page."""
    from tenure.board.board import BoardSettings, Rate

    slow = 1 / 3600
    return BoardSettings(writes=Rate(slow, 20), reads=Rate(slow, 40), worker=Rate(slow, 8), own_settings=Rate(slow, 10))


def left(answer):
    """(the bucket's name, calls that are left, seconds until it is full) of an answer's header."""
    name, remaining, seconds = answer.headers["ratelimit"].split(";")
    return name, int(remaining.removeprefix("r=")), int(seconds.removeprefix("t="))


async def test_b43_twenty_writes_at_once_and_not_one_more(rest, board, refused):
    """The twenty-first waits as long as it is told; reads, and another human, have buckets of their own."""
    answers = [await rest.alice("POST", "/api/v1/me/friend-code") for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert [left(answer)[1] for answer in answers] == [*range(19, -1, -1), 0]
    assert answers[0].headers["ratelimit-policy"] == '"writes";q=20;w=72000'
    refused(answers[-1], 429, "rate_limited")
    seconds = int(answers[-1].headers["retry-after"])
    assert 3500 < seconds <= 3600
    assert (await rest.alice("GET", "/api/v1/me")).is_success
    assert (await rest.bob("POST", "/api/v1/me/friend-code")).is_success
    board.clock.turn(seconds=seconds)
    assert (await rest.alice("POST", "/api/v1/me/friend-code")).is_success
    assert (await rest.alice("POST", "/api/v1/me/friend-code")).status_code == 429


async def test_b42_rate_comes_before_size_and_after_authentication(rest, refused):
    """A bucket that is empty refuses before the body is looked at; who is nobody has no bucket."""
    for _ in range(40):
        assert (await rest.alice("GET", "/api/v1/me")).is_success
    large = b"x" * 70_000
    refused(await rest.alice("GET", "/api/v1/me", large), 429, "rate_limited")
    refused(await rest.nobody("GET", "/api/v1/me", large), 401, "unauthenticated")
    refused(await rest.alice("POST", "/api/v1/endpoints", large), 413, "payload_too_large")


async def test_b43_refused_calls_are_counted_too(rest):
    """Whoever asks for what is not there is slowed down like anybody."""
    for _ in range(20):
        assert (await rest.alice("POST", "/api/v1/endpoints/unknown/revoke")).status_code == 404
    assert (await rest.alice("POST", "/api/v1/endpoints/unknown/revoke")).status_code == 429


async def test_b43_an_endpoints_workers_share_a_bucket(rest, refused):
    """Of its own, beside its human's; another endpoint of the same human has another."""
    endpoint, worker = await rest.vend()
    other_endpoint, other = await rest.vend()
    assert endpoint != other_endpoint
    statuses = [(await worker.verb("claim_next")).status_code for _ in range(9)]
    assert statuses == [200] * 8 + [429]
    answer = await worker("POST", "/work/v1/claim_next", b"junk")
    refused(answer, 429, "rate_limited")
    assert int(answer.headers["retry-after"]) >= 1
    assert (await other.verb("claim_next")).status_code == 200
    # A bucket that is empty tells nobody that their credential was good once.
    await rest.alice.told("POST", f"/api/v1/endpoints/{endpoint['id']}/revoke")
    refused(await worker.verb("claim_next"), 401, "unauthenticated")


async def test_b43_a_credential_that_has_ended_empties_nobodys_bucket(rest, refused):
    """It was rotated away, and is known to whom it should not be: its calls are not counted with the endpoint's."""
    endpoint, worker = await rest.vend()
    assert (await worker.verb("claim_next")).status_code == 200
    told = await rest.alice.told("POST", f"/api/v1/endpoints/{endpoint['id']}/rotate", {})
    for _ in range(20):
        refused(await worker.verb("claim_next"), 401, "unauthenticated")
    fresh = rest.as_worker(told["credential"])
    assert (await fresh.verb("claim_next")).status_code == 200
