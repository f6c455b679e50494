"""When a worker was last seen."""

import asyncio


async def test_b20_a_worker_that_only_reads_was_seen(rest):
    """`list_todos` alone turns on the light of the first call."""
    endpoint, worker = await rest.vend()
    await worker.did("list_todos")
    path = f"/api/v1/endpoints/{endpoint['id']}"
    async with asyncio.timeout(10):
        while (await rest.alice.told("GET", path))["last_seen_at"] is None:  # noqa: ASYNC110 - it is written aside
            await asyncio.sleep(0.01)
