"""A small pen for SVG. Everything that is written with it is escaped; colours come from classes, never from here."""

from __future__ import annotations

from markupsafe import Markup, escape

Value = str | float


def tag(name: str, *inside: str, **attributes: Value) -> Markup:
    """An element. `class_` is `class`, other underscores are dashes; texts inside are escaped, Markup is not."""
    spelled = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    if not inside:
        return Markup(f"<{name}{spelled}/>")  # noqa: S704 - every value was escaped above
    return Markup(f"<{name}{spelled}>") + Markup("").join(inside) + Markup(f"</{name}>")  # noqa: S704 - the same


def _short(value: Value) -> str:
    """Numbers to a tenth: nobody sees more, and every byte is sent."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def title(text: str) -> Markup:
    """What is shown when something is pointed at."""
    return tag("title", text)


def rect(x: float, y: float, width: float, height: float, class_: str, *, says: str = "", **more: Value) -> Markup:
    """A rectangle, never narrower than can be seen."""
    inside = (title(says),) if says else ()
    return tag("rect", *inside, x=x, y=y, width=max(width, 1.5), height=max(height, 0), class_=class_, **more)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> Markup:
    """Words."""
    return tag("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def path(d: str, class_: str, says: str = "") -> Markup:
    """A path."""
    return tag("path", *((title(says),) if says else ()), d=d, class_=class_)


def picture(width: float, height: float, label: str, *parts: Markup, class_: str = "") -> Markup:
    """The whole picture; `label` is what a reader hears who can't see it."""
    return tag(
        "svg", *parts, class_=f"picture {class_}".strip(), viewBox=f"0 0 {_short(width)} {_short(height)}",
        role="img", aria_label=label,
    )  # fmt: skip
