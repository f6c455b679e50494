"""A pydantic-ai agent with a model that only calls tools: prints what came of it, as JSON."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


def play(messages, info):
    """A model that claims, heartbeats and completes, each time with what the last answer told."""
    seen = {
        part.tool_name: part.content
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    if "claim_next" not in seen:
        return ModelResponse(parts=[ToolCallPart("claim_next", {"wait_seconds": 5})])
    claim = seen["claim_next"]["claims"][0]
    facts = {"todo_id": claim["todo"]["id"], "lease_token": claim["lease_token"]}
    for verb in ("heartbeat", "complete"):
        if verb not in seen:
            return ModelResponse(parts=[ToolCallPart(verb, facts)])
    told = {
        "tools": sorted(tool.name for tool in info.function_tools),
        "title": claim["todo"]["title"],
        "lease": seen["heartbeat"]["lease_ttl_seconds"],
        "state": seen["complete"]["state"],
    }
    return ModelResponse(parts=[TextPart(json.dumps(told))])


async def main(url, credential):
    toolset = MCPToolset(url, headers={"Authorization": f"Bearer {credential}"})
    agent = Agent(FunctionModel(play), toolsets=[toolset])
    async with agent:
        print((await agent.run("Work.")).output, flush=True)


asyncio.run(main(*sys.argv[1:]))
