"""The bridge on real databases: a slot makes one todo, on any number of servers (B49)."""

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from tenure.board import audit, endpoints, reaper, schedules, todos
from tenure.board.database import UNAVAILABLE, Tx
from tenure.board.refused import Refused
from tenure.bridge import Bridge, job_name
from tenure.rules.commands import Claim, Won
from tenure.rules.instant import HOUR

EACH_SECOND = {"expression": "1s", "title": "tick of {slot:%H:%M:%S}", "overlap": "allow"}


@pytest.fixture
async def open_board(board):
    await board.open()
    yield board
    await board.notices.close()


async def until(what, seconds=15.0):
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not come to pass"
        await asyncio.sleep(0.05)
    return found


async def test_b49_each_slot_makes_one_todo_on_three_servers(open_board):
    """Three instances on one database: each slot of a schedule has one todo, and none has two."""
    board = open_board
    board.write(endpoints.vend, board.alice, name="triage")
    slug = board.read(endpoints.list_all, board.alice)[0].slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    bridges = [Bridge(board) for _ in range(3)]
    for bridge in bridges:
        await bridge.start()
    try:
        await until(lambda: len(board.rows("SELECT * FROM slots")) >= 4)
    finally:
        await asyncio.gather(*(bridge.stop() for bridge in bridges))
    slots = [row.slot for row in board.rows("SELECT slot FROM slots ORDER BY slot")]
    todos = board.rows("SELECT source, source_id, title FROM todos")
    assert len(todos) == len(slots) == len(set(slots))
    assert [later - earlier for earlier, later in itertools.pairwise(slots)] == [1000] * (len(slots) - 1)
    assert {(row.source, row.source_id) for row in todos} == {("schedule", made.id)}
    assert all(row.title.startswith("tick of ") for row in todos)


async def test_b49_edits_pauses_and_removals_reach_a_running_server(open_board):
    """Added after the start, paused, resumed, edited, removed: the server goes by each without a restart."""
    board = open_board
    board.write(endpoints.vend, board.alice, name="triage")
    slug = board.read(endpoints.list_all, board.alice)[0].slug
    bridge = Bridge(board)
    await bridge.start()
    try:
        made = await board.database.write(schedules.add, board, board.alice, slug, "ticks", EACH_SECOND)
        await until(lambda: board.rows("SELECT * FROM slots"))
        await board.database.write(schedules.pause, board, board.alice, "ticks")
        job = job_name(made.id)
        await until(lambda: _paused(bridge, job))
        seen = len(board.rows("SELECT * FROM slots WHERE outcome = 'todo'"))
        await asyncio.sleep(1.5)
        assert len(board.rows("SELECT * FROM slots WHERE outcome = 'todo'")) == seen
        await board.database.write(schedules.resume, board, board.alice, "ticks")
        await board.database.write(schedules.edit, board, board.alice, "ticks", {"title": "other"})
        await until(lambda: board.rows("SELECT * FROM todos WHERE title = 'other'"))
        await board.database.write(schedules.remove, board, board.alice, "ticks")
        await until(lambda: not bridge.app.jobs and not bridge._known)
        left = await bridge.app.ask(lambda records: records.job(job))
        assert left.paused is not None
    finally:
        await bridge.stop()


async def test_b49_a_slot_whose_server_died_is_made_up_however_long_none_was_there(open_board):
    """A run of three hours ago, left by a server that died in it, is interrupted by the next slot: it gets its todo."""
    board = open_board
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    job = job_name(board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND).id)
    bridge = Bridge(board)
    await bridge.start()

    async def die(records):
        slot = await records.now() // 1000 * 1000 - 3 * HOUR
        claim = Claim(slot, "t" * 32, "dead", 50, 1_000, 4 * HOUR, "allow", "catch-up", True)
        assert isinstance((await records.ledger.ask_one(job, claim)).answer, Won)
        return slot

    try:
        await until(lambda: board.rows("SELECT * FROM slots"))
        slot = await bridge.app.ask(die)
        await until(lambda: board.rows("SELECT * FROM slots WHERE slot = :slot AND outcome = 'todo'", slot=slot))
    finally:
        await bridge.stop()


