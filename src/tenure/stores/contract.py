"""What a store is: a clock and a compare-and-set (R40). No rule of runs is known here.

A store keeps *documents* by name, each with a version that grows by one at each change; beside each
document a *history* of records, and *marks*. What a document says is the business of whoever writes it.

What every store promises:

- `read` gives, for all the names asked, documents and history of one and the same moment, and one `now`:
  the store's own clock, in whole milliseconds, taken no later than that moment.
- `commit` takes the changes one by one, each wholly or not at all: a change is DONE only if the document's
  version is still the one it was decided on and the store's clock, read once the document is locked, has
  not passed its deadline. Document, records and deletions of one change are written in one step. A change
  that was answered DONE is never forgotten (as durable as the store was told to be).
- An exception out of `commit` means *unknown*: some of the changes may have been applied, or may be until
  their deadlines. Whoever asked reads again; nothing is sent twice blindly (R40a).
- Marks are inserted if absent, raise no version and have no deadline.
- `watch` gives hints: names of documents that somebody changed with `hint`. A hint may be lost, come twice
  or late; nothing rests on it.
- Every call ends within `timeout` seconds, in an answer or a `StoreUnavailable`.

A store's methods are coroutines of the loop that opened it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a document's history. `keep`: the first time at which it may be deleted; `body` is opaque."""

    run: str
    slot: int
    status: str
    ended: int
    keep: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """Why nothing ran, from `slot` to `until`, `count` slots.

    Inserted if no mark of the same `request` covers `slot`. Where a mark of the same `why` and `whom` ends at
    `after`, that one is extended instead: its `until`, `count` and `at` become this one's and its sum. Of
    several the one with the highest slot; none where either was of a request. `after` < `slot` <= `until`.
    """

    slot: int
    until: int
    count: int
    why: str
    whom: str
    at: int
    by: str
    request: str = ""
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Read document `name`, and the records of `runs` where there are any.

    beyond: (records, marks) to keep; where given, what lies beyond them is told too, newest kept.
    before: where given, the last slot below this one that has a record or a mark is told too.
    """

    name: str
    runs: tuple[str, ...] = ()
    beyond: tuple[int, int] | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What stands under a name; version 0 and no body where nothing does.

    heads: of the records beyond the limit, the oldest (at most 500), oldest first, as (run, slot, keep);
    marks_until: the newest `until` among the marks beyond theirs; last: the highest slot below `before` with a
    record or a mark; those of manual runs do not count.
    """

    version: int = 0
    body: bytes | None = None
    past: Mapping[str, bytes] = field(default_factory=dict)
    heads: tuple[tuple[str, int, int], ...] = ()
    marks_until: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer to a read: the store's time, and what was found, in the order asked."""

    now: int
    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One step on one document.

    body None leaves the document as it is (records, forget and trim then must be empty; marks may be
    given), unless `delete` is set. deadline None: none.
    """

    name: str
    version: int
    body: bytes | None
    deadline: int | None = None
    records: tuple[Record, ...] = ()
    marks: tuple[Mark, ...] = ()
    forget: tuple[str, ...] = ()
    trim: int | None = None
    hint: bool = False
    delete: bool = False

    @property
    def conditional(self) -> bool:
        """Whether it changes the document, and so depends on version and deadline."""
        return self.body is not None or self.delete


class Outcome(Enum):
    """What became of a change."""

    DONE = "done"
    RACED = "raced"  # somebody changed the document since it was read
    EXPIRED = "expired"  # it came after its deadline


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a commit: the store's time and one outcome per change, in the order given."""

    now: int
    outcomes: tuple[Outcome, ...]


class Transaction(Protocol):
    """The user's own writes and one change of ours, in one transaction of the store (R39).

    `connection` is the driver's own. Exactly one of `commit` and `rollback` ends it.
    """

    connection: Any

    async def read(self, ask: Ask) -> Reading:
        """As `Store.read`, inside the transaction, with the document locked until its end."""
        ...

    async def commit(self, change: Change | None) -> bool:
        """Write the change, if one is given, and commit. False: not current any more; all was rolled back.

        Raises TransactionTooLong where the limit had passed and all was rolled back.
        """
        ...

    async def rollback(self) -> None:
        """Undo everything; harmless where it has ended. Raises TransactionTooLong where its length had ended it."""
        ...


class Store(Protocol):
    """A clock and a compare-and-set; the module's docstring is the contract."""

    url: str
    """The URL it was opened by, without any password."""
    timeout: float
    """The longest that one call may take, in seconds."""
    pushes: bool
    """Whether `watch` hears of other processes' changes."""

    async def open(self) -> tuple[str, ...]:
        """Connect, make or check the schema. Returns warnings to show, each one sentence."""
        ...

    async def close(self) -> None:
        """Give everything back; the store can't be used again."""
        ...

    async def read(self, asks: Sequence[Ask]) -> Reading: ...

    async def commit(self, changes: Sequence[Change]) -> Verdict: ...

    def watch(self) -> AsyncIterator[frozenset[str]]: ...

    async def names(self, prefix: str) -> tuple[str, ...]:
        """The names of all documents that begin with `prefix`, sorted."""
        ...

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        """Records with since <= slot <= until, the newest `limit`, newest first."""
        ...

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        """Marks that touch since..until, the newest `limit`, newest first."""
        ...

    async def begin(self, limit_seconds: float) -> Transaction:
        """Open a transaction (R39), at most `limit_seconds` long where the store must bound it.

        Raises StoreError where the store has no such transactions.
        """
        ...


class Migration(Protocol):
    """One numbered step of a schema: its SQL, as it is run."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def sql(self) -> str: ...


@runtime_checkable
class KeepsSchema(Protocol):
    """What a store with tables of its own offers to whoever operates it; it need not be open."""

    async def plan(self) -> Sequence[Migration]:
        """What `upgrade` would apply. Raises StoreError."""
        ...

    async def upgrade(self) -> Sequence[Migration]:
        """Make the tables, or bring them up to date; what was applied. Raises StoreError."""
        ...

    async def check(self) -> Sequence[str]:
        """What is wrong with them, one sentence each; nothing is changed. Raises StoreError."""
        ...
