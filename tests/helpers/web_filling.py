"""A board and a store of runs with something of everything in them, for whoever looks at pages."""

import json
import time
from typing import NamedTuple

from picture_story import BEGIN, FAILED, HANDED_OVER, TAKEN_OVER, at

from tenure.board import access, claims, endpoints, friends, humans, schedules, shapes, todos, webhooks
from tenure.rules import commands as c
from tenure.rules.job import Past, encode_past
from tenure.rules.schedule import cron, every
from tenure.rules.todo_content import NewTodo
from tenure.stores.contract import Ask, Change, Mark, Record

HOUR = 3_600_000


class Filled(NamedTuple):
    """What is there: paths of pages by name."""

    paths: dict
    job: str


def fill(site):
    """Fill it."""
    slug, todo, schedule = _board(site)
    slot = _runs(site)
    job = "/runs/runs/job?name=tick"
    return Filled(
        {
            "overview": "/",
            "board": "/board",
            "depth": "/board/depth",
            "todo": f"/todos/{todo}",
            "endpoints": "/endpoints",
            "endpoint": f"/endpoints/{slug}",
            "wizard": "/endpoints/new",
            "runs": "/runs/runs",
            "job": f"{job}&at=now-30s",
            "takeover": "/runs/runs/job?name=letters",
            "run": f"/runs/runs/run?name=tick&slot={slot}",
            "schedules": "/schedules",
            "schedule": f"/schedules/{schedule}",
            "friends": "/friends",
            "activity": "/activity",
            "settings": "/settings",
            "missing": "/no/such/page",
        },
        job,
    )


def _board(site):
    board, alice = site.board, site.board.alice
    now = board.read(lambda tx, _: tx.now())
    made = board.write(
        endpoints.vend, alice, name="reviewer", agent="Rosie", queues=["reviews", "inbox"], default_lease=1800,
        expires=now + 20 * HOUR,
    )  # fmt: skip
    triage = board.write(endpoints.vend, alice, name="triage bot", verbs=["claim_next", "complete", "release"])
    old = board.write(endpoints.vend, alice, name="last year's")
    for number in range(12):
        new = NewTodo(
            f"Review change {552 + number}: leases of a fleet far from home", "reviews",
            body="Read *the diff* and say what it breaks.", payload={"change": 552 + number}, priority=number % 3,
        )  # fmt: skip
        board.write(todos.create, alice, made.endpoint, new)
    for number in range(3):
        later = NewTodo(f"Sort the mail of day {number + 1}", not_before=now + (number + 1) * HOUR)
        board.write(todos.create, alice, triage.endpoint, later)
    board.write(todos.create, alice, old.endpoint, NewTodo("Left over from last year"))
    worker = board.write(lambda tx, board: access.worker_by_credential(tx, board, made.credential.reveal()))
    granted = board.write(claims.claim_next, worker, shapes.Next(max=7, worker_label="laptop-1")).granted
    held = [(one.todo.summary.id, one.lease.token.reveal()) for one in granted]
    board.write(claims.complete, worker, [shapes.Completion(*one, {"verdict": "fine"}) for one in held[:2]])
    board.write(claims.fail, worker, [shapes.Failing(*held[2], "the linter crashed")])
    taken = held[3][0]
    board.write(todos.board_claim, alice, taken)
    board.write(claims.complete, worker, [shapes.Completion(*held[3], {"verdict": "came late"})])
    board.write(todos.add_note, alice, taken, "I finish this one by hand.")
    board.write(endpoints.revoke, alice, old.endpoint.slug)
    board.write(webhooks.create, alice, name="ci", ref=made.endpoint.slug)
    raw = {"expression": "30 2 * * *", "tz": "Europe/Berlin", "title": "Nightly review of {slot:%Y-%m-%d}"}
    schedule = board.write(schedules.add, alice, made.endpoint.slug, "nightly", raw).id
    code = board.read(humans.friend_code, alice)
    board.write(friends.request, board.charlie, code, queues=["reviews"], verbs=["claim_next", "heartbeat", "complete"],
                reason="My reviewer is idle at night.")  # fmt: skip
    mine = board.write(friends.request, alice, board.read(humans.friend_code, board.bob), queues=["builds"],
                       verbs=["claim_next", "complete"])  # fmt: skip
    board.write(friends.approve, board.bob, mine.id, agent="builder")
    return made.endpoint.slug, taken, schedule


