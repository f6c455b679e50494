"""Spans by the OpenTelemetry API, heard by a tracer that a test plays; and the metrics as a linter reads them."""

import re
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from prometheus_client.parser import text_string_to_metric_families

from tenure.board.readings import readings
from tenure.scheduler.traces import traced
from tenure.serve.metrics import Metrics


class Tracer:
    """Hears spans: (name, attributes)."""

    def __init__(self):
        self.heard = []

    @contextmanager
    def start_as_current_span(self, name, *, attributes=None, **_):
        span = Span(dict(attributes or {}))
        self.heard.append((name, span.attributes))
        yield span


class Span:
    def __init__(self, attributes):
        self.attributes = attributes

    def set_attribute(self, name, value):
        self.attributes[name] = value


@pytest.fixture
def tracer(monkeypatch):
    tracer = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda _: tracer)
    return tracer


async def test_a_request_is_a_span_without_its_path(rest, tracer):
    """Method, door and status; nothing of the path, which may hold a sign-in link."""
    await rest.alice("GET", "/api/v1/me")
    await rest.alice("GET", "/login/tenure_link_secret")
    names = [name for name, _ in tracer.heard]
    assert names == ["GET api", "GET web"]
    assert tracer.heard[0][1]["http.response.status_code"] == 200
    assert "secret" not in str(tracer.heard)


async def test_an_attempt_is_a_span_of_either_kind_of_handler(tracer):
    """Named after the job, with slot, attempt and instance; the handler's value and its error come through."""

    class Run:
        job, key, attempt, reason, runner = "report", "report@2026", 2, "takeover", "api-1"

    async def awaited(value):
        return value

    def called(value):
        raise ValueError(value)

    assert await traced(awaited, Run(), is_async=True)("x") == "x"
    with pytest.raises(ValueError, match="y"):
        traced(called, Run(), is_async=False)("y")
    assert [name for name, _ in tracer.heard] == ["run report"] * 2
    assert tracer.heard[0][1]["tenure.attempt"] == 2


def test_metrics_pass_what_promtool_asks(board):
    """Names of ours, in base units, counters that end in _total, help for each, labels that are no ids."""
    metrics = Metrics()
    metrics.answered("api", "GET", 200, 0.01)
    metrics.looked(board.database.reading(readings))
    families = [one for one in text_string_to_metric_families(metrics.told().decode()) if one.samples]
    assert len(families) >= 5
    for family in families:
        assert re.fullmatch(r"tenure_[a-z][a-z0-9_]*", family.name), family.name
        assert family.documentation.endswith("."), family.name
        assert not re.search(r"_(ms|milliseconds|minutes|kb|count|bucket|sum)$", family.name), family.name
        assert not re.search(rf"_{family.type}\b", family.name), family.name
        for sample in family.samples:
            assert (family.type == "counter") == (
                sample.name.endswith(("_total", "_created")) and family.type == "counter"
            )
            for label in set(sample.labels) - {"le"}:
                assert re.fullmatch(r"[a-z][a-z_]*", label), label
                assert label not in ("id", "slug", "human", "endpoint", "todo"), label
