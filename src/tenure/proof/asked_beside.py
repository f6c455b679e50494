"""Questions on what is kept beside a document: its history and its marks."""

from __future__ import annotations

from dataclasses import replace

from tenure.proof.hall import EVER, Hall, done, found, mark, marking, one, question, record, same, two
from tenure.stores.contract import Ask, Change, Found, Mark, Record

# The end of the year 9999 and some time before 1970: both fit, exactly.
FAR, EARLY = 253_402_300_799_999, -62_135_596_800_000


@question
async def records_are_written_with_their_document(hall: Hall) -> None:
    """A record stands from the moment on at which its document changed, and is read with it."""
    async with two(hall) as (store, other):
        first = Record("10", 10, "success", 12, 99, b"first")
        await done(store, Change("a", 0, b"1", records=(first, Record("20", 20, "failed", 22, 99, b"second"))))
        asked = await found(other, "a", runs=("10", "20", "30"))
        same(asked, Found(1, b"1", {"10": b"first", "20": b"second"}), "Those of the runs asked that are there.")
        same((await found(other, "b", runs=("10",))), Found(), "Another document's history is another's.")
        await done(store, Change("a", 1, b"2", records=(replace(first, status="failed", body=b"anew"),)))
        told = await store.records("a", 10, 10, 10)
        same(told, (Record("10", 10, "failed", 12, 99, b"anew"),), "A record of the same run is replaced.")
        both = (replace(first, body=b"thrice"), Record("20", 20, "success", 22, 99, b"anew"))
        await done(store, Change("a", 2, b"3", records=both))
        same(await store.records("a", 0, 99, 9), both[::-1], "So are several at once.")


@question
async def records_are_told_newest_first(hall: Hall) -> None:
    """Records within bounds, both included, the newest so many, newest first."""
    async with one(hall) as store:
        odd = Record('7#a"b', 7, "interrupted", 9, FAR, b"\0\xff")
        kept = [record("5", 5), odd, record("7", 7), record("8", 8), Record("x", EARLY, "claimed", FAR, 0, b"")]
        await done(store, Change("a", 0, b"1", records=tuple(kept)), Change("b", 0, b"1", records=(record("6", 6),)))
        wanted = (record("8", 8), record("7", 7), odd, record("5", 5), kept[-1])
        same(await store.records("a", EARLY, FAR, 10), wanted, "All of them.")
        same(await store.records("a", 5, 7, 10), (record("7", 7), odd, record("5", 5)), "Both bounds are included.")
        same(await store.records("a", 5, 8, 2), wanted[:2], "The newest two.")
        same(await store.records("a", 9, 9, 10), (), "None there.")
        same(await store.records("a", 5, 8, 0), (), "None wanted.")


@question
async def forgotten_records_are_gone(hall: Hall) -> None:
    """What a change forgets is deleted in the same step; runs that are not there are passed over."""
    async with one(hall) as store:
        runs = tuple(record(str(slot), slot) for slot in range(6))
        await done(store, Change("a", 0, b"1", records=runs), Change("b", 0, b"1", records=runs))
        await done(store, Change("a", 1, b"2", forget=("0", "2", "77")))
        same([one.run for one in await store.records("a", 0, 9, 9)], ["5", "4", "3", "1"], "0 and 2 were forgotten.")
        same(len(await store.records("b", 0, 9, 9)), 6, "Another document's history stays.")
        await done(store, Change("a", 2, b"3", records=(record("9", 9),), forget=("9", "5")))
        same([one.run for one in await store.records("a", 0, 9, 9)], ["4", "3", "1"], "Records first, then forgetting.")


