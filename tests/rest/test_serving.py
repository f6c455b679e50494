"""A server by itself: its front, its limits over real sockets, its health, its log and its end."""

import asyncio
import json
import logging
import sys
import time
from contextlib import asynccontextmanager

import pytest
import uvicorn


@asynccontextmanager
async def served(rest):
    """The site on a port of this process; yields the port."""
    from tenure.serve.running import configured, listen

    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(configured(rest.site))
    task = asyncio.create_task(server._serve([listening]))
    while not server.started:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        await task


async def talk(port, *pieces, pause=0.0):
    """Send bytes over a connection of their own; all that came back until the server hung up, or 10 s."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        return await asyncio.wait_for(reader.read(), 10)
    except (ConnectionError, TimeoutError) as error:
        return repr(error).encode()
    finally:
        writer.close()


def request(line="GET /livez HTTP/1.1", *headers, body=b""):
    return "\r\n".join((line, "host: 127.0.0.1", "connection: close", *headers, "", "")).encode() + body


async def test_b51_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed(rest):
    """Two lengths, a length and chunks, folded headers, NUL and lines without CR: 400 as a problem."""
    post = "POST /work/v1/claim_next HTTP/1.1"
    strange = [
        request(post, "content-length: 2", "transfer-encoding: chunked", body=b"0\r\n\r\n"),
        request(post, "content-length: 2", "content-length: 3", body=b"{}"),
        request(post, "content-length: -1"),
        request(post, "transfer-encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"),
        request("GET /livez HTTP/1.1", "x: a\r\n folded"),
        request("GET /livez HTTP/1.1", "x: a\0b"),
        request("GET /livez HTTP/1.1", "x : a"),
        b"GET /livez HTTP/1.1\nhost: 127.0.0.1\n\n",
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
        request("GET /livez HTTP/9.9"),
        request("GET /li vez HTTP/1.1"),
    ]
    async with served(rest) as port:
        for one in strange:
            answer = await talk(port, one)
            assert answer.startswith(b"HTTP/1.1 400 "), (one, answer)
            assert b"application/problem+json" in answer
        assert (await talk(port, request())).startswith(b"HTTP/1.1 200 ")


async def test_b51_addresses_and_headers_have_a_size(rest):
    """A long address, many headers, long ones, and ten megabytes of one: refused, never gathered."""
    async with served(rest) as port:
        assert (await talk(port, request(f"GET /{'x' * 9000} HTTP/1.1"))).startswith(b"HTTP/1.1 414 ")
        assert (await talk(port, request("GET /livez HTTP/1.1", *[f"x-{n}: 1" for n in range(120)]))).startswith(
            b"HTTP/1.1 431 "
        )
        assert (await talk(port, request("GET /livez HTTP/1.1", "x: " + "y" * 17_000))).startswith(b"HTTP/1.1 431 ")
        huge = (b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ", *[b"y" * 100_000] * 100)
        answer = await talk(port, *huge)
        assert answer.startswith(b"HTTP/1.1 431 ") or b"Connection" in answer, answer
        assert (await talk(port, request("GET /livez HTTP/1.1", "x: " + "y" * 9_000))).startswith(b"HTTP/1.1 200 ")


async def test_b51_what_frames_a_body_has_a_size(rest):
    """Headers behind the last chunk, finished or not, and what stands beside a chunk's length: hung up on."""
    chunked = request("POST /livez HTTP/1.1", "transfer-encoding: chunked").replace(b"connection: close\r\n", b"")
    without_end = (
        [b"0\r\n", *[b"x: %s\r\n" % (b"y" * 10_000)] * 60],
        [b"0\r\nx: ", *[b"y" * 10_000] * 60],
        [b"5;", *[b"y" * 10_000] * 60],
    )
    async with served(rest) as port:
        for pieces in without_end:
            began = time.monotonic()
            await talk(port, chunked, *pieces, pause=0.001)
            assert time.monotonic() - began < 10, pieces[0]  # `talk` waits so long for a server that hangs up
        ordinary = [b"4000\r\n", b" " * 0x4000, b"\r\n"] * 5
        answer = await talk(port, chunked, *ordinary, b"0\r\nx: y\r\n\r\n", request())
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"HTTP/1.1 200 " in answer


