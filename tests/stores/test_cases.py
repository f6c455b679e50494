"""Cases from the field that speak of what a store does, put to all stores by the rules' own questions."""

import asyncio
import contextlib
import itertools

import pytest
from store_urls import stores

from tenure.rules import commands as c
from tenure.rules import job as documents
from tenure.rules.job import EMPTY, Attempt, Lease, Past, Run
from tenure.rules.runs import TOLERANCE, decide, keep_until
from tenure.scheduler.ledger import Ledger, Order, change_of
from tenure.scheduler.records import Records
from tenure.scheduler.seams import SystemClock
from tenure.scheduler.storeclock import StoreClock
from tenure.stores.contract import Ask, Change, Outcome, Record
from tenure.stores.opening import store_from_url

pytestmark = pytest.mark.servers
everywhere = stores(
    "memory", "sqlite", "postgres", "postgres15", "pgbouncer", "redis62", "redis70", "valkey9", "cluster"
)
JOB, DOCUMENT = "work", "job:work"
MINUTE, HOUR = 60_000, 3_600_000


@pytest.fixture
async def ledgers(any_url):
    """Makes so many handles on one store, each as another process would have it."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(count):
            made = []
            for _ in range(count):
                store = store_from_url(any_url)
                stack.push_async_callback(store.close)
                await store.open()
                made.append(Ledger(store, StoreClock(SystemClock())))
            return made

        yield make


def claim(slot, token, runner="", lease_ms=30_000, *, bound_ms=MINUTE, create=True, **more):
    told = {"overlap": "skip", "reason": "schedule" if create else "takeover", "max_attempts": 3, **more}
    return c.Claim(slot, token, runner or token, lease_ms, bound_ms=bound_ms, create=create, **told)


async def ask(ledger, command, job=JOB):
    return (await ledger.ask_one(job, command)).answer


async def now_of(ledger):
    return (await ledger.store.read([])).now


@everywhere
async def test_case_r2_four_claimers_of_one_name(ledgers):
    """The same runner's name says nothing: one token wins, and the others are told that it is held."""
    handles = await ledgers(4)
    slot = await now_of(handles[0])
    told = await asyncio.gather(*(ask(one, claim(slot, f"token-{at}", "same")) for at, one in enumerate(handles)))
    assert sorted(type(one).__name__ for one in told) == ["Running", "Running", "Running", "Won"]
    loser = next(at for at, one in enumerate(told) if isinstance(one, c.Running))
    assert isinstance(await ask(handles[loser], c.Heartbeat(slot, f"token-{loser}")), c.Refused)


@everywhere
async def test_case_r6_a_handler_of_no_time_among_ten(ledgers):
    """It has ended before most have asked: one run all the same, and the others hear how it ended."""
    handles = await ledgers(4)
    slot = await now_of(handles[0])

    async def run(at):
        ledger, token = handles[at % 4], f"token-{at}"
        await asyncio.sleep(at * 0.003)
        answer = await ask(ledger, claim(slot, token))
        if isinstance(answer, c.Won):
            await ask(ledger, c.Finish(slot, token, "success"))
        return answer

    told = await asyncio.gather(*(run(at) for at in range(10)))
    assert sum(isinstance(one, c.Won) for one in told) == 1
    assert all(isinstance(one, c.Won | c.Running) or one == c.Ended("success") for one in told)


@everywhere
async def test_case_r7_and_r11_a_slot_that_was_over_is_over(ledgers):
    """Whoever asks again, by a clock that is off or that stepped back, hears its end."""
    first, second = await ledgers(2)
    slot = await now_of(first)
    assert isinstance(await ask(first, claim(slot, "one")), c.Won)
    assert await ask(first, c.Finish(slot, "one", "success")) == c.Finished("success")
    for reason in ("schedule", "catch-up"):
        assert await ask(second, claim(slot, f"two-{reason}", reason=reason)) == c.Ended("success")


@everywhere
async def test_case_r9_two_claimers_interleaved_at_every_step(ledgers):
    """Read and commit of both in each order: whoever commits first on what both have read wins, the other is raced."""
    one, two = await ledgers(2)
    now = await now_of(one)
    for number, order in enumerate(sorted(set(itertools.permutations("AaBb")))):
        if order.index("A") > order.index("a") or order.index("B") > order.index("b"):
            continue  # nobody commits before it has read
        name, changes, done = f"{DOCUMENT}-{number}", {}, []
        for step in order:
            ledger = one if step in "Aa" else two
            if step.isupper():
                reading = await ledger.store.read([Ask(name)])
                page = ledger.page(name, reading.found[0])
                decision = decide(page.job, claim(now, f"token-{step}"), reading.now)
                assert isinstance(decision.answer, c.Won if not done else c.Running)
                if isinstance(decision.answer, c.Won):
                    found = reading.found[0].version
                    changes[step.lower()] = change_of(name, found, decision.job, reading.now, [decision])
            elif step in changes:
                done += (await ledger.store.commit([changes[step]])).outcomes
        assert done in ([Outcome.DONE], [Outcome.DONE, Outcome.RACED])


