"""The client against a board that a test plays: what is sent again, how a lease is kept, and how a todo ends."""

import asyncio
import contextlib
import json
import threading
import time

import httpx2
import pytest

from tenure.client import AsyncBoard, Board, LeaseLost, Refused, Unreachable, calls
from tenure.errors import ConfigError

AT = "2026-12-01T00:00:00Z"
TODO = {"id": "td_1", "title": "one", "body": "", "payload": {"n": 1}, "queue": "inbox"}


class Played:
    """A board that answers as it is told, and remembers what it was asked."""

    def __init__(self, lease_seconds=30, todos=1):
        self.asked = []
        self.lease_seconds, self.todos = lease_seconds, todos
        self.answers = {}
        self.heard = threading.Condition()

    def __call__(self, request):
        name = request.url.path.rsplit("/", 1)[1]
        body = json.loads(request.content or b"null")
        with self.heard:
            self.asked.append((name, body))
            self.heard.notify_all()
        told = self.answers.get(name)
        if isinstance(told, list):
            told = told.pop(0) if told else None
        if isinstance(told, Exception):
            raise told
        if isinstance(told, httpx2.Response):
            return told
        return httpx2.Response(200, json=told if told is not None else getattr(self, f"_{name}")(body))

    def _claim_next(self, body):
        if not self.todos:
            return {"empty": True, "claims": [], "server_time": AT}
        self.todos -= 1
        claim = {
            "todo": TODO,
            "attempt": 1,
            "lease_token": "tl_x",
            "lease_expires_at": iso(self.lease_seconds),
            "lease_ttl_seconds": self.lease_seconds,
            "lease_ttl_source": "endpoint",
        }
        return {"empty": False, "claims": [claim], "server_time": AT}

    def _heartbeat(self, body):
        return {"seconds_left": self.lease_seconds}

    def _check_claim(self, body):
        return {"held": True}

    def _complete(self, body):
        return {"state": "done"}

    def _fail(self, body):
        return {"state": "failed"}

    def _release(self, body):
        return {"state": "pending"}

    def of(self, name):
        return [body for asked, body in self.asked if asked == name]

    def until(self, what, seconds=20):
        with self.heard:
            assert self.heard.wait_for(what, seconds), self.asked


def iso(seconds):
    return f"2026-12-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def later(status=503):
    return httpx2.Response(status, json={"code": "unavailable", "detail": "later"}, headers={"Retry-After": "0"})


def conflict(reason="taken"):
    body = {"code": "conflict", "detail": "Another worker holds it now.", "reason": reason}
    return httpx2.Response(409, json=body)


@pytest.fixture
def played():
    return Played()


@pytest.fixture
async def board(played):
    async with AsyncBoard(transport=httpx2.MockTransport(played), credential="c", worker="w1") as board:
        yield board


