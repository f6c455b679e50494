"""What a handler is by its looks: async or not, with or without the run, and what can be none."""

from __future__ import annotations

import inspect
from typing import Final

from tenure.errors import ConfigError
from tenure.scheduler.seams import Handler

_EXAMPLES: Final = {"every": '@app.every("10s")', "cron": '@app.cron("0 6 * * *")', "job": "@app.job()"}


def check_first(decorator: str, value: object) -> None:
    """Refuse what stands first in a decorator's parentheses where it can't be meant. Raises ConfigError."""
    if callable(value):
        name = getattr(value, "__name__", value)
        raise ConfigError(
            "handler", name, f"@app.{decorator} is used without parentheses.", f"Write {_EXAMPLES[decorator]}"
        )
    if decorator == "job":
        raise ConfigError("job", value, "stands without its option's name.", 'Write @app.job(name="report")')
    if decorator == "cron" and not isinstance(value, str):
        raise ConfigError("expression", value, "is no cron expression.", f"Write {_EXAMPLES[decorator]}")


def is_async(handler: Handler) -> bool:
    """Whether what it returns is awaited."""
    called = getattr(handler, "__call__", None)  # noqa: B004 - an object with an async __call__ is a handler too
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


def yields(handler: Handler) -> bool:
    """Whether it is a generator of either kind: a call of it runs nothing."""
    called = getattr(handler, "__call__", None)  # noqa: B004 - as above
    return any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (handler, called))


def wants_run(handler: Handler) -> bool:
    """Whether the handler takes the run; one without arguments is fine. More than one required is refused."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return True
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is one.empty]
    keyword = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if len(required) > 1 or keyword:
        names = ", ".join(one.name for one in (*required, *keyword))
        name = getattr(handler, "__name__", repr(handler))
        raise ConfigError("handler", name, f"needs the arguments {names}.", "Take the run alone, or nothing.")
    starred = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return bool(required) or (bool(places) and places[0].name == "run") or starred
