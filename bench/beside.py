"""Beside the peers that a user might pick, at their defaults, in one run: takeover of a killed worker, and lateness."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from peer import Crew, Peer, PeerError, ours, peers
from rows import Row, p50
from servers import STORES, Postgres, Server, postgres, store, valkey

CAP = 120.0
# A worker may take so long to come up, and a job so long to be started.
READY = 8.0
STARTS = 60.0

Measure = Callable[[Peer, str], Row]


def takeover(*, quick: bool, cap: float = CAP) -> list[Row]:
    """kill -9 of the worker in the middle of a job; seconds until another worker starts the job again.

    They sleep nearly all the time, and go on side by side, begun a few seconds apart.
    """
    all_ = [ours(f"Tenure, {kind}", kind) for kind in STORES]
    all_ += [ours("Tenure, PostgreSQL, lease=3s, not its default", "PostgreSQL", TENURE_LEASE="3s"), *peers()]
    cap = 40.0 if quick else cap
    return _rows(
        "takeover", all_, lambda peer, url: _takeover(peer, url, cap), "no_takeover", abreast=len(all_), apart=4
    )


def lateness(*, quick: bool) -> list[Row]:
    """A job due each second: how late it starts, with one process and, where the peer knows it, with two.

    Four peers at a time: they sleep nearly all of each second.
    """
    seconds = 8 if quick else 60
    all_ = [ours(f"Tenure, {kind}, jitter=0", kind, TENURE_JITTER="0") for kind in STORES]
    all_ += [ours("Tenure, PostgreSQL, jitter=250ms, its default", "PostgreSQL"), *peers()]
    one = _rows("one process", all_, lambda peer, url: _lateness(peer, url, seconds, 1), "no_ticks", abreast=4)
    all_ = [peer for peer in all_ if not peer.no_ticks]
    return one + _rows("two processes", all_, lambda peer, url: _lateness(peer, url, seconds, 2), "alone", abreast=4)


def _rows(what: str, all_: list[Peer], measure: Measure, unless: str, *, abreast: int, apart: float = 0) -> list[Row]:
    """One row for each, so many at a time: measured, or the reason why not, which the field `unless` may name."""
    installed = {peer.title: _installed(peer) for peer in all_ if not getattr(peer, unless)}

    def row(place: int, peer: Peer) -> Row:
        title = f"{what}: {peer.title}"
        if reason := getattr(peer, unless):
            return Row(title, None, remark=f"not measured: {reason}")
        version, trouble = installed[peer.title]
        if trouble:
            return Row(title, None, remark=trouble)
        time.sleep(place * apart)
        try:
            with databases.of(peer) as url:
                found = measure(peer, url)
        except PeerError as error:
            found = Row("", None, remark=str(error))
        print(f"# {title}: {found.shown} {found.remark}", file=sys.stderr, flush=True)
        return replace(found, what=f"{title} {version}".strip())

    with (
        postgres() as server,
        valkey(port=True, databases="64") as cache,
        ThreadPoolExecutor(abreast) as pool,
    ):
        databases = Databases(server, cache)
        try:
            return list(pool.map(row, itertools.count(), all_))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # those under way end what they started, and no more begin
            raise


def _installed(peer: Peer) -> tuple[str, str]:
    """Its version, or why it can't be installed."""
    try:
        return peer.prepare(), ""
    except PeerError as error:
        return "", f"does not install: {error}"


class Databases:
    """One of its own for each, on servers that all share."""

    def __init__(self, server: Postgres, cache: Server) -> None:
        self._postgres, self._valkey, self._numbers = server, cache, itertools.count(1)

    @contextmanager
    def of(self, peer: Peer) -> Iterator[str]:
        """Its URL."""
        number = next(self._numbers)
        if peer.store == "SQLite":
            with store("SQLite") as url:
                yield url
        elif peer.store == "PostgreSQL":
            self._postgres.sql(f"CREATE DATABASE peer{number}")
            yield f"{self._postgres.url.rpartition('/')[0]}/peer{number}"
        else:
            yield f"{self._valkey.url}/{number}"


def _takeover(peer: Peer, url: str, cap: float) -> Row:
    with Crew(peer, url) as crew:
        crew.do("setup")
        for _ in range(2):
            crew.start("work")
        time.sleep(READY)
        crew.do("put")
        if not crew.wait(lambda marks: len(marks) > 0, STARTS):
            raise PeerError(f"the job did not start within {STARTS:.0f} s")
        time.sleep(1)
        (_, runner), *early = crew.marks()
        if early:
            raise PeerError("the job was started twice before anything was killed")
        killed = time.time()
        crew.kill(runner)
        if not crew.wait(lambda marks: len(marks) > 1, cap):
            told = f"not within {cap:.0f} s"
            return Row("", None, remark=f"{told}; {peer.beside}" if peer.beside else told)
        return Row("", crew.marks()[1][0] - killed, "s", remark=peer.beside)


def _lateness(peer: Peer, url: str, seconds: int, processes: int) -> Row:
    with Crew(peer, url) as crew:
        crew.do("setup")
        for _ in range(processes):
            crew.start("tick")
        if not crew.wait(lambda marks: len(marks) > 2, STARTS):
            raise PeerError(f"fewer than 3 starts within {STARTS:.0f} s")
        # Several processes need a moment until all of them schedule.
        begin = math.ceil(time.time()) + (READY if processes > 1 else 1)
        time.sleep(begin + seconds + 1 - time.time())
        found = sorted(at for at, _ in crew.marks())
    phase = next(at for at in found if at >= begin) % 1 if peer.rhythm else 0.0
    # A start belongs to the last slot before it; in a rhythm of its own to the nearest.
    slack = 0.5 if peer.rhythm else 0.0
    late = {at: (at - phase + slack) % 1 - slack for at in found}
    slots = [round(at - phase - late[at]) for at in found if begin <= at - late[at] < begin + seconds]
    times = [abs(late[at]) * 1e3 for at in found if begin <= at - late[at] < begin + seconds]
    if not slots:
        raise PeerError(f"no start within {seconds} s")
    skipped, doubled = seconds - len(set(slots)), len(slots) - len(set(slots))
    told = f"worst {max(times):.0f} ms, {skipped} of {seconds} skipped, {doubled} doubled"
    if peer.rhythm:
        told += "; measured from its own first start, for it knows no slots"
    detail = {"worst_ms": max(times), "skipped": skipped, "doubled": doubled, "processes": processes}
    return Row("", p50(times), "ms", detail=detail, remark=told)
