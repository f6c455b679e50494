"""The web page for tests: served by a real server on a loopback port, on a board of its own, beside a store of runs.

A plugin of the suite. Nothing here sleeps: whoever needs time to pass turns the board's clock.
"""

import asyncio
import json
import shutil
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest


class Site:
    """One page that is served. `board`: the hall's board; `app`: the `Tenure` of its runs."""

    def __init__(self, board, app, url, doors):
        self.board, self.app, self.url, self._doors = board, app, url, doors

    def cut_streams(self):
        """End the streams that are open, as a server does before it stops; new ones end at once."""
        self.board.notices._loop.call_soon_threadsafe(self._doors.web.state.live.close)

    def own_runs(self, owned, titles=None):
        """Give the runs owners, as those of schedules have: `owned(human)` gives the names of their jobs."""
        state = self._doors.web.state
        state.sources["runs"] = state.live._watches["runs"]._source = replace(
            state.sources["runs"], owned=owned, titles=titles
        )

    def tell_job(self, name, schedule=None, *, tiny=False, **options):
        """Make a job known in the store of runs, as an instance does when it starts."""
        from tenure.rules import commands as c
        from tenure.scheduler.jobs import define

        job = define(name, schedule, lambda: None, options, {}, tiny_leases=tiny)
        identity = schedule.identity if schedule is not None else ""
        command = c.Register(identity, job.fingerprint(), json.dumps(job.told()), job.bound_ms)
        self.app.ask_now(lambda records: records.ledger.ask_one(name, command))
        return job

    def link(self, name="alice"):
        """The path of a new one-time sign-in link."""
        from tenure.board import signing_in

        return f"/login/{self.board.write(signing_in.link_for, name).reveal()}"

    def session(self, name="alice"):
        """The cookie of a new session."""
        from tenure.board import signing_in

        secret = self.board.write(signing_in.link_for, name).reveal()
        return self.board.write(signing_in.by_link, secret).cookie.reveal()


@contextmanager
def served(board, sources=()):
    """Serve the board, with all its doors, on a thread with a loop of its own; its URL."""
    import uvicorn

    from tenure.serve.site import Site as Doors

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        object.__setattr__(board, "settings", replace(board.settings, public_url=url))
        doors = Doors(board, sources=sources)
        config = uvicorn.Config(doors, log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)

        async def serve():
            async with doors.open():
                await server.serve(sockets=[listener])

        def stop():
            doors.drain()
            server.should_exit = True

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            yield url, doors
        finally:
            doors.board.notices._loop.call_soon_threadsafe(stop)
            thread.join(10)


@contextmanager
def open_site(folder, template, url=None):
    """A page on a fresh board in this folder, or at this URL, with a store of runs that has no job yet."""
    from board_hall import open_hall

    from tenure import Tenure
    from tenure.doors.web import Source

    if url is None:
        shutil.copyfile(template, folder / "board.db")
    board = open_hall(url or f"sqlite:///{folder}/board.db")
    app = Tenure(f"sqlite:///{folder}/runs.db")
    app.ask_now(lambda records: records.now())
    with served(board, [Source("runs", "sqlite:///runs.db", app)]) as (address, doors):
        yield Site(board, app, address, doors)
    app.close()


@pytest.fixture
def site(tmp_path, sqlite_template):
    """A page on a board of this test's own, with Alice, Bob and Charlie."""
    with open_site(tmp_path, sqlite_template) as site:
        yield site
