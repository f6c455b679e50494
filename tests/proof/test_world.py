"""The simulated world itself: what its network, its store and its witness do, and what they would not let pass."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tenure.errors import StoreUnavailable
from tenure.proof.network import Link, Site, Weather
from tenure.proof.turned import TurnedLoop
from tenure.proof.witness import Witness
from tenure.proof.workload import at_work
from tenure.proof.world import START, World
from tenure.rules.schedule import every
from tenure.scheduler.claims import Wish
from tenure.scheduler.jobs import Job, define
from tenure.scheduler.run import Run
from tenure.stores.contract import Ask, Change, Outcome

WRITE = Change("doc", 0, b"{}")


class Sea:
    """A store and one link to it, on a loop that is turned."""

    def __init__(self) -> None:
        self.loop = TurnedLoop()
        self.site = Site(self.loop, START)
        self.link = Link(self.site, "a", "seed")

    def soon(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.spawn("a", work)

    def turn(self, seconds: float) -> None:
        self.loop.advance(seconds)

    def written(self) -> bytes | None:
        return self.loop.run(self.site.store.read([Ask("doc")])).found[0].body


@pytest.fixture
def sea():  # type: ignore[no-untyped-def]
    sea = Sea()
    yield sea
    sea.loop.close()


def test_a_call_takes_a_moment_and_is_answered(sea: Sea) -> None:
    """There and back."""
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(0.01)
    assert call.result().outcomes == (Outcome.DONE,)
    assert sea.written() == b"{}"


@pytest.mark.parametrize(("way", "written"), [("cut_out", None), ("cut_in", b"{}")])
def test_a_cut_one_way_loses_the_request_or_the_reply(sea: Sea, way: str, written: bytes | None) -> None:
    """Either way the caller hears nothing, within the timeout; only one of them was done."""
    setattr(sea.link, way, True)
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(sea.link.timeout + 0.1)
    assert isinstance(call.exception(), StoreUnavailable)
    assert sea.written() == written


def test_what_is_doubled_arrives_twice_and_is_answered_once(sea: Sea) -> None:
    """The copy meets a version that has moved on."""
    sea.link.weather = Weather(doubled=1.0)
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(10)
    assert call.result().outcomes == (Outcome.DONE,)
    assert sea.site.outcomes == {"done": 1, "raced": 1}


def test_messages_overtake_each_other(sea: Sea) -> None:
    """What was sent last may be done first."""
    sea.link.weather = Weather(late=0.5)
    order: list[int] = []

    async def ask(number: int) -> None:
        await sea.link.read([])
        order.append(number)

    for number in range(20):
        sea.soon(ask(number))
    sea.turn(20)
    assert order != sorted(order)


def test_a_store_that_stalls_does_it_all_when_it_goes_on(sea: Sea) -> None:
    """Also what nobody waits for any more."""
    sea.site.stall()
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(6)
    assert isinstance(call.exception(), StoreUnavailable)
    assert sea.written() is None
    sea.site.go_on()
    assert sea.written() == b"{}"


def test_a_store_that_falls_breaks_every_connection(sea: Sea) -> None:
    """What was on its way arrives nowhere, also once the store is there again."""
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(0.0001)
    sea.site.fall()
    sea.site.rise()
    sea.turn(6)
    assert isinstance(call.exception(), StoreUnavailable)
    assert sea.written() is None


def test_a_failover_forgets_what_was_written_since(sea: Sea) -> None:
    """Acknowledged or not."""
    lose = sea.site.keep()
    call = sea.soon(sea.link.commit([WRITE]))
    sea.turn(0.1)
    assert call.result().outcomes == (Outcome.DONE,)
    lose()
    assert sea.written() is None


def test_when_the_clock_of_the_store_showed_a_time(sea: Sea) -> None:
    """Through steps; never, where it was jumped over."""
    sea.turn(10)
    sea.site.step(5_000)
    sea.turn(10)
    assert sea.site.shown(START + 4_000) == 4
    assert sea.site.shown(START + 12_000) is None
    assert sea.site.shown(START + 16_000) == 11


class Stage:
    """A world of one job whose handlers its witness sees."""

    def __init__(self, **options: Any) -> None:
        self.world = World(1, Witness)
        self.job = self._job(options)
        self.world.witness.exclusive = frozenset(("tick",))
        self.world.deploys = lambda _: [self.job]

    def _job(self, options: dict[str, Any]) -> Job:
        async def perform(run: Run) -> None:
            await at_work(self.world.witness, run, 40, deaf=False)

        return define("tick", every(60_000), perform, {"jitter": 0, **options})

    def turn(self, seconds: float) -> None:
        self.world.loop.run(asyncio.sleep(seconds))

    def told(self, what: str) -> list[tuple[str, int]]:
        return [(line.node, line.attempt) for line in self.world.witness.lines if line.what == what]


def test_an_attempt_that_is_won_anew_is_told_that_it_is_lost() -> None:
    """A failover forgot the win, and the same instance wins the run once more: never two handlers that hold."""
    stage = Stage()
    with stage.world.open():
        node = stage.world.start("a", [stage.job])
        stage.turn(59)
        lose, untold = stage.world.site.keep(), stage.world.witness.keep()
        stage.turn(2)
        assert len(stage.told("begin")) == 1
        lose()
        untold()
        slot = stage.world.witness.lines[-1].slot or 0
        claims = node.instance.claims
        stage.world.loop.run(stage.world.loop.spawn("a", claims.make([Wish(stage.job, slot, "catch-up")])))
        stage.turn(0.1)
        assert stage.told("begin") == [("a/handlers", 1)] * 2
        assert stage.told("lost") == [("a", 1)]
        assert stage.told("end") == [("a/handlers", 1)]
        assert [one.run.held() for one in stage.world.witness.tenancies.values() if one.run] == [False, True]


def test_the_witness_stops_a_world_whose_store_was_changed_by_no_rule() -> None:
    """S16: whoever writes past the rules is found."""
    stage = Stage()
    with stage.world.open():
        stage.world.start("a", [stage.job])
        stage.turn(1)
        found = stage.world.loop.run(stage.world.site.store.read([Ask("job:tick")])).found[0]
        stage.world.site.commit([Change("job:tick", found.version, found.body)], [()])
        assert str(stage.world.witness.breach) == "S16: the document of tick was changed by no decision"


def test_a_frozen_node_is_stiff_for_a_while() -> None:
    """It is excused until it had time to come to itself."""
    stage = Stage()
    with stage.world.open():
        node = stage.world.start("a", [stage.job])
        stage.turn(1)
        assert not stage.world.stiff("a")
        stage.world.freeze(node)
        assert stage.world.frozen("a")
        stage.world.thaw(node)
        assert not stage.world.frozen("a")
        assert stage.world.stiff("a")
        stage.turn(3)
        assert not stage.world.stiff("a")


def test_a_role_that_is_up_is_not_started_again() -> None:
    """One that has ended is, under a new name."""
    stage = Stage()
    with stage.world.open():
        stage.world.start("a", [stage.job])
        stage.turn(1)
        stage.world.again("a")
        assert [node.name for node in stage.world.lives] == ["a"]
        stage.world.kill(stage.world.nodes["a"])
        stage.world.again("a")
        assert [node.name for node in stage.world.lives] == ["a", "a~1"]