async def test_b51_one_connection_too_many_is_asked_to_come_back(rest, monkeypatch):
    """A 503 like any other of the board's: a problem, and when to try again."""
    from tenure.serve import limits

    monkeypatch.setattr(limits, "CONNECTIONS", 0)
    async with served(rest) as port:
        answer = await talk(port, request())
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 2\r\n" in answer
    assert b'"code": "unavailable"' in answer


async def test_b51_empty_lines_hold_no_connection(rest, monkeypatch):
    """An empty line behind an answer begins no request: it has no longer than one's headers have."""
    from tenure.serve import limits

    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)
    kept = request().replace(b"connection: close\r\n", b"")
    async with served(rest) as port:
        began = time.monotonic()
        assert (await talk(port, kept, b"\r\n", pause=0.1)).startswith(b"HTTP/1.1 200 ")
        assert time.monotonic() - began < 10


async def test_b51_who_sends_too_slowly_is_hung_up_on(rest, monkeypatch):
    """A connection that says nothing, headers that do not end, and a body that does not."""
    from tenure.serve import limits

    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.3)
    _, worker = await rest.vend()
    sign = f"authorization: {worker.http.headers['authorization']}"
    json_type = "content-type: application/json"
    async with served(rest) as port:
        assert await talk(port) == b""
        assert await talk(port, b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ") == b""
        unended = request("POST /work/v1/claim_next HTTP/1.1", sign, json_type, "content-length: 9", body=b"{")
        assert await talk(port, unended) == b""
        chunked = request("POST /work/v1/claim_next HTTP/1.1", sign, json_type, "transfer-encoding: chunked")
        assert await talk(port, chunked, b"1\r\n{\r\n") == b""
        # A connection that is kept has its time anew for each request.
        kept = request().replace(b"connection: close\r\n", b"")
        answer = await talk(port, kept, kept, request(), pause=0.15)
        assert answer.count(b"HTTP/1.1 200 ") == 3


async def test_b43_a_body_without_a_length_is_counted(rest):
    """Chunks beyond the limit are refused as soon as they are, though more would come."""
    sign = f"authorization: Bearer {rest.tokens['alice'].reveal()}"
    head = request(
        "POST /api/v1/endpoints HTTP/1.1", sign, "content-type: application/json", "transfer-encoding: chunked"
    )
    piece = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    head = head.replace(b"connection: close\r\n", b"")
    async with served(rest) as port:
        for pieces, status in ((5, 413), (4, 400)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + piece * pieces)
            if status == 400:
                writer.write(b"0\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 %d " % status)
            writer.close()
        # A length that is told is believed when it is too large: nothing need be sent.
        told = head.replace(b"transfer-encoding: chunked", b"content-length: 65537")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(told)
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 413 ")
        writer.close()


@pytest.mark.parametrize(
    "hosts", [("evil.example",), ("127.0.0.1.evil.example",), (), ("127.0.0.1", "evil.example"), ("evil.example:8420",)]
)
async def test_b51_another_host_name_is_refused_on_every_door(rest, hosts):
    """A name that someone else points at this board, none, and two: nothing is answered by that name."""
    line = "GET {} HTTP/1.1\r\nconnection: close\r\n"
    async with served(rest) as port:
        for path in ("/", "/api/v1/me", "/work/v1/claim_next", "/mcp/x", "/livez", "/hooks/x", "/metrics"):
            raw = line.format(path) + "".join(f"host: {host}\r\n" for host in hosts) + "\r\n"
            assert (await talk(port, raw.encode())).startswith(b"HTTP/1.1 400 "), path


async def test_b51_every_answer_of_every_door_carries_headers_of_caution(rest):
    """Refusals, faults and pages alike; none names the server's software, each has an id of its own."""
    seen = set()
    async with served(rest) as port:
        for path in ("/", "/api/v1/me", "/api/v1/nothing", "/work/v1/x", "/mcp/x", "/livez", "/hooks/x", "/nothing"):
            head = (await talk(port, request(f"GET {path} HTTP/1.1"))).partition(b"\r\n\r\n")[0].decode().lower()
            told = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
            for name in ("content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy"):
                assert name in told, (path, name)
            assert "server" not in told
            seen.add(told["x-request-id"])
    assert len(seen) == 8


async def test_b51_a_fault_of_ours_shows_nothing_and_is_logged_with_its_id(rest, monkeypatch, caplog):
    """500 as a problem; the log has where and why, under the id that the answer carries."""
    from tenure.doors.rest import people

    def broken(*_):
        raise RuntimeError("in the engine room")

    monkeypatch.setattr(people.humans, "friend_code", broken)
    with caplog.at_level(logging.ERROR, "tenure.board"):
        answer = await rest.alice("GET", "/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (500, "broken")
    assert "engine" not in answer.text
    (record,) = [one for one in caplog.records if one.name == "tenure.board"]
    assert record.request_id == answer.headers["x-request-id"]
    assert "engine room" in str(record.exc_info[1])


async def test_health_tells_what_it_is_asked_and_no_more(rest, refused):
    """Alive by itself; ready with its database and its ears; metrics for the bearer of their token alone."""
    assert (await rest.nobody("GET", "/livez")).text == "alive\n"
    refused(await rest.nobody("GET", "/readyz"), 503, "unavailable")  # it does not hear notices yet
    refused(await rest.nobody("GET", "/metrics"), 401, "unauthenticated")
    refused(await rest.alice("GET", "/metrics"), 401, "unauthenticated")
    refused(await rest.nobody("POST", "/livez"), 405, "method_not_allowed")
    async with rest.open():
        while not rest.board.notices.connected:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        assert (await rest.nobody("GET", "/readyz")).text == "ready\n"
        endpoint, worker = await rest.vend()
        await worker.verb("claim_next")
        told = (await rest.as_worker("for-the-tests")("GET", "/metrics")).text
        assert 'tenure_http_requests_total{door="work",method="POST",status="200"} 1.0' in told
        assert "tenure_notices_connected 1.0" in told
        assert endpoint["slug"] not in told
        assert "tenure_open_calls 0.0" in told
        rest.site.drain()
        refused(await rest.nobody("GET", "/readyz"), 503, "unavailable")
        assert (await rest.nobody("GET", "/livez")).status_code == 200


def test_without_a_token_there_are_no_metrics(board):
    """What nobody set up is nothing that is here."""
    from tenure.serve import Site

    async def ask():
        import httpx2

        transport = httpx2.ASGITransport(Site(board))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.get("/metrics", headers={"authorization": "Bearer "})

    assert asyncio.run(ask()).status_code == 404


def test_b51_the_log_masks_what_looks_like_a_secret():
    """In the message, in what stands beside it and in tracebacks; JSON lines are JSON."""
    from tenure.board.secrets import draw
    from tenure.serve.logs import formatter

    secrets = [draw(kind).reveal() for kind in ("endpoint", "human", "session", "link", "friend")]
    secrets += ["tl_" + "A" * 43, "whsec_" + "B" * 43 + "=", "postgresql://user:pass-word@host/db"]
    for secret in secrets:
        try:
            int(secret)
        except ValueError:
            log = logging.getLogger("tests.masked")
            record = log.makeRecord(
                log.name, logging.ERROR, "f", 1, "said %s", (secret,), sys.exc_info(),
                extra={"beside": secret, "deep": {"in": [secret]}},
            )  # fmt: skip
        for form in ("json", "text"):
            line = formatter(form).format(record)
            assert secret not in line
            assert "pass-word" not in line
            assert "***" in line
        told = json.loads(formatter("json").format(record))
        assert {"time", "level", "logger", "message", "beside", "exception"} <= told.keys()


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
async def test_a_server_that_is_told_to_stop_ends_its_waits_and_then_itself(sqlite_template, tmp_path, free_port, how):
    """A waiting claim is told that there is nothing; what waited 50 s holds up no one. No secret is in its log."""
    import shutil
    import signal

    import httpx2
    from board_hall import open_hall
    from board_server import BoardServer

    from tenure.board import endpoints

    shutil.copyfile(sqlite_template, tmp_path / "board.db")
    url = f"sqlite:///{tmp_path}/board.db"
    board = open_hall(url)
    vended = board.write(endpoints.vend, board.alice, name="x")
    board.database.shut()
    server = await BoardServer(url, free_port).start()
    headers = {"authorization": f"Bearer {vended.credential.reveal()}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{free_port}", headers=headers, timeout=60) as http:
        asking = asyncio.create_task(http.post("/work/v1/claim_next", json={"wait_seconds": 50}))
        await asyncio.sleep(0.5)
        assert not asking.done()
        began = time.monotonic()
        took = await server.end(getattr(signal, how))
        answer = await asking
    assert answer.json()["empty"]
    assert server.process.returncode == {"SIGTERM": 0, "SIGINT": 130}[how]
    print(f"{how}: ended in {took:.2f} s, the wait in {time.monotonic() - began:.2f} s")
    assert took < 20  # far from the 50 s that the call would have waited


async def test_b51_no_secret_is_in_the_log_of_a_server(sqlite_template, tmp_path, free_port, monkeypatch):
    """Used rightly and wrongly, in headers, paths, queries and bodies, with each request logged."""
    import shutil

    import httpx2
    from board_hall import open_hall
    from board_server import BoardServer

    from tenure.board import signing_in, tokens

    shutil.copyfile(sqlite_template, tmp_path / "board.db")
    url = f"sqlite:///{tmp_path}/board.db"
    board = open_hall(url)
    token = board.write(tokens.create, board.alice, "x").secret.reveal()
    link = board.write(signing_in.link_for, "alice").reveal()
    monkeypatch.setenv("TENURE_ACCESS_LOG", "1")
    monkeypatch.setenv("TENURE_METRICS_TOKEN", "metrics-token-of-this-test")
    server = await BoardServer(url, free_port, tmp_path / "log").start()
    base = f"http://127.0.0.1:{free_port}"
    bearer = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=base, timeout=30) as http:
        vended = (await http.post("/api/v1/endpoints", json={"name": "x"}, headers=bearer)).json()
        path, worker = (
            f"/api/v1/endpoints/{vended['endpoint']['id']}",
            {"authorization": f"Bearer {vended['credential']}"},
        )
        hook = (await http.post(f"{path}/webhooks", json={"name": "x"}, headers=bearer)).json()["secret"]
        await http.post(f"{path}/todos", json={"title": "x"}, headers=bearer)
        claim = (await http.post("/work/v1/claim_next", json={}, headers=worker)).json()["claims"][0]["lease_token"]
        known = {token, link, vended["credential"], hook, claim, "metrics-token-of-this-test"}
        signed = (await http.get(f"/login/{link}")).cookies
        known |= set(signed.values())
        said = []
        for secret in known:
            said += [
                await http.get(f"/{secret}"),
                await http.get(f"/api/v1/todos?cursor={secret}", headers=bearer),
                await http.get("/api/v1/me", headers={"authorization": f"Bearer {secret}x"}),
                await http.post(f"{path}/todos", json={"title": secret, secret: 1}, headers=bearer),
                await http.post("/work/v1/complete", json={"todo_id": secret, "lease_token": secret}, headers=worker),
                await http.post(f"/hooks/{secret}", content=secret),
                await http.get(f"/login/{secret}"),
                await http.get("/metrics", headers={"authorization": f"Bearer {secret}"}),
            ]
    board.database.shut()
    await server.end()
    log = (tmp_path / "log").read_text()
    assert log.count('"message": "request"') > 40
    assert {secret for secret in known if secret in log} == set()
    # An unknown key is named in its refusal, to whom sent it; no other problem repeats what was sent.
    problems = [one.text for one in said if "problem" in one.headers["content-type"] and one.status_code != 400]
    assert len(problems) > 20
    assert {secret for secret in known for text in problems if secret in text} == set()


@pytest.fixture
def free_port():
    """A port that was free a moment ago."""
    from tenure.serve import listen

    with listen("127.0.0.1", 0) as found:
        return found.getsockname()[1]


def test_a_port_that_is_taken_and_a_host_that_is_none_are_said_in_one_line():
    """Before anything is opened."""
    from tenure.errors import ConfigError
    from tenure.serve import listen

    with listen("127.0.0.1", 0) as taken:
        with pytest.raises(ConfigError, match="in use by another program"):
            listen("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match="no address of this machine"):
            listen("no such host.invalid", 0)
        with pytest.raises(ConfigError, match="65535"):
            listen("127.0.0.1", 70_000)


@pytest.mark.parametrize(
    ("public_url", "host", "status"),
    [
        ("https://board.example.com", "board.example.com", 200),
        ("https://board.example.com", "BOARD.example.com:443", 200),
        ("https://board.example.com", "example.com", 400),
        ("http://[2001:db8::1]:8420", "[2001:db8::1]:8420", 200),
        ("http://[2001:db8::1]:8420", "[2001:db8::2]:8420", 400),
        ("https://board.example.com", "localhost:8420", 200),
    ],
)
async def test_b51_the_board_is_known_by_its_public_name_and_says_https_where_it_has_it(public_url, host, status):
    """The port does not matter; strict transport is asked for where the address is https."""
    import httpx2

    from tenure.board.board import Board, BoardSettings
    from tenure.board.database import Database
    from tenure.board.secrets import Ring
    from tenure.serve import Site

    board = Board(Database("sqlite://"), Ring((b"only for this test",)), BoardSettings(public_url=public_url))
    transport = httpx2.ASGITransport(Site(board))
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as http:
        answer = await http.get("/livez", headers={"host": host})
    board.database.shut()
    assert answer.status_code == status
    assert ("strict-transport-security" in answer.headers) == public_url.startswith("https")


@pytest.mark.parametrize(
    ("line", "header", "statuses"),
    [
        ("OPTIONS * HTTP/1.1", "", (400, 404, 405)),
        ("CONNECT example.com:443 HTTP/1.1", "", (400, 405)),
        ("GET http://evil.example/livez HTTP/1.1", "", (200,)),
        ("GET /livez HTTP/1.1", "upgrade: websocket\r\nconnection: upgrade", (200,)),
        ("GET /livez HTTP/1.1", "upgrade: h2c\r\nhttp2-settings: x", (200,)),
        ("GET /\xff\xfe HTTP/1.1", "", (400, 404)),
        ("GET /api/v1/endpoints/%ff%fe HTTP/1.1", "", (401,)),
        ("GET //livez HTTP/1.1", "", (303, 401, 404)),
        ("GET /..%2flivez HTTP/1.1", "", (303, 401, 404)),
        ("GET /livez/../metrics HTTP/1.1", "", (404,)),
        ("GET /livez? HTTP/1.0", "", (200,)),
        ("PRI * HTTP/2.0", "", (400,)),
    ],
)
async def test_b51_odd_requests_are_answered_and_break_nothing(rest, caplog, line, header, statuses):
    """None of them is a fault of ours, and the next connection is served."""
    raw = request(line, *([header] if header else [])).decode().encode("latin-1")
    async with served(rest) as port:
        answer = await talk(port, raw)
        assert int(answer.split()[1]) in statuses, answer
        assert (await talk(port, request())).startswith(b"HTTP/1.1 200 ")
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
