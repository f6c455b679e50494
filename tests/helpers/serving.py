"""A board of the hall, served by HTTP from a thread of the test's own process."""

import asyncio
import threading
import time
from contextlib import contextmanager


@contextmanager
def served(board):
    """Serve a board from a thread of this process; its address."""
    import uvicorn

    from tenure.serve import Site, listen
    from tenure.serve.limits import Protocol

    listening = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    site = Site(board)
    server = uvicorn.Server(uvicorn.Config(site, http=Protocol, ws="none", lifespan="off", log_config=None))
    closed = board.database.close

    async def serve():
        async with site.open():
            await server.serve([listening])

    async def keep():  # the board is the test's to close
        pass

    object.__setattr__(board.database, "close", keep)
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield url
    finally:
        site.drain()
        server.should_exit = True
        thread.join(20)
        listening.close()
        object.__setattr__(board.database, "close", closed)
