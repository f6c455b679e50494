"""What `tenure doctor` looks at: each check gives one line, and where something is wrong the way out."""

from __future__ import annotations

import http.client
import json
import os
import platform
import stat
import statistics
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal

from tenure.doors.cli import keeping
from tenure.doors.cli.access import not_made, store_file
from tenure.errors import ConfigError, StoreError, TenureError
from tenure.rules.instant import iso, span_words
from tenure.rules.times import about, away, short
from tenure.settings import misspelt

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.scheduler.records import InstanceView, JobView, Records
    from tenure.scheduler.why import Why

AGAIN: Final = "See what it says; then run tenure doctor again."
READS: Final = 5
BOARD_SECONDS: Final = 5
# Beyond these a store is slow for leases of 30 s, and a clock is wrong enough to be told of (R32).
SLOW_MS: Final = 500
OFFSET_MS: Final = 1_000
OLDEST_PYTHON: Final = (3, 11)
PROBE: Final = ("Europe/Berlin", 1_782_864_000_000, "2026-07-01T02:00:00+02:00")


@dataclass(frozen=True, slots=True)
class Check:
    """One line. `fix`: what to do about it; "" where there is nothing to do."""

    name: str
    status: Literal["ok", "warn", "fail"]
    says: str
    fix: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What a store told, in one go."""

    now: int
    latency_ms: float
    offset_ms: float
    warnings: tuple[str, ...]
    jobs: list[JobView]
    instances: list[InstanceView]
    latest: list[Why]


def machine() -> Iterator[Check]:
    """This machine, without any store."""
    from tenure.app import sqlite_version

    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Check("python", "ok", f"{version} ({platform.python_implementation()}, {platform.system()})")
    else:
        yield Check("python", "fail", f"{version} is older than 3.11.", "Use Python 3.11 or later.")
    yield Check("sqlite", "ok", sqlite_version())
    yield _zones()
    for sentence in misspelt():
        yield Check("settings", "warn", sentence)


def _zones() -> Check:
    from tenure.rules.times import local
    from tenure.scheduler.jobs import zone_data_version

    name, at, wanted = PROBE
    fix = "Install current data: pip install --upgrade tzdata, or the system's tzdata package."
    try:
        shown = local(at, name)
    except Exception as error:  # noqa: BLE001 - whatever keeps zones from being read is what is to be told
        return Check("time zones", "fail", f"{name} can't be read: {error}.", fix)
    if shown != wanted:
        return Check("time zones", "fail", f"{name} gives {shown} for {iso(at)}, not {wanted}.", fix)
    return Check("time zones", "ok", f"data {zone_data_version()}; {name} gives summer time in July")


def store(find: Callable[[], Tenure]) -> Iterator[Check]:
    """The store and all that it tells."""
    try:
        app = find()
    except TenureError as error:
        yield Check("settings", "fail", str(error), "Correct the setting, the option or the file that it names.")
        return
    if app.jobs:
        yield from _application(app)
    url = app.store_url
    try:
        unmade = not_made(app)
    except (StoreError, ConfigError) as error:
        yield Check("store", "fail", f"{url}: {error}", AGAIN)
        return
    if unmade is not None:
        yield Check("store", "fail", unmade, "Start an application: tenure run MODULE:OBJECT", missing=True)
        return
    file = store_file(url)
    if file is not None:
        yield _file(file)
    try:
        seen = app.ask_now(look_around)
    except (StoreError, ConfigError) as error:
        yield Check("store", "fail", f"{url}: {error}", AGAIN)
        return
    yield _reachable(url, seen)
    yield Check("schema", "warn" if seen.warnings else "ok", " ".join(seen.warnings) or "as this version needs it")
    yield from _instances(seen)
    yield from _jobs(seen)


def board() -> Iterator[Check]:
    """The board that this user's command line asks, and as whom; nothing where they use none."""
    try:
        if not (keeping.read() or os.environ.get("TENURE_URL")):
            return
        url = keeping.server()
        token = keeping.token(url)
    except ConfigError as error:
        yield Check("board", "fail", str(error), AGAIN)
        return
    try:
        request = urllib.request.Request(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=BOARD_SECONDS) as answer:  # noqa: S310 - the user's own address
            name, status = json.load(answer)["name"], 200
    except urllib.error.HTTPError as error:
        name, status = "", error.code
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as error:
        why = getattr(error, "reason", error)
        yield Check(
            "board", "warn", f"{url} does not answer as a board: {why}.", "Start it: tenure board; or set TENURE_URL."
        )
        return
    if status not in (200, 401):
        yield Check("board", "warn", f"{url} answers with HTTP status {status}.", "Look at the server's log.")
        return
    yield Check("board", "ok", f"answers at {url}")
    if status == 200:
        yield Check("signed in", "ok", f"as {name}")
    else:
        says = "nobody is." if token is None else "the token that is kept opens nothing any more."
        yield Check("signed in", "warn", says, f"Run: tenure auth login {url}")


def _application(app: Tenure) -> Iterator[Check]:
    warnings = [f"{job.name}: {one}" for job in app.jobs.values() for one in job.warnings]
    yield Check("application", "ok", f"defines {', '.join(app.jobs)}")
    for one in warnings:
        yield Check("application", "warn", one)


