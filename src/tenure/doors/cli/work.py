"""`tenure work`: claim todos of an endpoint and give each to a command, its lease renewed while the command runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.access import length
from tenure.doors.cli.child import Child
from tenure.doors.cli.output import say
from tenure.doors.cli.remote import check_text
from tenure.doors.cli.texts import CONTEXT, exits
from tenure.rules.instant import span_words

if TYPE_CHECKING:
    from tenure.client import AsyncBoard, Task

NOTHING, LOST = 5, 3


class Worker(click.Command):
    """A command whose last words are another command's, options and all; its own options must be known ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else list(args)
        rest = super().parse_args(ctx, args)
        for word in (ctx.params["endpoint"], ctx.params["command"][0]):
            if word.startswith("-") and word in own:
                raise click.NoSuchOption(word, ctx=ctx)
        return rest


@click.command(
    cls=Worker,
    context_settings={**CONTEXT, "ignore_unknown_options": True},
    epilog=exits(
        0, 1, 2, 3, 4, 5, 130,
        _0="every todo was completed or given back", _1="a command failed, or the board refused",
        _3="no such endpoint, or a lease was lost", _4="no valid credential", _5="there was nothing to do",
    ),
)  # fmt: skip
@click.argument("endpoint", metavar="ENDPOINT")
@click.option("--queue", "queues", metavar="Q", multiple=True, help="Only todos of this queue; may be repeated.")
@click.option("--max", "most", metavar="N", type=click.IntRange(min=1), help="Stop after so many todos.")
@click.option("--idle-exit", metavar="DUR", help="Stop when there was nothing to do for so long; 0: at once.")
@click.option("--timeout", metavar="DUR", help="Stop COMMAND and fail the todo when it takes longer.")
@click.option("--worker", metavar="LABEL", help="A name for this worker, shown beside its claims.")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def work(
    *,
    endpoint: str,
    queues: tuple[str, ...],
    most: int | None,
    idle_exit: str | None,
    timeout: str | None,
    worker: str | None,
    command: tuple[str, ...],
) -> int:
    """Claim todos of ENDPOINT, one after the other, and run COMMAND for each.

    COMMAND reads the todo as JSON on stdin, and finds TENURE_TODO_ID, TENURE_TODO_TITLE, TENURE_TODO_QUEUE,
    TENURE_TODO_ATTEMPT, TENURE_LEASE_TOKEN and TENURE_LEASE_EXPIRES in its environment. Exit 0 completes the todo, and
    the last line of stdout that is JSON becomes the result; 75 gives it back; any other code fails it, with the last
    line of stderr in the reason. When the lease is lost, or --timeout has passed, COMMAND gets SIGTERM, and SIGKILL ten
    seconds later. Ctrl-C once lets it end, twice gives the todo back. A board that went away is waited for, unless
    --idle-exit asks for an end. COMMAND gets SIGTERM too when `tenure work` itself is killed, on Linux.
    """
    from tenure.client import AsyncBoard, Refused
    from tenure.errors import ConfigError

    check_text({"queue": queues, "worker": worker})
    if shutil.which(command[0]) is None:
        raise ConfigError("command", command[0], "is no program here.", "Name one that exists and may be run.")
    url = keeping.server()
    credential = keeping.credential(url, endpoint)
    if credential is None:
        say(f"tenure: there is no credential for {endpoint} at {url}. {_WHENCE}")
        return 4
    idle_seconds = None if idle_exit is None else length("idle-exit", idle_exit) / 1000
    limit_ms = None if timeout is None else length("timeout", timeout)

    async def all_of_it() -> int:
        async with AsyncBoard(url, credential=credential, worker=worker or _label()) as board:
            return await Bench(board, command, limit_ms).work(queues, most, idle_seconds)

    try:
        return asyncio.run(all_of_it())
    except Refused as error:
        if error.status != 401:
            raise
        say(f"tenure: the credential of {endpoint} opens nothing: revoked, expired or rotated since. {_WHENCE}")
        return 4


_WHENCE = "Vend it here (tenure endpoint vend), or set TENURE_ENDPOINT_CREDENTIAL."