async def test_b49_a_schedule_that_a_server_cannot_read_holds_up_no_other(open_board, caplog):
    """A zone that this server's data does not have: it is told in a sentence, and the schedule after it is run."""
    board = open_board
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    odd = board.write(schedules.add, board.alice, slug, "odd", {**EACH_SECOND, "expression": "* * * * *"})
    other = board.write(schedules.add, board.bob, board.vend(board.bob).endpoint.slug, "ticks", EACH_SECOND)
    change = sa.text(
        "UPDATE schedules SET definition = replace(definition, '\"UTC\"', '\"Mars/North\"') WHERE id = :id"
    )
    board.database.writing(lambda tx: tx.execute(change, {"id": odd.id}))
    bridge = Bridge(board)
    await bridge.start()
    try:
        await until(lambda: job_name(other.id) in bridge.app.jobs)
        assert job_name(odd.id) not in bridge.app.jobs
        told = [one for one in caplog.records if odd.id in one.getMessage()]
        assert told
        assert all("Mars/North" in one.getMessage() and not one.exc_info for one in told)
    finally:
        await bridge.stop()


@pytest.mark.parametrize(("held", "looked_at"), [(1, 4), (2, 2)])
async def test_b49_a_schedule_whose_row_somebody_holds_holds_up_no_other(open_board, held, looked_at):
    """A server that stands still in its transaction, say. Where a second fails too, it is the database, and waits."""
    board, seen = open_board, []
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    for name in "abcd":
        board.write(schedules.add, board.alice, slug, name, {**EACH_SECOND, "expression": "1d"})
    bridge = Bridge(board)
    await bridge.app.start()

    async def make_up(schedule_id):
        seen.append(schedule_id)
        if len(seen) <= held:
            raise Refused(UNAVAILABLE)

    bridge._make_up = make_up
    try:
        with pytest.raises(Refused):
            await bridge.look()
    finally:
        await bridge.app.stop()
    assert len(bridge._known) == len(seen) == looked_at


async def test_b49_a_pause_whose_server_died_is_ended_by_the_others(open_board):
    """Paused and resumed while one server did not look, and the one that did died in between: slots go on."""
    board = open_board
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "expression": "1d"})
    dying, other = Bridge(board), Bridge(board)
    for bridge in (dying, other):
        await bridge.app.start()
        await bridge.look()
    board.write(schedules.pause, board.alice, "ticks")
    await dying.look()
    await dying.app.stop()
    board.write(schedules.resume, board.alice, "ticks")
    await other.look()
    try:
        assert (await other.app.ask(lambda records: records.job(job_name(made.id)))).paused is None
    finally:
        await other.app.stop()


def _paused(bridge, job):
    return bridge._paused.get(job.removeprefix("schedule ")) is True


async def test_b49_a_schedule_is_steered_on_the_board_also_from_its_runs(open_board):
    """Pause and trigger of the schedule's job are those of the schedule: with its words, and in the audit."""
    board = open_board
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "expression": "1d"})
    bridge = Bridge(board)
    await bridge.steer(board.alice, job_name(made.id), "trigger")
    await bridge.steer(board.alice, job_name(made.id), "pause")
    assert board.read(schedules.get, board.alice, "ticks").paused == "paused by alice"
    assert len(board.rows("SELECT * FROM todos")) == 1
    with pytest.raises(Refused):
        await bridge.steer(board.charlie, job_name(made.id), "resume")
    actions = [one.action for one in board.read(audit.list_page, board.alice) if one.subject == "schedule"]
    assert actions == ["pause", "trigger", "add"]


