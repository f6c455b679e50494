"""`POST /hooks/{id}`: signed deliveries become todos, once each (B38a)."""

import ast
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

import tenure


@pytest.fixture
async def hook(rest):
    """A webhook of an endpoint of Alice's, and its secret."""
    endpoint, _ = await rest.vend(queues=["inbox", "hooks"])
    path = f"/api/v1/endpoints/{endpoint['id']}/webhooks"
    made = await rest.alice.told("POST", path, {"name": "deploys", "queue": "hooks"})
    return path, made["webhook"], made["secret"]


async def deliver(rest, hook, secret, body, *, message="msg_1", at=None, path=None):
    at = at or datetime.now(UTC)
    headers = {
        "webhook-id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message, at, body.decode(errors="replace")),
        "content-type": "application/json",
    }
    return await rest.nobody.http.post(path or f"/hooks/{hook['id']}", content=body, headers=headers)


async def test_b38a_a_delivery_makes_one_todo_however_often_it_comes(rest, hook):
    """In the webhook's queue, with the body as payload; the same message again makes no second."""
    _, made, secret = hook
    body = json.dumps({"type": "deploy.done", "data": {"version": 7}}).encode()
    first, again = [await deliver(rest, made, secret, body) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["todo_id"] == again.json()["todo_id"]
    (todo,) = (await rest.alice.told("GET", "/api/v1/todos"))["todos"]
    assert (todo["queue"], todo["source"], todo["title"]) == ("hooks", "webhook", "deploys: deploy.done")
    whole = (await rest.alice.told("GET", f"/api/v1/todos/{todo['id']}"))["todo"]
    assert whole["payload"] == json.loads(body)
    assert made["url"].endswith(f"/hooks/{made['id']}")


async def test_b38a_what_is_not_rightly_signed_is_one_401_and_stores_nothing(rest, hook):
    """A wrong secret, an old delivery, a changed body, an unknown or deleted webhook: the same bytes."""
    path, made, secret = hook
    body = b'{"type": "x"}'
    wrong = "whsec_" + "A" * 43 + "="
    old = datetime.now(UTC) - timedelta(seconds=301)
    answers = [
        await deliver(rest, made, wrong, body),
        await deliver(rest, made, secret, body, at=old),
        await deliver(rest, made, secret, body, path="/hooks/unknown"),
        await deliver(rest, made, secret, body, path="/hooks/%00"),
        await rest.nobody.http.post(f"/hooks/{made['id']}", content=body),
    ]
    rotated = await rest.alice.told("POST", f"{path}/{made['id']}/rotate")
    answers.append(await deliver(rest, made, secret, body))
    assert (await deliver(rest, made, rotated["secret"], body)).status_code == 201
    await rest.alice.told("DELETE", f"{path}/{made['id']}")
    answers.append(await deliver(rest, made, rotated["secret"], body, message="msg_2"))
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert len((await rest.alice.told("GET", "/api/v1/todos"))["todos"]) == 1


@pytest.mark.parametrize(
    "body",
    [b"plain text", b"[1, 2]", b'{"a": NaN}', b'{"type": "\\u0000"}', b'{"type": "\\ud800"}', b'{"type": 7}', b"{}"],
)
async def test_b38a_any_signed_text_is_taken_or_refused_clearly(rest, hook, body):
    """Whatever another program signs is no server's fault."""
    _, made, secret = hook
    answer = await deliver(rest, made, secret, body)
    assert answer.status_code in (201, 400), answer.text
    assert len((await rest.alice.told("GET", "/api/v1/todos"))["todos"]) == (answer.status_code == 201)


async def test_b43_a_delivery_has_a_size(rest, hook, refused):
    """256 KiB, whoever signed it."""
    _, made, secret = hook
    limit = 256 * 1024
    refused(await deliver(rest, made, secret, b"x" * (limit + 1)), 413, "payload_too_large", limit_bytes=limit)


async def test_b25_deliveries_to_an_ended_endpoint_are_refused_with_its_state(rest, hook, refused):
    """Rightly signed, they are told why."""
    path, made, secret = hook
    await rest.alice.told("POST", path.removesuffix("/webhooks") + "/revoke")
    refused(await deliver(rest, made, secret, b"{}"), 409, "conflict", state="revoked")
    answer = await rest.nobody("GET", f"/hooks/{made['id']}")
    refused(answer, 405, "method_not_allowed")


@pytest.mark.parametrize("key", ["url", "target", "callback_url"])
async def test_case_b49_a_webhook_names_nowhere_to_call(rest, hook, key):
    """Deliveries come in; where one could be sent is a key that nobody knows."""
    path, _, _ = hook
    answer = await rest.alice.http.post(path, json={"name": "out", key: "http://169.254.169.254/latest/meta-data/"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
    assert key in answer.json()["detail"]


def test_case_b49_nothing_of_the_server_can_call_out():
    """No room that answers requests imports a client of HTTP, nor opens a connection by itself."""
    house = Path(tenure.__file__).parent
    rooms = [house / "board", house / "serve", *(house / "doors" / door for door in ("rest", "mcp", "web", "wire"))]
    read = [(file, ast.parse(file.read_text())) for room in rooms for file in room.rglob("*.py")]
    assert len(read) > 50
    for file, tree in read:
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in CLIENTS or name in CLIENTS], file
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            assert called not in ("open_connection", "create_connection", "urlopen"), file


CLIENTS = {"httpx", "httpx2", "aiohttp", "requests", "urllib3", "urllib.request", "http.client", "tenure.client"}
