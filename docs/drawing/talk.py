"""What instances and store said to each other in a turned cluster, and how it is drawn as a mermaid sequence.

An exchange is one command to one job and its answer: read, decide and commit in one arrow there and one back.
Exchanges that only say "still so" are drawn once, with how many there were. Knows no scene.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from tenure.errors import StoreError
from tenure.proof.turned import NODE
from tenure.rules import commands as c
from tenure.rules.instant import iso, span_words
from tenure.scheduler.events import Event
from tenure.scheduler.ledger import Answered, Ledger, Order, Settle
from tenure.stores.contract import Ask
from tenure.testing import Cluster

STORE: Final = "S"
NOTHING: Final = "no answer"

Moment = tuple[float, int]  # turned seconds, and what came first of those that share them


@dataclass
class Exchange:
    """One question of a node to the store, and what came back: `reply` is empty while nothing has.

    at: the store's time of sending; routine: it only says "still so".
    """

    node: str
    sent: Moment
    at: int
    ask: str
    reply: str = ""
    answered: Moment = (0.0, 0)
    routine: bool = False


@dataclass
class Note:
    """Something that happened at a node, at several, or at the store, at the store's time `at`."""

    sent: Moment
    at: int
    over: tuple[str, ...]
    text: str


@dataclass
class Talk:
    """All that is to be drawn of one cluster; `on` while it listens; `digits` of seconds to show."""

    cluster: Cluster
    entries: list[Exchange | Note] = field(default_factory=list)
    on: bool = False
    digits: int = 1
    _number: Iterator[int] = field(default_factory=itertools.count)

    def moment(self) -> Moment:
        """Now."""
        return self.cluster.loop.seconds, next(self._number)

    def note(self, over: str | tuple[str, ...], text: str, at: int | None = None) -> None:
        """Say what happens, now or at a time of the store that is near."""
        places = (over,) if isinstance(over, str) else over
        now = self.cluster.now()
        at = now if at is None else at
        seconds, number = self.moment()
        self.entries.append(Note((seconds + (at - now) / 1000, number), at, places, text))

    def asks(self, words: str) -> Exchange:
        """A question that is on its way."""
        exchange = Exchange(node_name(NODE.get()), self.moment(), self.cluster.now(), words)
        if self.on and words:
            self.entries.append(exchange)
        return exchange

    def answers(self, exchange: Exchange, words: str, *, routine: bool = False) -> None:
        """What came back."""
        exchange.answered, exchange.reply, exchange.routine = self.moment(), words, routine

    def hear(self, event: Event) -> None:
        """An event of an instance, as a note; only those that tell something the arrows do not."""
        said = _of_event(event)
        if self.on and said:
            self.note(node_name(event.runner), said)


@contextmanager
def listening(talk: Talk) -> Iterator[None]:
    """Record every command and answer, and every look at what is unfinished, until the end of the block."""
    ask, pages = Ledger.ask, Ledger.pages

    async def heard_ask(
        ledger: Ledger, orders: Sequence[Order], patience: float | None = None, settle: Settle | None = None
    ) -> list[Answered]:
        asked = [talk.asks(command_words(order.command)) for order in orders]
        try:
            answers = await ask(ledger, orders, patience, settle)
        except StoreError:
            for one in asked:
                talk.answers(one, NOTHING, routine=True)
            raise
        for one, order, answered in zip(asked, orders, answers, strict=True):
            talk.answers(one, answer_words(answered.answer), routine=_is_routine(order.command, answered.answer))
        return answers

    async def heard_pages(ledger: Ledger, asks: Sequence[Ask], patience: float | None = None) -> Any:
        looks = any(one.before is not None for one in asks)
        asked = talk.asks("what is unfinished, what is due?" if looks else "")
        found = await pages(ledger, asks, patience)
        talk.answers(asked, _unfinished(found[1], found[0]))
        return found

    with patch.object(Ledger, "ask", heard_ask), patch.object(Ledger, "pages", heard_pages):
        yield


def node_name(label: str) -> str:
    """The name of an instance by its label, or by that of its handlers; one that was started again keeps its name."""
    return label.partition("~")[0].partition("/")[0]


# --- words ------------------------------------------------------------------------------------------------


def clock(at: int, digits: int = 1) -> str:
    """An instant of the turned day, by default to the tenth of a second."""
    return f"{iso(at)[11:19]}.{at % 1000:03d}"[: 9 + digits]


def slot_clock(slot: int) -> str:
    """A slot of the turned day."""
    return iso(slot)[11:19]


def command_words(command: c.Command) -> str:
    """What is asked; "" for what belongs to no run."""
    match command:
        case c.Claim() if not command.create:
            return f"take over run {slot_clock(command.slot)}"
        case c.Claim():
            why = ", catch-up" if command.reason == "catch-up" else ""
            return f"claim run {slot_clock(command.slot)}{why}"
        case c.Heartbeat():
            return "heartbeat"
        case c.Finish():
            return f"finish, {command.status}"
        case c.Release():
            return "release, counted" if command.counts else "release, not counted"
        case c.Missed():
            return f"missed: {command.count} slots, {slot_clock(command.first)} to {slot_clock(command.last)}"
        case _:
            return ""


