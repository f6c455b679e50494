"""Beside the peers that a user might pick, at their defaults, in one run: takeover of a killed worker, and lateness."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from peer import Crew, Peer, PeerError, ours, peers
from rows import Row, p50
from servers import postgres, store, valkey

CAP = 120.0
# A worker may take so long to come up, and a job so long to be started.
READY = 8.0
STARTS = 60.0
# Takeovers sleep nearly all the time and go on side by side; lateness is measured two at a time, on two cores.
APART = 4.0
ABREAST = 2


def takeover(*, quick: bool, cap: float = CAP) -> list[Row]:
    """kill -9 of the worker in the middle of a job; seconds until another worker starts the job again."""
    all_ = [ours(f"Tenure, {kind}", kind) for kind in ("PostgreSQL", "Valkey", "SQLite")] + peers()
    cap = 40.0 if quick else cap
    return _rows("takeover", all_, lambda peer, url: _takeover(peer, url, cap), len(all_), "no_takeover")


def lateness(*, quick: bool) -> list[Row]:
    """A job due each second: how late it starts, with one process and, where the peer knows it, with two."""
    seconds = 8 if quick else 60
    exact = {"PEER_JITTER": "0"}
    all_ = [ours(f"Tenure, {kind}, jitter 0", kind, **exact) for kind in ("PostgreSQL", "Valkey")]
    all_ += [ours("Tenure, PostgreSQL, its default jitter 250ms", "PostgreSQL"), *peers()]
    rows = _rows("lateness", all_, lambda peer, url: _lateness(peer, url, seconds, 1), ABREAST, "no_ticks")
    two = [peer for peer in all_ if not peer.no_ticks]
    return rows + _rows(
        "lateness of two processes", two, lambda peer, url: _lateness(peer, url, seconds, 2), ABREAST, "alone"
    )


def _rows(what: str, all_: list[Peer], measure: Callable[[Peer, str], Row], abreast: int, unless: str) -> list[Row]:
    """One row for each, measured, or with the reason why not."""

    def one(peer: Peer) -> Row:
        title = f"{what}: {peer.title}"
        if reason := getattr(peer, unless):
            return Row(title, None, remark=f"not measured: {reason}")
        try:
            version = peer.prepare()
        except PeerError as error:
            return Row(title, None, remark=f"does not install: {error}")
        try:
            time.sleep(APART * all_.index(peer) if abreast > ABREAST else 0)
            with urls.of(peer) as url:
                row = measure(peer, url)
        except PeerError as error:
            row = Row(title, None, remark=str(error))
        print(f"# {title}: {row.shown} {row.remark}", file=sys.stderr, flush=True)
        remark = "; ".join(part for part in (row.remark, peer.beside) if part)
        return Row(f"{title} {version}".strip(), row.value, row.unit, detail=row.detail, remark=remark)

    with _Urls.served() as urls, ThreadPoolExecutor(abreast) as pool:
        return list(pool.map(one, all_))


class _Urls:
    """A database of its own for each, on one PostgreSQL and one Valkey."""

    def __init__(self, server, cache) -> None:
        self._postgres, self._valkey, self._numbers = server, cache, itertools.count(1)

    @classmethod
    @contextmanager
    def served(cls) -> Iterator[_Urls]:
        with postgres() as server, valkey(port=True, databases="64") as cache:
            yield cls(server, cache)

    @contextmanager
    def of(self, peer: Peer) -> Iterator[str]:
        number = next(self._numbers)
        with ExitStack() as stack:
            if peer.store == "SQLite":
                yield stack.enter_context(store("SQLite"))
            elif peer.store == "PostgreSQL":
                self._postgres.sql(f"CREATE DATABASE peer{number}")
                yield self._postgres.url.replace("/postgres", f"/peer{number}")
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
        again = crew.wait(lambda marks: len(marks) > 1, cap)
        if not again:
            return Row("", None, remark=f"not within {cap:.0f} s")
        return Row("", crew.marks()[1][0] - killed, "s")


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
    skipped, doubled = seconds - len(set(slots)), len(slots) - len(set(slots))
    told = f"worst {max(times):.0f} ms, {skipped} of {seconds} skipped, {doubled} doubled"
    if peer.rhythm:
        told += "; measured from its own first start, for it knows no slots"
    detail = {"worst_ms": max(times), "skipped": skipped, "doubled": doubled, "processes": processes}
    return Row("", p50(times), "ms", detail=detail, remark=told)
