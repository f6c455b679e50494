"""What ADR-0043 decides of REST and of the worker's door, by name."""

import pytest

FIELD = "default_lease_ttl_seconds"


async def patch(who, ref, body, **headers):
    return await who("PATCH", f"/api/v1/endpoints/{ref}", body, headers=headers)


async def test_adr_0043_vend_get_and_list_return_the_default_and_what_holds(rest):
    """POST takes the field; absent it is null, and the server default holds."""
    for given, stored, holds in (({FIELD: 1800}, 1800, 1800), ({FIELD: None}, None, 300), ({}, None, 300)):
        endpoint, _ = await rest.vend(**given)
        one = await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['slug']}")
        (listed,) = [
            each for each in (await rest.alice.told("GET", "/api/v1/endpoints"))["endpoints"]
            if each["id"] == endpoint["id"]
        ]  # fmt: skip
        for told in (endpoint, one, listed):
            assert (told[FIELD], told["effective_lease_ttl_seconds"]) == (stored, holds)


async def test_adr_0043_an_edit_reaches_the_next_claim_and_leaves_granted_leases_alone(rest):
    """Read on each call that needs it: no session, no restart; what was granted keeps its expiry."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=900)
    first, second = [await rest.put(endpoint) for _ in range(2)]
    held = (await worker.did("claim", todo_id=first["id"]))["claims"][0]
    for ref, value in ((endpoint["slug"], 3600), (endpoint["id"], 60)):
        assert (await patch(rest.alice, ref, {FIELD: value})).is_success
        kept = (await rest.alice.told("GET", f"/api/v1/todos/{first['id']}"))["todo"]["lease_expires_at"]
        assert kept == held["lease_expires_at"]
    claimed = (await worker.did("claim", todo_id=second["id"]))["claims"][0]
    assert (claimed["lease_ttl_seconds"], claimed["lease_ttl_source"]) == (60, "endpoint")
    beat = await worker.did("heartbeat", todo_id=first["id"], lease_token=held["lease_token"])
    assert (beat["lease_ttl_seconds"], beat["extended"], beat["lease_expires_at"]) == (
        60,
        False,
        held["lease_expires_at"],
    )


async def test_adr_0043_a_bare_heartbeat_does_not_shorten_a_lease_of_an_hour(rest, board):
    """The trap of the incident: claimed for an hour by the call, beaten without a word."""
    endpoint, worker = await rest.vend()
    todo = await rest.put(endpoint)
    claim = (await worker.did("claim_next", lease_ttl_seconds=3600))["claims"][0]
    await worker.did("heartbeat", todo_id=todo["id"], lease_token=claim["lease_token"])
    board.clock.turn(minutes=50)
    assert (await worker.did("check_claim", todo_id=todo["id"], lease_token=claim["lease_token"]))["held"]


async def test_adr_0043_the_incident_replayed(rest, board, refused):
    """Silent for 50 minutes: under the owner's hour it still holds; under 300 s the second worker's result stands."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=3600)
    todo = await rest.put(endpoint)
    claim = (await worker.did("claim_next"))["claims"][0]
    board.clock.turn(minutes=50)
    held = {"todo_id": todo["id"], "lease_token": claim["lease_token"]}
    assert (await worker.did("check_claim", **held))["held"]
    assert (await worker.did("complete", **held, result="approved"))["state"] == "done"

    await patch(rest.alice, endpoint["slug"], {FIELD: None})
    todo = await rest.put(endpoint)
    late = (await worker.did("claim_next"))["claims"][0]
    board.clock.turn(minutes=50)
    late = {"todo_id": todo["id"], "lease_token": late["lease_token"]}
    checked = await worker.did("check_claim", **late)
    assert (checked["held"], checked["reason"]) == (False, "lapsed")
    second = (await worker.did("claim", todo_id=todo["id"]))["claims"][0]
    answer = await worker.verb("complete", **late, result="merged too late")
    refused(answer, 409, "conflict", reason="taken")
    await worker.did("complete", todo_id=todo["id"], lease_token=second["lease_token"], result="the second's")
    whole = (await rest.alice.told("GET", f"/api/v1/todos/{todo['id']}"))["todo"]
    assert whole["result"] == "the second's"
    assert whole["attempts"][0]["late"] == {"verb": "complete", "result": "merged too late"}


