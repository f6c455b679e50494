"""A span for each attempt, by the OpenTelemetry API, in applications that use it: nothing is imported for it here."""

from __future__ import annotations

import functools
import sys
from typing import Any

from tenure.scheduler.run import Run
from tenure.scheduler.seams import Handler


def traced(handler: Handler, run: Run, *, is_async: bool) -> Handler:
    """The handler inside a span named after its job, where the application has set up OpenTelemetry; else as it is."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return handler
    tracer = trace.get_tracer("tenure")
    if isinstance(tracer, trace.ProxyTracer):  # no SDK: nobody would hear of it
        return handler
    begin = functools.partial(
        tracer.start_as_current_span,
        f"run {run.job}",
        attributes={
            "tenure.job": run.job,
            "tenure.slot": run.key,
            "tenure.attempt": run.attempt,
            "tenure.reason": run.reason,
            "tenure.instance": run.runner,
        },
    )
    if not is_async:

        def call(*arguments: Any) -> Any:
            with begin():
                return handler(*arguments)

        return call

    async def await_it(*arguments: Any) -> Any:
        with begin():
            return await handler(*arguments)

    return await_it