@question
async def what_lies_beyond_is_told_oldest_first(hall: Hall) -> None:
    """Of the records beyond the limit the oldest 500 are told, oldest first, with what pruning needs."""
    async with one(hall) as store:
        runs = tuple(record(str(slot), slot, keep=slot * 3) for slot in range(700))
        await done(store, Change("a", 0, b"1", records=runs))
        heads = tuple((str(slot), slot, slot * 3) for slot in range(700))
        for keep, wanted in ((700, ()), (701, ()), (697, heads[:3]), (200, heads[:500]), (0, heads[:500])):
            told = await found(store, "a", beyond=(keep, 0))
            same(told.heads, wanted, f"The oldest beyond the newest {keep} of 700.")
        same((await found(store, "a")).heads, (), "Not asked, not told.")
        twins = (record("5#b", 5), record("5#a", 5), record("5", 5), record("4#z", 4))
        await done(store, Change("b", 0, b"1", records=twins))
        asks = [Ask("b", beyond=(1, 0)), Ask("a", beyond=(699, 0)), Ask("b", beyond=(3, 5))]
        three, first, oldest = (each.heads for each in (await store.read(asks)).found)
        same([run for run, *_ in three], ["4#z", "5", "5#a"], "By slot, then by name.")
        same((first, oldest), (heads[:1], (("4#z", 4, 0),)), "Each with its own limit.")


@question
async def the_last_slot_is_told(hall: Hall) -> None:
    """The last slot below another is of the schedule's own runs and marks; those of requests do not count."""
    async with one(hall) as store:
        await done(store, Change("a", 0, b"1", records=(record("5", 5), record("9#wish", 9))))
        same((await found(store, "a", before=EVER)).last, 5, "A request's run is no slot.")
        await done(store, marking("a", mark(6, 7), mark(20, request="wish")))
        same((await found(store, "a", before=EVER)).last, 7, "A mark's end counts.")
        await done(store, Change("a", 1, b"2", records=(record("8", 8),)), marking("m", mark(3)))
        told = await store.read([Ask("m", before=EVER), Ask("a", before=EVER), Ask("a"), Ask("none", before=EVER)])
        same([one.last for one in told.found], [3, 8, None, None], "For each that asks.")
        told = await store.read([Ask("a", before=slot) for slot in (8, 7, 6, 5)])
        same([one.last for one in told.found], [7, 6, 5, None], "Below the slot named, also inside a range.")
        await done(store, marking("m", mark(5)), marking("n", mark(5, 40), mark(3), mark(9, request="w"), mark(50)))
        asks = [Ask("m", before=4), *(Ask("n", before=slot) for slot in (51, 50, 42, 41, 20, 6, 5, 4, 3))]
        wanted = [3, 50, 40, 40, 40, 19, 5, 3, 3, None]
        same([one.last for one in (await store.read(asks)).found], wanted, "Ranges of any length, in any order.")


@question
async def marks_are_inserted_if_absent(hall: Hall) -> None:
    """A mark is inserted where none of its request covers its slot, and raises no version."""
    async with two(hall) as (store, other):
        first = mark(10, 20, why="missed", count=3)
        await done(store, marking("a", first))
        for slot in (10, 15, 20):
            await done(other, marking("a", mark(slot, why="paused")))
        same(await store.marks("a", 0, 99, 9), (first,), "The first one stays; all these slots were covered.")
        wish = mark(15, request="wish", whom="5")
        await done(other, marking("a", wish, mark(15, request="wish"), mark(21)))
        same(await store.marks("a", 0, 99, 9), (mark(21), wish, first), "A request's mark covers its own only.")
        same((await found(store, "a")).version, 0, "Marks alone make no document.")
        await done(store, Change("a", 0, b"1", marks=(mark(30),)))
        await done(store, Change("a", 77, None, deadline=1, marks=(mark(31),)))
        same(await found(store, "a", before=EVER), Found(1, b"1", last=31), "Marks have no version and no deadline.")


