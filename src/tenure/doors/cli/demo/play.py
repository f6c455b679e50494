"""The stage of a demo: what happens when. The acts are generators that wait for what they need to be true."""

from __future__ import annotations

import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from tenure.app import Tenure
from tenure.doors.cli.access import store_file
from tenure.doors.cli.demo.cast import Cast, Heard
from tenure.doors.cli.demo.plan import Plan
from tenure.doors.cli.demo.signals import deaf, ended_in_order
from tenure.doors.cli.demo.teller import Teller
from tenure.doors.cli.demo.verdict import close
from tenure.errors import NotFound
from tenure.rules.instant import iso, span_words

if TYPE_CHECKING:
    from tenure.scheduler.records import Records, RunView

T = TypeVar("T")
TICK: Final = 0.05
# How long an act may take beyond the time that its figures add up to: for slow machines.
SLACK_MS: Final = 20_000


class Late(Exception):
    """The demo did not get where it should in time."""


def perform(plan: Plan, seconds: int | None) -> int:
    """The whole demo; its exit code. Whatever happens, its processes end and its folder is removed."""
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="tenure-demo-", ignore_cleanup_errors=True) as folder:
        store = _store(plan, Path(folder))
        plan = replace(plan, work_file=str(Path(folder, "work.jsonl")))
        app = Tenure(store)
        with Cast(plan, store, Path(folder)) as cast:
            play = Play(plan, app, cast, seconds)
            try:
                return play.perform()
            finally:
                deaf()
                play.teller.clear()
                app.close()


def _store(plan: Plan, folder: Path) -> str:
    """The store's URL, its file named by a full path: the instances run in another folder."""
    if plan.store is None:
        return f"sqlite:///{folder / 'demo.db'}"
    file, query = store_file(plan.store), urlsplit(plan.store).query
    return plan.store if file is None else f"sqlite:///{file}" + (f"?{query}" if query else "")