def _file(file: Path) -> Check:
    mode = stat.S_IMODE(file.stat().st_mode)
    if not os.access(file, os.R_OK | os.W_OK):
        return Check("file", "fail", f"{file} can't be read and written by this user.", f"chown or chmod u+rw {file}")
    if not os.access(file.parent, os.W_OK):
        fix = f"SQLite keeps its log beside the file: allow this user to write in {file.parent}."
        return Check("file", "fail", f"the folder {file.parent} can't be written.", fix)
    if mode & 0o022 and os.name == "posix":
        return Check("file", "warn", f"{file} can be written by others (mode {mode:04o}).", f"chmod go-w {file}")
    return Check("file", "ok", f"{file}, mode {mode:04o}")


async def look_around(records: Records) -> Seen:
    """Everything that the checks need."""
    from tenure.scheduler.why import why

    trips: list[tuple[float, float]] = []
    now = await records.now()  # the first one may still open the store
    for _ in range(READS):
        sent = time.time() * 1000
        now = await records.now()
        heard = time.time() * 1000
        trips.append((heard - sent, now - (sent + heard) / 2))
    jobs, instances = await records.jobs(), await records.instances()
    scheduled = [job for job in jobs if job.told.get("cron") or job.told.get("every_ms")]
    latest = [await why(records, job.name, now) for job in scheduled]
    # The offset is best known from the quickest trip.
    return Seen(
        now, statistics.median(trip for trip, _ in trips), min(trips)[1], records.warnings, jobs, instances, latest
    )


def _reachable(url: str, seen: Seen) -> Check:
    offset = (
        f"its clock is {span_words(abs(round(seen.offset_ms)))} {'ahead of' if seen.offset_ms > 0 else 'behind'} ours"
    )
    says = f"{url}, answers in {seen.latency_ms:.1f} ms, {offset}"
    if abs(seen.offset_ms) > OFFSET_MS:
        return Check("store", "warn", says, "Set this machine's clock by NTP; slots and leases go by the store's.")
    if seen.latency_ms > SLOW_MS:
        return Check("store", "warn", says, "Leases must be many times longer than the store takes to answer.")
    return Check("store", "ok", says)


def _instances(seen: Seen) -> Iterator[Check]:
    alive = [one for one in seen.instances if one.alive]
    if alive:
        versions = sorted({one.version for one in alive})
        yield Check("instances", "ok", f"{len(alive)} alive: {seen_words(alive, seen.now)}")
        if len(versions) > 1:
            yield Check("instances", "warn", f"they run versions {', '.join(versions)}.", "Finish the deploy.")
    else:
        status: Literal["warn", "fail"] = "fail" if seen.jobs else "warn"
        yield Check("instances", status, "none is alive, so no job runs.", "Start one: tenure run MODULE:OBJECT")
    for one in seen.instances:
        if not one.alive:
            yield Check(
                "instances", "warn", f"{one.name} is silent for {about(seen.now - one.seen)}; it did not stop in order."
            )
        elif abs(one.offset_ms) > OFFSET_MS:
            says = f"{one.name}: its clock is {span_words(abs(one.offset_ms))} from the store's."
            yield Check("instances", "warn", says, f"Set the clock of {one.host} by NTP.")
        for reason in one.reasons if one.alive else ():
            yield Check("instances", "warn", f"{one.name}: {reason}.")


def seen_words(instances: list[InstanceView], now: int) -> str:
    """Their names, and when each was last seen."""
    return ", ".join(f"{one.name} (seen {away(one.seen, now)})" for one in instances)


def _jobs(seen: Seen) -> Iterator[Check]:
    found = [check for job in seen.jobs for check in _job(job, seen)]
    yield from found
    if not seen.jobs:
        yield Check("jobs", "ok", "none are registered yet")
    elif not any(check.status != "ok" for check in found):
        yield Check("jobs", "ok", f"{len(seen.jobs)}, none of them overdue, expired, late or paused")


def _job(job: JobView, seen: Seen) -> Iterator[Check]:
    alive = [one for one in seen.instances if one.alive]
    if job.paused is not None:
        says = f"{job.name} is paused since {short(job.paused)}."
        yield Check("jobs", "warn", says, f"When it may run again: tenure job resume {quote(job.name)}")
    if alive and not any(job.name in one.jobs for one in alive):
        yield Check("jobs", "warn", f"no live instance knows {job.name}.", "Start one that defines it.")
    for run in job.running:
        if run.status == "expired":
            until = f"its lease ran out at {short(run.lease_until or 0)}"
            yield Check("jobs", "warn", f"{run.key}: {run.attempts[-1].runner} is silent, {until}.")
        timeout = job.told.get("timeout_ms")
        if timeout and run.status == "running" and seen.now - run.attempts[-1].started > timeout:
            fix = f"See whether its handler hangs on {run.attempts[-1].runner}; it keeps its lease until it ends."
            yield Check(
                "jobs", "warn", f"{run.key} is overdue: it runs beyond its timeout of {span_words(timeout)}.", fix
            )
    for one in seen.latest:
        if one.job == job.name and one.outcome == "missed":
            fix = "Nobody claimed it: is an instance running, and is it healthy?"
            yield Check("jobs", "fail", f"{job.name} was not run at its last slot, {short(one.slot or 0)}.", fix)
        elif one.job == job.name and one.outcome == "late":
            fix = "Look at the load and the clocks of the instances."
            yield Check(
                "jobs", "warn", f"{job.name} was claimed too late at its last slot, {short(one.slot or 0)}.", fix
            )
