"""`/work/v1`: the tools' verbs, scope and answers over plain HTTP, one at a time and in batches (B41a)."""

import asyncio

import pytest
import sqlalchemy as sa
from rest_routes import BODIES, routes_with_ids

from tenure.board import engines
from tenure.board.database import UNAVAILABLE
from tenure.board.refused import Refused

TOKENS = ("heartbeat", "check_claim", "complete", "fail", "release")


@pytest.fixture
async def at_work(rest):
    """An endpoint of Alice's, a worker of it, and a todo."""
    endpoint, worker = await rest.vend()
    return endpoint, worker, await rest.put(endpoint, payload={"change": 552})


async def test_b41a_a_todo_from_claim_to_done(at_work):
    """Claimed with all that B32 names, heartbeat, checked, noted and completed; nothing more to do is a success."""
    _, worker, todo = at_work
    told = await worker.did("claim_next", worker="w1")
    (claim,) = told["claims"]
    assert (told["empty"], claim["attempt"], claim["lease_ttl_seconds"], claim["lease_ttl_source"]) == (
        False, 1, 300, "server",
    )  # fmt: skip
    assert (claim["todo"]["id"], claim["todo"]["payload"]) == (todo["id"], {"change": 552})
    held = {"todo_id": todo["id"], "lease_token": claim["lease_token"]}
    renewed = await worker.did("heartbeat", **held, lease_ttl_seconds=600)
    assert (renewed["extended"], renewed["lease_ttl_source"], renewed["clamped"]) == (True, "call", False)
    assert (await worker.did("check_claim", **held))["held"] is True
    assert (await worker.did("add_note", todo_id=todo["id"], text="half"))["note"]["text"] == "half"
    assert (await worker.did("complete", **held, result=[1]))["state"] == "done"
    assert (await worker.did("complete", **held, result=[1]))["already"] is True
    assert await worker.did("claim_next") | {"server_time": ""} == {
        "empty": True, "claims": [], "repeated": False, "server_time": "", "endpoint_expires_at": None,
    }  # fmt: skip
    whole = (await worker.did("get_todo", todo_id=todo["id"]))["todo"]
    assert (whole["result"], [one["end"] for one in whole["attempts"]]) == ([1], ["completed"])
    assert (await worker.did("list_todos", state="done"))["todos"][0]["id"] == todo["id"]


@pytest.mark.parametrize(
    ("call", "default", "told"),
    [
        (None, None, (300, "server", False)),
        (None, 900, (900, "endpoint", False)),
        (30, 900, (30, "call", False)),
        (1, None, (1, "call", False)),
        (86400, 900, (86400, "call", False)),
        (86401, 900, (86400, "call", True)),
        (2**62, None, (86400, "call", True)),
    ],
)
async def test_b8_adr0043_call_then_endpoint_then_server_by_every_verb(rest, call, default, told):
    """claim, claim_next and heartbeat resolve the lease alike: the call's own value wins, clamped to the cap."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=default)
    first, second = [await rest.put(endpoint) for _ in range(2)]
    arguments = {} if call is None else {"lease_ttl_seconds": call}
    by_next = (await worker.did("claim_next", **arguments))["claims"][0]
    other = second if by_next["todo"]["id"] == first["id"] else first
    by_id = (await worker.did("claim", todo_id=other["id"], **arguments))["claims"][0]
    token = {"todo_id": other["id"], "lease_token": by_id["lease_token"]}
    beat = await worker.did("heartbeat", **token, **arguments)
    for answer in (by_next, by_id, beat):
        assert (answer["lease_ttl_seconds"], answer["lease_ttl_source"], answer["clamped"]) == told


@pytest.mark.parametrize("value", [b"0", b"-1", b"1.5", b"60.0", b'"60"', b"true", b"false", b"[]"])
@pytest.mark.parametrize("verb", ["claim", "claim_next", "heartbeat"])
async def test_b9_a_lease_that_is_no_whole_number_is_refused(at_work, refused, verb, value):
    """On all three paths, and nothing is claimed."""
    _, worker, todo = at_work
    more = {"claim": b'"todo_id": "%s",', "claim_next": b"", "heartbeat": b'"lease_token": "x", "todo_id": "%s",'}[verb]
    more = more % todo["id"].encode() if b"%s" in more else more
    answer = await worker("POST", f"/work/v1/{verb}", b'{%s "lease_ttl_seconds": %s}' % (more, value))
    refused(answer, 400, "invalid_argument", field="lease_ttl_seconds")
    assert (await worker.did("get_todo", todo_id=todo["id"]))["todo"]["attempts_made"] == 0


async def test_b28_case_b52_unknown_arguments_are_refused_with_the_right_name(at_work, refused):
    """`lease_ttl` is told its name; an endpoint argument is refused; the lease token is asked for by name (B12)."""
    _, worker, todo = at_work
    told = refused(await worker.verb("claim_next", lease_ttl=60), 400, "invalid_argument", field="lease_ttl")
    assert told["did_you_mean"] == "lease_ttl_seconds"
    refused(await worker.verb("claim_next", endpoint="other"), 400, "invalid_argument", field="endpoint")
    for verb in TOKENS:
        more = {"reason": "x"} if verb == "fail" else {}
        missing = await worker.verb(verb, todo_id=todo["id"], **more)
        refused(missing, 400, "invalid_argument", field="lease_token")
        wrong = await worker.verb(verb, todo_id=todo["id"], lease_token="tl_" + "0" * 43, **more)
        refused(wrong, 409, "conflict", reason="wrong_token")


async def test_b27_what_is_not_granted_is_an_unknown_path(rest, refused):
    """A verb that the endpoint lacks, one that is none, and a tool that is MCP's alone: the same 404."""
    _, worker = await rest.vend(verbs=["claim_next", "complete"])
    answers = [await worker.verb(verb) for verb in ("claim", "no_such_verb", "whoami", "set_default_lease", "a/b", "")]
    for answer in answers:
        refused(answer, 404, "not_found")
    assert len({answer.content for answer in answers}) == 1
    assert (await worker.did("claim_next"))["empty"]
    answer = await worker("GET", "/work/v1/claim_next")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


