"""Another human's and never existed are one answer, byte for byte (B26), on every route and verb that takes an id.

The routes are the application's own: one that is added later is in these tests, or they fail for want of a body.
"""

import pytest
from rest_routes import BODIES, UNKNOWN, routes_with_ids

# Of two servers' answers to the same question these differ by nature.
NATURAL = ("date", "x-request-id", "ratelimit", "ratelimit-policy")


def seen(answer):
    headers = sorted((name, value) for name, value in answer.headers.items() if name not in NATURAL)
    return answer.status_code, headers, answer.content


async def belongings(rest, who):
    """One of everything that has an id, and an endpoint and todo that have ended."""
    endpoint, _ = await rest.vend(who)
    ended, _ = await rest.vend(who)
    todo, dead = await rest.put(endpoint, who), await rest.put(ended, who)
    webhook = await who.told("POST", f"/api/v1/endpoints/{endpoint['id']}/webhooks", {"name": "x"})
    gone = await who.told("POST", f"/api/v1/endpoints/{ended['id']}/webhooks", {"name": "x"})
    plan = {"name": f"of {endpoint['slug']}", "expression": "0 0 * * *", "title": "x"}
    schedule = await who.told("POST", f"/api/v1/endpoints/{endpoint['id']}/schedules", plan)
    removed = await who.told("POST", f"/api/v1/endpoints/{ended['id']}/schedules", {**plan, "name": "removed"})
    await who.told("DELETE", f"/api/v1/schedules/{removed['id']}")
    token, old = [(await who.told("POST", "/api/v1/tokens", {"name": "x"}))["token"] for _ in range(2)]
    await who.told("DELETE", f"/api/v1/tokens/{old['id']}")
    code = (await rest.charlie.told("GET", "/api/v1/me"))["friend_code"]
    asked = {"code": code, "queues": ["inbox"], "verbs": ["claim"]}
    friendship, over = [await who.told("POST", "/api/v1/friends", asked) for _ in range(2)]
    await who.told("POST", f"/api/v1/friends/{over['id']}/end")
    await who.told("POST", f"/api/v1/endpoints/{ended['id']}/revoke")
    live = {
        "ref": endpoint["id"],
        "schedule": schedule["id"],
        "todo_id": todo["id"],
        "token_id": token["id"],
        "webhook_id": webhook["webhook"]["id"],
        "friendship_id": friendship["id"],
    }
    over = {
        "ref": ended["id"],
        "schedule": removed["id"],
        "todo_id": dead["id"],
        "token_id": old["id"],
        "webhook_id": gone["webhook"]["id"],
        "friendship_id": over["id"],
    }
    return live, over, {**live, "ref": endpoint["slug"], "schedule": schedule["name"]}


async def test_b26_case_b39_every_route_answers_anothers_id_like_an_unknown_one(rest):
    """Bob's ids, live, ended and by slug, and ids of nothing: the same status, headers and bytes to Alice."""
    mine, _, _ = await belongings(rest, rest.alice)
    others = await belongings(rest, rest.bob)
    asked = 0
    for method, path, name, takes_body in routes_with_ids(rest.site):
        body = BODIES[name] if takes_body else None
        unknown = seen(await rest.alice(method, path.format_map(UNKNOWN), body))
        assert unknown[0] == 404, (method, path, unknown)
        for ids in others:
            known = {**ids, "ref": ids["schedule"] if path.startswith("/api/v1/schedules/") else ids["ref"]}
            assert seen(await rest.alice(method, path.format_map(known), body)) == unknown, (method, path)
            # One's own endpoint, and something of another's on it.
            partly = path.format_map({**known, "ref": mine["ref"]})
            if partly != path.format_map(known) and "{webhook_id}" in path:
                assert seen(await rest.alice(method, partly, body)) == unknown, (method, partly)
            asked += 1
    assert asked > 60
    # And nothing of Bob's has changed by all this.
    for ids in others[:1]:
        for path in ("endpoints/{ref}", "todos/{todo_id}", "friends/{friendship_id}"):
            await rest.bob.told("GET", f"/api/v1/{path.format_map(ids)}")
        assert (await rest.bob.told("GET", f"/api/v1/todos/{ids['todo_id']}"))["todo"]["notes"] == []


