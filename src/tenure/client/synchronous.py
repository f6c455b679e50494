"""The board for programs with threads, and for scripts."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx2

from tenure.client import beating, calls
from tenure.client.answers import BoardError, Held, LeaseLost, Refused, held_of
from tenure.client.verbs import Verbs
from tenure.client.work import STOPPED, waiting


class Board(Verbs):
    """A board at `url`, asked with an endpoint's `credential` (to work) or a human's `token` (REST).

    Use it as a context manager, or close it. Threads may share one. Errors are those of `AsyncBoard`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8420",
        *,
        credential: str | None = None,
        token: str | None = None,
        worker: str | None = None,
        patience_seconds: float = calls.PATIENCE_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url, self.worker, self.patience_seconds = calls.address(url), worker, patience_seconds
        headers = calls.authorization(credential or token)
        self._http = httpx2.Client(base_url=self.url, headers=headers, transport=transport, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, call: calls.Call, patience_seconds: float | None = None) -> Any:
        """Send a call, again where that is harmless; returns the answer's JSON, None for an empty one."""
        patience = calls.Patience(self.patience_seconds if patience_seconds is None else patience_seconds)
        while True:
            try:
                answer = self._http.request(**calls.request_of(call))
            except httpx2.TransportError as error:
                pause = patience.pause(None) if calls.sendable_again(call, error) else None
                if pause is None:
                    raise calls.unreachable(self.url, error) from error
            else:
                read = calls.read(answer)
                pause = patience.pause(answer.headers.get("Retry-After")) if read.asks_again(call) else None
                if pause is None:
                    return read.value()
            time.sleep(pause)

    def work(
        self, *queues: str, max_todos: int | None = None, idle_seconds: float | None = None
    ) -> Iterator[BlockingTask]:
        """Todos of these queues, one after the other, for `for`; arguments and ends are those of `AsyncBoard.work`.

        A thread renews the lease. A body can't be stopped from outside: it asks `task.lost` or calls `task.check()`.
        """
        quiet_since = time.monotonic()
        while max_todos is None or max_todos > 0:
            quiet = time.monotonic() - quiet_since
            told = self.claim_next(*queues, wait_seconds=waiting(idle_seconds, quiet))
            if told["empty"]:
                if idle_seconds is not None and time.monotonic() - quiet_since >= idle_seconds:
                    return
                continue
            max_todos = None if max_todos is None else max_todos - 1
            task = BlockingTask(self, held_of(told), time.monotonic())
            try:
                yield task
            except GeneratorExit:
                task.left_behind()
                raise
            task.finish()
            quiet_since = time.monotonic()


class BlockingTask(beating.Hands):
    """A claimed todo in its worker's hands; see `tenure.client.work.Task`, of which this is the blocking kind."""

    def __init__(self, board: Board, held: Held, answered: float) -> None:
        super().__init__(held, answered)
        self._board = board
        self._quiet = threading.Event()
        self._beats = threading.Thread(target=self._beat, name=f"heartbeats of {held.id}", daemon=True)
        self._beats.start()

    def check(self) -> None:
        """Ask the board whether the claim is still held. Raises LeaseLost; for before what can't be undone."""
        if self.lost is not None:
            raise self.lost
        told = self._board.check_claim(self.held.id, self.held.lease.token)
        if not told["held"]:
            raise beating.unheld(self.held.id, told)

    def complete(self, result: Any = None) -> None:
        """End it as done."""
        self._end("complete", result)

    def fail(self, reason: str) -> None:
        """End this attempt as failed."""
        self._end("fail", reason)

    def release(self, reason: str | None = None) -> None:
        """Give it back undone."""
        self._end("release", reason)

    def left_behind(self) -> None:
        """The loop was left while this was open."""
        if not self.ended:
            with contextlib.suppress(BoardError, LeaseLost):
                self.fail("the worker left its loop before the todo was done")

    def finish(self) -> None:
        """The body is through: complete it with what it left. What can't be its result fails it, and goes on."""
        if self.ended:
            return
        try:
            self.complete(self.result)
        except LeaseLost:
            pass
        except Exception as error:
            if not self.ended:
                with contextlib.suppress(BoardError, LeaseLost):
                    self.fail(beating.words(error))
            raise

    def _end(self, verb: str, value: Any) -> None:
        if self.lost is not None:
            raise self.lost
        if self._answered:
            return
        with self._telling():
            self._quiet.set()
            self._beats.join()
            getattr(self._board, verb)(self.held.id, self.held.lease.token, value)

    def _beat(self) -> None:
        token, todo = self.held.lease.token, self.held.id
        error: BoardError | None = None
        while self._pulse.left(time.monotonic()) > 0:
            if self._quiet.wait(max(0.0, min(self._pulse.next, self._pulse.ends) - time.monotonic())):
                return
            asked = time.monotonic()
            left = self._pulse.left(asked)
            if left <= 0:
                break
            try:
                told = self._board.ask(self._board.beat(todo, token, left), patience_seconds=0)
            except Refused as refused:
                if refused.status not in calls.LATER:
                    error = refused
                    break
                self._pulse.missed(time.monotonic())
            except BoardError:
                self._pulse.missed(time.monotonic())  # one failed heartbeat loses nothing: the lease runs on
            else:
                self._pulse.renewed(asked, told["seconds_left"])
        self.lost, self.ended = beating.lost(todo, error), True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self.finish()
        elif not self.ended:
            with contextlib.suppress(BoardError, LeaseLost):
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    self.release(STOPPED)
                else:
                    self.fail(beating.words(error))
        return self.lost is not None and isinstance(error, LeaseLost)
