"""Apps on a SQLite file, in real time; nothing sleeps: events are waited for, with a deadline."""

import asyncio

import pytest

from tenure import Tenure


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/app.db"


@pytest.fixture
def app(url):
    """An app without jitter; whatever a test leaves open is closed."""
    one = Tenure(url, jitter=0, lease="2s", stop_timeout=5)
    yield one
    one.close()


async def heard(app, name, within=10.0, **facts):
    """The next event of that name."""
    async with asyncio.timeout(within):
        async for event in app.events(name):
            if all(event.detail.get(key) == value for key, value in facts.items()):
                return event
    raise AssertionError


@pytest.fixture
def event():
    return heard
