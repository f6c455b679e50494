"""A plain round-robin proxy: each connection goes to the next server that can be reached."""

import asyncio
import contextlib


class RoundRobin:
    """Listens on loopback in front of several ports. Use it inside `async with`."""

    def __init__(self, ports):
        self.ports, self._turn, self.port = list(ports), 0, None
        self._server = None
        self._open = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._open.add(task)
        try:
            there = await self._connected()
            if there is not None:
                await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
        except asyncio.CancelledError:
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _connected(self):
        for _ in self.ports:
            self._turn += 1
            port = self.ports[self._turn % len(self.ports)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _pass(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
