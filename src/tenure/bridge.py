"""The bridge: each schedule of the board is a job of the runs half, on the same database.

Every server of a board runs one instance that knows all schedules; whichever wins a slot's lease writes its todo, in
the transaction that ends the run. A run whose server died is taken over; where a newer slot was won first the rules of
runs leave it interrupted (R5), and then any server makes its todo up. So a slot makes one todo, however many servers
there are and however they die.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from tenure.app import Tenure
from tenure.board import schedules
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.borrowed import Borrower
from tenure.board.database import Database
from tenure.board.engines import plain_url
from tenure.board.refused import Refused
from tenure.board.schedules import CHANGED, Fired, Schedule
from tenure.errors import StoreUnavailable, TenureError
from tenure.rules.instant import HOUR
from tenure.rules.schedule import ScheduleError
from tenure.scheduler.events import Event
from tenure.scheduler.jobs import Options
from tenure.scheduler.records import Records
from tenure.scheduler.run import Run

log = logging.getLogger("tenure.board")

# So far back interrupted runs are looked for that nobody here heard of: their server died before it made them up.
MADE_UP_MS: Final = HOUR
REMEMBERED: Final = 10_000
# What a lost notice costs at most: schedules are looked at this often anyway.
LOOK_SECONDS: Final = 15.0
# A slot's work is one short transaction: where it fails, or its server dies, it is tried again until it is done.
OPTIONS: Final = Options(
    lease="10s",
    jitter="100ms",
    max_attempts=1_000,
    retries=1_000,
    retry_delay="1s",
    history=1_000,  # what was interrupted is looked up there
    overlap="allow",  # each slot is on its own: whether the last todo has ended is asked by the board
)
JOB_PREFIX: Final = "schedule "


class Bridge:
    """One server's share in the board's schedules. `app` is its instance: its runs are seen like any others."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.app = Tenure(store_url(board.database), **OPTIONS)
        self._borrower = Borrower(board.database)
        self._known: dict[str, int] = {}
        self._paused: dict[str, bool] = {}
        self._made_up: dict[tuple[str, int], None] = {}  # in the order in which they were
        self._interrupted: set[tuple[str, int]] = set()  # heard of, whatever their age
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; a database that is away is tried again in the background."""
        await self.app.start()
        self._task = asyncio.create_task(self._follow(), name="tenure schedules")

    async def stop(self, timeout_seconds: float = 5.0) -> None:
        """Hand over what runs, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.app.stop(timeout_seconds)

    async def owned(self, human: Human) -> frozenset[str]:
        """The jobs that are this human's schedules."""
        return frozenset(await self.titles(human))

    async def titles(self, human: Human) -> dict[str, str]:
        """What this human calls each of them."""
        found = await self.board.database.read(schedules.list_all, self.board, human)
        return {job_name(one.id): one.name for one in found}

    async def steer(self, human: Human, job: str, word: str) -> None:
        """Pause, resume or trigger the schedule behind a job, as its human: on the board, which every server heeds."""
        case = {"pause": schedules.pause, "resume": schedules.resume, "trigger": schedules.trigger}[word]
        await self.board.database.write(case, self.board, human, job.removeprefix(JOB_PREFIX))

    async def _follow(self) -> None:
        """Go by what the board says, as soon as it changes."""
        loop = asyncio.get_running_loop()
        with self.board.notices.ear(CHANGED) as ear:

            def heard(event: Event) -> None:
                self._interrupted.add((event.job, event.slot or 0))
                ear.ring()

            self.app.on("interrupted", lambda event: loop.call_soon_threadsafe(heard, event))
            while True:
                try:
                    await self.look()
                except TenureError as error:
                    log.warning("schedules: %s", error)
                except Exception:  # whatever it was, the next look comes
                    log.exception("schedules: looking at them failed")
                await ear.wait(LOOK_SECONDS)

    async def look(self) -> None:
        """Bring the instance's jobs to what the board says now."""
        found = {one.id: one for one in await self.board.database.read(schedules.everyones)}
        for schedule_id in self._known.keys() - found.keys():
            await self._drop(job_name(schedule_id))
            del self._known[schedule_id]
        failed: StoreUnavailable | Refused | None = None
        for one in found.values():
            try:
                await self._heed(one)
            except (StoreUnavailable, Refused) as error:
                if failed is not None:
                    raise  # the database is away: it would be for the others too
                failed = error  # it may be that somebody holds this schedule's row
            except (TenureError, ScheduleError) as error:
                log.warning("schedule %s is not gone by here, and the others are: %s", one.id, error)
            except Exception:
                log.exception("schedule %s: this server can't go by it; the others are not held up", one.id)
        if failed is not None:
            raise failed

    async def _heed(self, one: Schedule) -> None:
        """Bring one schedule's job to what the board says of it."""
        if self._known.get(one.id) != one.revision:
            await self._put(one)
            self._paused.pop(one.id, None)  # who paused it in the store may have died before it was resumed
            self._known[one.id] = one.revision
        await self._mind_pause(one)
        if one.paused is None:
            await self._make_up(one.id)

    async def _make_up(self, schedule_id: str) -> None:
        """Fire the slots whose runs were interrupted or failed for good; one that was fired already stays as it is."""
        job = job_name(schedule_id)

        async def ask(records: Records) -> set[int]:
            since = await records.now() - MADE_UP_MS
            ended = await records.runs([job], since=since, limit=OPTIONS["history"])
            return {one.slot for one in ended if one.status in ("interrupted", "failed")}

        heard = {one for one in self._interrupted if one[0] == job}
        for slot in sorted(await self.app.ask(ask) | {slot for _, slot in heard}):
            if (job, slot) not in self._made_up:
                await self.board.database.write(schedules.fire, self.board, schedule_id, slot)
                self._made_up[job, slot] = None
        self._interrupted -= heard
        while len(self._made_up) > REMEMBERED:
            self._made_up.pop(next(iter(self._made_up)))

    async def _drop(self, name: str) -> None:
        """Its runs stay; and whoever lists jobs is told that it rests, not that its instances are gone."""
        await self.app.drop_job(name)
        await self.app.ask(lambda records: records.pause(name))

    async def _put(self, one: Schedule) -> None:
        def handler(run: Run) -> None:
            self._fire(one.id, run)

        catch_up = one.plan.catch_up_ms / 1000
        await self.app.put_job(job_name(one.id), one.plan.schedule, handler, catch_up=catch_up)

    async def _mind_pause(self, one: Schedule) -> None:
        """A pause stands in the store, so that what it left out is told as that, on every server."""
        paused = one.paused is not None
        if self._paused.get(one.id) != paused:
            name = job_name(one.id)
            await self.app.ask(lambda records: records.pause(name) if paused else records.resume(name))
            self._paused[one.id] = paused

    def _fire(self, schedule_id: str, run: Run) -> None:
        """On a handler's thread: the slot's todo and the end of its run, together."""
        slot = round(run.slot_utc.timestamp() * 1000)
        with run.transaction(finish=True) as connection:
            fired, notices = self._borrower.within(connection, schedules.fire, self.board, schedule_id, slot)
        if not self.board.database.postgres and notices:
            self.board.database.heard(notices)
        run.log.info("%s", _told(fired))


def _told(fired: Fired) -> str:
    return f"made {fired.todo_id}" if fired.todo_id else f"{fired.outcome}: {fired.reason}"


def job_name(schedule_id: str) -> str:
    """The name of a schedule's job in the runs half."""
    return f"{JOB_PREFIX}{schedule_id}"


def store_url(database: Database) -> str:
    """The runs half's store on the board's database."""
    _, plain = plain_url(database.url)
    return plain