def test_b49_overlap_skips_while_the_last_todo_is_open(board):
    """Five slots with a todo that is not ended: one todo, four skips with their reason in the history."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "overlap": "skip"})
    for slot in range(5):
        board.write(schedules.fire, made.id, 1_000 * slot)
    told = board.read(schedules.history, board.alice, "ticks")
    assert [one.outcome for one in told] == ["skipped"] * 4 + ["todo"]
    assert {one.reason for one in told[:4]} == {f"{told[4].todo_id} of 1970-01-01T00:00:00Z has not ended"}


def test_b49_overlap_asks_about_the_newest_todo_not_the_newest_slot(board):
    """A trigger ended, then a slot before it that was caught up: its open todo holds up the next slot."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "overlap": "skip"})
    fired = board.write(schedules.trigger, board.alice, "ticks")
    board.write(todos.cancel, board.alice, fired.todo_id)
    assert board.write(schedules.fire, made.id, 1_000).outcome == "todo"
    assert board.write(schedules.fire, made.id, 2_000).outcome == "skipped"


@pytest.mark.servers
@pytest.mark.parametrize("board_url", ["postgres"], indirect=True)
def test_b49_a_name_is_taken_once_however_many_ask_at_once(board):
    """Two schedules of one name on two endpoints in the same moment: one is made, the other a clean conflict."""
    slugs = [board.write(endpoints.vend, board.alice, name="e").endpoint.slug for _ in range(8)]

    def add(slug):
        try:
            return board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND).name
        except Refused as refused:
            return refused.refusal.details["reason"]

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add, slugs)) == ["name_taken"] * 7 + ["ticks"]


def test_b49_slots_are_kept_beyond_todos(board):
    """90 days, longer than todos and any catch-up; then they go."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    board.write(schedules.fire, made.id, 1_000)
    board.clock.turn(days=89)
    board.write(reaper.prune)
    assert board.write(schedules.fire, made.id, 1_000).todo_id is not None
    assert len(board.rows("SELECT * FROM slots")) == 1
    board.clock.turn(days=2)
    board.write(reaper.prune)
    assert board.rows("SELECT * FROM slots") == []


def test_b49_an_expired_endpoint_pauses_its_schedule(board):
    """Not only a revoked one."""
    expires = board.read(_now) + 60_000
    slug = board.write(endpoints.vend, board.alice, name="triage", expires=expires).endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    board.clock.turn(minutes=2)
    assert board.read(schedules.get, board.alice, "ticks").paused == f"its endpoint {slug} is expired"
    assert board.write(schedules.fire, made.id, 1_000).outcome == "skipped"


def _now(tx, board):
    return tx.now()


def test_b51_each_step_of_a_schedule_is_in_the_audit(board):
    """Add, edit, pause, resume, trigger and remove: one line each, by who did it."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    board.write(schedules.edit, board.alice, "ticks", {"title": "other"})
    for step in (schedules.pause, schedules.resume, schedules.trigger, schedules.remove):
        board.write(step, board.alice, "ticks")
    lines = [one for one in board.read(audit.list_page, board.alice) if one.subject == "schedule"]
    assert [one.action for one in lines] == ["remove", "trigger", "resume", "pause", "edit", "add"]
    assert {(one.actor, one.actor_id) for one in lines} == {("human", board.alice.id)}


def test_b49_a_slot_fired_again_makes_nothing(board):
    """The same slot twice: one todo, and the second call says which."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    first = board.write(schedules.fire, made.id, 5_000)
    again = board.write(schedules.fire, made.id, 5_000)
    assert first.todo_id == again.todo_id is not None
    assert len(board.rows("SELECT * FROM todos")) == 1


def test_b49_a_slot_that_is_fired_after_a_pause_or_the_removal_makes_nothing(board):
    """By a server that has not looked since: skipped, and it says why; so is the slot of one that never was."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    board.write(schedules.pause, board.alice, "ticks")
    told = [board.write(schedules.fire, made.id, 1_000)]
    board.write(schedules.resume, board.alice, "ticks")
    board.write(schedules.remove, board.alice, "ticks")
    told += [board.write(schedules.fire, one, 2_000) for one in (made.id, "sc_never")]
    assert {one.outcome for one in told} == {"skipped"}
    assert [one.reason for one in told] == ["paused by alice", *["the schedule was removed"] * 2]
    assert board.rows("SELECT * FROM todos") == []


