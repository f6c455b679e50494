"""What holds for the whole suite."""

import os

import pytest
from hypothesis import settings

pytest_plugins = ["board_hall", "exam", "postgres_server", "postgres_private", "redis_server", "store_urls", "web_hall"]

# Machines are shared and noisy: no example fails because it was slow.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def anyio_backend():
    """The library runs on asyncio and promises no other loop."""
    return "asyncio"


def _refuse_skip(report):
    """Under CI=true a skip is a failure: a server that can't be had must be seen."""
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: nothing is skipped under CI=true ({reason})"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _refuse_skip((yield))
