"""What a server must be, and what is worth a warning, when a store is opened (R42, R43)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from tenure.errors import StoreError, StoreReadOnly, StoreTooOld, StoreUnavailable
from tenure.stores.redis.documents import READ, Call, channel_of
from tenure.stores.redis.node import Node, code_of
from tenure.stores.redis.refusals import code, refusal
from tenure.stores.redis.settings import Settings

OLDEST: Final = (6, 2)
# Clocks of a cluster's nodes that are further apart than this are worth a sentence.
_APART_MS: Final = 100

# Before this version a script may write although min-replicas-to-write refuses every plain write.
_STRICT_SCRIPTS: Final = (7, 0)

Info = dict[str, str]
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """Warnings, one sentence each, and whether a script must stand behind a plain write that is refused for it."""

    warnings: tuple[str, ...]
    lax_scripts: bool


async def check(masters: list[Node], settings: Settings) -> Checked:
    """Check all masters. Raises StoreError for what can't be used."""
    told = await asyncio.gather(*(_ask(node, settings) for node in masters))
    said: dict[str, list[str]] = {}
    for node, (version, info, save, publishes) in zip(masters, told, strict=True):
        if version < OLDEST:
            raise StoreTooOld(
                f"{node.shown} is Redis {'.'.join(map(str, version))}, and Tenure needs Redis 6.2 or Valkey 7.2 or "
                f"newer. Upgrade it."
            )
        sentences = ["our user may not look at the settings (INFO), so they were not checked."]
        if info is not None:
            _must(node.shown, info, settings)
            sentences = _should(info, save)
        if not publishes:
            sentences.append(
                f"our user may not publish on {channel_of(settings.prefix)}, so others hear of changes only when they "
                f"look: a hand-over takes longer."
            )
        for sentence in sentences:
            said.setdefault(sentence, []).append(node.shown)
    warnings = [f"{_listed(nodes)}: {sentence}" for sentence, nodes in said.items()]
    clocks = await _clocks(masters)
    if clocks is not None:
        warnings.append(clocks)
    return Checked(tuple(warnings), any(version < _STRICT_SCRIPTS for version, *_ in told))


def _listed(nodes: list[str]) -> str:
    """A cluster may have a hundred of them."""
    return ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


async def _ask(node: Node, settings: Settings) -> tuple[Version, Info | None, str | None, bool]:
    """The version, INFO, the times of snapshots (each None if not told), whether hints may be published."""
    calls = [
        Call(["HELLO"]),  # it tells the version to users who may do nothing
        Call(["INFO"]),
        Call(["CONFIG", "GET", "save"]),
        Call(["PUBLISH", channel_of(settings.prefix), "[]"]),
        Call(["0", "0"], READ),
    ]
    try:
        (hello, info, save, published, read), _ = await node.ask(calls)
    except Exception as error:
        raise refusal(error, node.shown) from error
    for needed in (hello, read, info):
        if isinstance(needed, Exception) and (needed is not info or code(needed) != "NOPERM"):
            raise refusal(needed, node.shown) from needed
    told = None if isinstance(info, Exception) else parsed(info)
    snapshots = save[1].decode() if isinstance(save, list) and len(save) == 2 else None
    return version_of(hello), told, snapshots, code_of(published) != "NOPERM"


def version_of(hello: list[Any]) -> Version:
    """The version that HELLO tells: of Redis, or of Valkey, whose numbers went on from Redis 7.2."""
    told = dict(zip(hello[::2], hello[1::2], strict=False)).get(b"version", b"0")
    return tuple(int(part) for part in told.decode().split(".") if part.isdigit())


def parsed(info: bytes) -> Info:
    """The lines of INFO."""
    pairs = (line.partition(":") for line in info.decode(errors="replace").splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _must(shown: str, info: Info, settings: Settings) -> None:
    if info.get("cluster_enabled") == "1" and settings.kind != "cluster":
        raise StoreError(f"{shown} is a node of a cluster. Write redis+cluster:// with some of its nodes.")
    if info.get("loading") == "1":
        raise StoreUnavailable(f"{shown} is loading its data and will answer soon; it is tried again.")
    if info.get("role") == "slave":
        raise StoreReadOnly(
            f"{shown} is a replica of {info.get('master_host')}:{info.get('master_port')} and can't be written. Name "
            f"the master, or use redis+sentinel:// or redis+cluster://."
        )


def _should(info: Info, save: str | None) -> list[str]:
    warnings = []
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        warnings.append(
            f"keys are evicted when the memory is full (maxmemory-policy {policy}), and what Tenure knows of runs with "
            f"them. Set it to noeviction."
        )
    if info.get("aof_enabled") == "0":
        if save == "":
            warnings.append(
                "nothing is written to disk: after a restart all is forgotten, and runs that ended may run again. "
                "Set appendonly yes."
            )
        elif save is not None:
            warnings.append(
                "the disk gets snapshots only: a crash forgets what came after the last one, and runs that ended since "
                "may run again. Set appendonly yes."
            )
    if int(info.get("connected_slaves", "0")) > 0 and "min_slaves_good_slaves" not in info:
        warnings.append(
            "there are replicas, and writes are taken also when none is left to copy them, so a failover may forget "
            "more than it must and a slot may run twice. Set min-replicas-to-write 1 and min-replicas-max-lag 10."
        )
    return warnings


async def _clocks(masters: list[Node]) -> str | None:
    """A warning where the clocks of a cluster's nodes are further apart than asking them takes."""
    if len(masters) < 2:
        return None
    loop = asyncio.get_running_loop()
    began = loop.time()
    told = await asyncio.gather(*(node.ask([Call(["0", "0"], READ)]) for node in masters), return_exceptions=True)
    took = (loop.time() - began) * 1000
    times = [one[0][0][0] for one in told if not isinstance(one, BaseException) and isinstance(one[0][0], list)]
    apart = max(times, default=0) - min(times, default=0)
    if apart <= took + _APART_MS:
        return None
    return (
        f"The clocks of the cluster's nodes are {apart / 1000:.1f} s apart: changes of many jobs at once take more "
        f"rounds, and leases may be taken over later than they must. Synchronise them (NTP)."
    )