async def test_b27_case_b41_what_lets_nobody_in_is_one_401(rest, board):
    """No, a misspelt, an unknown, a revoked, an expired credential, and a human's token: the same bytes and headers."""
    from tenure.board.secrets import draw

    _, worker = await rest.vend(expires_at="now+1h")
    other, revoked = await rest.vend()
    await worker.did("list_todos")
    await revoked.did("list_todos")
    await rest.alice.told("POST", f"/api/v1/endpoints/{other['id']}/revoke")
    board.clock.turn(hours=1)
    callers = [
        rest.nobody, worker, revoked, rest.alice, rest.as_worker("junk"), rest.as_worker(draw("endpoint").reveal()),
        rest.as_worker(draw("endpoint").reveal()[:-1] + "!"),
    ]  # fmt: skip
    answers = []
    for caller in callers:
        for body in ({}, b"junk"):
            answer = await caller("POST", "/work/v1/claim_next", body)
            headers = {key: value for key, value in answer.headers.items() if key != "x-request-id"}
            answers.append((answer.status_code, headers, answer.content))
    assert answers[0][0] == 401
    assert all(answer == answers[0] for answer in answers)
    two = [("authorization", "Bearer x"), ("authorization", "Bearer y")]
    assert (await rest.nobody.http.post("/work/v1/claim_next", headers=two, json={})).status_code == 401


async def test_b40_an_endpoints_credential_opens_no_human_route(rest, refused):
    """And a human's token no worker's."""
    _, worker = await rest.vend()
    refused(await worker("GET", "/api/v1/me"), 401, "unauthenticated")
    refused(await rest.alice.verb("claim_next"), 401, "unauthenticated")