async def soon(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


async def test_a_body_that_ends_completes_its_todo_with_the_result(board, played):
    """`async with` gives the todo its end; the worker's label goes along."""
    async for todo in board.work("inbox", max_todos=1):
        async with todo:
            assert (todo.title, todo.payload, todo.attempt) == ("one", {"n": 1}, 1)
            todo.result = {"ok": True}
    (done,) = played.of("complete")
    assert done == {"worker": "w1", "todo_id": "td_1", "lease_token": "tl_x", "result": {"ok": True}}
    assert played.of("claim_next")[0]["queues"] == ["inbox"]


async def test_without_the_block_the_next_turn_completes(board, played):
    """The plain loop: the todo is done when the loop asks for the next one."""
    played.todos = 2
    seen = [todo.id async for todo in board.work(idle_seconds=0)]
    assert len(seen) == len(played.of("complete")) == 2


async def test_an_error_fails_the_todo_with_its_words_and_goes_on(board, played):
    """The reason is the error's; the error reaches the caller."""

    async def work():
        async for todo in board.work():
            async with todo:
                raise RuntimeError("no such file")

    with pytest.raises(RuntimeError):
        await work()
    assert played.of("fail")[0]["reason"] == "RuntimeError: no such file"


async def cancelled(work, began):
    """Cancel it once it has begun."""
    worker = asyncio.create_task(work)
    await began.wait()
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker


async def test_a_cancelled_worker_gives_its_todo_back(board, played):
    """Cancelled in the middle: released, which counts as no failure; the cancellation goes on."""
    began = asyncio.Event()

    async def work():
        async for todo in board.work():
            async with todo:
                began.set()
                await asyncio.sleep(3600)

    await cancelled(work(), began)
    assert played.of("release")
    assert not played.of("fail")


async def test_leaving_the_plain_loop_fails_the_todo(board, played):
    """A todo whose body breaks the loop without a word is counted, so that it can't break its workers for ever."""

    async def work():
        async for _ in board.work():
            raise ValueError("poison")

    with pytest.raises(ValueError, match="poison"):
        await work()
    await soon(lambda: played.of("fail"))


@pytest.mark.parametrize("error", [None, ValueError("poison")])
async def test_leaving_the_loop_and_the_board_at_once_fails_the_todo(played, error):
    """The loop hears of its end later than the board is closed; its heartbeats end all the same."""

    async def work(board):
        async for _ in board.work():
            if error:
                raise error
            break

    with contextlib.suppress(ValueError):
        async with AsyncBoard(transport=httpx2.MockTransport(played), credential="c") as board:
            await work(board)
    assert played.of("fail")
    await soon(lambda: not [task for task in asyncio.all_tasks() if task.get_name().startswith("heartbeats")])


async def test_closing_that_is_cut_short_closes_the_connections(played):
    """Cancelled while it still tells of what a loop was left with."""
    began, board = asyncio.Event(), AsyncBoard(transport=httpx2.MockTransport(played), credential="c")

    async def never(*_):
        began.set()
        await asyncio.sleep(3600)

    board.fail, loop = never, aiter(board.work())
    await anext(loop)
    await cancelled(board.aclose(), began)
    assert board._http.is_closed
    del board.fail
    with contextlib.suppress(RuntimeError):  # its connections are closed
        await loop.aclose()


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("result", [object(), float("nan"), "caf\udce9"], ids=["an object", "NaN", "half a pair"])
async def test_what_can_t_be_a_result_fails_the_todo(board, played, block, result):
    """It can't be sent: the error goes on, and the todo does not wait for its lease to run out."""

    async def work():
        async for todo in board.work():
            async with todo if block else contextlib.nullcontext():
                todo.result = result

    with pytest.raises((TypeError, ValueError)):
        await work()
    assert played.of("fail")
    assert not played.of("complete")


async def test_a_refused_result_leaves_the_todo_to_be_ended_otherwise(board, played):
    """Too large, say: nothing has ended, so that the block fails it with the refusal's words."""
    detail = "result: has more than 256 KiB."
    played.answers["complete"] = [httpx2.Response(400, json={"code": "invalid_argument", "detail": detail})]

    async def work():
        async for todo in board.work():
            async with todo:
                await todo.complete("x" * 300_000)

    with pytest.raises(Refused, match="256 KiB"):
        await work()
    assert played.of("fail")[0]["reason"] == f"Refused: {detail}"


async def test_an_end_that_found_no_answer_may_be_told_again(played):
    """A second `complete` is sent, and not taken for done; the block by itself tells nothing else."""
    played.answers["complete"] = [httpx2.ConnectError("gone")] * 2
    async with AsyncBoard(transport=httpx2.MockTransport(played), credential="c", patience_seconds=0) as board:
        async for todo in board.work(max_todos=1):
            async with todo:
                for _ in range(2):
                    with pytest.raises(Unreachable):
                        await todo.complete("x")
                await todo.complete("x")
    assert [body["result"] for body in played.of("complete")] == ["x"] * 3


async def test_a_worker_cancelled_while_it_completes_gives_its_todo_back(board, played):
    """Whether the completion came through is not known; if it did, the release changes nothing."""
    began, real = asyncio.Event(), board.complete

    async def slow(*arguments):
        began.set()
        await asyncio.sleep(3600)
        await real(*arguments)

    board.complete = slow

    async def work():
        async for todo in board.work():
            async with todo:
                todo.result = 1

    await cancelled(work(), began)
    assert played.of("release")


async def test_a_completion_that_comes_too_late_ends_the_block_quietly(board, played):
    """The board tells it before a heartbeat does: no other end than that of a lost lease."""
    played.todos = 2
    played.answers["complete"] = [conflict()]
    seen = []
    async for todo in board.work(max_todos=2):
        async with todo:
            seen.append(todo)
            await todo.complete(1)
    assert isinstance(seen[0].lost, LeaseLost)
    assert len(played.of("complete")) == 2


async def test_words_that_are_no_text_are_sent_as_far_as_they_can_be(board, played):
    """An error may hold a file's name in any bytes."""
    (todo,) = [todo async for todo in board.work(max_todos=1)]
    await board.fail(todo.id, todo.lease.token, "no file caf\udce9\0")
    await board.release(todo.id, todo.lease.token, "x" * 5000)
    assert played.of("fail")[0]["reason"] == "no file caf??"
    assert len(played.of("release")[0]["reason"]) == 2000


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx2.Response(301, headers={"Location": "https://b.example/work"}), "sends to https://b.example/work"),
        (httpx2.Response(200, text="<html>"), "is no board"),
    ],
    ids=["a redirection", "a page"],
)
async def test_what_is_no_board_is_said_to_be_none(board, played, answer, said):
    """A proxy that redirects, or a page: one sentence, and no todo."""
    played.answers["claim_next"] = [answer]
    with pytest.raises(Refused, match=said):
        await board.claim_next()


