"""Jobs of an application that put todos on a board: once per slot and call, however often a run is started (B49)."""

import asyncio
import contextlib
import os

import pytest
from serving import served

from tenure import ConfigError, Tenure
from tenure.board import endpoints
from tenure.putting import Putter
from tenure.scheduler.jobs import define
from tenure.scheduler.run import Holding, Run
from tenure.scheduler.seams import SystemClock


@pytest.fixture
def vended(board, monkeypatch):
    """Alice's endpoint with two queues, on a served board: (url, credential, slug)."""
    made = board.write(endpoints.vend, board.alice, name="triage", queues=("inbox", "night"))
    with served(board) as url:
        monkeypatch.setenv("TENURE_URL", url)
        monkeypatch.setenv("TENURE_ENDPOINT_CREDENTIAL", made.credential.reveal())
        yield board


async def one_run(app, job):
    """Start the application, ask for a run of the job, and wait until it ended."""
    async with app:
        ended = asyncio.get_running_loop().create_task(_ended(app))
        await asyncio.to_thread(app.trigger, job)
        return await ended


async def _ended(app):
    async for event in app.events():
        if event.name in ("success", "failed"):
            return event
    raise AssertionError("no run ended")


async def test_b49_a_job_from_code_puts_a_todo(vended, tmp_path):
    """`app.job().todo(...)`: the run's todo is on the endpoint, with its fields filled in."""
    app = Tenure(f"sqlite:///{tmp_path}/runs.db")
    app.job(name="triage").todo(queue="night", title="{name} of {slot:%Y}", payload={"n": 1})
    assert (await one_run(app, "triage")).name == "success"
    (todo,) = vended.rows("SELECT queue, title, source, idempotency_key FROM todos")
    assert (todo.queue, todo.source) == ("night", "endpoint")
    assert todo.title.startswith("triage of 20")
    assert todo.idempotency_key.startswith("triage@")


async def test_b49_a_run_that_is_started_again_puts_nothing_twice(vended, tmp_path):
    """The handler puts two todos and then fails once: its second attempt finds both, and there are two in all."""
    tried = []
    app = Tenure(f"sqlite:///{tmp_path}/runs.db")

    @app.job(name="split", retries=1, retry_delay="0s")
    async def split(run):
        tried.append([await run.put("left"), await run.put("right")])
        if len(tried) == 1:
            raise RuntimeError("once")

    assert (await one_run(app, "split")).name == "success"
    assert tried[0] == tried[1]
    assert sorted(row.title for row in vended.rows("SELECT title FROM todos")) == ["left", "right"]


async def test_b49_a_sync_handler_puts_too(vended, tmp_path):
    """`put_now` on the handler's thread."""
    app = Tenure(f"sqlite:///{tmp_path}/runs.db")

    @app.job()
    def report(run):
        run.put_now("from a thread", queue="night")

    assert (await one_run(app, "report")).name == "success"
    assert [row.queue for row in vended.rows("SELECT queue FROM todos")] == ["night"]


def test_b49_without_a_board_it_says_what_to_set(monkeypatch):
    """One sentence that names the two variables."""
    monkeypatch.delenv("TENURE_ENDPOINT_CREDENTIAL", raising=False)
    with pytest.raises(ConfigError, match="TENURE_ENDPOINT_CREDENTIAL"):
        Putter(None, None).put("key", {"title": "x"})


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"title": "{day}"}, "title"),
        ({"title": ""}, "title"),
        ({"title": "x", "body": "{name:>20}"}, "body"),
        ({"title": "x", "body": 5}, "body"),
        ({"title": "x", "priority": 50}, "priority"),
    ],
)
def test_b49_a_todo_that_no_slot_could_put_is_refused_when_it_is_defined(said, field):
    """Not at each of its slots: one sentence that names the field, and no job is defined."""
    app = Tenure("memory://")
    with pytest.raises(ConfigError, match=f"^{field}="):
        app.cron("0 7 * * *", name="triage").todo(**said)
    assert not app.jobs


@pytest.mark.parametrize(("name", "fits"), [("night", True), ("n" * 150, False)])
def test_b49_a_title_that_holds_the_name_is_judged_by_that_name(name, fits):
    """Just as it will be: a short name leaves room for more, and a long one for less."""
    app = Tenure("memory://")
    with contextlib.nullcontext() if fits else pytest.raises(ConfigError, match=r"^title="):
        app.cron("0 7 * * *", name=name).todo(title="{name}: " + "x" * 150)
    assert list(app.jobs) == [name] * fits


async def test_b49_puts_that_are_gathered_keep_their_order(monkeypatch):
    """Threads that begin in another order change no call's number: started again, each finds its own todo."""
    put = {}

    class Deeds:
        def put(self, key, fields):
            put[key] = fields["title"]
            return key

    async def later(work, *args, **fields):
        if "left" in str(args) + str(fields):
            await second_began.wait()
        try:
            return work(*args, **fields)
        finally:
            second_began.set()

    second_began = asyncio.Event()
    monkeypatch.setattr(asyncio, "to_thread", later)
    run = Run(Holding(define("split", None, lambda: None, {}), 0, "", SystemClock()), Deeds())
    await asyncio.gather(run.put("left"), run.put("right"))
    assert put == {f"{run.key}#1": "left", f"{run.key}#2": "right"}


def test_r45a_a_forked_child_puts_on_a_connection_of_its_own(monkeypatch):
    """The parent's connection is left to the parent."""
    opened = []

    class Board:
        def __init__(self, url, credential):
            opened.append(os.getpid())

        def create_todo(self, **fields):
            return {"todo": {"id": "td_1"}}

    monkeypatch.setattr("tenure.client.Board", Board)
    putter = Putter("http://127.0.0.1:1", "credential")
    putter.put("a", {"title": "x"})
    putter.put("b", {"title": "x"})
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    putter.put("c", {"title": "x"})
    assert opened == [parent, parent + 1]