@question
async def neighbouring_marks_are_merged(hall: Hall) -> None:
    """A mark that names where the one before it ends extends that one, if both say the same."""
    async with two(hall) as (store, other):
        await done(store, marking("a", mark(10)))
        await done(other, marking("a", mark(20, 25, after=10, count=2, by="another")))
        merged = Mark(10, 25, 3, "late", "", 27, "somebody")
        same(await store.marks("a", 0, 99, 9), (merged,), "One mark, with the sum and the later time.")
        await done(store, marking("a", mark(30, after=25, why="paused"), mark(40, after=25, whom="5")))
        await done(store, marking("a", mark(50, after=26), mark(60)))
        await done(store, marking("a", mark(70, request="w"), mark(80, after=70), mark(90, after=60, request="w")))
        slots = [(one.slot, one.until) for one in await store.marks("a", 0, 99, 99)]
        apart = [(90, 90), (80, 80), (70, 70), (60, 60), (50, 50), (40, 40), (30, 30), (10, 25)]
        same(slots, apart, "Another reason, another run, another end, or a request: not merged.")
        same((await store.marks("a", 90, 90, 1))[0].after, None, "What a mark was to follow is not kept.")
        await done(store, marking("b", mark(10), mark(11, after=10), mark(12, after=11)))
        same([(one.slot, one.until, one.count) for one in await other.marks("b", 0, 99, 9)], [(10, 12, 3)], "In order.")
        await done(store, marking("c", mark(10, 20), mark(5, 20)))
        await done(store, marking("c", mark(25, after=20)))
        slots = [(one.slot, one.until) for one in await store.marks("c", 0, 99, 9)]
        same(slots, [(10, 25), (5, 20)], "Of two that end there the one with the highest slot.")


@question
async def marks_of_many_jobs_at_once(hall: Hall) -> None:
    """Marks of many documents in one commit are inserted or merged each for itself."""
    names = [f"job-{place}" for place in range(300)]
    async with one(hall) as store:
        await done(store, *(marking(name, mark(10)) for name in names[::2]))
        await done(store, *(marking(name, mark(11, after=10), mark(12, after=11)) for name in names))
        for at in (0, 1, 298, 299):
            told = [(one.slot, one.until, one.count) for one in await store.marks(names[at], 0, 99, 9)]
            same(told, [(11, 12, 2)] if at % 2 else [(10, 12, 3)], f"The marks of {names[at]}.")
        await done(store, marking("a", mark(1)), marking("a", mark(1, why="paused")), marking("a", mark(2, after=1)))
        said = [(one.slot, one.until, one.why) for one in await store.marks("a", 0, 99, 9)]
        same(said, [(1, 2, "late")], "Of one name in their order.")


@question
async def marks_are_told_newest_first(hall: Hall) -> None:
    """Marks that touch the bounds, the newest so many, newest first, with all that they say."""
    async with one(hall) as store:
        said = Mark(5, 9, 4, "überholt 'x'", "3#\N{SNOWMAN}", FAR, "日本", "wish %_")
        early = mark(EARLY, EARLY + 1, at=0)
        await done(store, marking("a", said, mark(10, 20), mark(30), early))
        same(await store.marks("a", EARLY, FAR, 9), (mark(30), mark(10, 20), said, early), "All of them.")
        same(await store.marks("a", 9, 10, 9), (mark(10, 20), said), "Both touch.")
        same(await store.marks("a", 15, 16, 9), (mark(10, 20),), "One that spans the bounds.")
        same(await store.marks("a", EARLY, FAR, 2), (mark(30), mark(10, 20)), "The newest two.")
        same(await store.marks("a", 21, 29, 9), (), "Between two there is none.")


@question
async def trimmed_marks_are_gone(hall: Hall) -> None:
    """A change deletes the marks that end by a slot; what lies beyond the limit is told by the newest end."""
    async with one(hall) as store:
        wish = mark(3, request="wish")
        await done(store, marking("a", mark(1), wish, mark(5, 8), mark(9)), marking("b", mark(1)))
        for keep, wanted in ((9, None), (4, None), (3, 1), (2, 3), (1, 8), (0, 9)):
            same((await found(store, "a", beyond=(0, keep))).marks_until, wanted, f"Beyond the newest {keep} of 4.")
        await done(store, Change("a", 0, b"1", trim=3))
        same(await store.marks("a", 0, 99, 9), (mark(9), mark(5, 8)), "Those that ended by 3 are gone.")
        same(await store.marks("b", 0, 99, 9), (mark(1),), "Another document's marks stay.")
        await done(store, marking("c", mark(1, 50), mark(60), mark(55)))
        same((await found(store, "c", beyond=(0, 2))).marks_until, 50, "The oldest is the one with the lowest slot.")
        same((await found(store, "c", beyond=(0, 1))).marks_until, 55, "The newest end of those beyond.")
        await done(store, Change("a", 1, b"2", trim=99, marks=(mark(2),)))
        same(await store.marks("a", 0, 99, 9), (mark(2),), "Trimmed first, then marked.")