def test_b49_a_revoked_endpoint_pauses_its_schedule(board):
    """The schedule says why it makes nothing, slots are skipped with that reason; it can be removed alone."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    board.write(endpoints.revoke, board.alice, slug)
    assert board.read(schedules.get, board.alice, "ticks").paused == f"its endpoint {slug} is revoked"
    assert board.write(schedules.fire, made.id, 1_000).outcome == "skipped"
    for step in (schedules.resume, schedules.pause, schedules.trigger):
        with pytest.raises(Refused) as refused:
            board.write(step, board.alice, "ticks")
        assert (refused.value.refusal.code, refused.value.refusal.details["state"]) == ("conflict", "revoked")
    board.write(schedules.remove, board.alice, "ticks")


def test_b26_anothers_schedule_is_a_missing_one(board):
    """Bob, a friend, and Charlie, nobody, get for Alice's schedule what they get for none."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    cases = (schedules.get, schedules.pause, schedules.resume, schedules.remove, schedules.trigger)
    for human in (board.bob, board.charlie):
        assert board.read(schedules.list_all, human) == []
        for case in cases:
            told = []
            for ref in (made.id, "ticks", "nothing"):
                with pytest.raises(Refused) as refused:
                    board.write(case, human, ref)
                told.append(refused.value.refusal)
            assert len(set(map(str, told))) == 1


def test_b49_a_trigger_makes_a_todo_now_and_says_who_asked(board):
    """A todo out of turn, by the same rules; the history names the human."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "overlap": "skip"})
    fired = board.write(schedules.trigger, board.alice, "ticks")
    assert (fired.outcome, fired.reason) == ("todo", "triggered by alice")
    assert board.write(schedules.trigger, board.alice, "ticks").outcome == "skipped"


async def test_b49_triggers_in_one_millisecond_make_a_todo_each(open_board):
    """Forty that are asked for at once, on SQLite in one commit: forty todos, and forty entries of the history."""
    board = open_board
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    board.write(schedules.add, board.alice, slug, "ticks", {**EACH_SECOND, "expression": "1d"})
    trigger = (board.database.write(schedules.trigger, board, board.alice, "ticks") for _ in range(40))
    fired = await asyncio.gather(*trigger)
    assert len({one.todo_id for one in fired}) == len(board.rows("SELECT * FROM slots")) == 40


def test_b49_a_trigger_in_the_millisecond_of_a_slot_takes_nothing_from_it(board, monkeypatch):
    """The slot, whose run comes a moment later, makes its own todo."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    made = board.write(schedules.add, board.alice, slug, "ticks", EACH_SECOND)
    slot = (time.time_ns() // 10**9 + 5) * 1000
    monkeypatch.setattr(Tx, "now", lambda tx: slot)
    assert board.write(schedules.trigger, board.alice, "ticks").slot == slot + 1
    board.write(schedules.fire, made.id, slot)
    assert [row.slot for row in board.rows("SELECT slot FROM slots ORDER BY slot")] == [slot, slot + 1]
    assert len(board.rows("SELECT id FROM todos")) == 2


def test_b49_an_id_is_never_taken_for_anothers_name(board):
    """A schedule that bears the id of another as its name: the id still means the one that has it."""
    slug = board.write(endpoints.vend, board.alice, name="triage").endpoint.slug
    first = board.write(schedules.add, board.alice, slug, "zz", EACH_SECOND)
    second = board.write(schedules.add, board.alice, slug, first.id, EACH_SECOND)
    third = board.write(schedules.add, board.alice, slug, second.id, EACH_SECOND)
    for one in (first, second, third):
        assert board.write(schedules.pause, board.alice, one.id).id == one.id
    assert [one.paused for one in board.read(schedules.list_all, board.alice)] == ["paused by alice"] * 3
