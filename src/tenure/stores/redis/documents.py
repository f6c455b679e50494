"""Documents as keys, and calls of the scripts: nothing here knows connections or servers.

All keys of one document carry one hash tag, the number of the document's *bucket*, so that a cluster keeps them
together and one script may touch them all. There are 256 buckets; a name always falls into the same one. Beside
the documents of a bucket lies its index of names, under the same tag: it is changed in the step that makes or
deletes a document, so no name can be missing from it, and none is left behind.

    tenure:{17}:d:job:nightly     hash: v the version, b the body
    tenure:{17}:h:job:nightly     hash: run -> its record
    tenure:{17}:s:job:nightly     runs of the schedule by slot
    tenure:{17}:w:job:nightly     runs of requests ("wishes") by slot
    tenure:{17}:m:job:nightly     marks by slot
    tenure:{17}:u:job:nightly     the same marks by their end ("until")
    tenure:{17}:names             the names of the bucket's documents

The prefix holds no brace, so the first pair of braces is ours, whatever a name is made of. No key ever expires.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

from redis.crc import key_slot

from tenure.stores.contract import Ask, Change, Found, Mark, Outcome, Record

BUCKETS: Final = 256
SLOTS: Final = tuple(key_slot(b"%d" % bucket) for bucket in range(BUCKETS))
"""The slot of the cluster that each bucket lies in."""

OUTCOMES: Final = (Outcome.DONE, Outcome.RACED, Outcome.EXPIRED)

# A script holds the server until it ends: of more changes than this some go into the next script. About 10 ms.
TOGETHER: Final = 500

# Added to a mark's end, so that all ends have 16 digits and their texts are in the order of their numbers.
_AHEAD: Final = 10**15
_SEPARATOR: Final = "\x1f"

_HISTORY: Final = "hsw"
_MARKS: Final = "mu"


class Script:
    """A Lua script, and the name by which the server remembers it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = files("tenure.stores.redis").joinpath(f"{name}.lua").read_bytes()
        # Redis itself names scripts by SHA-1; nothing is protected by it.
        self.sha = hashlib.sha1(self.source, usedforsecurity=False).hexdigest()


COMMIT: Final = Script("commit")
READ: Final = Script("read")
RECORDS: Final = Script("records")
MARKS: Final = Script("marks")
NAMES: Final = Script("names")

Argument = str | bytes


@dataclass(frozen=True, slots=True)
class Call:
    """One command. With a script, `arguments` begin with the number of keys; `slot` None: any server will do.

    writes: it may change something, so it is never sent again unless the server has refused it. guarded: it is
    sent behind a plain write of its first key that changes nothing, in one transaction.
    """

    arguments: Sequence[Argument]
    script: Script | None = None
    slot: int | None = None
    writes: bool = False
    guarded: bool = False


@dataclass(slots=True)
class _Script:
    """The keys and arguments of a call that is being written."""

    bucket: int
    keys: list[Argument] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def call(self, script: Script, first: Sequence[Argument], writes: bool = False) -> Call:
        head: list[Argument] = [str(len(self.keys)), *self.keys, *first, str(len(self.places))]
        return Call(head + self.arguments, script, SLOTS[self.bucket], writes)


def bucket_of(name: str) -> int:
    """The bucket of a name: for ever the same, or documents would be lost."""
    return zlib.crc32(name.encode()) % BUCKETS


def channel_of(prefix: str) -> str:
    """The channel on which hints are published."""
    return f"{prefix}:hints"


def _keys(prefix: str, bucket: int, name: str, kinds: str) -> list[Argument]:
    return [f"{prefix}:{{{bucket}}}:{kind}:{name}" for kind in kinds]


def _index(prefix: str, bucket: int) -> str:
    return f"{prefix}:{{{bucket}}}:names"


# --- changing ---------------------------------------------------------------------------------------------


def commit_calls(prefix: str, changes: Sequence[Change], apart: bool) -> list[tuple[Call, list[int]]]:
    """The calls that take these changes, each with the places of its own. `apart`: one call per bucket.

    Changes of one name stay in one call, in their order.
    """
    of_name: dict[str, list[int]] = {}
    for place, change in enumerate(changes):
        of_name.setdefault(change.name, []).append(place)
    scripts: list[_Script] = []
    of_bucket: dict[int, _Script] = {}
    for name, places in of_name.items():
        bucket = bucket_of(name)
        script = of_bucket.get(bucket if apart else 0)
        if script is None or len(script.places) >= TOGETHER:
            script = of_bucket[bucket if apart else 0] = _Script(bucket)
            scripts.append(script)
        for place in places:
            _put_change(script, prefix, bucket, changes[place])
            script.places.append(place)
    channel = channel_of(prefix)
    return [(script.call(COMMIT, [channel], writes=True), script.places) for script in scripts]


def probe_call(prefix: str, name: str) -> Call:
    """A call that runs every command of a commit on a document that it makes and deletes in one step.

    A user who lacks the right to one of them would stop a script half-way: that must come out before it matters.
    """
    record, mark = Record("1", 1, "", 1, 1, b""), Mark(1, 1, 1, "", "", 1, "")
    after = Mark(2, 2, 1, "", "", 1, "", after=1)
    made = Change(name, 0, b"", records=(record,), marks=(mark, after), forget=("1",), trim=0)
    kept = Change(name, 1, b"", trim=2)
    ((call, _),) = commit_calls(prefix, [made, kept, Change(name, 2, None, delete=True)], apart=True)
    return call