async def test_b41a_batches_are_answered_item_by_item(rest):
    """100 claimed, beaten, completed, failed and released in one call each; what is wrong is told in its place."""
    endpoint, worker = await rest.vend()
    for at in range(6):
        await rest.put(endpoint, title=f"todo {at}")
    claims = (await worker.did("claim_next", max=100, worker="w1"))["claims"]
    assert len(claims) == 6
    held = [{"todo_id": one["todo"]["id"], "lease_token": one["lease_token"]} for one in claims]
    wrong = {**held[2], "lease_token": "tl_" + "0" * 43}
    beats = [{**held[0], "lease_ttl_seconds": 600}, {"x": 1}, wrong, 7, held[1]]
    told = (await worker.did("heartbeat", items=beats, worker="w1"))["items"]
    assert [one.get("lease_ttl_seconds") for one in told] == [600, None, None, None, 300]
    assert [one.get("error", {}).get("code") for one in told] == [
        None, "invalid_argument", "conflict", "invalid_argument", None,
    ]  # fmt: skip
    assert (told[2]["todo_id"], told[4]["todo_id"]) == (held[2]["todo_id"], held[1]["todo_id"])
    done = (await worker.did("complete", items=[{**held[0], "result": 1}, held[1], held[1]]))["items"]
    assert [one["state"] for one in done] == ["done"] * 3
    failed = (await worker.did("fail", items=[{**held[2], "reason": "x"}, held[3]]))["items"]
    assert (failed[0]["state"], failed[1]["error"]["field"]) == ("failed", "reason")
    back = (await worker.did("release", items=held[3:]))["items"]
    assert [one["state"] for one in back] == ["pending"] * 3


@pytest.mark.parametrize("known_by", ["worker", "lease_token"])
async def test_b18_a_batch_warns_of_what_else_its_caller_holds(rest, board, known_by):
    """By its name, or by the claims that it shows: once, beside the items."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=60)
    for _ in range(2):
        await rest.put(endpoint)
    first, other = (await worker.did("claim_next", max=2, worker="w1"))["claims"]
    held = {"todo_id": first["todo"]["id"], "lease_token": first["lease_token"]}
    if known_by == "worker":  # and by nothing else
        held["lease_token"] = "tl_" + "0" * 43
    named = {"worker": "w1"} if known_by == "worker" else {}
    assert "warnings" not in await worker.did("heartbeat", items=[held], **named)
    board.clock.turn(seconds=50)
    told = await worker.did("heartbeat", items=[held], **named)
    near = {other["todo"]["id"]} | ({first["todo"]["id"]} if known_by == "worker" else set())
    assert {one["todo_id"] for one in told["warnings"]} == near
    assert "warnings" not in await worker.did("heartbeat", items=[{**held, "lease_token": "tl_" + "0" * 43}])


async def test_b41a_batches_have_a_limit_and_no_names_inside(rest, refused):
    """Neither 0 nor 101 items; `worker` stands beside the items; verbs without batches take none."""
    _, worker = await rest.vend()
    item = {"todo_id": "x", "lease_token": "y"}
    refused(await worker.verb("heartbeat", items=[]), 400, "invalid_argument", field="items")
    refused(await worker.verb("heartbeat", items=[item] * 101), 400, "invalid_argument", field="items")
    refused(await worker.verb("heartbeat", items=[item], todo_id="x"), 400, "invalid_argument", field="todo_id")
    named = (await worker.did("heartbeat", items=[{**item, "worker": "w"}]))["items"][0]
    assert named["error"]["field"] == "worker"
    refused(await worker.verb("claim", items=[item]), 400, "invalid_argument", field="items")
    refused(await worker.verb("claim_next", max=101), 400, "invalid_argument", field="max")


async def test_b13_a_late_result_is_refused_kept_and_shown_to_its_human(rest, board, refused):
    """The refusal is committed with the result, one by one and in a batch."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=60)
    todo = await rest.put(endpoint)
    late = (await worker.did("claim_next"))["claims"][0]
    board.clock.turn(seconds=61)
    won = (await worker.did("claim", todo_id=todo["id"]))["claims"][0]
    assert (won["attempt"], won["todo"]["attempts"][0]["end"]) == (2, "lapsed")
    answer = await worker.verb("complete", todo_id=todo["id"], lease_token=late["lease_token"], result="late")
    refused(answer, 409, "conflict", reason="taken")
    attempts = (await rest.alice.told("GET", f"/api/v1/todos/{todo['id']}"))["todo"]["attempts"]
    assert attempts[0]["late"] == {"verb": "complete", "result": "late"}
    done = {"todo_id": todo["id"], "lease_token": won["lease_token"]}
    assert (await worker.did("complete", **done, result="won"))["state"] == "done"
    told = (await worker.did("complete", items=[{**done, "lease_token": late["lease_token"]}]))["items"][0]
    assert told["error"]["reason"] == "finished"


