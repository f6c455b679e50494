"""Questions on several that use one store at once: races, moments, hints, transactions, closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tenure.errors import StoreError, StoreUnavailable, TransactionTooLong
from tenure.proof.hall import (
    PATIENCE,
    Hall,
    NotAskedError,
    done,
    found,
    heard,
    hold,
    mark,
    marking,
    one,
    outcomes,
    question,
    record,
    same,
    two,
)
from tenure.stores.contract import Ask, Change, Found, Outcome, Store, Transaction

DONE, RACED = Outcome.DONE, Outcome.RACED


@question
async def of_fifty_rivals_one_wins(hall: Hall) -> None:
    """Of changes decided on the same version, from two handles at the same time, exactly one is done."""
    async with two(hall) as (store, other):
        won = 0
        for version in range(5):
            rivals = [Change("a", version, b"%d" % at, records=(record(str(at), at),)) for at in range(50)]
            asked = [(store, other)[at % 2].commit([rival]) for at, rival in enumerate(rivals)]
            told = [verdict.outcomes[0] for verdict in await asyncio.gather(*asked)]
            same((told.count(DONE), told.count(RACED)), (1, 49), "One wins, and the others hear that they were raced.")
            winner = told.index(DONE)
            asked_runs = tuple(str(at) for at in range(50))
            wanted = (version + 1, b"%d" % winner)
            seen = await found(other, "a", runs=asked_runs)
            same((seen.version, seen.body), wanted, "The winner's body stands.")
            hold(str(winner) in seen.past, "The winner's record stands.")
            won = len(seen.past)
        same(len(await store.records("a", 0, 50, 50)), won, "Losers left no record.")


@question
async def many_at_once_all_come_through(hall: Hall) -> None:
    """Commits and reads that are under way together are all answered, each with its own."""
    async with two(hall) as (store, other):

        async def life(at: int) -> None:
            handle = (store, other)[at % 2]
            for version in range(5):
                await done(handle, Change(f"job-{at}", version, b"%d.%d" % (at, version)))
                same(
                    await found(handle, f"job-{at}"), Found(version + 1, b"%d.%d" % (at, version)), "Its own document."
                )

        async with asyncio.timeout(PATIENCE * 3):
            await asyncio.gather(*(life(at) for at in range(40)))


@question
async def a_read_is_of_one_moment(hall: Hall) -> None:
    """Documents and records that are read together are all of one and the same moment."""
    async with two(hall) as (store, other):
        written = asyncio.Event()

        async def write() -> None:
            for version in range(60):
                await done(store, Change("a", version, b"%d" % version, records=(record(str(version), version),)))
                await done(store, Change("b", version, b"%d" % version))
            written.set()

        writer = asyncio.create_task(write())
        runs = tuple(str(version) for version in range(60))
        try:
            while not written.is_set() and not writer.done():
                b, a = (await other.read([Ask("b"), Ask("a", runs=runs)])).found
                hold(a.version - 1 <= b.version <= a.version, f"b at {b.version} was never beside a at {a.version}.")
                same(set(a.past), set(runs[: a.version]), f"The records beside version {a.version}.")
                await asyncio.sleep(0)
        finally:
            await writer


@question
async def a_cancelled_call_breaks_nothing(hall: Hall) -> None:
    """Whoever stops waiting for an answer disturbs nobody; the change may have been applied or not."""
    async with two(hall) as (store, other):
        for round_ in range(20):
            tasks = [asyncio.create_task(store.commit([Change(f"{round_}.{at}", 0, b"x")])) for at in range(10)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            hold(all(not isinstance(one, BaseException) for one in answers[1::2]), f"Others were disturbed: {answers}")
        for at in range(20):
            versions = {(await found(other, f"{at}.{place}")).version for place in range(0, 10, 2)}
            hold(versions <= {0, 1}, f"A cancelled change was applied {versions} times.")


@question
async def hints_reach_their_own_handle(hall: Hall) -> None:
    """What a handle changes with a hint is told by its own watch; what was raced, or had none, is not."""
    async with one(hall) as store:
        await done(store, Change("quiet", 0, b"1"), marking("marked", mark(1)))

        async def cause() -> None:
            await store.commit([Change("raced", 9, b"1", hint=True), Change("quiet", 0, None, hint=False)])
            version = (await found(store, "loud")).version
            await done(store, Change("loud", version, b"1", hint=True))

        same(await heard(store, "loud", cause), {"loud"}, "Only what was changed with a hint is told.")


@question
async def hints_reach_other_handles(hall: Hall) -> None:
    """A store that says it pushes tells of the changes of other processes too."""
    async with two(hall) as (store, other):
        if not store.pushes:
            raise NotAskedError("The store does not say that it pushes.")

        async def cause() -> None:
            version = (await found(other, "a")).version
            await done(other, Change("a", version, b"1", hint=True), Change("b", version, b"1", hint=True))

        names = await heard(store, "a", cause)
        hold(names <= {"a", "b"}, f"Told of {names}, and only a and b were changed.")


@question
async def closing_one_leaves_the_others(hall: Hall) -> None:
    """A handle may be closed twice, and those that stay see all that it did."""
    store = await hall.fresh()
    try:
        other = await hall.second(store)
        await asyncio.gather(*(other.commit([Change(f"job-{at}", 0, b"1")]) for at in range(20)))
        await other.close()
        await other.close()
        same(len(await store.names("job-")), 20, "All that was answered stands.")
        await done(store, Change("after", 0, b"1"))
    finally:
        await store.close()
        await store.close()


# --- the user's own transactions (R39) --------------------------------------------------------------------


@asynccontextmanager
async def with_transactions(hall: Hall) -> AsyncIterator[tuple[Store, Store]]:
    """Two handles on a document `a` at version 1, where the store has transactions."""
    if not hall.transactions:
        async with one(hall) as store:
            try:
                await store.begin(1.0)
            except StoreError:
                raise NotAskedError("The store has no transactions for its user, and says so.") from None
            raise AssertionError("A store without transactions should refuse begin() with a StoreError.")
    async with two(hall) as (store, other):
        await done(store, Change("a", 0, b"1"))
        yield store, other


@question
async def a_transaction_commits_both(hall: Hall) -> None:
    """The user's writes and the store's change stand together; inside, both are seen before."""
    async with with_transactions(hall) as (store, other):
        transaction = await store.begin(5.0)
        await hall.write(transaction.connection, "effect")
        reading = await transaction.read(Ask("a", runs=("1",)))
        same(reading.found[0], Found(1, b"1"), "The document as it is.")
        same(await hall.rows(other), frozenset(), "Nobody else sees what is not committed.")
        change = Change("a", 1, b"2", deadline=reading.now + 60_000, records=(record("1", 1),), hint=True)
        same(await transaction.commit(change), True, "It was current.")
        same(await found(other, "a", runs=("1",)), Found(2, b"2", {"1": b"{}"}), "The change stands.")
        same(await hall.rows(other), frozenset({"effect"}), "So does the user's row.")
        await transaction.rollback()
        same((await found(other, "a")).version, 2, "A rollback after the end is harmless.")
        alone = await store.begin(5.0)
        await hall.write(alone.connection, "alone")
        same(await alone.commit(None), True, "Without a change of ours it commits as well.")
        same(await hall.rows(store), frozenset({"effect", "alone"}), "Both rows stand.")


@question
async def a_transaction_commits_neither(hall: Hall) -> None:
    """Where the change is not current any more, or its deadline has passed, nothing of it stands."""
    async with with_transactions(hall) as (store, other):
        time = (await store.read([])).now
        for stale in (Change("a", 0, b"x"), Change("a", 2, b"x"), Change("a", 1, b"x", deadline=time - 1)):
            transaction = await store.begin(5.0)
            await hall.write(transaction.connection, "effect")
            same(await transaction.commit(stale), False, f"{stale} was not current.")
        transaction = await store.begin(5.0)
        await hall.write(transaction.connection, "effect")
        await transaction.rollback()
        await transaction.rollback()
        same(await hall.rows(other), frozenset(), "All was rolled back.")
        same(await found(other, "a"), Found(1, b"1"), "The document is as it was.")
        await done(other, Change("a", 1, b"2"))


@question
async def a_transaction_lets_nothing_slip_in(hall: Hall) -> None:
    """Between the transaction's read and its commit nobody else changes the document."""
    async with with_transactions(hall) as (store, other):
        transaction = await store.begin(5.0)
        read = await transaction.read(Ask("a"))
        same(read.found[0].version, 1, "As it was.")
        rival = asyncio.create_task(other.commit([Change("a", 1, b"rival")]))
        await asyncio.wait({rival}, timeout=0.2)
        same(await transaction.commit(Change("a", 1, b"mine")), True, "The document was locked since it was read.")
        try:
            same((await rival).outcomes, (RACED,), "The rival came too late.")
        except StoreUnavailable:
            same(await outcomes(other, Change("a", 1, b"rival")), (RACED,), "The rival came too late.")
        same(await found(other, "a"), Found(2, b"mine"), "What was decided under the lock stands.")