async def test_adr_0043_patch_reaches_ones_own_endpoint_alone(rest, refused):
    """By slug or id; another human's endpoint is the same 404 as an unknown one, byte for byte."""
    theirs, _ = await rest.vend(rest.bob)
    unknown = await patch(rest.alice, "unknown-zzzz", {FIELD: 60})
    refused(unknown, 404, "not_found")
    for ref in (theirs["slug"], theirs["id"]):
        assert (await patch(rest.alice, ref, {FIELD: 60})).content == unknown.content
        assert (await patch(rest.charlie, ref, {FIELD: 60})).content == unknown.content
        assert (await patch(rest.bob, ref, {FIELD: 60})).is_success


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_adr_0043_patch_of_an_ended_endpoint_is_409_with_its_state(rest, board, refused, how):
    """As every write to it answers; reading it goes on."""
    endpoint, _ = await rest.vend(expires_at="now+1h")
    if how == "revoked":
        await rest.alice.told("POST", f"/api/v1/endpoints/{endpoint['id']}/revoke")
    else:
        board.clock.turn(hours=1)
    refused(await patch(rest.alice, endpoint["id"], {FIELD: 60}), 409, "conflict", state=how)
    assert (await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['id']}"))["state"] == how


async def test_adr_0043_patch_needs_its_key_and_refuses_any_other(rest, refused):
    """So that a caller cannot believe it edited scope."""
    endpoint, _ = await rest.vend()
    refused(await patch(rest.alice, endpoint["id"], {}), 400, "invalid_argument", field=FIELD)
    for key in ("queues", "verbs", "lease_ttl"):
        refused(await patch(rest.alice, endpoint["id"], {FIELD: 60, key: []}), 400, "invalid_argument", field=key)
    assert (await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['id']}"))[FIELD] is None


async def test_adr_0043_a_friends_endpoint_has_the_approvers_settings(rest, refused):
    """The approver edits it; to the friend it is not there, and the default applies to the friend's claims."""
    code = (await rest.alice.told("GET", "/api/v1/me"))["friend_code"]
    asked = await rest.bob.told("POST", "/api/v1/friends", {"code": code, "queues": ["inbox"], "verbs": ["claim_next"]})
    await rest.alice.told("POST", f"/api/v1/friends/{asked['id']}/approve", {"agent": "x", FIELD: 600})
    collected = await rest.bob.told("POST", f"/api/v1/friends/{asked['id']}/collect")
    slug = collected["friendship"]["endpoint"]
    await rest.put({"id": slug})
    claim = (await rest.as_worker(collected["credential"]).did("claim_next"))["claims"][0]
    assert (claim["lease_ttl_seconds"], claim["lease_ttl_source"]) == (600, "endpoint")
    refused(await patch(rest.bob, slug, {FIELD: 60}), 404, "not_found")
    assert (await patch(rest.alice, slug, {FIELD: 1200})).is_success


async def test_adr_0043_board_actions_of_a_human_grant_an_endpoint_nothing(rest):
    """The human API has no claim route: completing and releasing by hand leave no lease of a worker behind."""
    endpoint, worker = await rest.vend()
    todo = await rest.put(endpoint)
    await worker.did("claim", todo_id=todo["id"])
    await rest.alice.told("POST", f"/api/v1/todos/{todo['id']}/release", {})
    whole = (await rest.alice.told("GET", f"/api/v1/todos/{todo['id']}"))["todo"]
    assert (whole["state"], whole["lease_expires_at"], whole["claimed_by"]) == ("pending", None, None)
