"""The store: one script for a commit, one for a read, and what a cluster asks for beside.

On one server, also behind Sentinel, a read is one script and so of one moment, and the changes of a commit are
judged by one reading of the clock (of each five hundred).

On a cluster a script can't leave its bucket, and each node has a clock of its own:

- A read over several buckets is repeated until two passes in a row have seen the same: then all of it stood so at
  the moment between them. Where others keep writing that may take for ever, so after a tenth of the timeout the
  last pass is told; each document and its history are of one moment even then.
- `now` is the smallest time that any of the nodes told before that moment, so it is not later than what is seen
  on any of them. Deadlines are compared on the node of the document, whose clock is `now` or later: a change may
  expire early, never late.
- Were a document's node ahead of the others, a lease given by the smallest time would end early by so much on that
  node's clock, and be taken over before its holder expects it. So a change that was decided on a reading which was
  visibly behind its own node expires without being sent. Whoever asked reads what is left again, and with each
  round the slowest nodes are done with; alone, a node's documents are read by its own clock. Differences that
  are not visible are those below 20 ms and the time that the reading took.

Redis 6.2 lets scripts write although `min-replicas-to-write` refuses every plain write. There a commit goes in one
transaction with a plain write that changes nothing, and is refused with it.

After a failover the clock is the new master's, and writes that it had not heard of are gone: a slot may then run
twice, though its record stays one. `min-replicas-to-write` and `wait_replicas` make that rarer.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Reading, Record, Transaction, Verdict
from tenure.stores.redis import documents
from tenure.stores.redis.checks import check
from tenure.stores.redis.documents import COMMIT, OUTCOMES, READ, Call
from tenure.stores.redis.hints import Hints
from tenure.stores.redis.node import code_of
from tenure.stores.redis.refusals import closed, forked, refusal, too_few, unanswered
from tenure.stores.redis.servers import KINDS, Answer, Servers
from tenure.stores.redis.settings import settings

# Shares of a call's time: for being refused and asking elsewhere, for replicas to acknowledge, for a reading over
# several nodes to come to rest.
_PATIENCE: Final = 0.8
_REPLICAS: Final = 0.5
_REST: Final = 0.1
# A node whose clock is further ahead of a reading than this, and than the reading took, is visibly ahead.
_AHEAD_MS: Final = 20


class RedisStore:
    """The store on the servers that a `redis://` URL, or one of its kin, names.

    prefix: of all keys and of the channel. timeout: seconds that one call may take. wait_replicas: a commit is
    answered once so many replicas have acknowledged it, else its outcome is not known (WAIT).
    Raises ConfigError for a URL or an option that can't be.
    """

    pushes = True

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        timeout: float | None = None,
        wait_replicas: int | None = None,
    ) -> None:
        self._settings = settings(url, prefix=prefix, timeout=timeout, wait_replicas=wait_replicas)
        self.url = self._settings.shown
        self.timeout = self._settings.timeout
        self._pid = os.getpid()
        self._servers: Servers | None = None
        self._hints: Hints | None = None
        self._ahead: set[str] = set()
        self._guarded = False

    # --- opening and closing ------------------------------------------------------------------------------

    async def open(self) -> tuple[str, ...]:
        """Connect and look at the servers. Returns warnings, one sentence each.

        Raises StoreError with a sentence; it may be tried again then.
        """
        if self._servers is not None:
            if os.getpid() != self._pid:
                raise forked(self.url)
            raise StoreError(f"The store {self.url} is open already.")
        self._pid = os.getpid()
        servers = KINDS[self._settings.kind](self._settings)
        try:
            async with asyncio.timeout(self.timeout):
                checked = await check(await servers.masters(), self._settings)
                self._guarded = checked.lax_scripts
                await self._probe(servers)
        except TimeoutError:
            await servers.close()
            raise unanswered(self.url, self.timeout) from None
        except BaseException:
            await servers.close()
            raise
        self._servers = servers
        self._hints = Hints(servers, documents.channel_of(self._settings.prefix))
        return checked.warnings

    async def _probe(self, servers: Servers) -> None:
        """Refuse a user who lacks a right; anything else that stops a write now may have passed when it is needed."""
        name = f"tenure-probe-{secrets.token_hex(8)}"
        call = replace(documents.probe_call(self._settings.prefix, name), guarded=self._guarded)
        node = await servers.node(call.slot)
        try:
            (reply,), _ = await node.ask([call])
        except Exception as error:
            raise refusal(error, node.shown) from error
        if code_of(reply) == "NOPERM":
            raise refusal(reply, node.shown) from reply

    async def close(self) -> None:
        """End who watches and close all connections. In a forked child: nothing."""
        if self._servers is None or self._hints is None or os.getpid() != self._pid:
            return
        servers, self._servers = self._servers, None
        await self._hints.close()
        await servers.close()

    def _open(self) -> Servers:
        """The servers of an open store, in the process that opened it."""
        if os.getpid() != self._pid:
            raise forked(self.url)
        if self._servers is None:
            raise closed(self.url)
        return self._servers

    async def _run(
        self, calls: Sequence[Call], wait: tuple[int, int] | None = None, end: float | None = None
    ) -> list[Answer]:
        """The answers, within the time of one call, or by `end` on the loop's clock."""
        servers = self._open()
        end = asyncio.get_running_loop().time() + self.timeout if end is None else end
        try:
            async with asyncio.timeout_at(end):
                return await servers.run(calls, end - self.timeout * (1 - _PATIENCE), wait)
        except TimeoutError:
            await servers.forget()
            raise unanswered(self.url, self.timeout) from None
        except asyncio.CancelledError:
            # Whoever waits no longer may have waited too long: a server that hangs must not be believed in for ever.
            await servers.forget()
            raise

    # --- reading ------------------------------------------------------------------------------------------

    async def read(self, asks: Sequence[Ask]) -> Reading:
        split = documents.read_calls(self._settings.prefix, asks, self._open().apart)
        calls = [call for call, _ in split] or [Call(["0", "0"], READ)]
        now, told = await self._settled(calls, [places for _, places in split], asks)
        found: list[Found] = [Found()] * len(asks)
        for (_, places), (_, *documents_told) in zip(split, told, strict=False):
            for place, one in zip(places, documents_told, strict=True):
                found[place] = documents.found(asks[place], one)
        return Reading(now, tuple(found))

    async def _settled(
        self, calls: Sequence[Call], places: list[list[int]], asks: Sequence[Ask]
    ) -> tuple[int, list[list[Any]]]:
        """The time, and what the scripts told, of one moment; the module's docstring says how."""
        began = time.monotonic()
        end = asyncio.get_running_loop().time() + self.timeout
        took, told = await self._pass(calls, end)
        if len(calls) == 1:
            self._ahead.difference_update(ask.name for ask in asks)
            return told[0][0], told
        while True:
            took_again, again = await self._pass(calls, end)
            at_rest = all(one[1:] == other[1:] for one, other in zip(told, again, strict=True))
            # At rest it is the earlier pass whose time is not later than the moment; else each has only its own.
            took, told = (took, told) if at_rest else (took_again, again)
            if at_rest or time.monotonic() - began > self.timeout * _REST:
                break
        now = min(one[0] for one in told)
        for one, of_call in zip(told, places, strict=True):
            names = [asks[place].name for place in of_call]
            if one[0] - now > took + _AHEAD_MS:
                self._ahead.update(names)
            else:
                self._ahead.difference_update(names)
        return now, told

    async def _pass(self, calls: Sequence[Call], end: float) -> tuple[float, list[list[Any]]]:
        """How many milliseconds it took, and what the scripts told."""
        began = time.monotonic()
        answers = await self._run(calls, end=end)
        return (time.monotonic() - began) * 1000, [answer.reply for answer in answers]

    async def names(self, prefix: str) -> tuple[str, ...]:
        answers = await self._run(documents.names_calls(self._settings.prefix, prefix, self._open().apart))
        return tuple(sorted(name.decode() for answer in answers for name in answer.reply))

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        (answer,) = await self._run([documents.records_call(self._settings.prefix, name, since, until, limit)])
        return documents.records(answer.reply, limit)

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        (answer,) = await self._run([documents.marks_call(self._settings.prefix, name, since, until, limit)])
        return tuple(documents.mark(member) for member in answer.reply)

    # --- changing -----------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        outcomes = [Outcome.EXPIRED] * len(changes)
        sent = [place for place, change in enumerate(changes) if not self._too_early(change)]
        split = documents.commit_calls(
            self._settings.prefix, [changes[place] for place in sent], self._open().apart
        )  # fmt: skip
        calls = [call for call, _ in split]
        if self._guarded:
            calls = [replace(call, guarded=call.arguments[0] != "0") for call in calls]
        calls = calls or [Call(["0", "", "0"], COMMIT, writes=True)]
        wanted = self._settings.wait_replicas
        wait = (wanted, max(1, int(self.timeout * _REPLICAS * 1000))) if wanted else None
        answers = await self._run(calls, wait)
        for (_, places), answer in zip(split, answers, strict=False):
            told = [OUTCOMES[number] for number in answer.reply[1:]]
            if answer.acknowledged is not None and answer.acknowledged < wanted and Outcome.DONE in told:
                raise too_few(answer.node.shown, answer.acknowledged, wanted)
            for place, outcome in zip(places, told, strict=True):
                outcomes[sent[place]] = outcome
        return Verdict(min(answer.reply[0] for answer in answers), tuple(outcomes))

    def _too_early(self, change: Change) -> bool:
        """Whether it was decided on a time that was behind the clock of its document's node."""
        return bool(self._ahead) and change.conditional and change.deadline is not None and change.name in self._ahead

    async def begin(self, limit_seconds: float) -> Transaction:
        raise StoreError(
            "Redis and Valkey have no transactions that could hold your writes and ours, so run.transaction() can't be "
            "used. Guard your writes by run.fence: see tenure.recipes.guarded_set."
        )

    # --- hints --------------------------------------------------------------------------------------------

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """Names hinted by this store and by others, as soon as they are published."""
        self._open()
        assert self._hints is not None  # noqa: S101 - an open store has them
        watching = self._hints.watch()
        try:
            async for names in watching:
                yield names
        finally:
            await watching.aclose()  # type: ignore[attr-defined]
