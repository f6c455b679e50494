"""A span for each request, by the OpenTelemetry API: where an SDK is set up it goes out, else it costs next to nothing.

Spans are named after method and door. Paths and queries are in none, for a path may hold a sign-in link.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import propagate, trace
from starlette.types import Scope


@contextmanager
def span(scope: Scope, door: str, request_id: str) -> Iterator[trace.Span]:
    """The span of a request, within the caller's trace if its headers name one."""
    tracer = trace.get_tracer("tenure")
    if isinstance(tracer, trace.ProxyTracer):  # no SDK: what it would do costs a small call a tenth more
        yield trace.INVALID_SPAN
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    with tracer.start_as_current_span(
        f"{scope['method']} {door}",
        context=propagate.extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": scope["method"], "tenure.door": door, "tenure.request_id": request_id},
    ) as begun:
        yield begun
