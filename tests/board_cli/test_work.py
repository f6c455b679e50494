"""`tenure work` against a board that a test plays."""

import httpx2
import pytest

from tenure.client import AsyncBoard, Unreachable
from tenure.doors.cli.work import Bench

AT = "2026-12-01T00:00:00Z"
NOTHING = {"empty": True, "claims": [], "server_time": AT}
TODO = {"id": "td_1", "title": "one", "body": "", "payload": None, "queue": "inbox"}
CLAIM = {
    "todo": TODO, "attempt": 1, "lease_token": "tl_x", "lease_expires_at": "2026-12-01T00:05:00Z",
    "lease_ttl_seconds": 300, "lease_ttl_source": "server",
}  # fmt: skip
ONE = {"empty": False, "claims": [CLAIM], "server_time": AT}
GONE = httpx2.ConnectError("gone")


class Played:
    """A board whose claims are answered from a list, and everything else with yes."""

    def __init__(self, *claims):
        self.claims, self.asked = list(claims), []

    def __call__(self, request):
        name = request.url.path.rsplit("/", 1)[1]
        self.asked.append((name, request.read()))
        told = self.claims.pop(0) if name == "claim_next" else {"state": "done", "seconds_left": 300}
        if isinstance(told, Exception):
            raise told
        return told if isinstance(told, httpx2.Response) else httpx2.Response(200, json=told)

    async def work(self, *command, most=1, idle_seconds=None, **options):
        transport = httpx2.MockTransport(self)
        async with AsyncBoard(transport=transport, credential="c", patience_seconds=0) as board:
            return await Bench(board, command, **options).work([], most, idle_seconds)


async def test_a_worker_waits_for_a_board_that_went_away(capsys):
    """It was there, and can't be reached, or only a proxy answers: told once, and waited for until there is a todo."""
    played = Played(NOTHING, GONE, httpx2.Response(502), GONE, NOTHING, GONE, ONE)
    assert await played.work("true") == 0
    assert capsys.readouterr().err.count("Waiting for it.") == 2
    assert played.asked[-1][0] == "complete"


@pytest.mark.parametrize(("claims", "idle_seconds"), [([GONE], None), ([NOTHING, GONE], 60)])
async def test_a_worker_does_not_wait_for_a_board_that_never_was_there(claims, idle_seconds):
    """At the start, and where an end was asked for with --idle-exit, it is an error."""
    with pytest.raises(Unreachable, match="can't be reached"):
        await Played(*claims).work("true", idle_seconds=idle_seconds)