@everywhere
async def test_case_r14_and_r39_a_finish_and_a_takeover_race_at_the_moment_of_expiry(ledgers):
    """Forty runs whose leases have just run out: each is finished or taken over, never both, never neither."""
    runner, backup = await ledgers(2)
    slot = await now_of(runner)
    jobs = [f"race-{at}" for at in range(40)]
    told = await runner.ask([Order(job, claim(slot, "one", lease_ms=300)) for job in jobs])
    assert all(isinstance(one.answer, c.Won) for one in told)
    await asyncio.sleep(0.3)
    finished, taken = await asyncio.gather(
        runner.ask([Order(job, c.Finish(slot, "one", "success")) for job in jobs]),
        backup.ask([Order(job, claim(slot, "two", create=False)) for job in reversed(jobs)]),
    )
    for first, second in zip(finished, reversed(taken), strict=True):
        if first.answer == c.Finished("success"):
            assert second.answer == c.Ended("success")
        else:
            assert isinstance(first.answer, c.Refused)
            assert isinstance(second.answer, c.Won)


@everywhere
async def test_case_r19_a_slot_whose_record_was_pruned_is_not_won(ledgers):
    """Two runs of an hour ago, one kept: the other is forgotten, and its slot is late and over for whoever asks."""
    (ledger,) = await ledgers(1)
    now = await now_of(ledger)
    old, newer = now - HOUR, now - HOUR + MINUTE
    pasts = [ended(slot, now) for slot in (old, newer)]
    body = documents.encode(EMPTY._replace(newest=newer, fence=2, bound=MINUTE))
    records = tuple(
        Record(one.id, one.slot, one.status, one.ended, keep_until(one), documents.encode_past(one)) for one in pasts
    )
    await ledger.store.commit([Change(DOCUMENT, 0, body, records=records)])
    heads = (c.Head(pasts[0].id, old, keep_until(pasts[0])),)
    await ask(ledger, c.Prune(heads))
    assert [one.slot for one in await ledger.store.records(DOCUMENT, 0, now, 9)] == [newer]
    for overlap in ("skip", "allow"):
        for bound in (MINUTE, 2 * HOUR):
            answer = await ask(ledger, claim(old, f"again-{overlap}-{bound}", bound_ms=bound, overlap=overlap))
            assert isinstance(answer, c.Ended)
    assert isinstance(await ask(ledger, claim(newer, "again")), c.Ended)


def ended(slot, now):
    attempt = Attempt(1, f"token-{slot}", "somebody", "schedule", 1, slot, slot, 0, slot + 1, "success")
    return Past(slot, "", "success", slot + 1, 1_000, 0, (attempt,))


@everywhere
async def test_case_r44_a_run_that_was_left_running_for_months(ledgers):
    """It is shown as expired, and whoever asks may have it, or interrupts it by the next slot."""
    (ledger,) = await ledgers(1)
    now = await now_of(ledger)
    slot = now - 91 * 24 * HOUR
    attempt = Attempt(1, "lost", "gone", "schedule", 1, slot, slot)
    left = Run(slot, "", Lease("lost", "gone", slot + 30_000), 30_000, "skip", 0, (attempt,))
    job = EMPTY._replace(newest=slot, fence=1, runs=(left,))
    await ledger.store.commit([Change(DOCUMENT, 0, documents.encode(job))])
    (shown,) = await Records(ledger.store).runs([JOB])
    assert shown.status == "expired"
    assert isinstance(await ask(ledger, claim(now, "next")), c.Won)
    runs = await Records(ledger.store).runs([JOB])
    assert [run.status for run in runs] == ["running", "interrupted"]


@everywhere
async def test_case_r61_and_r62_nobody_starts_before_the_stores_time(ledgers):
    """An hour fast, or 20 ms: told how long to wait; and at the time named the claim is won."""
    (ledger,) = await ledgers(1)
    now = await now_of(ledger)
    early = await ask(ledger, claim(now + HOUR, "fast"))
    assert isinstance(early, c.Early)
    assert HOUR - TOLERANCE < early.wait_ms <= HOUR
    soon = await now_of(ledger) + 150
    answer = await ask(ledger, claim(soon, "soon"))
    assert isinstance(answer, c.Early)
    await asyncio.sleep(answer.wait_ms / 1000 + 0.002)
    assert isinstance(await ask(ledger, claim(soon, "soon")), c.Won)


@everywhere
async def test_case_r69_unique_per_slot_and_no_overlap(ledgers):
    """Beside a live run the next slot is an overlap, marked once whoever asks; after its end it may run."""
    first, second = await ledgers(2)
    now = await now_of(first)
    assert isinstance(await ask(first, claim(now - 1_000, "one")), c.Won)
    told = await asyncio.gather(*(ask(one, claim(now, f"two-{at}")) for at, one in enumerate((first, second) * 3)))
    assert all(isinstance(one, c.Overlaps) for one in told)
    assert [mark.why for mark in await first.store.marks(DOCUMENT, 0, now, 9)] == ["overlap"]
    await ask(first, c.Finish(now - 1_000, "one", "success"))
    assert isinstance(await ask(second, claim(now, "three", create=False)), c.Gone)
    assert isinstance(await ask(second, claim(now, "three")), c.Won)