def _put_change(script: _Script, prefix: str, bucket: int, change: Change) -> None:
    """The keys and arguments of one change, as commit.lua reads them."""
    what, kinds = "note", ""
    index = change.delete or (change.body is not None and change.version == 0)
    said: list[Argument] = []
    if change.delete:
        what, kinds = "delete", "d"
    elif change.body is not None:
        what, kinds = "put", "d"
        said = [str(change.version + 1), change.body, str(len(change.records))]
        for record in change.records:
            said += (record.run, str(record.slot), _packed(record))
        said += (str(len(change.forget)), *change.forget, _optional(change.trim))
    after = ""
    if what == "delete":
        after = _HISTORY + _MARKS
    else:
        said.append(str(len(change.marks)))
        for mark in change.marks:
            said += _told(mark)
        if change.body is not None and (change.records or change.forget):
            after = _HISTORY
        if change.marks or (change.body is not None and change.trim is not None):
            after += _MARKS
    keys = _keys(prefix, bucket, change.name, kinds)
    if index:
        keys.append(_index(prefix, bucket))
    keys += _keys(prefix, bucket, change.name, after)
    head = (what, str(change.version), _optional(change.deadline), "1" if change.hint else "", change.name)
    script.keys += keys
    script.arguments += (str(len(keys)), str(len(head) + len(said)), *head, *said)


def _told(mark: Mark) -> tuple[str, ...]:
    until = f"{mark.until + _AHEAD:016d}"
    after = _optional(mark.after)
    return (
        str(mark.slot), until, mark.request, after, mark.why, mark.whom, str(mark.count), str(mark.at), mark.by
    )  # fmt: skip


def _packed(record: Record) -> bytes:
    return b"%d %d %d %s\n%s" % (record.slot, record.ended, record.keep, record.status.encode(), record.body)


def _optional(number: int | None) -> str:
    return "" if number is None else str(int(number))


# --- reading ----------------------------------------------------------------------------------------------


def read_calls(prefix: str, asks: Sequence[Ask], apart: bool) -> list[tuple[Call, list[int]]]:
    """The calls that answer these asks, each with the places of its own. `apart`: one call per bucket, else one."""
    scripts: dict[int, _Script] = {}
    for place, ask in enumerate(asks):
        bucket = bucket_of(ask.name)
        script = scripts.setdefault(bucket if apart else 0, _Script(bucket))
        beside = ask.beyond is not None or ask.before is not None
        kinds = "d" + ("h" if ask.runs or ask.beyond is not None else "") + ("swmu" if beside else "")
        script.keys += _keys(prefix, bucket, ask.name, kinds)
        keep, keep_marks = ask.beyond or (None, None)
        last = None if ask.before is None else ask.before - 1
        script.arguments += (str(len(ask.runs)), *ask.runs, *map(_optional, (keep, keep_marks, last)))
        script.places.append(place)
    return [(script.call(READ, []), script.places) for script in scripts.values()]


def found(ask: Ask, told: list[Any]) -> Found:
    """What read.lua told of one document."""
    version, body, bodies, heads, newest_end, last = told
    if not bodies and not heads and newest_end is None and last is None:
        return Found() if version is None else Found(int(version), body)
    past = {run: _body(packed) for run, packed in zip(ask.runs, bodies, strict=False) if packed is not None}
    three = iter(heads)
    told_heads = tuple(
        (run.decode(), int(slot), int(packed.split(b" ", 3)[2]))
        for run, slot, packed in zip(three, three, three, strict=True)
    )
    return Found(int(version or 0), body, past, told_heads, newest_end, last)


def _body(packed: bytes) -> bytes:
    return packed[packed.index(b"\n") + 1 :]


def names_calls(prefix: str, start: str, apart: bool) -> list[Call]:
    """The calls that tell the names which begin so: of all indexes."""
    first = b"[" + start.encode() if start else b"-"
    # No text in UTF-8 holds this byte.
    last = b"(" + start.encode() + b"\xff" if start else b"+"
    groups: Iterable[Iterable[int]] = [[one] for one in range(BUCKETS)] if apart else [range(BUCKETS)]
    calls = []
    for buckets in groups:
        keys = [_index(prefix, bucket) for bucket in buckets]
        slot = SLOTS[next(iter(buckets))]
        calls.append(Call([str(len(keys)), *keys, first, last], NAMES, slot))
    return calls


def records_call(prefix: str, name: str, since: int, until: int, limit: int) -> Call:
    """The call that tells records between two slots."""
    bucket = bucket_of(name)
    keys = _keys(prefix, bucket, name, _HISTORY)
    return Call(["3", *keys, str(since), str(until), str(limit)], RECORDS, SLOTS[bucket])


def records(told: list[bytes], limit: int) -> tuple[Record, ...]:
    """What records.lua told, in order and cut to the limit."""
    pairs = iter(told)
    unpacked = [_unpacked(run.decode(), packed) for run, packed in zip(pairs, pairs, strict=True)]
    return tuple(sorted(unpacked, key=lambda record: (-record.slot, record.run))[:limit])


def _unpacked(run: str, packed: bytes) -> Record:
    head, body = packed.split(b"\n", 1)
    slot, ended, keep, status = head.split(b" ", 3)
    return Record(run, int(slot), status.decode(), int(ended), int(keep), body)


def marks_call(prefix: str, name: str, since: int, until: int, limit: int) -> Call:
    """The call that tells marks that touch two bounds."""
    bucket = bucket_of(name)
    keys = _keys(prefix, bucket, name, "m")
    return Call(["1", *keys, str(since), str(until), str(limit)], MARKS, SLOTS[bucket])


def mark(member: bytes) -> Mark:
    """A mark as it stands in its set."""
    text = member.decode()
    request, slot, count, at, why, whom, by = text[16:].split(_SEPARATOR)
    return Mark(int(slot), int(text[:16]) - _AHEAD, int(count), why, whom, int(at), by, request)