class Store:
    """The site's store of runs, written to as instances would."""

    def __init__(self, site):
        self.site, self._number, self.jobs = site, 0, {}

    def now(self):
        return self.site.app.ask_now(lambda records: records.now())

    def tell(self, job, command):
        return self.site.app.ask_now(lambda records: records.ledger.ask_one(job, command)).answer

    def claim(self, name, slot, runner, reason="schedule", request=""):
        """Claim a run of a job that is known; its token."""
        self._number += 1
        job = self.jobs[name]
        claim = c.Claim(
            slot, f"{self._number:032x}", runner, job.lease_ms, job.max_attempts, 24 * HOUR, job.overlap,
            reason, reason != "takeover", request,
        )  # fmt: skip
        return self.tell(name, claim).token

    def known_since(self, name, ms):
        """Have the job be known since then, as if an instance had been started earlier."""

        async def put(records):
            found = (await records.store.read([Ask(f"job:{name}")])).found[0]
            body = found.body.replace(str(await self._seen(records, name)).encode(), str(ms).encode())
            return await records.store.commit([Change(f"job:{name}", found.version, body)])

        self.site.app.ask_now(put)

    @staticmethod
    async def _seen(records, name):
        return (await records.job(name)).seen_since

    def until(self, name, true_of, within=20.0):
        """Wait until the job's run is so; the store's clock is the machine's."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            runs = self.site.app.ask_now(lambda records: records.runs([name], limit=1))
            if runs and true_of(runs[0]):
                return
            time.sleep(0.05)
        raise AssertionError(f"the run of {name} did not come to be so")

    def ran(self, name, slot, runner, error=None):
        """A whole run."""
        token = self.claim(name, slot, runner)
        status = "failed" if error else "success"
        self.tell(name, c.Finish(slot, token, status, "", {"lines": 42}, error))


def _runs(site):
    store = Store(site)
    now = store.now()
    store.jobs["tick"] = site.tell_job("tick", every(10_000))
    store.jobs["report"] = site.tell_job("report", cron("30 2 * * *", "Europe/Berlin"), catch_up="1h")
    site.tell_job("cleanup", cron("*/15 * * * *", "Europe/Berlin"))
    site.tell_job("by-hand")
    base = now // 10_000 * 10_000
    for back in range(30, 1, -1):
        failed = ("ValueError", "the upstream said no", "Traceback …") if back in (2, 5, 17) else None
        store.ran("tick", base - back * 10_000, f"api-{1 + back % 3}", failed)
    store.claim("tick", base, "api-2")
    site.app.pause("cleanup")
    _story(store, now)
    page = {"host": "web", "pid": 7, "version": "0.1.0", "started": now - HOUR, "seen": now, "offset_ms": -12,
            "jobs": ["tick", "report", "cleanup", "letters"], "running": [], "backups": 1, "reasons": []}  # fmt: skip
    _instance(site, "api-1", page)
    _instance(site, "api-2", {**page, "offset_ms": 1400, "seen": now - 60_000})
    return base - 20_000


def _story(store, now):
    """A takeover, a hand-over and a failure in the last half minute, of a job of their own."""
    shift = now - 30_000 - BEGIN
    store.jobs["letters"] = store.site.tell_job("letters", every(4_000), lease="3s", heartbeat="500ms")
    past = [_moved(run, shift) for run in (TAKEN_OVER, HANDED_OVER, FAILED)]
    records = tuple(Record(one.id, one.slot, one.status, one.ended, now + HOUR, encode_past(one)) for one in past)
    marks = tuple(Mark(at(s) + shift, at(s) + shift, 1, "overlap", "", at(s) + shift, "api-3") for s in (4, 8, 16))

    async def put(records_of):
        found = (await records_of.store.read([Ask("job:letters")])).found[0]
        change = Change("job:letters", found.version, found.body, records=records, marks=marks)
        return await records_of.store.commit([change])

    store.site.app.ask_now(put)


def _moved(run, shift):
    """The run, as ended, so much later."""

    def later(ms):
        return None if ms is None else ms + shift

    attempts = tuple(
        one._replace(started=one.started + shift, renewed=one.renewed + shift, ended=later(one.ended))
        for one in run.attempts
    )
    return Past(run.slot + shift, "", run.status, run.ended + shift, run.lease_ms, 0, attempts)


def _instance(site, name, page):
    change = Change(f"instance:{name}", 0, json.dumps(page).encode())
    site.app.ask_now(lambda records: records.store.commit([change]))
