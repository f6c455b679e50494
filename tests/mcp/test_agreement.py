"""Words equal behaviour: after each edit, by whatever path, all that tells of the lease agrees with what is granted."""

import asyncio
import contextlib
import random
import re

import pytest
from board_hall import open_hall
from click.testing import CliRunner
from mcp_hall import Served, listening, on_port

from tenure.board import endpoints, todos, tokens
from tenure.board.board import BoardSettings, Rate
from tenure.board.shapes import NewTodo
from tenure.doors.cli.root import cli
from tenure.rules.instant import span_words

MUCH = Rate(1e6, 10**6)
SETTINGS = BoardSettings(writes=MUCH, reads=MUCH, worker=MUCH, own_settings=MUCH, mcp_era="both")
VERBS = ("claim", "claim_next", "heartbeat")
TOLD = re.compile(r"(\d+) seconds[^(]*\((this endpoint's default|the server default)\)")
WORDS = {"this endpoint's default": "endpoint", "the server default": "server"}


@contextlib.asynccontextmanager
async def site(url, clock=None):
    """A whole server: all doors of the board, as they are served."""
    from tenure.serve import Site

    board = open_hall(url, SETTINGS, clock)
    served = Site(board)
    async with served.open(), on_port(served, served.drain) as port:
        yield Served(board, served.mcp, port)


@contextlib.asynccontextmanager
async def servers(url):
    """The servers of a board: two on PostgreSQL, the one that there may be on SQLite."""
    async with contextlib.AsyncExitStack() as stack:
        one = await stack.enter_async_context(site(url))
        two = one if url.startswith("sqlite") else await stack.enter_async_context(site(url, one.board.clock))
        yield one, two


class Facts:
    """All that tells of an endpoint's default lease, asked of two servers."""

    def __init__(self, one, two, vended, token):
        self.one, self.two, self.vended, self.token = one, two, vended, token
        self.slug = vended.endpoint.slug

    async def command(self, *arguments):
        """The command line, as its human has it; what it printed."""
        env = {
            "TENURE_URL": f"http://127.0.0.1:{self.two.port}",
            "TENURE_TOKEN": self.token,
            "COLUMNS": "400",
            "NO_COLOR": "1",
        }
        result = await asyncio.to_thread(CliRunner().invoke, cli, list(arguments), env=env)
        assert result.exit_code == 0, (arguments, result.output, result.exception)
        return result.stdout

    async def rest(self, server, method="GET", **options):
        async with server.http(headers_more={"authorization": f"Bearer {self.token}"}) as http:
            answer = await http.request(method, f"/api/v1/endpoints/{self.slug}", **options)
            assert answer.status_code == 200, answer.text
            return answer.json()

    async def edit(self, path, value, client):
        """Set the default by one of the paths."""
        if path == "rest":
            await self.rest(self.one, "PATCH", json={"default_lease_ttl_seconds": value})
        elif path == "command":
            await self.command(
                "endpoint", "edit", self.slug, "--lease-ttl", "default" if value is None else f"{value}s"
            )
        else:
            answer = await client.call_tool("set_default_lease", {"default_lease_ttl_seconds": value})
            assert not answer.is_error, answer.structured_content

    async def told(self, generation, client):
        """What each place tells: (seconds, whose) by its name."""
        facts = {}
        async with self.two.client(self.vended, generation) as fresh:
            facts["instructions"] = _in_words(fresh.instructions)
        for tool in (await client.list_tools(cache_mode="refresh")).tools:
            if tool.name in VERBS:
                facts[tool.name] = _in_words(tool.description)
        lease = (await client.call_tool("get_default_lease", {})).structured_content
        facts["get_default_lease"] = (lease["effective_lease_ttl_seconds"], lease["effective_lease_ttl_source"])
        rest = await self.rest(self.two)
        facts["rest"] = (rest["effective_lease_ttl_seconds"], rest["effective_lease_ttl_source"])
        facts["rest, as set"] = (rest["default_lease_ttl_seconds"] or 300, rest["effective_lease_ttl_source"])
        granted = await self._granted(client)
        facts["granted"] = granted
        line = next(line for line in (await self.command("endpoint", "list")).splitlines() if self.slug in line)
        column = span_words(granted[0] * 1000) + ("" if granted[1] == "endpoint" else " (server)")
        facts["command line"] = granted if f"  {column}  " in line else line
        return facts

    async def _granted(self, client):
        board = self.two.board
        put = board.database.write(todos.create, board, board.alice, self.vended.endpoint, NewTodo("work"))
        todo = (await put).todo.summary.id
        (claim,) = (await client.call_tool("claim", {"todo_id": todo})).structured_content["claims"]
        facts = {"todo_id": todo, "lease_token": claim["lease_token"]}
        beat = (await client.call_tool("heartbeat", facts)).structured_content
        assert (beat["lease_ttl_seconds"], beat["lease_ttl_source"]) == (
            claim["lease_ttl_seconds"],
            claim["lease_ttl_source"],
        )
        await client.call_tool("complete", facts)
        return claim["lease_ttl_seconds"], claim["lease_ttl_source"]


def _in_words(text):
    seconds, whose = TOLD.search(text).groups()
    return int(seconds), WORDS[whose]


async def random_edits(url, generation, count, seed):
    """So many edits: each is heard on both servers within two seconds, and then everything agrees."""
    dice = random.Random(seed)
    async with servers(url) as (one, two):
        board = one.board
        vended = await board.database.write(endpoints.vend, board, board.alice, name="worker")
        made = await board.database.write(tokens.create, board, board.alice, name="test")
        facts = Facts(one, two, vended, made.secret.reveal())
        async with listening(one, vended, generation) as here, listening(two, vended, generation) as there:
            await here.silent()
            default = None
            for number in range(count):
                value = dice.choice(
                    [value for value in (None, 60, 300, 86400, dice.randint(60, 86400)) if value != default]
                )
                path = dice.choice(["rest", "command", "mcp"])
                await facts.edit(path, value, here.client)
                await asyncio.gather(here.told(), there.told())
                default = value
                expected = (300, "server") if value is None else (value, "endpoint")
                told = await facts.told(generation, dice.choice([here, there]).client)
                assert set(told.values()) == {expected}, (number, path, value, told)
        return count


@pytest.mark.timeout(180)
async def test_words_equal_behaviour_after_random_edits_by_all_paths(board_url, generation):
    """A share of the thousand."""
    assert await random_edits(board_url, generation, 8, seed=43) == 8


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_words_equal_behaviour_after_a_thousand_random_edits_by_all_paths(board_url, generation):
    """Half a thousand in each generation, on each database."""
    assert await random_edits(board_url, generation, 500, seed=2026) == 500
