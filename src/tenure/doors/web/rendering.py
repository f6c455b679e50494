"""Pages from templates: everything is escaped, and a name that a page does not have is an error, not a blank."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from tenure.doors.web import assets
from tenure.rules.instant import SECOND, iso, span_words
from tenure.rules.times import about, away, clock, short
from tenure.scheduler.picture import STATUS_STYLES

THEMES: Final = ("auto", "light", "dark")
# How states of the board look, beside those of runs; what is in neither looks like nothing special.
_TONES: Final[dict[str, str]] = {
    **STATUS_STYLES,
    "done": "good", "completed": "good", "active": "good", "in": "good", "alive": "good", "approved": "good",
    "ready": "", "claimed": "accent", "open": "accent", "requested": "accent",
    "lapsed": "warn", "retrying": "warn", "waiting": "warn", "blocked": "warn", "out": "warn", "silent": "bad",
    "dead": "bad", "revoked": "bad", "declined": "bad",
    "cancelled": "dim", "ended": "dim",
    "taken_by_operator": "move", "released_by_operator": "move",
}  # fmt: skip


def tone(word: str) -> str:
    """The tone in which a state is shown."""
    return _TONES.get(word, "")


def when(ms: int | None, now: int) -> Markup:
    """An instant as how far away it is; the exact one is shown when it is pointed at."""
    if ms is None:
        return Markup("<span class=dim>–</span>")
    # Whole seconds: what is shown changes no faster than it is read.
    told = now + (ms - now) // SECOND * SECOND if ms > now else now - (now - ms) // SECOND * SECOND
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(ms), short(ms), away(told, now))


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def words(name: str) -> str:
    """A name of the board's as words: `taken_by_operator` is `taken by operator`."""
    return name.replace("_", " ")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(str(files("tenure.doors.web").joinpath("templates"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        away=away, about=about, short=short, span=span_words, iso=iso, when=when, tone=tone, clock=clock,
        pretty=pretty, words=words,
    )  # fmt: skip
    environment.globals.update(themes=THEMES)
    return environment


ENVIRONMENT: Final = _environment()


def link(request: Request, path: str) -> str:
    """A path of the page as this request's client must ask for it, also where the page is mounted below a prefix."""
    return str(request.scope.get("root_path", "")).rstrip("/") + path


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A whole page. `human`, and what its forms carry, come from the request's state."""
    state = request.state
    theme = request.cookies.get("tenure_theme", "auto")
    known = {
        "human": getattr(state, "human", None),
        "csrf": getattr(state, "csrf", ""),
        "path": request.url.path,
        "query": f"?{request.url.query}" if request.method == "GET" and request.url.query else "",
        "theme": theme if theme in THEMES else "auto",
        "url": lambda path: link(request, path),
        "asset": lambda name: link(request, assets.address(name)),
        "live": "",
        "said": said(request),
    }
    return HTMLResponse(ENVIRONMENT.get_template(template).render({**known, **values}), status)


# What a page says after a form was taken. Only these can be said: an address can't put words into our mouth.
_SAID: Final = {
    "saved": "Saved.",
    "same": "That was so already; nothing was changed.",
    "paused": "Paused on all instances; a run under way goes on.",
    "resumed": "Resumed; instances see it within 5 s.",
    "triggered": "Asked for a run; an instance takes it within a few seconds.",
    "revoked": "Revoked. Its open claims are closed, and its live todos are dead letters that can be moved.",
    "added": "Added.",
    "done": "Done.",
    "ended": "Ended.",
    "asked": "Asked. Whether anybody has that code is not told; an answer will stand here.",
    "approved": "Approved. Your friend can collect the credential within 7 days.",
    "once": "That form was sent before. A secret is shown once; if it is lost, make a new one.",
}


def said(request: Request) -> str:
    """The sentence for `?said=`."""
    return _SAID.get(request.query_params.get("said", ""), "")
