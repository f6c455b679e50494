"""A board behind all of its doors, asked over HTTP inside the process; Alice, Bob and Charlie with a token each."""

import json
from contextlib import asynccontextmanager

import httpx2
import pytest
from board_hall import open_hall

URL = "http://127.0.0.1:8420"


def ample():
    """Settings under which no test meets a rate that it does not mean to meet."""
    from tenure.board.board import BoardSettings, Rate

    much = Rate(1e6, 10**6)
    return BoardSettings(writes=much, reads=much, worker=much, own_settings=much)


@pytest.fixture
def settings():
    """The board's settings; a module that tests rates has its own."""
    return ample()


@pytest.fixture
def board(board_url, settings):
    """A board of this test's own; on SQLite and on PostgreSQL."""
    board = open_hall(board_url, settings)
    yield board
    board.database.shut()


class Caller:
    """Someone with a bearer token or credential. Answers are httpx2's; `told` gives the JSON of one that succeeded."""

    def __init__(self, site, secret=None):
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(site, raise_app_exceptions=False), base_url=URL, headers=headers
        )

    async def __call__(self, method, path, body=None, **options):
        if isinstance(body, bytes):
            options["headers"] = {"content-type": "application/json", **options.get("headers", {})}
            return await self.http.request(method, path, content=body, **options)
        return await self.http.request(method, path, json=body, **options)

    async def told(self, method, path, body=None, **options):
        answer = await self(method, path, body, **options)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def verb(self, name, /, **arguments):
        return await self("POST", f"/work/v1/{name}", arguments)

    async def did(self, name, /, **arguments):
        return await self.told("POST", f"/work/v1/{name}", arguments)


class Rest:
    """The doors of a board and who asks there."""

    def __init__(self, board):
        from tenure.board import tokens
        from tenure.serve import Site

        self.board, self.site = board, Site(board, hosts=["testserver"], metrics_token="for-the-tests")  # noqa: S106
        self.tokens = {name: board.write(tokens.create, human, "tests").secret for name, human in board.people.items()}
        self.alice, self.bob, self.charlie = (Caller(self.site, self.tokens[name].reveal()) for name in board.people)
        self.nobody = Caller(self.site)

    def as_worker(self, credential):
        return Caller(self.site, credential)

    async def vend(self, who=None, **fields):
        """Vend an endpoint; (its JSON, a caller with its credential)."""
        told = await (who or self.alice).told("POST", "/api/v1/endpoints", {"name": "reviewer", **fields})
        return told["endpoint"], self.as_worker(told["credential"])

    async def put(self, endpoint, who=None, **fields):
        """Put a todo on an endpoint; its JSON."""
        path = f"/api/v1/endpoints/{endpoint['id']}/todos"
        return (await (who or self.alice).told("POST", path, {"title": "do it", **fields}))["todo"]

    @asynccontextmanager
    async def open(self):
        """With notices and the reaper, for tests of what waits."""
        async with self.site.open():
            yield self


@pytest.fixture
def rest(board):
    """The doors of a board."""
    return Rest(board)


def problem(answer, status, code, **fields):
    """Check that an answer is this problem; returns it."""
    told = json.loads(answer.content)
    assert (answer.status_code, told["code"], told["status"]) == (status, code, status), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "detail"} <= told.keys()
    assert told["detail"].endswith((".", "?")), told["detail"]
    for name, value in fields.items():
        assert told[name] == value, told
    return told


@pytest.fixture
def refused():
    """`refused(answer, status, code, field=…)`: the check of a problem."""
    return problem
