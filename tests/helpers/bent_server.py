"""Servers of a test's own, for what is done to them. A plugin of the suite."""

import signal

import pytest
from redis_server import free_port, fresh_prefix, with_options

# A server that is to remember what it acknowledged when it is started again.
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def server(request):
    """A private server of the kind that the test is parametrised with: it has `url`, `start()` and `stop()`."""
    if request.param == "postgres":
        return request.getfixturevalue("private_postgres")()
    return request.getfixturevalue("private")(request.param, port=free_port(), **DURABLE)


@pytest.fixture
def store_url(server):
    """The URL of a store on it."""
    if server.url.startswith("postgresql"):
        return server.url
    return with_options(server.url, prefix=fresh_prefix())


def crash(server):
    """It is gone, without a chance to say goodbye."""
    if server.url.startswith("postgresql"):
        server.stop(signal.SIGQUIT)
    else:
        server.stop()


def servers(*short, long=()):
    """Parametrises `server`: these kinds in every run, those in the long one."""
    kinds = [*short, *(pytest.param(kind, marks=pytest.mark.long) for kind in long)]
    return pytest.mark.parametrize("server", kinds, indirect=True)
