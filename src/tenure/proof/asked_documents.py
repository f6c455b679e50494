"""Questions on documents: versions, deadlines, batches, names and bodies."""

from __future__ import annotations

import asyncio

from tenure.proof.hall import (
    EVER,
    PATIENCE,
    Hall,
    done,
    found,
    hold,
    mark,
    marking,
    now,
    one,
    outcomes,
    question,
    record,
    same,
    two,
)
from tenure.stores.contract import Ask, Change, Found, Outcome

DONE, RACED, EXPIRED = Outcome.DONE, Outcome.RACED, Outcome.EXPIRED


@question
async def nothing_stands_in_a_fresh_store(hall: Hall) -> None:
    """Where nothing stands, version 0 is told and no body, and all the rest is empty."""
    async with one(hall) as store:
        asked = Ask("a", runs=("1",), beyond=(0, 0), before=EVER)
        same((await store.read([asked, asked])).found, (Found(), Found()), "Nothing was ever written.")
        same(await store.names(""), (), "No document has a name yet.")
        same(await store.records("a", 0, 10, 10), (), "There is no record.")
        same(await store.marks("a", 0, 10, 10), (), "There is no mark.")


@question
async def versions_grow_by_one(hall: Hall) -> None:
    """Each change of a document raises its version by one, and every handle sees it at once."""
    async with two(hall) as (store, other):
        for version in range(5):
            await done(store, Change("a", version, b"body %d" % version))
            wanted = Found(version + 1, b"body %d" % version)
            same(await found(store, "a"), wanted, "The document should be as written.")
            same(await found(other, "a"), wanted, "The other handle should see it too.")


@question
async def stale_changes_are_raced(hall: Hall) -> None:
    """A change decided on another version than the current one changes nothing at all."""
    async with two(hall) as (store, other):
        await done(store, Change("a", 0, b"first"))
        await done(other, Change("a", 1, b"second"))
        for version in (0, 1, 3):
            stale = Change("a", version, b"stale", records=(record("1", 1),), marks=(mark(1),), hint=True)
            same(await outcomes(store, stale), (RACED,), f"The version is 2, not {version}.")
        same(await outcomes(store, Change("b", 1, b"stale")), (RACED,), "There is no document b.")
        same(await outcomes(store, Change("a", 1, None, delete=True)), (RACED,), "Deleting depends on the version.")
        asked = await found(store, "a", runs=("1",), before=EVER)
        same(asked, Found(2, b"second"), "What was raced should have left nothing.")


@question
async def late_changes_expire(hall: Hall) -> None:
    """A change is judged by the store's clock; a race is told before a deadline that passed."""
    async with one(hall) as store:
        time = await now(store)
        await done(store, Change("a", 0, b"in time", deadline=time + 60_000))
        late = Change("a", 1, b"late", deadline=time - 1, records=(record("1", 1),), marks=(mark(1),), hint=True)
        same(await outcomes(store, late), (EXPIRED,), "Its deadline was before the store's time.")
        stale = Change("a", 0, b"late", deadline=time - 1)
        same(await outcomes(store, stale), (RACED,), "A race is told first.")
        gone = Change("a", 1, None, deadline=time - 1, delete=True)
        same(await outcomes(store, gone), (EXPIRED,), "Deleting has its deadline too.")
        same(await found(store, "a", runs=("1",), before=EVER), Found(1, b"in time"), "Nothing should have changed.")
        verdict = await store.commit([Change("a", 1, b"last", deadline=time)])
        wanted = EXPIRED if verdict.now > time else DONE
        same(verdict.outcomes, (wanted,), f"At {verdict.now} a deadline of {time} was judged wrongly.")


@question
async def batches_are_judged_one_by_one(hall: Hall) -> None:
    """Of one commit each change has its own outcome, in the order given; the others stand."""
    async with one(hall) as store:
        time = await now(store)
        await done(store, Change("b", 0, b"1"), Change("c", 0, b"1"))
        told = await outcomes(
            store,
            Change("a", 0, b"new"),
            Change("b", 0, b"raced"),
            Change("c", 1, b"late", deadline=time - 1),
            Change("d", 0, b"new", deadline=time + 60_000),
            marking("e", mark(1)),
        )
        same(told, (DONE, RACED, EXPIRED, DONE, DONE), "Each change should have its own outcome.")
        asks = [Ask(name, before=EVER) for name in "abcde"]
        wanted = (Found(1, b"new"), Found(1, b"1"), Found(1, b"1"), Found(1, b"new"), Found(last=1))
        same((await store.read(asks)).found, wanted, "Only what was done should stand.")
        same(await outcomes(store), (), "A commit of nothing is answered too.")


@question
async def one_name_twice_in_a_batch(hall: Hall) -> None:
    """Changes of one name in one commit are taken in their order: the second needs the version of the first."""
    async with one(hall) as store:
        told = await outcomes(
            store,
            Change("a", 0, b"1", records=(record("1", 1),)),
            Change("a", 0, b"no"),
            Change("a", 1, b"2", records=(record("2", 2),), forget=("1",)),
            Change("b", 0, b"1"),
            Change("a", 2, None, delete=True),
            Change("a", 0, b"again", records=(record("3", 3),)),
        )
        same(told, (DONE, RACED, DONE, DONE, DONE, DONE), "Each should be judged on what the one before left.")
        asked = await found(store, "a", runs=("1", "2", "3"))
        same(asked, Found(1, b"again", {"3": b"{}"}), "What was deleted takes its history along.")