async def test_case_b24_a_lost_reply_is_asked_for_again_by_its_request_id(rest, refused):
    """The same claim, not a second todo; other arguments are a conflict."""
    endpoint, worker = await rest.vend()
    await rest.put(endpoint)
    await rest.put(endpoint)
    asked = {"request_id": "0123456789abcdef", "max": 1}
    first, again = await worker.did("claim_next", **asked), await worker.did("claim_next", **asked)
    assert (first["claims"][0]["lease_token"], first["repeated"]) == (again["claims"][0]["lease_token"], False)
    assert again["repeated"]
    other = await worker.verb("claim_next", **{**asked, "max": 2})
    refused(other, 409, "conflict", reason="request_id_reused")
    made = {"title": "x", "request_id": "fedcba9876543210"}
    assert (await worker.did("create_todo", **made))["todo"]["id"] == (await worker.did("create_todo", **made))["todo"][
        "id"
    ]


async def test_b18_an_answer_warns_of_a_lease_that_is_about_to_end(rest, board):
    """By the worker's label or a claim's token, naming the todo and the seconds that are left."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=60)
    todo = await rest.put(endpoint)
    claim = (await worker.did("claim_next", worker="w1"))["claims"][0]
    assert "warnings" not in await worker.did("list_todos", worker="w1")
    board.clock.turn(seconds=50)
    by_label = await worker.did("list_todos", worker="w1")
    by_token = await worker.did("check_claim", todo_id=todo["id"], lease_token=claim["lease_token"])
    for told in (by_label, by_token):
        (warning,) = told["warnings"]
        assert warning["todo_id"] == todo["id"]
        assert 0 < warning["seconds_left"] <= 10
    assert "warnings" not in await worker.did("list_todos", worker="w2")


async def test_b7a_todos_go_to_targets_of_the_scope_alone(rest, refused):
    """To the caller's own endpoint, or one its scope lists; an unlisted one and none are the same refusal."""
    target, drain = await rest.vend(name="target", queues=["q"])
    other, _ = await rest.vend(name="other")
    _, worker = await rest.vend(targets=[target["slug"]])
    made = await worker.did("create_todo", title="x", to=target["slug"], idempotency_key="k", not_before="now+0s")
    assert (made["todo"]["queue"], made["existing"]) == ("q", False)
    unlisted, unknown = [await worker.verb("create_todo", title="x", to=to) for to in (other["slug"], "unknown-zzzz")]
    refused(unlisted, 404, "not_found")
    assert unlisted.content == unknown.content
    assert (await drain.did("claim_next"))["claims"][0]["todo"]["id"] == made["todo"]["id"]


async def test_b26_a_todo_of_a_target_is_not_cancelled_from_elsewhere(rest, refused):
    """`cancel_todo` reaches the caller's own endpoint; nothing of a target's todo is changed or shown."""
    target, _ = await rest.vend(name="target", queues=["inbox"])
    _, worker = await rest.vend(targets=[target["slug"]])
    await rest.put(target, idempotency_key="k", body="of others")
    refused(await worker.verb("cancel_todo", idempotency_key="k"), 404, "not_found")
    to_it = await worker.verb("cancel_todo", idempotency_key="k", to=target["slug"])
    refused(to_it, 400, "invalid_argument", field="to")
    assert (await rest.alice.told("GET", "/api/v1/todos"))["todos"][0]["state"] == "pending"


@pytest.mark.parametrize("name", ["request_id", "idempotency_key"])
async def test_b12a_a_time_from_now_on_is_the_same_when_it_is_sent_again(rest, board, refused, name):
    """The same call a minute later asks for the same todo, whose time is that of the first; another span is another."""
    _, worker = await rest.vend()
    again = {"title": "later", name: "drawn-once-and-for-all"}
    first = await worker.did("create_todo", **again, not_before="now+30m")
    board.clock.turn(minutes=1)
    second = await worker.did("create_todo", **again, not_before="now+30m")
    assert (second["existing"], second["todo"]["id"]) == (True, first["todo"]["id"])
    assert second["todo"]["not_before"] == first["todo"]["not_before"]
    refused(await worker.verb("create_todo", **again, not_before="now+31m"), 409, "conflict")
    fixed = first["todo"]["not_before"]
    refused(await worker.verb("create_todo", **again, not_before=fixed), 409, "conflict")


