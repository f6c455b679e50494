"""A worker on `mcp` 1.30, as old clients carry it: prints what it saw, one JSON a line."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


def tell(**facts):
    print(json.dumps(facts), flush=True)


async def main(url, credential):
    heard = asyncio.Event()

    async def on_message(message):
        root = getattr(message, "root", None)
        if getattr(root, "method", "") == "notifications/tools/list_changed":
            heard.set()

    headers = {"Authorization": f"Bearer {credential}"}
    async with (
        streamablehttp_client(url, headers=headers) as (read, write, _),
        ClientSession(read, write, message_handler=on_message) as session,
    ):
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        tell(version=begun.protocolVersion, instructions=begun.instructions, tools=[tool.name for tool in tools])
        claim = (await session.call_tool("claim_next", {})).structuredContent["claims"][0]
        facts = {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"]}
        beat = (await session.call_tool("heartbeat", facts)).structuredContent
        done = (await session.call_tool("complete", facts)).structuredContent
        refused = await session.call_tool("claim", {"todo_id": "td_none", "lease_ttl": 5})
        tell(title=claim["todo"]["title"], extended=beat["extended"], state=done["state"], error=refused.isError,
             refusal=refused.structuredContent)  # fmt: skip
        await asyncio.sleep(0.5)
        tell(listening=True)
        await asyncio.wait_for(heard.wait(), 20)
        tools = {tool.name: tool.description for tool in (await session.list_tools()).tools}
        tell(claim=tools["claim"])


asyncio.run(main(*sys.argv[1:]))