@question
async def deleted_documents_are_gone(hall: Hall) -> None:
    """Deleting takes document, history and marks; a new document begins at version 1."""
    async with two(hall) as (store, other):
        await done(store, Change("a", 0, b"1", records=(record("1", 1),), marks=(mark(9),)), Change("ab", 0, b"1"))
        await done(other, Change("a", 1, None, delete=True))
        same(await found(store, "a", runs=("1",), beyond=(0, 0), before=EVER), Found(), "All of it should be gone.")
        same(await store.names(""), ("ab",), "Others should have stayed.")
        await done(store, Change("a", 0, b"new"))
        same(await found(other, "a"), Found(1, b"new"), "It begins anew.")
        await done(store, marking("m", mark(1)))
        await done(store, Change("m", 0, None, delete=True))
        same(await found(store, "m", before=EVER), Found(), "Marks without a document can be deleted as well.")


@question
async def names_are_taken_as_written(hall: Hall) -> None:
    """Names are told apart to the last character, and a prefix is no pattern; the order is that of code points."""
    names = [
        "a%b", "a_b", "axb", "a*b", "a?b", "a[b]", "a\\b", "a'b", 'a"b', "a b", "A%b", "a%", "a", "ab",
        "é", "e\u0301", "ß", "ss", "日本語", "😀", "😀😀", "\U0010ffff", "\ud7ff", "\ue000", "a\u2028b", "x" * 200,
    ]  # fmt: skip
    async with two(hall) as (store, other):
        await done(store, *(Change(name, 0, name.encode()) for name in names))
        await done(store, marking("a-mark-alone", mark(1)))
        asks = [Ask(name) for name in names]
        wanted = tuple(Found(1, name.encode()) for name in names)
        same((await other.read(asks)).found, wanted, "Each name has a document of its own.")
        for prefix in ("", "a", "a%", "a_", "a[", "a\\", "A", "é", "e", "😀", "日", "\ud7ff", "\U0010ffff", "zz"):
            told = await other.names(prefix)
            wanted_names = tuple(sorted(name for name in names if name.startswith(prefix)))
            same(told, wanted_names, f"The names that begin with {prefix!r}, in the order of code points.")


@question
async def bodies_are_kept_to_the_byte(hall: Hall) -> None:
    """Bodies are opaque: empty, with every byte value, with text that means something elsewhere, and large."""
    bodies = [b"", bytes(range(256)) * 256, b"\0", b'{"a":"\xc3\xa9"}', b"\xff\xfe'; DROP TABLE", b"x" * 65_536]
    async with two(hall) as (store, other):
        for place, body in enumerate(bodies):
            await done(store, Change(f"one-{place}", 0, body, records=(record("1", 1, body),)))
        await done(
            store,
            *(Change(f"all-{at}", 0, body, records=(record("1", 1, body),)) for at, body in enumerate(bodies)),
        )
        empty = [Change(f"empty-{at}", 0, b"", records=(record("1", 1, b""),)) for at in range(3)]
        await done(store, *empty)
        told = (await other.read([Ask(one.name, runs=("1",)) for one in empty])).found
        same(told, (Found(1, b"", {"1": b""}),) * 3, "Also where all are empty.")
        for way in ("one", "all"):
            asks = [Ask(f"{way}-{place}", runs=("1",)) for place in range(len(bodies))]
            told = (await other.read(asks)).found
            same(told, tuple(Found(1, body, {"1": body}) for body in bodies), "Bodies should be as they were written.")
            for ask, body in zip(asks, bodies, strict=True):
                same(await found(store, ask.name, runs=("1",)), Found(1, body, {"1": body}), "Also when asked alone.")


@question
async def a_thousand_at_once(hall: Hall) -> None:
    """A thousand documents are read by one call, and changed by one call, with their records."""
    names = [f"job-{place:04d}" for place in range(1_000)]
    async with two(hall) as (store, other):
        await done(store, *(Change(name, 0, name.encode()) for name in names))
        asks = [Ask(name, runs=("1", "2")) for name in reversed(names)]
        told = (await other.read(asks)).found
        same(told, tuple(Found(1, name.encode()) for name in reversed(names)), "All of them, in the order asked.")
        await done(other, *(Change(name, 1, b"2", records=(record("1", 1, name.encode()),)) for name in names))
        told = (await store.read(asks)).found
        wanted = tuple(Found(2, b"2", {"1": name.encode()}) for name in reversed(names))
        same(told, wanted, "Documents and records of all.")
        verdict = await store.commit([Change(name, int(at % 2) + 1, b"3") for at, name in enumerate(names)])
        same(verdict.outcomes.count(DONE), 500, "Half of them were current.")
        same(verdict.outcomes, (RACED, DONE) * 500, "Each outcome in its place.")


@question
async def the_clock_goes_forward(hall: Hall) -> None:
    """Every answer carries the store's time in milliseconds, one clock for all handles, which goes on."""
    async with two(hall) as (store, other):
        first = latest = await now(store)
        async with asyncio.timeout(PATIENCE):
            while latest < first + 50:
                for handle in (store, other):
                    for told in (await now(handle), (await handle.commit([])).now):
                        hold(isinstance(told, int), f"{told!r} is no whole number of milliseconds.")
                        hold(told > latest - 1_000, f"The clock went back from {latest} to {told}.")
                        latest = max(latest, told)
                await asyncio.sleep(0.005)
        hold(first > 1_600_000_000_000, f"{first} is no time in milliseconds since 1970.")