class Play:
    """One performance."""

    def __init__(self, plan: Plan, app: Tenure, cast: Cast, seconds: int | None) -> None:
        self.plan, self.app, self.cast, self.seconds = plan, app, cast, seconds
        self.teller = Teller(plan.instances)
        self.up: set[str] = set()
        self.backups: defaultdict[int, set[str]] = defaultdict(set)
        self.told_backups: set[int] = set()
        self.runs: tuple[RunView, ...] = ()
        self.now, self.polled, self.narrated = 0, 0.0, 0.0
        self.narrating = ("", 0)
        self.silent = ""

    def perform(self) -> int:
        self._open()
        try:
            for _ in self._script():
                self._turn()
        except Late as error:
            self.teller.line("", f"the demo can't go on: {error}.", "bad")
            self.cast.stop()
            close(self.plan, self.app, self.teller)
            return 1
        self.cast.stop()
        return close(self.plan, self.app, self.teller)

    def _open(self) -> None:
        plan, words = self.plan, span_words
        where = f"one SQLite file, {store_file(self.app.store_url)}" if plan.store is None else self.app.store_url
        self.teller.plain(f"{len(plan.instances)} instances of one application share {where}")
        self.teller.plain(
            f"the job    comes every {words(plan.interval_ms)}; a run takes {words(plan.work_ms)}: longer than a lease"
        )
        self.teller.plain(
            f"the lease  {words(plan.lease_ms)}, renewed by a heartbeat every {words(plan.heartbeat_ms)}; "
            f"a takeover comes at most {words(plan.bound_ms)} after the last one"
        )
        self.teller.plain()

    # --- the acts ---------------------------------------------------------------------------------------

    def _script(self) -> Generator[None]:
        pids = [f"{name} (pid {self.cast.start(name)})" for name in self.plan.instances]
        self.teller.line("", f"starting {_listed(pids)}")
        yield from self._until(lambda: len(self.up) == len(self.plan.instances), "not all instances came up", SLACK_MS)
        self.teller.line("", "all are up")
        acts = [self._kill, self._hand_over] if hasattr(signal, "SIGKILL") else [self._kill]
        played = 0
        while True:
            last = not self._time_for(played + 2)
            yield from acts[played % len(acts)](last)
            played += 1
            if last:
                break

    def _time_for(self, acts: int) -> bool:
        """Whether so many acts are to be played: two, or as many as the seconds asked for allow."""
        if self.seconds is None:
            return acts <= 2 and hasattr(signal, "SIGKILL")
        act = (self.plan.interval_ms + self.plan.work_ms * 2 + self.plan.bound_ms) / 1000
        return self.teller.elapsed + 2 * act <= self.seconds

    def _kill(self, last: bool) -> Generator[None]:
        """SIGKILL in the middle of a run; another takes it over when the lease has run out."""
        self._announce()
        run = yield from self._until(self._ripe, "no run came to its middle with a backup beside it")
        victim = run.attempts[-1].runner
        self.cast.kill(victim)
        self.teller.line(victim, f"SIGKILL, in the middle of its run ({_progress(run)}). It can't tell anybody.", "bad")
        self.silent = victim
        after = yield from self._until(lambda: self._beyond(run), "nobody took the run over")
        self.silent = ""
        before, now = after.attempts[-2], after.attempts[-1]
        self.teller.line(
            now.runner,
            f"TAKES OVER {span_words(now.started - before.renewed)} after the last heartbeat of {before.runner}: "
            f"attempt {now.number}, with a new token",
            "good",
        )
        if last:
            self._pause()
        self.teller.line("", f"{victim} is started again, as a supervisor would (pid {self.cast.start(victim)})")
        yield from self._to_the_end(run)

    def _hand_over(self, last: bool) -> Generator[None]:
        """SIGTERM: the run is handed over at once, without waiting for the lease."""
        self._announce()
        run = yield from self._until(self._ripe, "no run came to its middle with a backup beside it")
        leaver = run.attempts[-1].runner
        self.cast.terminate(leaver)
        self.teller.line(leaver, f"SIGTERM, as in a deploy ({_progress(run)}). It gives its lease back.", "warn")
        if last:
            self._pause()
        after = yield from self._until(lambda: self._beyond(run), "nobody took over what was handed over")
        before, now = after.attempts[-2], after.attempts[-1]
        waited = span_words(now.started - (before.ended or now.started))
        self.teller.line(now.runner, f"takes it over {waited} after the release: attempt {now.number}", "good")
        if not last:
            yield from self._until(lambda: not self.cast.members[leaver].alive, f"{leaver} did not stop")
            self.teller.line("", f"{leaver} is started again (pid {self.cast.start(leaver)})")
        yield from self._to_the_end(run)

    def _to_the_end(self, run: RunView) -> Generator[None]:
        yield from self._until(lambda: all(one.key != run.key for one in self.runs), "the run did not end")

    def _pause(self) -> None:
        """No new run begins: what is under way is the end of the demo."""
        self.app.pause(self.plan.job)

    def _announce(self) -> None:
        """When the next run is to come."""
        self._look()
        if not self.runs:
            slot = (self.now // self.plan.interval_ms + 1) * self.plan.interval_ms
            self.teller.line("", f"the next slot is {iso(slot)[11:]}, in {(slot - self.now) / 1000:.1f}s")

    # --- what acts wait for -----------------------------------------------------------------------------

    def _until(
        self, true: Callable[[], T | None], late: str, patience_ms: int | None = None
    ) -> Generator[None, None, T]:
        """Wait, a tick at a time, until something is true; returns it. Raises Late."""
        usual = 3 * (self.plan.interval_ms + self.plan.work_ms + self.plan.bound_ms) + SLACK_MS
        end = time.monotonic() + (usual if patience_ms is None else patience_ms) / 1000
        while True:
            found = true()
            if found:
                return found
            if time.monotonic() > end:
                raise Late(late)
            fallen = self.cast.fallen()
            if fallen is not None:
                raise Late(f"{fallen.name} ended by itself: {' | '.join(list(fallen.noise)[-3:]) or 'without a word'}")
            yield

    def _ripe(self) -> RunView | None:
        """A first attempt in its middle, with backups, half-way between two slots: see `Plan`."""
        for run in self.runs:
            attempt, phase = run.attempts[-1], self.now % self.plan.interval_ms / self.plan.interval_ms
            others = set(self.cast.alive()) - {attempt.runner}
            worked = self.now - attempt.started
            if (
                run.status == "running"
                and attempt.number == 1
                and attempt.runner in self.cast.alive()
                and others <= self.backups[run.slot]
                and 0.45 <= phase <= 0.6
                and 0.25 * self.plan.work_ms <= worked <= 0.75 * self.plan.work_ms
            ):
                return run
        return None

    def _beyond(self, run: RunView) -> RunView | None:
        """The run with a further attempt. Raises Late where it has ended without one."""
        for one in self.runs:
            if one.key == run.key:
                return one if len(one.attempts) > len(run.attempts) else None
        raise Late(f"{run.key} ended without another attempt")

    # --- one turn ---------------------------------------------------------------------------------------

    def _turn(self) -> None:
        for who, told in self.cast.hear(TICK):
            self._hear((who, told))
        if time.monotonic() - self.polled >= 2 * TICK:
            self.polled = time.monotonic()
            self._look()
        self._narrate()

    def _look(self) -> None:
        async def ask(records: Records) -> tuple[int, tuple[RunView, ...]]:
            try:
                job = await records.job(self.plan.job)
            except NotFound:
                return await records.now(), ()
            return await records.now(), job.running

        self.now, self.runs = self.app.ask_now(ask)
        for run in self.runs:
            self._tell_backups(run)

    def _hear(self, heard: Heard) -> None:
        """One line of an instance's log."""
        who, told = heard
        event, slot, attempt = str(told.get("event", "")), told.get("slot_ms"), told.get("attempt", 0)
        name = str(told.get("slot", ""))[11:]
        match event:
            case "begun":
                self.up.add(who)
            case "won":
                self.teller.line(who, f"is first at slot {name}: it runs attempt {attempt}, on a lease")
            case "backup" if slot is not None:
                self.backups[slot].add(who)
            case "success":
                self.teller.line(who, f"finishes {name} in attempt {attempt}: success", "good")
            case "handed-over":
                self.teller.line(who, f"has given {name} back: handed over, which costs the run no attempt")
            case "failed" | "lost" | "unsure" | "interrupted" | "store-down" | "abandoned":
                self.teller.line(who, str(told.get("message", event)), "bad")
            case "skip":
                self._skipped(who, told, name)
            case _:
                pass

    def _tell_backups(self, run: RunView) -> None:
        others = set(self.cast.alive()) - {run.attempts[-1].runner}
        if others and others <= self.backups[run.slot] and run.slot not in self.told_backups:
            self.told_backups.add(run.slot)
            are = "are its backups" if len(others) > 1 else "is its backup"
            self.teller.line("", f"{_listed(sorted(others))} {are}")

    def _skipped(self, who: str, told: dict[str, Any], name: str) -> None:
        slot, why = told.get("slot_ms"), told.get("detail", {}).get("why")
        if slot is not None and why == "overlap" and -slot not in self.told_backups:
            self.told_backups.add(-slot)
            self.teller.line("", f"slot {name} is skipped: a run of the job is alive, and one at a time is the rule")

    def _narrate(self) -> None:
        """Each second, how the run stands; on a terminal its lease as a bar."""
        if not self.runs:
            left = self.plan.interval_ms - self.now % self.plan.interval_ms
            self.teller.moving("next slot", 1 - left / self.plan.interval_ms)
            return
        run = self.runs[-1]
        attempt, left = run.attempts[-1], (run.lease_until or 0) - self.now
        if self.narrating != (run.key, attempt.number):
            self.narrating, self.narrated = (run.key, attempt.number), time.monotonic()
        self.teller.moving(f"lease of {attempt.runner}", left / self.plan.lease_ms)
        if time.monotonic() - self.narrated < 1.0:
            return
        self.narrated = time.monotonic()
        holds = f"holds {left / 1000:.1f}s more" if left > 0 else "has run out"
        if attempt.runner == self.silent:
            then = "until then nobody may start the run" if left > 0 else "the next backup that looks takes the run"
            self.teller.line(attempt.runner, f"... silence. Its lease {holds}; {then}", "dim")
        elif run.status == "running":
            beats = f"{attempt.beats} heartbeat{'' if attempt.beats == 1 else 's'}"
            self.teller.line(attempt.runner, f"works: {_progress(run)}, {beats}; its lease {holds}", "dim")


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _progress(run: RunView) -> str:
    """How far the current attempt is, as its last heartbeat said."""
    if run.progress is None or not run.attempts[-1].beats:
        return "just begun"
    return f"letter {run.progress.done:g} of {run.progress.total:g}"