@pytest.mark.parametrize(
    "strange",
    [
        "0",
        "-1",
        "%00",
        "..%2f",
        "x" * 150,
        "x" * 5000,
        "%F0%9F%90%8D",
        "%ED%A0%80",
        "%EF%BC%91%EF%BC%92",
        "%0A",
        "%25",
        "'",
    ],
)
async def test_b26_a_malformed_id_is_an_unknown_one(rest, strange):
    """Whatever stands in the path, no database error shows, and the answer is that of an id of nothing."""
    for path in ("/api/v1/endpoints/{}", "/api/v1/todos/{}", "/api/v1/friends/{}"):
        unknown = seen(await rest.alice("GET", path.format("unknown")))
        assert seen(await rest.alice("GET", path.format(strange))) == unknown


async def test_b26_ids_inside_requests_are_no_way_to_learn_of_another(rest):
    """Targets, dependencies, the goal of a move and filters: Bob's and nobody's are the same to Alice."""
    endpoint, _ = await rest.vend()
    todo = await rest.put(endpoint)
    theirs, _ = await rest.vend(rest.bob)
    other = await rest.put(theirs, rest.bob)
    pairs = [
        ("POST", "/api/v1/endpoints", lambda ref, _: {"name": "x", "targets": [ref]}),
        ("POST", f"/api/v1/todos/{todo['id']}/move", lambda ref, _: {"to": ref}),
        ("POST", f"/api/v1/endpoints/{endpoint['id']}/todos", lambda _, id_: {"title": "x", "depends_on": [id_]}),
    ]
    for method, path, body in pairs:
        known = await rest.alice(method, path, body(theirs["slug"], other["id"]))
        unknown = await rest.alice(method, path, body("unknown-zzzz", UNKNOWN["todo_id"]))
        assert known.status_code in (400, 404)
        shown = [
            seen(answer)[2].replace(theirs["slug"].encode(), b"X").replace(b"unknown-zzzz", b"X")
            .replace(other["id"].encode(), b"Y").replace(UNKNOWN["todo_id"].encode(), b"Y")
            for answer in (known, unknown)
        ]  # fmt: skip
        assert shown[0] == shown[1]
    filtered = [await rest.alice("GET", f"/api/v1/todos?endpoint={ref}") for ref in (theirs["slug"], "unknown-zzzz")]
    assert seen(filtered[0]) == seen(filtered[1])


async def test_b26_lists_and_the_audit_show_ones_own_alone(rest):
    """What Bob has and does changes nothing in what Alice and Charlie see."""
    paths = ["endpoints", "agents", "todos", "tokens", "audit", "friends"]

    async def view(who):
        told = [await who.told("GET", f"/api/v1/{path}") for path in paths]
        return [{**one, "server_time": ""} for one in told]

    await belongings(rest, rest.alice)
    before = await view(rest.alice)
    endpoint, worker = await rest.vend(rest.bob)
    todo = await rest.put(endpoint, rest.bob)
    await worker.did("claim", todo_id=todo["id"])
    await rest.bob.told("POST", f"/api/v1/todos/{todo['id']}/complete", {})
    assert await view(rest.alice) == before
    for told in (await view(rest.charlie))[:3]:
        assert [value for value in told.values() if isinstance(value, list)] == [[]]


async def test_b26_verbs_answer_what_is_on_another_endpoint_like_what_is_nowhere(rest):
    """Of the same human, of another, or of nobody: no verb tells these apart."""
    _, worker = await rest.vend()
    ids = []
    for who in (rest.alice, rest.bob):
        endpoint, _ = await rest.vend(who)
        ids.append((await rest.put(endpoint, who))["id"])
    token = {"lease_token": "tl_" + "0" * 43}
    for verb, more in {
        "get_todo": {},
        "claim": {},
        "add_note": {"text": "x"},
        "heartbeat": token,
        "check_claim": token,
        "complete": token,
        "fail": {**token, "reason": "x"},
        "release": token,
    }.items():
        answers = [seen(await worker.verb(verb, todo_id=one, **more)) for one in (UNKNOWN["todo_id"], *ids, "%00")]
        assert answers[0] == answers[1] == answers[2] == answers[3], (verb, answers)
        assert answers[0][0] == 404, (verb, answers[0])
