"""Work from the board as an asynchronous iterator: one todo after the other, its lease renewed while the body runs."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Self

from tenure.client import beating, calls
from tenure.client.answers import BoardError, Held, LeaseLost, Refused, held_of
from tenure.client.verbs import Verbs
from tenure.rules.bounds import WAIT_SECONDS

STOPPED: Final = "the worker was stopped"


class Task(beating.Hands):
    """A claimed todo in its worker's hands.

    `async with task:` gives the body its end: what it leaves in `task.result` completes the todo; an exception
    fails it, with its words as the reason, and goes on; a lost lease cancels the body, and the block ends quietly
    with `task.lost` set. Without the block the next turn of the loop completes it, and leaving the loop gives it
    back: as failed, so that a todo that breaks its worker is counted, or as released when the task is cancelled.
    An end that the board refused, or did not answer, may be told again; its lease is renewed no more.
    """

    def __init__(self, board: Verbs, held: Held, answered: float) -> None:
        super().__init__(held, answered)
        self._board = board
        self._body: asyncio.Task[Any] | None = asyncio.current_task()
        self._beats = asyncio.create_task(self._beat(), name=f"heartbeats of {held.id}")
        self._cancelled = False

    async def check(self) -> None:
        """Ask the board whether the claim is still held. Raises LeaseLost; for before what can't be undone."""
        if self.lost is not None:
            raise self.lost
        told = await self._board.check_claim(self.held.id, self.held.lease.token)
        if not told["held"]:
            raise beating.unheld(self.held.id, told)

    async def complete(self, result: Any = None) -> None:
        """End it as done."""
        await self._end("complete", result)

    async def fail(self, reason: str) -> None:
        """End this attempt as failed."""
        await self._end("fail", reason)

    async def release(self, reason: str | None = None) -> None:
        """Give it back undone."""
        await self._end("release", reason)

    async def finish(self) -> None:
        """The body is through: complete it with what it left. What can't be its result fails it, and goes on."""
        if self.ended:
            return
        try:
            await self.complete(self.result)
        except LeaseLost:
            pass
        except asyncio.CancelledError:
            await self._shielded(self.release(STOPPED))
            raise
        except Exception as error:
            if not self.ended:
                with contextlib.suppress(BoardError, LeaseLost):
                    await self.fail(beating.words(error))
            raise

    async def _end(self, verb: str, value: Any) -> None:
        if self.lost is not None:
            raise self.lost
        if self._answered:
            return
        with self._telling():
            await self._quiet()
            await getattr(self._board, verb)(self.held.id, self.held.lease.token, value)

    async def _quiet(self) -> None:
        self._beats.cancel()
        await asyncio.wait([self._beats])

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        token, todo = self.held.lease.token, self.held.id
        error: BoardError | None = None
        while self._pulse.left(loop.time()) > 0:
            await asyncio.sleep(max(0.0, min(self._pulse.next, self._pulse.ends) - loop.time()))
            asked = loop.time()
            left = self._pulse.left(asked)
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    told = await self._board.ask(self._board.beat(todo, token, left), patience_seconds=0)
            except Refused as refused:
                if refused.status not in calls.LATER:
                    error = refused
                    break
                self._pulse.missed(loop.time())
            except (BoardError, TimeoutError):
                self._pulse.missed(loop.time())  # one failed heartbeat loses nothing: the lease runs on
            else:
                self._pulse.renewed(asked, told["seconds_left"])
        self.lost, self.ended = beating.lost(todo, error), True
        if self._body is not None:
            self._cancelled = True
            self._body.cancel("the lease of the todo is lost")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        body, self._body = self._body, None
        if self._cancelled and body is not None:  # by us: the body ends here, whatever it was doing
            if error is None:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)  # it ended by itself; our cancel is still on its way
            return body.uncancel() == 0 and isinstance(error, (asyncio.CancelledError, LeaseLost))
        if error is None:
            await self.finish()
        elif isinstance(error, asyncio.CancelledError):
            await self._shielded(self.release(STOPPED))
        elif not self.ended:
            with contextlib.suppress(BoardError, LeaseLost):
                await self.fail(beating.words(error))
        return self.lost is not None and isinstance(error, LeaseLost)

    async def left_behind(self) -> None:
        """The loop was left while this was open: by an error, a `break`, or a cancelled worker."""
        if self.ended:
            return
        stopped = self._body is not None and self._body.cancelling() > 0
        with contextlib.suppress(BoardError, LeaseLost):
            if stopped:
                await self.release(STOPPED)
            else:
                await self.fail("the worker left its loop before the todo was done")

    async def _shielded(self, ending: Any) -> None:
        with contextlib.suppress(BoardError, LeaseLost):
            await asyncio.shield(ending)


class Work:
    """What `AsyncBoard.work` gives: `async for task in work`, claiming as it goes."""

    def __init__(
        self,
        board: Verbs,
        queues: tuple[str, ...],
        max_todos: int | None,
        idle_seconds: float | None,
        held: set[Task],
    ) -> None:
        self._board, self._queues, self._held = board, queues, held
        self._left, self._idle_seconds = max_todos, idle_seconds

    async def __aiter__(self) -> AsyncIterator[Task]:
        """Each todo in turn. See `Task` for how one ends."""
        loop = asyncio.get_running_loop()
        quiet_since = loop.time()
        while self._left is None or self._left > 0:
            quiet = loop.time() - quiet_since
            told = await self._board.claim_next(*self._queues, wait_seconds=waiting(self._idle_seconds, quiet))
            if told["empty"]:
                if self._idle_seconds is not None and loop.time() - quiet_since >= self._idle_seconds:
                    return
                continue
            if self._left is not None:
                self._left -= 1
            task = Task(self._board, held_of(told), loop.time())
            self._held.add(task)
            try:
                yield task
            except GeneratorExit:
                await task.left_behind()
                raise
            finally:
                self._held.discard(task)
            await task.finish()
            quiet_since = loop.time()


def waiting(idle_seconds: float | None, quiet_seconds: float) -> int:
    """How long the next `claim_next` waits: as long as it may, but not beyond the end of the worker's patience."""
    if idle_seconds is None:
        return WAIT_SECONDS
    return min(WAIT_SECONDS, max(0, math.ceil(idle_seconds - quiet_seconds)))