async def test_b43_a_body_may_have_four_mebibytes(rest, refused):
    """And not one byte more, known or chunked."""
    _, worker = await rest.vend()
    limit = 4 * 1024 * 1024
    assert (await worker("POST", "/work/v1/claim_next", b"{}".ljust(limit))).is_success
    refused(await worker("POST", "/work/v1/claim_next", b"{}".ljust(limit + 1)), 413, "payload_too_large")


async def test_b41a_no_human_route_and_no_other_verb_takes_a_lease_for_an_endpoint(rest, board):
    """Every route of REST on a ready todo, and every verb but the three, leave the endpoint without a claim."""
    from tenure.board import tables
    from tenure.doors.wire.verbs import VERBS

    for method, path, name, takes_body in routes_with_ids(rest.site):
        assert "claim" not in path
        assert "heartbeat" not in path
        endpoint, _ = await rest.vend()
        todo = await rest.put(endpoint)
        ids = {"ref": endpoint["id"], "todo_id": todo["id"], "webhook_id": "x", "friendship_id": "x", "token_id": "x"}
        await rest.alice(method, path.format_map(ids), BODIES[name] if takes_body else None)
    assert board.rows(tables.claims) == []
    endpoint, worker = await rest.vend()
    todo = await rest.put(endpoint)
    for verb in VERBS.keys() - {"claim", "claim_next", "heartbeat"}:
        given = {
            "todo_id": todo["id"],
            "lease_token": "x",
            "reason": "x",
            "text": "x",
            "title": "x",
            "idempotency_key": "k",
        }
        known = VERBS[verb].arguments.model_fields
        await worker.verb(verb, **{key: value for key, value in given.items() if key in known})
    assert board.rows(tables.claims) == []


async def _waits(rest):
    """Until the server has begun to wait for a caller."""
    while not rest.site.work.waiting:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


async def test_b32_a_waiting_claim_is_woken_by_a_new_todo(rest):
    """Long before its time is over."""
    async with rest.open():
        endpoint, worker = await rest.vend()
        waiting = asyncio.create_task(worker.did("claim_next", wait_seconds=50))
        await _waits(rest)
        todo = await rest.put(endpoint)
        told = await asyncio.wait_for(waiting, 10)
        assert told["claims"][0]["todo"]["id"] == todo["id"]


async def test_b25_a_waiting_claim_ends_with_its_endpoint(rest, refused):
    """With the one 401, as any call after it."""
    async with rest.open():
        endpoint, worker = await rest.vend()
        waiting = asyncio.create_task(worker.verb("claim_next", wait_seconds=50))
        await _waits(rest)
        await rest.alice.told("POST", f"/api/v1/endpoints/{endpoint['id']}/revoke")
        refused(await asyncio.wait_for(waiting, 10), 401, "unauthenticated")


async def test_b32_draining_ends_waits_with_a_clean_nothing(rest):
    """What waits is answered, and what comes after is answered at once."""
    async with rest.open():
        _, worker = await rest.vend()
        waiting = asyncio.create_task(worker.did("claim_next", wait_seconds=50))
        await _waits(rest)
        rest.site.drain()
        assert (await asyncio.wait_for(waiting, 10))["empty"]
        assert (await asyncio.wait_for(worker.did("claim_next", wait_seconds=50), 10))["empty"]


async def test_b25_a_server_that_hears_nothing_any_more_ends_its_waits(rest):
    """What was revoked meanwhile it could not know: they may ask again."""
    async with rest.open():
        _, worker = await rest.vend()
        waiting = asyncio.create_task(worker.did("claim_next", wait_seconds=50))
        await _waits(rest)
        for step in rest.board.notices.on_deaf:
            step()
        assert (await asyncio.wait_for(waiting, 10))["empty"]


async def test_b43_only_so_many_calls_of_an_endpoint_may_wait_at_a_server(rest, refused, monkeypatch):
    """The next one is told to come again; another endpoint's may wait."""
    from tenure.doors.rest import work

    monkeypatch.setattr(work, "WAITING_LIMIT", 1)
    async with rest.open():
        _, worker = await rest.vend()
        _, other = await rest.vend()
        waiting = [asyncio.create_task(worker.did("claim_next", wait_seconds=50))]
        await _waits(rest)
        answer = await worker.verb("claim_next", wait_seconds=50)
        refused(answer, 429, "rate_limited")
        assert int(answer.headers["retry-after"]) == 5
        waiting.append(asyncio.create_task(other.did("claim_next", wait_seconds=50)))
        while rest.site.work.waiting < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        rest.site.drain()
        assert [told["empty"] for told in await asyncio.gather(*waiting)] == [True, True]


