"""A server that stands still: a small proxy on loopback that stops passing anything on when it is told to."""

import asyncio
import contextlib


class Sluggish:
    """Passes connections on to a port, until `still` is set; with no port it accepts and never answers."""

    def __init__(self, port=None):
        self.to = port
        self.still = port is None
        self._writers = set()
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader, writer):
        self._writers.add(writer)
        if self.to is None:
            return
        there = await asyncio.open_connection("127.0.0.1", self.to)
        self._writers.add(there[1])
        for source, target in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._pass_on(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source, target):
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                if self.still:
                    await asyncio.Event().wait()
                target.write(data)
                await target.drain()
            target.close()