@question
async def a_transaction_has_its_limit(hall: Hall) -> None:
    """Beyond its limit a transaction is rolled back, where the store bounds it, and then says so."""
    async with with_transactions(hall) as (store, other):
        transaction = await store.begin(0.1)
        await hall.write(transaction.connection, "effect")
        async with asyncio.timeout(PATIENCE):
            while (await _try(other)) is not DONE:  # noqa: ASYNC110 - what is waited for is the store's doing
                await asyncio.sleep(0.02)
        try:
            committed = await transaction.commit(Change("a", 1, b"late"))
        except TransactionTooLong:
            committed = False
            hold(await _too_long(transaction), "A rollback says as well that its length had ended it.")
        if committed:  # the store need not bound it where it stands in nobody's way
            same((await found(store, "a")).body, b"late", "What was committed stands.")
        else:
            same(await hall.rows(other), frozenset(), "None of its writes stand.")


async def _try(store: Store) -> Outcome | None:
    """One change of another document."""
    try:
        version = (await found(store, "other")).version
        return (await store.commit([Change("other", version, b"x")])).outcomes[0]
    except StoreUnavailable:
        return None


async def _too_long(transaction: Transaction) -> bool:
    """Whether rolling back says that the transaction was too long."""
    try:
        await transaction.rollback()
    except TransactionTooLong:
        return True
    return False