def answer_words(answer: c.Answer) -> str:
    """What was answered."""
    match answer:
        case c.Won():
            return f"won: attempt {answer.attempt}, fence {answer.fence}, lease end {clock(answer.until)}"
        case c.Running():
            return f"running: attempt {answer.attempt} on {answer.runner}, lease end {clock(answer.until)}"
        case c.Overlaps():
            return f"overlap: run {slot_clock(answer.slot)} on {answer.runner}, lease end {clock(answer.until)}"
        case c.Renewed():
            return f"renewed: lease end {clock(answer.until)}"
        case c.Refused():
            whose = f"the run is {answer.runner}'s" if answer.status == "running" else f"the run is {answer.status}"
            return f"refused: {whose}"
        case c.Late():
            return f"late, by {span_words(answer.by_ms // 1000 * 1000)} beyond its bound and tolerance"
        case c.Superseded():
            return f"superseded: run {slot_clock(answer.newest)} was won"
        case c.Ended():
            return f"ended: {answer.status}"
        case c.Gone():
            return "gone: there is no such run"
        case c.Noted():
            return "noted"
        case c.Finished() | c.Released():
            return "recorded"
        case _:
            return type(answer).__name__.lower()


def _is_routine(command: c.Command, answer: c.Answer) -> bool:
    beat = isinstance(command, c.Heartbeat) and isinstance(answer, c.Renewed)
    takeover = isinstance(command, c.Claim) and not command.create
    return beat or (takeover and isinstance(answer, c.Running | c.Gone))


def _unfinished(pages: Sequence[Any], now: int) -> str:
    runs = [run for page in pages for run in page.job.runs]
    told = [
        f"run {slot_clock(run.slot)} of {run.lease.holder}, "
        + (f"lease end {clock(run.lease.until)}" if run.lease.live(now) else "its lease has run out")
        for run in runs
    ]
    return "; ".join(told).replace(";", ",") or "nothing is unfinished"


def _of_event(event: Event) -> str:
    match event.name:
        case "started":
            return f"runs the handler, attempt {event.attempt}"
        case "success":
            return "event success"
        case "lost":
            return "event lost: the handler is told to stop"
        case "unsure":
            return f"event unsure, after {event.detail['silent_ms'] / 1000:.0f} s without a renewal"
        case "skip":
            return f"event skip, {event.detail['why']}"
        case "handed-over" | "abandoned" | "interrupted":
            return f"event {event.name}"
        case _:
            return ""


# --- the drawing ------------------------------------------------------------------------------------------

Line = tuple[Moment, str]


def sequence(talk: Talk, *, who: str = "Instance {}") -> str:
    """The talk as mermaid, its participants in the order of their names."""
    entries = sorted(talk.entries, key=lambda one: one.sent)
    names = sorted({place for one in entries for place in _places(one)} - {STORE})
    lines = ["```mermaid", "sequenceDiagram"]
    lines += [f"  participant {name} as {who.format(name)}" for name in names]
    lines.append(f"  participant {STORE} as Store")
    said: list[Line] = []
    stretch: list[Exchange] = []
    for one in entries:
        if isinstance(one, Exchange) and one.routine:
            stretch.append(one)
            continue
        said += _drawn_stretch(stretch)
        stretch = []
        said += _drawn(one, talk.digits)
    said += _drawn_stretch(stretch)
    lines += [text for _, text in sorted(said, key=lambda line: line[0])]
    return "\n".join([*_joined(lines), "```"])


def _places(one: Exchange | Note) -> tuple[str, ...]:
    return (one.node,) if isinstance(one, Exchange) else one.over


def _drawn(one: Exchange | Note, digits: int) -> list[Line]:
    """The lines of one entry, each with its time."""
    if isinstance(one, Note):
        return [(one.sent, f"  Note over {','.join(one.over)}: {clock(one.at, digits)} {one.text}")]
    if one.reply in ("", NOTHING):
        return [(one.sent, f"  {one.node}-x{STORE}: {clock(one.at, digits)} {one.ask}, {NOTHING}")]
    there = (one.sent, f"  {one.node}->>{STORE}: {clock(one.at, digits)} {one.ask}")
    return [there, (one.answered, f"  {STORE}-->>{one.node}: {one.reply}")]


def _drawn_stretch(stretch: list[Exchange]) -> list[Line]:
    """Exchanges that say "still so", one pair of arrows for each node and kind."""
    lines: list[Line] = []
    for key in dict.fromkeys((one.node, one.ask, one.reply == NOTHING) for one in stretch):
        same = [one for one in stretch if (one.node, one.ask, one.reply == NOTHING) == key]
        first, last = same[0], same[-1]
        times = f", {len(same)} times until {clock(last.at)}" if len(same) > 1 else ""
        once = Exchange(first.node, first.sent, first.at, first.ask + times, last.reply, first.sent)
        lines += _drawn(once, 1)
    return lines


def _joined(lines: list[str]) -> list[str]:
    """Notes over one place that follow each other become one."""
    joined: list[str] = []
    for line in lines:
        head, _, text = line.partition(": ")
        if head.startswith("  Note") and joined and joined[-1].partition(": ")[0] == head:
            joined[-1] += f"<br/>{text}"
        else:
            joined.append(line)
    return joined
