"""The ordinary road of every route of REST, and what all of them share: keys of creation, rates, headers."""

import pytest


async def test_b41_a_todo_in_the_hands_of_its_human(rest):
    """Made, listed, read, noted, failed, retried, released, completed, cancelled and moved; no route claims."""
    endpoint, worker = await rest.vend(queues=["a", "b"])
    other, _ = await rest.vend(name="other")
    alice = rest.alice
    todo = await rest.put(endpoint, queue="b", payload={"n": 1}, priority=3, body="**do**", idempotency_key="k")
    path = f"/api/v1/todos/{todo['id']}"
    assert (todo["queue"], todo["priority"], todo["source"], todo["state"]) == ("b", 3, "human", "pending")
    same = await alice("POST", f"/api/v1/endpoints/{endpoint['slug']}/todos", {
        "title": "do it", "queue": "b", "payload": {"n": 1}, "priority": 3, "body": "**do**", "idempotency_key": "k",
    })  # fmt: skip
    assert (same.status_code, same.json()["existing"], same.json()["todo"]["id"]) == (200, True, todo["id"])
    listed = await alice.told("GET", f"/api/v1/todos?endpoint={endpoint['slug']}&queue=b&state=pending")
    assert [one["id"] for one in listed["todos"]] == [todo["id"]]
    await worker.did("claim", todo_id=todo["id"], worker="w1")
    listed = await alice.told("GET", "/api/v1/todos?claimed_by=w1")
    assert [one["claimed_by"] for one in listed["todos"]] == ["w1"]
    assert (await alice.told("POST", f"{path}/fail", {"reason": "no"}))["state"] == "failed"
    assert (await alice.told("POST", f"{path}/retry"))["todo"]["state"] == "pending"
    await worker.did("claim", todo_id=todo["id"])
    assert (await alice.told("POST", f"{path}/release", {"reason": "mine"}))["state"] == "pending"
    assert (await alice.told("POST", f"{path}/move", {"to": other["slug"]}))["todo"]["endpoint"] == other["slug"]
    assert (await alice.told("POST", f"{path}/notes", {"text": "look"}))["note"]["author"] == "human"
    whole = (await alice.told("GET", path))["todo"]
    assert [one["end"] for one in whole["attempts"]] == ["failed_by_operator", "released_by_operator"]
    assert (await alice.told("POST", f"{path}/cancel", {"reason": "enough"}))["todo"]["state"] == "cancelled"
    done = await rest.put(endpoint)
    await worker.did("claim", todo_id=done["id"])
    assert (await alice.told("POST", f"/api/v1/todos/{done['id']}/complete", {"result": {"ok": True}}))[
        "state"
    ] == "done"
    assert (await alice.told("GET", f"/api/v1/todos/{done['id']}"))["todo"]["result"] == {"ok": True}