async def test_b32_a_caller_who_hung_up_is_given_nothing(rest):
    """A todo that comes after a waiting caller has left is still there for the next."""
    async with rest.open():
        endpoint, worker = await rest.vend()
        sent, left = asyncio.Event(), asyncio.Event()
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": "/work/v1/claim_next", "raw_path": b"/work/v1/claim_next", "query_string": b"", "root_path": "",
            "headers": [
                (b"host", b"127.0.0.1"), (b"content-type", b"application/json"),
                (b"authorization", worker.http.headers["authorization"].encode()),
            ],
        }  # fmt: skip
        parts = iter([{"type": "http.request", "body": b'{"wait_seconds": 50}', "more_body": False}])

        async def receive():
            if (part := next(parts, None)) is not None:
                return part
            sent.set()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(_):
            pass

        asking = asyncio.create_task(rest.site(scope, receive, send))
        await sent.wait()
        left.set()
        await asyncio.wait_for(asking, 10)
        todo = await rest.put(endpoint)
        assert (await worker.did("get_todo", todo_id=todo["id"]))["todo"]["attempts_made"] == 0


async def test_b18_a_wait_that_found_nothing_warns_too(rest, board):
    """Of a lease that the caller holds and that is about to end: it waited instead of sending a heartbeat."""
    endpoint, worker = await rest.vend(default_lease_ttl_seconds=60)
    todo = await rest.put(endpoint)
    await worker.did("claim_next", worker="w1")
    board.clock.turn(seconds=50)
    told = await worker.did("claim_next", worker="w1", wait_seconds=1)
    assert told["empty"]
    assert [one["todo_id"] for one in told["warnings"]] == [todo["id"]]


async def test_b16_a_claim_is_told_even_if_its_warnings_can_not_be_read(rest, board):
    """The claim is committed: that the database then fails takes neither the todo nor its token from the caller."""
    endpoint, worker = await rest.vend()
    todo = await rest.put(endpoint)
    await worker.did("list_todos")  # from now on this server knows the credential's bucket

    async def fail(*_args, **_kwargs):
        raise Refused(UNAVAILABLE)

    board.database.read = fail
    (claim,) = (await worker.did("claim_next", wait_seconds=1))["claims"]
    assert claim["todo"]["id"] == todo["id"]
    assert (await worker.did("complete", todo_id=todo["id"], lease_token=claim["lease_token"]))["state"] == "done"


async def test_b27_a_revoked_credential_is_told_so_and_not_that_its_body_is_large(rest, refused):
    """Also by a server that has seen it before; the answer is that of a credential which never was."""
    endpoint, worker = await rest.vend()
    await worker.did("list_todos")
    await rest.alice.told("POST", f"/api/v1/endpoints/{endpoint['id']}/revoke")
    large = await worker("POST", "/work/v1/complete", b" " * (4 * 1024 * 1024 + 1))
    refused(large, 401, "unauthenticated")


async def test_b16_an_unreachable_database_is_503_and_never_401(rest, board, refused, monkeypatch):
    """On every door, with how long to wait; a credential that was good is good again afterwards."""
    _, worker = await rest.vend()
    await worker.did("list_todos")
    board.database.engine.dispose()

    def refuse(dialect, *_):
        raise dialect.loaded_dbapi.OperationalError("no connection")

    dialect = board.database.engine.dialect
    monkeypatch.setattr(engines, "patient", lambda _: refuse(dialect))  # PostgreSQL's; SQLite's are asked for below
    sa.event.listen(board.database.engine, "do_connect", refuse)
    answers = [
        await worker.verb("claim_next"),
        await rest.alice("GET", "/api/v1/me"),
        await rest.nobody("GET", "/readyz"),
    ]
    metrics = await rest.as_worker("for-the-tests")("GET", "/metrics")
    sa.event.remove(board.database.engine, "do_connect", refuse)
    monkeypatch.undo()
    assert "tenure_database_up 0.0" in metrics.text
    for answer in answers:
        refused(answer, 503, "unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    assert (await worker.did("claim_next"))["empty"]