async def test_a_lost_lease_cancels_the_body_and_the_loop_goes_on(board, played):
    """The heartbeat is refused: the body is cancelled, the block ends quietly, the next todo comes."""
    played.lease_seconds, played.todos = 2, 2
    played.answers["heartbeat"] = [conflict()]
    ended = []
    async for todo in board.work(max_todos=2):
        async with todo:
            if not ended:
                ended.append(todo)
                await asyncio.sleep(3600)
        ended.append(todo)
    assert isinstance(ended[0].lost, LeaseLost)
    assert "Another worker holds it" in str(ended[0].lost)
    assert len(played.of("complete")) == 1
    assert asyncio.current_task().cancelling() == 0


async def test_case_b9_one_failed_heartbeat_loses_nothing(board, played):
    """A 503 and a broken connection, then an answer: the body never notices."""
    played.lease_seconds = 2
    played.answers["heartbeat"] = [later(), httpx2.ConnectError("gone"), None]
    async for todo in board.work(max_todos=1):
        async with todo:
            await soon(lambda: len(played.of("heartbeat")) >= 3)
            assert todo.lost is None
    assert played.of("complete")


async def test_a_lease_that_can_not_be_renewed_is_lost_at_its_end(board, played):
    """No heartbeat is answered for the whole lease: the body is cancelled, and nothing is sent for it any more."""
    played.lease_seconds = 2
    played.answers["heartbeat"] = [httpx2.ConnectError("gone")] * 1000
    async for todo in board.work(max_todos=1):
        async with todo:
            await asyncio.sleep(3600)
    assert "could not be reached" in str(todo.lost)
    assert not (played.of("complete"))
    assert not (played.of("fail"))
    assert not (played.of("release"))


async def test_check_raises_once_the_claim_is_another_s(board, played):
    """What can't be undone is asked for first."""
    played.answers["check_claim"] = [None, {"held": False, "reason": "taken"}]
    async for todo in board.work(max_todos=1):
        async with todo:
            await todo.check()
            with pytest.raises(LeaseLost, match="another worker holds it"):
                await todo.check()


async def test_case_b24_a_lost_answer_repeats_the_same_request(board, played):
    """The connection breaks after a claim: the same request_id is sent again, and no second todo is taken."""
    played.answers["claim_next"] = [httpx2.ReadError("cut"), None]
    told = await board.claim_next()
    assert not told["empty"]
    first, second = played.of("claim_next")
    assert first == second
    assert len(first["request_id"]) >= 16


async def test_patience_ends(played):
    """Without an answer for as long as there is patience: Unreachable, in one sentence."""
    played.answers["claim_next"] = [httpx2.ConnectError("gone")] * 1000
    async with AsyncBoard(transport=httpx2.MockTransport(played), credential="c", patience_seconds=0.5) as board:
        with pytest.raises(Unreachable, match="tenure board"):
            await board.claim_next()


@pytest.mark.parametrize("client", [Board, AsyncBoard])
@pytest.mark.parametrize("url", ["127.0.0.1:8420", "board.example.com", "ftp://board.example.com", ""])
def test_what_is_no_address_is_refused_at_once(client, url):
    """Not at the first call, and with what to write instead."""
    with pytest.raises(ConfigError, match=r"is no address of a board\. Write http://"):
        client(url)


@pytest.mark.parametrize("client", [Board, AsyncBoard])
@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://127.0.0.1:84x0", "http://127.0.0.1:842000"])
def test_an_address_that_can_not_be_read_is_refused_at_once(client, url):
    """Nor is it a fault of ours."""
    with pytest.raises(ConfigError, match=r"is no address of a board: .*\. Write http://HOST:PORT"):
        client(url)


@pytest.mark.parametrize("client", [Board, AsyncBoard])
@pytest.mark.parametrize("token", ["caf\u00e9", "a\nb", "\udcff"])
def test_a_token_that_can_not_be_one_is_refused_at_once(client, token):
    """Before it is sent, and without showing it."""
    with pytest.raises(ConfigError, match=r"^credential='\*\*\*': holds signs that no credential or token has"):
        client(token=token)