def _label() -> str:
    import socket

    return f"{socket.gethostname()}-{os.getpid()}"[-64:]


class Bench:
    """Where the todos are worked on, one at a time; hears the signals that stop it."""

    def __init__(self, board: AsyncBoard, command: Sequence[str], limit_ms: int | None = None) -> None:
        self.board, self.command, self.limit_ms = board, command, limit_ms
        self.stopping = self.busy = False
        self.done = self.failed = self.lost = self.taken = 0

    async def work(self, queues: Sequence[str], most: int | None, idle_seconds: float | None) -> int:
        """Work until there is nothing left, or a signal comes; returns the exit code."""
        loop, me = asyncio.get_running_loop(), asyncio.current_task()
        assert me is not None  # noqa: S101 - this is a coroutine
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, me)
        say(f"working for {self.board.url}; stop with Ctrl-C")
        waited = False
        try:
            while not await self._until_unreachable(queues, most, idle_seconds, patient=waited):
                waited = True
        except asyncio.CancelledError:
            if not self.stopping:
                raise
        if self.failed or self.lost:
            return 1 if self.failed else LOST
        return 0 if self.done or self.stopping else NOTHING

    async def _until_unreachable(
        self, queues: Sequence[str], most: int | None, idle_seconds: float | None, *, patient: bool
    ) -> bool:
        """Work on; False when the board, which was there, can't be reached. Who asked for an end is told instead."""
        from tenure.client import Refused, Unreachable, calls

        left = None if most is None else most - self.taken
        try:
            async for task in self.board.work(*queues, max_todos=left, idle_seconds=idle_seconds):
                self.busy, self.taken = True, self.taken + 1
                await self._one(task)
                self.busy = False
                if self.stopping:
                    break
        except (Unreachable, Refused) as error:
            later = not isinstance(error, Refused) or error.status in calls.LATER
            if not later or idle_seconds is not None or self.stopping or not (patient or self.board.answered):
                raise
            if self.board.answered:
                say(f"{error} Waiting for it.")
            self.lost += self.busy  # what came of that todo could not be told
            self.busy = self.board.answered = False
            await asyncio.sleep(calls.LONGEST_PAUSE_SECONDS)  # it may have said "later" at once, and for long
            return False
        return True

    def _stop(self, me: asyncio.Task[Any]) -> None:
        if self.busy and not self.stopping:
            say("stopping after this todo; once more gives it back")
        else:
            me.cancel()
        self.stopping = True

    async def _one(self, task: Task) -> None:
        begun, through = time.monotonic(), False
        say(f"{task.id} claimed (attempt {task.attempt}, lease {task.lease.ttl_seconds}s): {task.title}")
        async with task:
            child = Child(self.command, task)
            code, through = await self._within(child), True
            took = f"in {time.monotonic() - begun:.1f}s"
            if code is None:
                reason = f"ran into the timeout of {span_words(self.limit_ms or 0)}"
                await self._failed(task, reason, child.said)
                say(f"{task.id} failed {took}: {reason}")
            elif code == 0:
                await task.complete(child.result)
                self.done += 1
                say(f"{task.id} done {took}")
            elif code == os.EX_TEMPFAIL:
                await task.release(f"{self.command[0]} gave it back (exit {code})")
                self.done += 1
                say(f"{task.id} given back {took}")
            else:
                reason = f"exit {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
                await self._failed(task, f"ended with {reason}", child.said)
                say(f"{task.id} failed {took}: {reason}")
        if task.lost is not None:
            self.lost += 1
            say(f"{task.lost}{'' if through else ' Its command was stopped.'}")

    async def _within(self, child: Child) -> int | None:
        """Run the command; its exit code, None when it took too long and was stopped."""
        limit = asyncio.timeout(None if self.limit_ms is None else self.limit_ms / 1000)
        try:
            async with limit:
                return await child.run()
        except TimeoutError:
            if not limit.expired():
                raise
            return None

    async def _failed(self, task: Task, reason: str, said: str) -> None:
        await task.fail(f"{self.command[0]} {reason}" + (f": {said}" if said else ""))
        self.failed += 1
