"""One server and the connections to it.

redis-py connects, authenticates and parses. What is sent, when and how often is decided here: its client would
repeat commands by itself after an error, and what may have been applied is never sent twice blindly (R40a).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import ResponseError

from tenure.stores.redis.documents import Argument, Call, Script
from tenure.stores.redis.refusals import code
from tenure.stores.redis.settings import Address, Settings

# So many calls are under way on one server at the same time; more wait. A connection serves one call at a time.
CONNECTIONS: Final = 8

Connect = Callable[[], AbstractConnection]
Reply = Any  # what the server answered, or the ResponseError by which it refused


def connector(settings: Settings, address: Address | None, *, sentinel: bool = False) -> Connect:
    """How to make a connection to this address, or to the socket of the settings; not yet connected."""
    user, password = settings.username, settings.password
    if sentinel:
        user, password = settings.sentinel_username, settings.sentinel_password
    options: dict[str, Any] = {
        "username": user,
        "password": password,
        "db": 0 if sentinel else settings.db,
        "socket_timeout": None,  # whoever calls sets one limit for the whole of it
        "socket_connect_timeout": settings.timeout,
        "protocol": 2,
        "driver_info": None,
    }
    if address is None:
        return lambda: UnixDomainSocketConnection(path=settings.path, **options)
    options["host"], options["port"] = address
    if settings.tls is None:
        return lambda: Connection(**options)
    tls = settings.tls
    options["ssl_ca_certs"], options["ssl_certfile"], options["ssl_keyfile"] = tls.ca_certs, tls.certfile, tls.keyfile
    options["ssl_cert_reqs"], options["ssl_check_hostname"] = tls.cert_reqs, tls.check_hostname
    return lambda: SSLConnection(**options)


class Node:
    """A server under one address. Its methods raise the driver's errors and never repeat what may have happened."""

    def __init__(self, shown: str, connect: Connect, address: Address | None = None) -> None:
        self.shown, self.address = shown, address
        self._make = connect
        self._idle: list[AbstractConnection] = []
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._given_up = False

    async def ask(
        self, calls: Sequence[Call], *, asking: bool = False, wait: tuple[int, int] | None = None
    ) -> tuple[list[Reply], int | None]:
        """Send the calls in one write, and read their replies.

        asking: the node is to answer though the keys are not yet its own. wait: (replicas, milliseconds) to wait
        for on the same connection; how many replicas had acknowledged by then is told beside.
        """
        async with self._turns:
            connection = await self._free()
            fresh = connection is None
            try:
                return await self._ask_on(connection or await self.connected(), calls, asking, wait)
            except (Lost, OSError) as error:
                # A connection that had died unseen. What only reads may be asked again.
                if fresh or code(error) or any(call.writes for call in calls):
                    raise
                await self.drop()
                return await self._ask_on(await self.connected(), calls, asking, wait)

    async def _ask_on(
        self, connection: AbstractConnection, calls: Sequence[Call], asking: bool, wait: tuple[int, int] | None
    ) -> tuple[list[Reply], int | None]:
        try:
            replies = await _converse(connection, calls, asking)
            unknown = [place for place, reply in enumerate(replies) if code_of(reply) == "NOSCRIPT"]
            if unknown:
                # Refused, so certainly not applied: the same calls again, the first of each script with its source.
                again = [calls[place] for place in unknown]
                repeated = await _converse(connection, again, asking, sources=True)
                for place, reply in zip(unknown, repeated, strict=True):
                    replies[place] = reply
            acknowledged = None
            if wait is not None:
                # It speaks of the writes of its own connection only.
                (told,) = await _converse(connection, [Call(["WAIT", str(wait[0]), str(wait[1])])], asking=False)
                acknowledged = told if isinstance(told, int) else 0
        except BaseException:
            # Half a conversation: an answer that comes later must meet nobody, and what was not sent yet never is.
            writer = connection._writer  # noqa: SLF001 - its close() alone would go on sending
            if writer is not None:
                writer.transport.abort()
            await connection.disconnect(nowait=True)
            raise
        if self._given_up:
            await connection.disconnect()
        else:
            self._idle.append(connection)
        return replies, acknowledged

    async def _free(self) -> AbstractConnection | None:
        """An idle connection on which nothing has arrived, not even its end."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected and not await connection.can_read():
                return connection
            await connection.disconnect(nowait=True)
        return None

    async def connected(self) -> AbstractConnection:
        """A new connection, which is the caller's."""
        connection = self._make()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def close(self) -> None:
        """Close the idle connections, and those in use after their calls."""
        self._given_up = True
        idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(Exception):
                await connection.disconnect()

    async def drop(self) -> None:
        """Close the idle connections: they may have died with the one that did."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect(nowait=True)


def code_of(reply: Reply) -> str:
    """The word by which this reply refuses; empty where it is none, or an answer."""
    return code(reply) if isinstance(reply, Exception) else ""


async def _converse(
    connection: AbstractConnection, calls: Sequence[Call], asking: bool, sources: bool = False
) -> list[Reply]:
    """Send all, then read all."""
    sent: list[bytes] = []
    counts: list[int] = []
    known: set[Script] = set()
    for call in calls:
        commands = [_spelled(call, sources and call.script not in known)]
        if call.guarded:
            # Whatever refuses the plain write refuses the script with it.
            commands = [["MULTI"], ["PERSIST", call.arguments[1]], *commands, ["EXEC"]]
        if asking:
            commands.insert(0, ["ASKING"])
        if call.script is not None:
            known.add(call.script)
        sent += map(packed, commands)
        counts.append(len(commands))
    await connection.send_packed_command(sent, check_health=False)
    replies = []
    for call, count in zip(calls, counts, strict=True):
        told = [await _reply(connection) for _ in range(count)]
        refused = next((one for one in told if isinstance(one, Exception)), None) if call.guarded else None
        replies.append(refused or (told[-1][-1] if call.guarded else told[-1]))
    return replies


async def _reply(connection: AbstractConnection) -> Reply:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _spelled(call: Call, with_source: bool) -> list[Argument]:
    if call.script is None:
        return list(call.arguments)
    if with_source:
        return ["EVAL", call.script.source, *call.arguments]
    return ["EVALSHA", call.script.sha, *call.arguments]


def _plainly(arguments: Iterable[Argument]) -> bytes:
    """A command as it travels."""
    raw = [one.encode() if isinstance(one, str) else one for one in arguments]
    return b"".join([b"*%d\r\n" % len(raw), *(b"$%d\r\n%b\r\n" % (len(one), one) for one in raw)])


try:
    from hiredis import pack_command as _quickly
except ImportError:  # redis-py without its faster parser
    packed: Callable[[list[Argument]], bytes] = _plainly
else:

    def packed(arguments: list[Argument]) -> bytes:
        """A command as it travels."""
        spelled: bytes = _quickly(tuple(arguments))  # type: ignore[arg-type] # its stub means one argument
        return spelled
