"""`Tenure`: what a service embeds. It holds the jobs, opens the store, and runs one instance."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import tenure
from tenure import processes
from tenure.engine import Engine
from tenure.errors import ConfigError, NotFound
from tenure.putting import Adding, Putter
from tenure.rules.instant import HOUR, instant, span
from tenure.rules.schedule import DstGap, DstOverlap, Schedule, Slot, cron, every
from tenure.scheduler.events import Event, Listeners
from tenure.scheduler.handlers import check_first
from tenure.scheduler.instance import Health, Instance
from tenure.scheduler.jobs import Job, Options, Span, as_config_error, check_name, check_whole, define, slots_between
from tenure.scheduler.onestore import OneStore
from tenure.scheduler.records import Records
from tenure.scheduler.seams import Handler, LoopStage
from tenure.scheduler.why import Why, why
from tenure.settings import DEFAULT_STORE, GENERAL, check_source, resolve, seconds_of
from tenure.stores.contract import KeepsSchema, Migration, Store
from tenure.stores.opening import redact, sqlite_version, store_from_url

__all__ = ["KeepsSchema", "Migration", "Tenure", "redact", "sqlite_version"]


T = TypeVar("T")
DEFAULT_STOP = 20.0
# How long, beyond the stop's own timeout, closing the store may take; seconds (R27).
CLOSING = 1.8
HOURS = 48.0

log = logging.getLogger("tenure")


class Tenure:
    """A scheduler: jobs, a store, and one instance in this process.

    store: a URL (`sqlite:///tenure.db`, …), else TENURE_STORE, else `[tool.tenure]`, else `sqlite:///tenure.db`.
    name: of the instance, unique per process start; by default host, pid and a random part. threads: how many
    sync handlers run at once. stop_timeout: how long `stop()` lets handlers end, 20 s. The rest are defaults for
    all jobs, see `Options`. board, board_credential: where jobs put todos, else TENURE_URL and
    TENURE_ENDPOINT_CREDENTIAL. `tiny_leases` is for tests: it allows leases down to 50 ms. Raises ConfigError.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        name: str | None = None,
        threads: int = 64,
        stop_timeout: Span | None = None,
        tiny_leases: bool = False,
        board: str | None = None,
        board_credential: str | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        named = (("store", store), ("name", name), ("stop_timeout", stop_timeout))
        given = {key: value for key, value in named if value is not None}
        settings = resolve({**given, **defaults})
        self._settings, self._tiny_leases = settings, tiny_leases
        self._source: str | Store = settings.get("store", DEFAULT_STORE)
        self._threads = check_whole("threads", threads, 1)
        self._defaults = {key: value for key, value in settings.items() if key not in GENERAL}
        with settings.named():
            check_source(self._source)
            if isinstance(self._source, str):
                store_from_url(self._source)  # a wrong URL is refused here, not at start
            self._name = check_name(settings["name"]) if "name" in settings else None
            self._stop_timeout = seconds_of("stop_timeout", settings.get("stop_timeout", DEFAULT_STOP))
            define("defaults", None, lambda: None, {}, self._defaults, tiny_leases=tiny_leases)
        self._defined: dict[str, Job] = {}
        self._putter = Putter(board, board_credential)
        self._listeners = Listeners(lambda: self.instance.events if self.instance is not None else None)
        self._engine = Engine()
        self._store = OneStore(self._make_store)
        self._instance: Instance | None = None
        self._stopping: Future[None] | None = None
        self._pid = 0

    @property
    def store_url(self) -> str:
        """The store's URL, without any password."""
        return redact(self._source) if isinstance(self._source, str) else self._source.url

    def use_store(self, store: str) -> None:
        """Use this store instead of the one that was given; before the first use of either. Raises ConfigError."""
        if self._store.used:
            raise ConfigError("store", store, "comes too late: the other store is in use already.")
        store_from_url(store)
        self._source = store

    def _make_store(self) -> Store:
        return store_from_url(self._source) if isinstance(self._source, str) else self._source

    # --- jobs -------------------------------------------------------------------------------------------

    @property
    def jobs(self) -> dict[str, Job]:
        """The jobs defined so far, by name."""
        return dict(self._defined)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        dst_gap: DstGap = "shift",
        dst_overlap: DstOverlap = "first",
        **options: Unpack[Options],
    ) -> Adding:
        """Run the handler at the times of a cron expression, read in the zone `tz` (R34)."""
        check_first("cron", expression)
        with as_config_error():
            schedule = cron(expression, tz, dst_gap=dst_gap, dst_overlap=dst_overlap)
        return self._add(name, schedule, options)

    def every(self, interval: Span, *, name: str | None = None, **options: Unpack[Options]) -> Adding:
        """Run the handler at multiples of the interval since the epoch: `10`, `"10s"`, a timedelta (R35)."""
        check_first("every", interval)
        try:
            schedule = every(span(interval))
        except ValueError as error:  # ScheduleError is one
            raise ConfigError("interval", interval, str(error)) from None
        return self._add(name, schedule, options)

    def job(self, *refused: Any, name: str | None = None, **options: Unpack[Options]) -> Adding:
        """A job without a schedule: it runs when it is triggered. All arguments go by name."""
        for one in refused:
            check_first("job", one)
        return self._add(name, None, options)

    def _add(self, name: str | None, schedule: Schedule | None, options: Options) -> Adding:
        def add(handler: Handler) -> None:
            with self._settings.named(options):
                job = define(name, schedule, handler, options, self._defaults, tiny_leases=self._tiny_leases)
            if job.name in self._defined:
                raise ConfigError("name", job.name, "is the name of another job already; give this one its own.")
            if self._instance is not None:
                raise ConfigError("name", job.name, "was defined after the start; define jobs before start().")
            self._defined[job.name] = job

        return Adding(add, name)

    async def put_job(self, name: str, schedule: Schedule | None, handler: Handler, **options: Unpack[Options]) -> None:
        """Define a job, or define it anew, while this instance runs; what runs already runs on. Raises StoreError."""
        with self._settings.named(options):
            job = define(name, schedule, handler, options, self._defaults, tiny_leases=self._tiny_leases)
        if self.instance is not None:
            await self._engine.call(self.instance.put_job(job))
        if self.instance is None or self.instance.jobs.get(name) is job:  # else it was dropped, or put anew, meanwhile
            self._defined[name] = job

    async def drop_job(self, name: str) -> None:
        """Start no more runs of this job here; its records stay."""
        if self.instance is not None:
            await self._engine.call(self.instance.drop_job(name))
        self._defined.pop(name, None)

    def simulate(self, start: str | datetime, hours: float = HOURS) -> list[tuple[Slot, Job]]:
        """The slots of all jobs in the `hours` after `start`, in order; nothing is run."""
        try:
            begin = instant(start, 0)
        except ValueError as error:
            raise ConfigError("start", start, str(error)) from None
        return slots_between(self._defined.values(), begin, begin + round(hours * HOUR))

    # --- one instance -----------------------------------------------------------------------------------

    @property
    def instance(self) -> Instance | None:
        """The instance that runs in this process, if it was started here."""
        return self._instance if self._pid == os.getpid() else None

    async def start(self, only: Iterable[str] | None = None) -> None:
        """Open the store and begin; async handlers run on the loop that calls this.

        A store that can't be reached *yet* is tried again in the background, see `health()`; what can't get
        better by waiting is raised: ConfigError, StoreError.
        """
        if self.instance is not None:
            raise ConfigError("start", self._name or "", "was called already; stop() this one first.")
        jobs = self._chosen(only)
        stage = LoopStage(asyncio.get_running_loop(), self._threads)
        instance = Instance(jobs, self._store, stage, name=self._name, version=tenure.__version__)
        self._listeners.join(instance.events)
        instance.effects.putter = self._putter.put
        for sentence in dict.fromkeys(one for job in jobs for one in job.warnings):  # once, whosever it is
            log.warning("%s: %s", ", ".join(job.name for job in jobs if sentence in job.warnings), sentence)
        self._instance, self._pid = instance, os.getpid()
        await self._engine.call(self._begin(instance))
        if instance.refused is not None:
            await self.stop(0)
            raise instance.refused

    @staticmethod
    async def _begin(instance: Instance) -> None:
        """When this returns the jobs are registered, or the store could not be reached yet."""
        await instance.start()
        await instance.settled.wait()

    def _chosen(self, only: Iterable[str] | None) -> list[Job]:
        if only is None:
            return list(self._defined.values())
        names = list(only)
        for name in names:
            if name not in self._defined:
                listed = ", ".join(self._defined) or "none"
                raise NotFound(f"there is no job {name!r} in this application. It defines: {listed}.")
        return [self._defined[name] for name in names]

    async def stop(self, timeout: Span | None = None) -> None:  # noqa: ASYNC109 - it bounds the handlers, not this call
        """No new runs; running handlers are told, and handed over, finished or left (R27)."""
        instance = self.instance
        if instance is None:
            return
        seconds = self._stop_timeout if timeout is None else seconds_of("timeout", timeout)
        stopping = self._stopping
        if stopping is None:
            stopping = self._stopping = self._engine.submit(self._stop(instance, seconds))
            stopping.add_done_callback(lambda _: self._stopped())  # which may be at once: `_stopping` is None again
        # Whoever else calls stop(), or stops waiting for it, changes nothing: there is one stop, and it goes on.
        await asyncio.shield(asyncio.wrap_future(stopping))

    async def _stop(self, instance: Instance, seconds: float) -> None:
        end = time.monotonic() + seconds + CLOSING
        await instance.stop(seconds)
        try:
            async with asyncio.timeout(max(0.1, end - time.monotonic())):
                await self._store.close()
        except TimeoutError:
            log.warning("the store did not let itself be closed in time; its thread ends with the process")

    def _stopped(self) -> None:
        self._instance = self._stopping = None
        self._engine.close()
        self._putter.close()
        self._listeners.end()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def run(self, only: Iterable[str] | None = None, *, stop_timeout: Span | None = None) -> int:
        """Run in this process until SIGTERM or SIGINT; a second signal ends at once (R28). Returns an exit code."""
        return processes.run(self, only, stop_timeout)

    def run_in_thread(self) -> processes.Running:
        """Run beside a sync host (WSGI and the like): handlers get a loop and threads of their own."""
        return processes.Running(self)

    def lifespan(self) -> Callable[[Any], contextlib.AbstractAsyncContextManager[None]]:
        """For `FastAPI(lifespan=app.lifespan())` and Starlette."""

        @contextlib.asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[None]:
            async with self:
                yield

        return lifespan

    def health(self) -> Health:
        """Whether this instance does its work, and what is wrong if not."""
        instance = self.instance
        if instance is None:
            return Health(False, ("it is not started",), 0.0, 0.0)

        async def ask() -> Health:
            return instance.health()

        return self._engine.submit(ask()).result()

    # --- events -----------------------------------------------------------------------------------------

    def on(self, name: str, listener: Any = ...) -> Any:
        """Call `listener(event)` at each event of this name, `*` for all; without a listener, a decorator."""
        return self._listeners.on(name, listener)

    def events(self, name: str = "*") -> AsyncIterator[Event]:
        """All events from now on, until stop(); before start() it waits. A reader 1,000 behind loses the oldest."""
        return self._listeners.stream(name)

    # --- what can be asked and said ---------------------------------------------------------------------

    def trigger(self, job: str) -> str:
        """Ask for a run now, by an instance that knows the job; returns the wish's id. Waits for the store."""
        return self.ask_now(lambda records: records.trigger(job))

    def pause(self, job: str) -> bool:
        """No new runs of the job, on any instance; False where it was paused already. Waits for the store."""
        return self.ask_now(lambda records: records.pause(job))

    def resume(self, job: str) -> bool:
        """End a pause; at most one slot is caught up. Waits for the store."""
        return self.ask_now(lambda records: records.resume(job))

    async def why(self, job: str, when: str | datetime) -> Why:
        """Why the job ran, or did not, at that time."""
        return await self.ask(lambda records: _why(records, job, when))

    async def ask(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        """Put a question to the store's records; see `Records`."""
        return await self._engine.call(self._with_records(question))

    def ask_now(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        """The same from code without a loop, such as a command. Waits for the store."""
        return self._engine.submit(self._with_records(question)).result()

    async def _with_records(self, question: Callable[[Records], Coroutine[Any, Any, T]]) -> T:
        store, warnings = await self._store.opened()
        instance = self.instance
        ledger = instance.ledger if instance is not None else None
        return await question(Records(store, ledger, self._name or f"pid {os.getpid()}", warnings))

    def ask_schema(self, question: Callable[[KeepsSchema], Coroutine[Any, Any, T]]) -> T | None:
        """Put a question to the store's schema, without opening the store; None where it keeps none."""
        store = self._make_store()
        return self._engine.submit(question(store)).result() if isinstance(store, KeepsSchema) else None

    def close(self) -> None:
        """Give the store back after questions that were asked without start()."""
        if self.instance is None and self._engine.mine:
            self._engine.submit(self._store.close()).result()
            self._engine.close()


async def _why(records: Records, job: str, when: str | datetime) -> Why:
    try:
        at = instant(when, await records.now())
    except ValueError as error:
        raise ConfigError("when", when, str(error)) from None
    return await why(records, job, at)
