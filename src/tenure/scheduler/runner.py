"""Start one won attempt, hear how its handler ended, and finish, fail or release it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tenure.errors import StoreError, StoreUnavailable
from tenure.rules import commands as c
from tenure.rules import timers
from tenure.scheduler.jobs import Job
from tenure.scheduler.keeper import Keeper
from tenure.scheduler.lane import Lane
from tenure.scheduler.ledger import Answered
from tenure.scheduler.results import error_of, result_of, short, trace_of
from tenure.scheduler.run import Deeds, Holding, Run
from tenure.scheduler.seams import Ended
from tenure.scheduler.shared import Shared
from tenure.scheduler.traces import traced

log = logging.getLogger("tenure")


class Runner:
    """All attempts that this instance runs; each is one task of the engine's loop."""

    def __init__(self, shared: Shared, keeper: Keeper, endings: Lane, deeds: Deeds) -> None:
        self.shared, self.keeper, self.endings, self.deeds = shared, keeper, endings, deeds
        self.playing: dict[str, tuple[Holding, asyncio.Task[None]]] = {}  # by token
        self.stopping = False
        self.changed: Callable[[], None] = lambda: None
        self.deserted: Callable[[], None] = lambda: None

    def start(self, job: Job, slot: int, request: str, answered: Answered, won: c.Won) -> None:
        """Run an attempt that was won; one that was won after stop() began is given back unrun (R27)."""
        holding = Holding(job, slot, request, self.shared.clock)
        holding.token, holding.attempt, holding.fence = won.token, won.attempt, won.fence
        holding.reason, holding.runner, holding.sent = won.reason, self.shared.events.runner, answered.sent
        self.shared.emit("takeover" if won.attempt > 1 else "won", job.name, slot, request, won.attempt)
        if job.lease_ms is not None:
            self.keeper.hold(holding)
        task = asyncio.create_task(self._perform(holding))
        self.playing[holding.token] = (holding, task)
        task.add_done_callback(lambda done: self._over(holding, done))

    def forsake(self) -> None:
        """If the handlers' loop was closed under them: what runs there is given back, and nothing more is claimed."""
        if self.shared.stage.alive or self.stopping:
            return
        self.stopping = True
        self.deserted()
        for holding, _ in tuple(self.playing.values()):
            if holding.job.is_async and holding.heard is not None and not holding.heard.done():
                holding.abort("stop", cancel=False)
                holding.heard.set_result(Ended(error=asyncio.CancelledError("the handlers' loop was closed")))

    def _over(self, holding: Holding, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            error: BaseException | None = (
                None if holding.why == "abandoned" else asyncio.CancelledError("it was cancelled")
            )
        else:
            error = task.exception()
        if error is not None:
            log.error("the end of %r could not be recorded", holding.key, exc_info=error)
            self.shared.warn(f"the end of {holding.job.name} could not be recorded: {error!r}")
        holding.over = True
        self.keeper.drop(holding)
        self.playing.pop(holding.token, None)
        self.changed()

    async def _perform(self, holding: Holding) -> None:
        if self.stopping and holding.job.lease_ms is not None:
            await self._release(holding, counts=False)
            return
        if self.stopping:
            holding.abort("stop")  # a claim-only run can't be given back: it runs, and is told at once
        if not await self._provable(holding):
            await self._release(holding, counts=True)
            return
        await self._conclude(holding, await self._play(holding))

    async def _provable(self, holding: Holding) -> bool:
        """Whether the lease can still be proved to be held, by a renewal if need be: the answer may have come late."""
        if holding.held() or holding.job.lease_ms is None:
            return True
        command = c.Heartbeat(holding.slot, holding.token, holding.request)
        try:
            answered = await self.keeper.ledger.ask_one(holding.job.name, command)
        except StoreError:
            return False
        if isinstance(answered.answer, c.Renewed):
            holding.sent = max(holding.sent, answered.sent)
        elif isinstance(answered.answer, c.Refused):
            self._lost(holding, answered.answer)
        return holding.held()

    def _begun(self, holding: Holding) -> None:
        """The handler really runs now; before, a sync one may have waited for a thread."""
        if holding.began:
            return  # a retry
        holding.began = True
        late = round(self.shared.store_clock.now() - holding.slot)
        self._emit("started", holding, late_ms=late, reason=holding.reason)
        if holding.job.timeout_ms is not None:
            loop = asyncio.get_running_loop()
            holding.deadline = loop.call_later(holding.job.timeout_ms / 1000, self._timed_out, holding)

    def _timed_out(self, holding: Holding) -> None:
        """The signal is set; until the handler ends the run keeps its lease, `overdue` (R30a)."""
        if not holding.over:
            holding.abort("timeout")
            self._emit("overdue", holding, after_ms=holding.job.timeout_ms)

    async def _play(self, holding: Holding) -> Ended:
        """The handler, and its retries inside the same attempt while the lease is held (R30)."""
        tries = 0
        while True:
            ended = await self._play_once(holding)
            if ended.error is None or holding.why or tries >= holding.job.retries or self.stopping:
                return ended
            tries += 1
            wait = (
                timers.backoff(tries, self.shared.chance.draw(), 60_000)
                * holding.job.retry_delay_ms
                / timers.BACKOFF_FIRST
            )
            self._emit("retry", holding, number=tries, after_ms=round(wait), error=short(ended.error))
            if await holding.signal.within(wait / 1000) or not holding.held():
                return ended

    async def _play_once(self, holding: Holding) -> Ended:
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[Ended] = loop.create_future()
        holding.heard = heard
        job = holding.job
        run = Run(holding, self.deeds)
        arguments = (run,) if job.wants_run else ()

        def told(ended: Ended) -> None:
            if not heard.done():
                heard.set_result(ended)

        handler = traced(job.handler, run, is_async=job.is_async)
        holding.cancel = self.shared.stage.play(handler, arguments, job.is_async, lambda: self._begun(holding), told)
        if holding.why and holding.job.lease_ms is not None:
            holding.cancel()
        return await heard

    async def _conclude(self, holding: Holding, ended: Ended) -> None:
        """What becomes of the run now that its handler has ended (R24 to R30a)."""
        holding.cancel = lambda: None
        if holding.deadline is not None:
            holding.deadline.cancel()
        if holding.settling is not None:  # a handler that was cancelled while its transaction committed
            await asyncio.wait([asyncio.wrap_future(holding.settling)])
        doing = timers.ending(ended.error is None, holding.why)
        if holding.job.lease_ms is None:
            name = "success" if ended.error is None else "failed"
            self._emit(name, holding, **({} if ended.error is None else {"error": short(ended.error)}))
            return
        if holding.recorded:  # by the run's own transaction: whatever the handler did afterwards, that stands
            self._emit("success", holding, **({} if ended.error is None else {"then": short(ended.error)}))
            return
        match doing:
            case "nothing":
                return
            case "finish":
                await self._finish(holding, "success", *result_of(ended.value))
            case "time out":
                after = f"ran into its timeout of {holding.job.timeout_ms} ms"
                await self._finish(holding, "failed", None, ("Timeout", after, trace_of(ended.error)), "timeout")
            case "fail":
                await self._finish(holding, "failed", None, error_of(ended.error))
            case "hand over":
                await self._release(holding, counts=False)
            case "give up":
                await self._release(holding, counts=True)

    async def _finish(self, holding: Holding, status: Any, result: Any, error: Any, how: Any = None) -> None:
        if error is not None and status == "success":
            status = "failed"
        command = c.Finish(holding.slot, holding.token, status, holding.request, result, error, how)
        try:
            answer = await self._until_answered(holding, command)
        except Exception as fault:  # what can't be recorded as it is, is recorded as that
            log.exception("the end of %r can't be recorded as it is", holding.key)
            status, error = "failed", ("ResultError", f"its end could not be recorded as it was: {short(fault)}", "")
            command = c.Finish(holding.slot, holding.token, "failed", holding.request, None, error, how)
            answer = await self._until_answered(holding, command)
        if isinstance(answer, c.Finished):
            holding.over = True
            self._emit(status, holding, **({"error": f"{error[0]}: {error[1]}"} if error else {}))
        elif isinstance(answer, c.Refused):
            self._lost(holding, answer)

    async def _release(self, holding: Holding, *, counts: bool) -> None:
        command = c.Release(holding.slot, holding.token, counts, holding.request)
        answer = await self._until_answered(holding, command)
        if isinstance(answer, c.Released):
            holding.over = True
            if not counts:
                self._emit("handed-over", holding)
        elif isinstance(answer, c.Refused):
            self._lost(holding, answer)

    def _lost(self, holding: Holding, answer: c.Refused) -> None:
        if holding.why != "lost":
            holding.abort("lost")
            self._emit("lost", holding, to=answer.runner or answer.status)

    async def _until_answered(self, holding: Holding, command: c.Command) -> c.Answer | None:
        """Ask until it is answered; heartbeats go on meanwhile. None: the run was lost or abandoned first (R25)."""
        tries = 0
        holding.closing = True  # from the first sending on, a refused heartbeat may be our own doing (R24)
        while holding.why not in ("lost", "abandoned"):
            try:
                answer = (await self.endings.ask(holding.job.name, command)).answer
                if not isinstance(answer, c.Unreadable):
                    return answer
                self.shared.warn(f"the end of {holding.job.name} can't be recorded: {answer.why}")
            except StoreUnavailable:
                pass
            except StoreError as error:
                self.shared.warn(f"the end of {holding.job.name} can't be recorded: {error}")
            tries += 1
            await asyncio.sleep(timers.backoff(tries, self.shared.chance.draw()) / 1000)
        return None

    def _emit(self, name: str, holding: Holding, **detail: Any) -> None:
        self.shared.emit(name, holding.job.name, holding.slot, holding.request, holding.attempt, **detail)