async def test_b33_lists_are_pages_and_a_cursor_gives_the_next(rest, refused):
    """Twenty by default, 200 at most; more, or a cursor that is none, is refused."""
    endpoint, _ = await rest.vend()
    made = [(await rest.put(endpoint))["id"] for _ in range(5)]
    seen, cursor = [], None
    while True:
        page = await rest.alice.told("GET", "/api/v1/todos?limit=2" + (f"&cursor={cursor}" if cursor else ""))
        seen += [one["id"] for one in page["todos"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == made[::-1]
    refused(await rest.alice("GET", "/api/v1/todos?limit=201"), 400, "invalid_argument", field="limit")
    refused(await rest.alice("GET", "/api/v1/todos?limit=0"), 400, "invalid_argument", field="limit")
    refused(await rest.alice("GET", "/api/v1/todos?limit=2&limit=3"), 400, "invalid_argument", field="limit")
    refused(await rest.alice("GET", "/api/v1/todos?cursor=junk"), 400, "invalid_argument", field="cursor")
    told = refused(await rest.alice("GET", "/api/v1/todos?que=x"), 400, "invalid_argument", field="que")
    assert told["did_you_mean"] == "queue"
    refused(await rest.alice("GET", "/api/v1/me?x=1"), 400, "invalid_argument", field="x")


async def test_b22_the_rest_of_what_can_be_edited_has_routes_of_its_own(rest, refused):
    """Name, presence, shift and era by PUT; each gives the endpoint a new revision; an ended one refuses all."""
    endpoint, _ = await rest.vend()
    path = f"/api/v1/endpoints/{endpoint['slug']}"
    shift = "TZ=Europe/Berlin Mon-Fri 09:00-18:00"
    edits = {
        "name": {"name": "second"},
        "presence": {"presence": "out", "for_seconds": 60},
        "shift": {"shift": shift},
        "mcp-era": {"mcp_era": "both"},
    }
    for name, body in edits.items():
        told = await rest.alice.told("PUT", f"{path}/{name}", body)
    assert (told["name"], told["shift"], told["mcp_era"], told["slug"]) == ("second", shift, "both", endpoint["slug"])
    assert told["revision"] > endpoint["revision"]
    await rest.alice.told("PUT", f"{path}/shift", {"shift": None})
    out = await rest.alice.told("PUT", f"{path}/presence", {"presence": "out"})
    assert out["presence"] == {"value": "out", "source": "override", "until_at": None}
    assert (await rest.alice.told("POST", f"{path}/revoke"))["state"] == "revoked"
    assert (await rest.alice.told("GET", path))["state"] == "revoked"
    for name, body in edits.items():
        refused(await rest.alice("PUT", f"{path}/{name}", body), 409, "conflict", state="revoked")
    for name in ("revoke", "rotate"):
        body = {} if name == "rotate" else None
        refused(await rest.alice("POST", f"{path}/{name}", body), 409, "conflict", state="revoked")


async def test_b21_rotation_shows_the_new_credential_and_keeps_the_old_for_the_overlap(rest, board, refused):
    """At most a day; two are valid then, and the list tells no more of them than their ends."""
    endpoint, worker = await rest.vend()
    path = f"/api/v1/endpoints/{endpoint['id']}"
    refused(await rest.alice("POST", f"{path}/rotate", {"overlap_seconds": 86401}), 400, "invalid_argument")
    told = await rest.alice.told("POST", f"{path}/rotate", {"overlap_seconds": 60})
    fresh = rest.as_worker(told["credential"])
    assert (await worker.did("claim_next"))["empty"]
    assert (await fresh.did("claim_next"))["empty"]
    listed = (await rest.alice.told("GET", f"{path}/credentials"))["credentials"]
    assert [one["hint"] for one in listed] == [told["credential"][-4:], worker.http.headers["authorization"][-4:]]
    board.clock.turn(seconds=61)
    refused(await worker.verb("claim_next"), 401, "unauthenticated")
    assert (await fresh.did("claim_next"))["empty"]


async def test_b39_a_friend_asks_collects_once_and_sees_no_more_than_the_friendship(rest, refused):
    """Bob asks Alice; she narrows and approves; he collects; the endpoint itself is a 404 to him."""
    code = (await rest.alice.told("GET", "/api/v1/me"))["friend_code"]
    ask = {"code": code, "queues": ["inbox", "more"], "verbs": ["claim_next", "complete"], "reason": "to help"}
    refused(await rest.bob("POST", "/api/v1/friends", {**ask, "verbs": ["set_default_lease"]}), 400, "invalid_argument")
    asked = await rest.bob.told("POST", "/api/v1/friends", ask)
    nobody = await rest.bob.told("POST", "/api/v1/friends", {**ask, "code": "0000-0000-0000-0000"})
    assert {**asked, "id": "", "created_at": ""} == {**nobody, "id": "", "created_at": ""}
    path = f"/api/v1/friends/{asked['id']}"
    wider = {"agent": "helpers", "queues": ["inbox", "else"]}
    refused(await rest.alice("POST", f"{path}/approve", wider), 400, "invalid_argument", field="queues")
    approved = await rest.alice.told("POST", f"{path}/approve", {"agent": "helpers", "queues": ["inbox"]})
    assert (approved["state"], approved["queues"]) == ("approved", ["inbox"])
    refused(await rest.alice("POST", f"{path}/collect"), 404, "not_found")
    collected = await rest.bob.told("POST", f"{path}/collect")
    refused(await rest.bob("POST", f"{path}/collect"), 409, "conflict", reason="collected")
    worker = rest.as_worker(collected["credential"])
    assert (await worker.did("claim_next"))["empty"]
    slug = collected["friendship"]["endpoint"]
    assert collected["mcp_url"].endswith(f"/mcp/{slug}")
    refused(await rest.bob("GET", f"/api/v1/endpoints/{slug}"), 404, "not_found")
    await rest.alice.told("POST", f"{path}/allow-collect")
    again = await rest.bob.told("POST", f"{path}/collect")
    refused(await worker.verb("claim_next"), 401, "unauthenticated")
    assert (await rest.bob.told("POST", f"{path}/end"))["state"] == "ended"
    refused(await rest.as_worker(again["credential"]).verb("claim_next"), 401, "unauthenticated")
    assert (await rest.alice.told("GET", f"/api/v1/endpoints/{slug}"))["state"] == "revoked"


async def test_b51_every_step_is_in_the_audit_and_no_secret_is(rest):
    """Vend, edit, rotate, revoke, tokens: one line each, the newest first, in pages."""
    endpoint, _ = await rest.vend()
    path = f"/api/v1/endpoints/{endpoint['id']}"
    await rest.alice.told("PATCH", path, {"default_lease_ttl_seconds": 900})
    await rest.alice.told("POST", f"{path}/rotate", {})
    made = await rest.alice.told("POST", "/api/v1/tokens", {"name": "ci", "expires_at": "now+1d"})
    await rest.alice.told("DELETE", f"/api/v1/tokens/{made['token']['id']}")
    await rest.alice.told("POST", f"{path}/revoke")
    first = await rest.alice.told("GET", "/api/v1/audit?limit=3")
    second = await rest.alice.told("GET", f"/api/v1/audit?limit=3&before={first['next_before']}")
    told = [(one["action"], one["subject"]) for one in first["entries"] + second["entries"]]
    assert told[:5] == [
        ("revoke", "endpoint"), ("revoke", "token"), ("add", "token"), ("rotate", "endpoint"), ("edit", "endpoint"),
    ]  # fmt: skip
    assert made["secret"] not in str(first) + str(second)
    assert (await rest.as_worker(made["secret"])("GET", "/api/v1/me")).status_code == 401


@pytest.mark.parametrize("kind", ["endpoint", "todo", "note", "token", "webhook", "friend"])
async def test_case_b34_a_creation_sent_twice_makes_one_thing(rest, refused, kind):
    """The same Idempotency-Key gives the same id, and its secret no second time; another body is a conflict."""
    endpoint, _ = await rest.vend()
    code = (await rest.bob.told("GET", "/api/v1/me"))["friend_code"]
    todo = await rest.put(endpoint)
    path, body, other = {
        "endpoint": ("/api/v1/endpoints", {"name": "x"}, {"name": "y"}),
        "todo": (f"/api/v1/endpoints/{endpoint['id']}/todos", {"title": "x"}, {"title": "y"}),
        "note": (f"/api/v1/todos/{todo['id']}/notes", {"text": "x"}, {"text": "y"}),
        "token": ("/api/v1/tokens", {"name": "x"}, {"name": "y"}),
        "webhook": (f"/api/v1/endpoints/{endpoint['id']}/webhooks", {"name": "x"}, {"name": "y"}),
        "friend": (
            "/api/v1/friends",
            {"code": code, "queues": ["q"], "verbs": ["claim"]},
            {"code": code, "queues": ["r"], "verbs": ["claim"]},
        ),
    }[kind]
    headers = {"idempotency-key": "drawn-at-random-0"}
    first, again = [await rest.alice("POST", path, body, headers=headers) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 200)
    one, same = first.json(), again.json()
    if kind != "friend":
        one, same = one[kind], same[kind]
    assert one["id"] == same["id"]
    secret = {"endpoint": "credential", "token": "secret", "webhook": "secret"}.get(kind)
    if secret:
        assert (first.json()[secret] is None, again.json()[secret]) == (False, None)
    conflict = await rest.alice("POST", path, other, headers=headers)
    refused(conflict, 409, "conflict", reason="request_id_reused")
    assert "Idempotency-Key" in conflict.json()["detail"]
    short = await rest.alice("POST", path, body, headers={"idempotency-key": "x"})
    refused(short, 400, "invalid_argument", field="Idempotency-Key")
    # Another human's key is another key.
    if kind in ("endpoint", "token"):
        assert (await rest.charlie("POST", path, body, headers=headers)).status_code == 201


async def test_b40_what_the_router_refuses_is_a_problem_too(rest, refused):
    """An unknown path, a path with a slash too many, and a method that a path does not know."""
    refused(await rest.alice("GET", "/api/v1/nothing"), 404, "not_found")
    refused(await rest.alice("GET", "/api/v1/endpoints/"), 404, "not_found")
    refused(await rest.alice("GET", "/api"), 404, "not_found")
    for method in ("DELETE", "PUT", "TRACE", "OPTIONS", "HEAD"):
        answer = await rest.alice(method, "/api/v1/endpoints")
        if method != "HEAD":  # whose answer has no body
            refused(answer, 405, "method_not_allowed")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    headers = {"x-http-method-override": "DELETE"}
    assert (await rest.alice("POST", "/api/v1/me/friend-code", headers=headers)).is_success


async def test_b43_routes_without_a_body_take_none(rest, refused):
    """Nothing that a caller sends is passed over in silence."""
    endpoint, _ = await rest.vend()
    answer = await rest.alice("POST", f"/api/v1/endpoints/{endpoint['id']}/revoke", {"really": False})
    refused(answer, 400, "invalid_argument")
    assert (await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['id']}"))["state"] == "active"


async def test_b43_todos_and_results_may_be_large(rest, refused):
    """512 KiB where todos are made and results given; the contents have their own bounds (B2)."""
    endpoint, worker = await rest.vend()
    path = f"/api/v1/endpoints/{endpoint['id']}/todos"
    payload = "x" * (256 * 1024 - 2)
    made = (await rest.alice.told("POST", path, {"title": "x", "payload": payload}))["todo"]
    refused(
        await rest.alice("POST", path, {"title": "x", "payload": payload + "x"}),
        400,
        "invalid_argument",
        field="payload",
    )
    limit = 512 * 1024
    refused(await rest.alice("POST", path, b"{}".ljust(limit + 1)), 413, "payload_too_large", limit_bytes=limit)
    refused(await rest.alice("POST", path, b"{}".ljust(limit)), 400, "invalid_argument", field="title")
    await worker.did("claim", todo_id=made["id"])
    done = await rest.alice.told("POST", f"/api/v1/todos/{made['id']}/complete", {"result": payload})
    assert done["state"] == "done"
    note = {"text": "x" * (65536 - len('{"text":""}') + 1)}
    refused(await rest.alice("POST", f"/api/v1/todos/{made['id']}/notes", note), 413, "payload_too_large")


async def test_b51_a_page_of_another_origin_can_use_no_door(rest, refused):
    """Not even with a token that it came by; one's own origin, and none, are let in."""
    endpoint, worker = await rest.vend()
    path = f"/api/v1/endpoints/{endpoint['id']}"
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1.evil.example:8420"):
        refused(await rest.alice("GET", path, headers={"origin": origin}), 403, "forbidden")
        answer = await worker("POST", "/work/v1/claim_next", {}, headers={"origin": origin})
        refused(answer, 403, "forbidden")
    assert (await rest.alice("GET", path, headers={"origin": "http://127.0.0.1:8420"})).is_success
    assert (await rest.alice("GET", path, headers={"origin": "http://localhost:8420"})).is_success
