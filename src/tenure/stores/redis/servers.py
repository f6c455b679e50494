"""Where a call goes: to the one server, to the master that Sentinel names, or to the node of a cluster.

A server that refuses a call has not applied it: such a call is sent again, to where the refusal points, within
the time of the whole call. What was lost on its way is told to the caller and never sent again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.exceptions import AskError

from tenure.errors import StoreError, StoreUnavailable
from tenure.stores.redis.documents import SLOTS, Call
from tenure.stores.redis.node import Node, Reply, code_of, connector
from tenure.stores.redis.refusals import refusal
from tenure.stores.redis.settings import Address, Settings

_PAUSE: Final = 0.02
# A sentinel or a node that is asked who is master may take so long: the next one is asked then.
_LOOK_SECONDS: Final = 1.0
_LOOK_AT_ONCE: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """One call's reply, who gave it, and how many replicas had acknowledged what it wrote, if that was asked."""

    reply: Any
    node: Node
    acknowledged: int | None = None


class Servers:
    """One server under one address, which is the plainest case; the others say where else to look.

    apart: calls of several buckets may belong to several nodes.
    """

    apart = False
    elastic = False  # whether another server may be asked when one refuses

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        address = settings.addresses[0] if settings.addresses else None
        self._node = Node(settings.shown, connector(settings, address), address)

    async def node(self, slot: int | None) -> Node:
        """The server that has this slot's keys."""
        return self._node

    async def masters(self) -> list[Node]:
        """All servers that are written to."""
        return [self._node]

    async def forget(self) -> None:
        """Something was refused or lost: what is believed about servers may not be true any more."""
        await self._node.drop()

    async def close(self) -> None:
        """Close all connections."""
        await self._node.close()

    async def moved(self, error: AskError, asked: Node) -> None:
        """The keys of a slot are another node's."""

    def at(self, error: AskError, asked: Node) -> Node:
        """The node that a refusal points to."""
        return asked

    async def run(self, calls: Sequence[Call], until: float, wait: tuple[int, int] | None = None) -> list[Answer]:
        """Send each call where it belongs, all at once, until each has its answer.

        until: on the loop's clock; a call that is still refused then fails. Raises StoreError, once all
        calls that were sent have been answered or failed.
        """
        answers: dict[int, Answer] = {}
        pointed: dict[int, Node] = {}
        waiting = list(range(len(calls)))
        rounds = 0
        while True:
            told = await self._round(calls, waiting, pointed, wait)
            pointed = {}
            refused: Answer | None = None
            for place, answer in told.items():
                word = code_of(answer.reply)
                if not word and not isinstance(answer.reply, Exception):
                    answers[place] = answer
                    continue
                refused = answer
                if word == "ASK" and self.elastic:
                    pointed[place] = self.at(answer.reply, answer.node)
                elif word == "MOVED" and self.elastic:
                    await self.moved(answer.reply, answer.node)
                elif word == "READONLY" and self.elastic:
                    await self.forget()
                elif word != "TRYAGAIN":
                    if word not in {"OOM", "BUSY", "NOREPLICAS", "NOPERM", "WRONGTYPE"}:
                        await self.forget()
                    raise refusal(answer.reply, answer.node.shown) from answer.reply
            if refused is None:
                return [answers[place] for place in range(len(calls))]
            if asyncio.get_running_loop().time() > until:
                raise refusal(refused.reply, refused.node.shown) from refused.reply
            waiting = [place for place in waiting if place not in answers]
            rounds += 1
            # Where the keys have gone is known after one refusal; who is refused again waits for others.
            await asyncio.sleep(_PAUSE if rounds > 1 or code_of(refused.reply) in {"TRYAGAIN", "READONLY"} else 0)

    async def _round(
        self, calls: Sequence[Call], waiting: list[int], pointed: dict[int, Node], wait: tuple[int, int] | None
    ) -> dict[int, Answer]:
        groups: dict[tuple[Node, bool], list[int]] = {}
        for place in waiting:
            node = pointed.get(place) or await self.node(calls[place].slot)
            groups.setdefault((node, place in pointed), []).append(place)
        asked = [
            node.ask([calls[place] for place in places], asking=asking, wait=wait)
            for (node, asking), places in groups.items()
        ]
        # One group is awaited in place: a task costs more than a short call.
        told = [await _caught(asked[0])] if len(asked) == 1 else await asyncio.gather(*map(_caught, asked))
        answers: dict[int, Answer] = {}
        for ((node, _), places), result in zip(groups.items(), told, strict=True):
            if isinstance(result, Exception):
                await self.forget()
                raise result if isinstance(result, StoreError) else refusal(result, node.shown) from result
            replies, acknowledged = result
            answers.update(
                {place: Answer(reply, node, acknowledged) for place, reply in zip(places, replies, strict=True)}
            )
        return answers


async def _caught(asked: Any) -> tuple[list[Reply], int | None] | Exception:
    """The answers or the error: the calls to other nodes go on all the same."""
    try:
        answered: tuple[list[Reply], int | None] = await asked
    except Exception as error:  # noqa: BLE001 - it is raised again when all have been heard
        return error
    return answered


