"""A store for a test, by its kind: on a server that the run shares, or on one of the test's own. A plugin."""

import signal

import pytest
from redis_server import free_port, fresh_prefix, shared, with_options

# A server that is to remember what it acknowledged when it is started again.
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


_POSTGRES = {"postgres": "postgres_url", "pgbouncer": "bouncer_url"}


def kinds(*short, long=()):
    """Values of a parameter: these kinds of stores in every run, those in the long one."""
    return [*short, *(pytest.param(kind, marks=pytest.mark.long) for kind in long)]


def stores(*short, long=()):
    """Parametrises `any_url`."""
    return pytest.mark.parametrize("any_url", kinds(*short, long=long), indirect=True)


def servers(*short, long=()):
    """Parametrises `server`."""
    return pytest.mark.parametrize("server", kinds(*short, long=long), indirect=True)


@pytest.fixture
def any_url(request):
    """The URL of a store of this test's own, on a server that the whole run shares; or a file."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path')}/store.db"
    if request.param == "memory":
        return f"memory://{fresh_prefix()}"
    if request.param == "postgres15":
        return with_options(request.getfixturevalue("postgres_15_url"), schema=fresh_prefix())
    if request.param in _POSTGRES:
        schema = request.getfixturevalue("postgres_schema")
        return with_options(request.getfixturevalue(_POSTGRES[request.param]), schema=schema)
    return with_options(shared(request.param), prefix=fresh_prefix())


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