@pytest.mark.parametrize("seconds", ["5", [5]])
def test_a_wait_that_is_no_number_is_refused(played, seconds):
    """In a sentence, before anything is sent."""
    with (
        Board(transport=httpx2.MockTransport(played), credential="c") as board,
        pytest.raises(ConfigError, match="wait_seconds"),
    ):
        board.claim_next(wait_seconds=seconds)
    assert not played.asked


@pytest.mark.parametrize(("status", "times"), [(429, 2), (503, 1), (500, 1), (409, 1)])
async def test_what_writes_once_is_sent_again_only_if_it_did_nothing(played, status, times):
    """A plain write is repeated after 429 alone: a 503 may have been applied."""
    played.answers["revoke"] = [later(status), httpx2.Response(200, json={})]
    async with AsyncBoard(transport=httpx2.MockTransport(played), token="t") as board:  # noqa: S106
        call = calls.send("POST", "/api/v1/endpoints/x/revoke")
        if times == 1:
            with pytest.raises(Refused):
                await board.ask(call)
        else:
            await board.ask(call)
    assert len(played.of("revoke")) == times


@pytest.mark.parametrize(("verb", "words"), [("add_note", ("td_1", "look")), ("cancel_todo", ("key",))])
async def test_a_verb_that_the_server_can_not_know_again_is_sent_once(played, verb, words):
    """A note whose answer was lost would stand twice; the key of a cancelled todo may be another todo's by then."""
    played.answers[verb] = [httpx2.ReadTimeout("no answer"), httpx2.Response(200, json={})]
    async with AsyncBoard(transport=httpx2.MockTransport(played), credential="c") as board:
        with pytest.raises(Unreachable):
            await getattr(board, verb)(*words)
    assert len(played.of(verb)) == 1


def test_blocking_work_completes_fails_and_keeps_its_lease(played):
    """The same with threads: heartbeats while the body runs, a result, and a failure with its reason."""
    played.todos, played.lease_seconds = 2, 2

    def work(board):
        for number, todo in enumerate(board.work()):
            with todo:
                played.until(lambda: played.of("heartbeat"))
                todo.result = number
                if number:
                    raise KeyError("x")

    with Board(transport=httpx2.MockTransport(played), credential="c") as board, pytest.raises(KeyError):
        work(board)
    assert [body["result"] for body in played.of("complete")] == [0]
    assert played.of("fail")[0]["reason"] == "KeyError: 'x'"


def lost(todo):
    """Wait until its thread has found that the lease is lost."""
    end = time.monotonic() + 20
    while todo.lost is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_blocking_work_hears_of_a_lost_lease(played):
    """The body asks: `lost` is set, `check` raises, and the block ends quietly."""
    played.lease_seconds = 2
    played.answers["heartbeat"] = [conflict("taken_by_operator")]
    with Board(transport=httpx2.MockTransport(played), credential="c") as board:
        for todo in board.work(max_todos=1):
            with todo:
                lost(todo)
                todo.check()
    assert not (played.of("complete"))
    assert not (played.of("fail"))


def test_blocking_work_says_of_each_end_what_came_of_it(played):
    """After a lost lease `complete` raises; one without an answer is sent again; what can't be sent fails the todo."""
    played.lease_seconds, played.todos = 2, 3
    played.answers["heartbeat"] = [conflict()]
    played.answers["complete"] = [httpx2.ConnectError("gone")]
    with Board(transport=httpx2.MockTransport(played), credential="c", patience_seconds=0) as board:
        work = board.work()
        first = next(work)
        lost(first)
        with pytest.raises(LeaseLost):
            first.complete(1)
        again = next(work)
        with pytest.raises(Unreachable):
            again.complete(2)
        again.complete(2)
        next(work).result = object()
        with pytest.raises(TypeError):
            next(work)
    assert [body["result"] for body in played.of("complete")] == [2, 2]
    assert played.of("fail")[0]["reason"].startswith("TypeError: ")


def test_blocking_work_hears_of_the_lease_s_end_while_a_heartbeat_hangs(played):
    """No answer to a heartbeat is waited for past the lease, which would be told to the body too late."""
    played.lease_seconds, patience = 3, []

    def hangs(request):
        if request.url.path.endswith("/heartbeat"):
            patience.append(request.extensions["timeout"])
            raise httpx2.ReadTimeout("no answer")
        return played(request)

    with Board(transport=httpx2.MockTransport(hangs), credential="c") as board:
        for todo in board.work(max_todos=1):
            with todo:
                lost(todo)
    assert patience
    assert all(0 < seconds <= 2 for one in patience for seconds in one.values())