class Sentinels(Servers):
    """The master of a service, as the sentinels name it."""

    elastic = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._sentinels = [
            Node(f"sentinel {host}:{port}", connector(settings, (host, port), sentinel=True), (host, port))
            for host, port in settings.addresses
        ]
        self._master: Node | None = None
        self._looking = asyncio.Lock()

    async def node(self, slot: int | None) -> Node:
        async with self._looking:
            if self._master is None:
                self._master = await self._look()
            return self._master

    async def _look(self) -> Node:
        """Ask one sentinel after the other, in random order; what it names must call itself a master."""
        said: list[str] = []
        for sentinel in random.sample(self._sentinels, len(self._sentinels)):
            master: Node | None = None
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    asked = Call(["SENTINEL", "get-master-addr-by-name", self.settings.service])
                    (told,), _ = await sentinel.ask([asked])
                    if not isinstance(told, list):
                        said.append(f"{sentinel.shown} knows no master of {self.settings.service!r} ({told})")
                        continue
                    address = (told[0].decode(), int(told[1]))
                    master = Node("{}:{}".format(*address), connector(self.settings, address), address)
                    (role,), _ = await master.ask([Call(["ROLE"])])
                    if isinstance(role, list) and role[0] != b"master":
                        said.append(f"{master.shown} is no master yet")
                        await master.close()
                        continue
                    return master
            except Exception as error:  # noqa: BLE001 - the next sentinel may know better
                said.append(f"{sentinel.shown}: {refusal(error, master.shown if master else sentinel.shown)}")
                if master is not None:
                    await master.close()
        raise StoreUnavailable(f"No sentinel of {self.settings.shown} leads to a master ({'; '.join(said)}).")

    async def masters(self) -> list[Node]:
        return [await self.node(None)]

    async def forget(self) -> None:
        master, self._master = self._master, None
        if master is not None:
            await master.close()

    async def close(self) -> None:
        await self.forget()
        for sentinel in self._sentinels:
            await sentinel.close()


class Cluster(Servers):
    """The nodes of a cluster, and which has which of our slots."""

    apart = elastic = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._nodes: dict[Address, Node] = {}
        self._of_slot: dict[int, Node] = {}
        self._looking = asyncio.Lock()

    async def node(self, slot: int | None) -> Node:
        wanted = SLOTS[0] if slot is None else slot
        if wanted not in self._of_slot:
            async with self._looking:
                if wanted not in self._of_slot:
                    await self._look()
        if wanted not in self._of_slot:
            raise StoreUnavailable(f"No node of {self.settings.shown} has the slot {wanted}; it is tried again.")
        return self._of_slot[wanted]

    async def masters(self) -> list[Node]:
        await self.node(None)
        return list(dict.fromkeys(self._of_slot.values()))

    async def _look(self) -> None:
        """Ask a few nodes at a time which has which slots, in random order: one that hangs must hold nobody up."""
        said: list[str] = []
        known = list(dict.fromkeys([*self._nodes, *self.settings.addresses]))
        order = random.sample(known, len(known))
        for first in range(0, len(order), _LOOK_AT_ONCE):
            some = [self._at(address) for address in order[first : first + _LOOK_AT_ONCE]]
            tasks = [asyncio.create_task(self._slots_by(node, said)) for node in some]
            try:
                for earliest in asyncio.as_completed(tasks):
                    told = await earliest
                    if told is not None:
                        self._of_slot.update(told)
                        return
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        raise StoreUnavailable(f"No node of {self.settings.shown} answers ({'; '.join(said)}).")

    async def _slots_by(self, node: Node, said: list[str]) -> dict[int, Node] | None:
        """Which node has which of our slots, in this one's view; None, with a word in `said`, if it tells nothing."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                (told,), _ = await node.ask([Call(["CLUSTER", "SLOTS"])])
        except Exception as error:  # noqa: BLE001 - another node may know better
            told = error
        if isinstance(told, Exception):
            if "cluster support disabled" in str(told):
                raise StoreError(f"{node.shown} is no cluster. Write redis:// instead of redis+cluster://.")
            said.append(str(refusal(told, node.shown)))
            return None
        asked_host = node.address[0] if node.address else ""
        owners: dict[int, Node] = {}
        for first, last, (host, port, *_), *_ in told:
            # A node that knows not its own host means the one under which it was asked.
            owner = self._at(((host or b"").decode().replace("?", "") or asked_host, port))
            owners.update({slot: owner for slot in SLOTS if first <= slot <= last})
        return owners

    def _at(self, address: Address) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = Node("{}:{}".format(*address), connector(self.settings, address), address)
            self._nodes[address] = node
        return node

    def at(self, error: AskError, asked: Node) -> Node:
        host = asked.address[0] if asked.address else ""
        return self._at((error.host or host, error.port))

    async def moved(self, error: AskError, asked: Node) -> None:
        if error.slot_id in self._of_slot:
            self._of_slot[error.slot_id] = self.at(error, asked)

    async def forget(self) -> None:
        self._of_slot.clear()
        for node in self._nodes.values():
            await node.drop()

    async def close(self) -> None:
        self._of_slot.clear()
        nodes, self._nodes = self._nodes, {}
        for node in nodes.values():
            await node.close()


KINDS: Final[dict[str, Callable[[Settings], Servers]]] = {
    "single": Servers,
    "unix": Servers,
    "sentinel": Sentinels,
    "cluster": Cluster,
}
