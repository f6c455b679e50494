"""Jobs of an application that put todos on a board: once per slot and call, however often a run is started (B49)."""

import asyncio

import pytest
from serving import served

from tenure import ConfigError, Tenure
from tenure.board import endpoints
from tenure.putting import Putter


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
