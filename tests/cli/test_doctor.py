"""`tenure doctor`: one line per check, with the way out, and an exit code."""

from __future__ import annotations

import os
import stat
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tenure import Tenure
from tenure.doors.cli import keeping
from tenure.doors.cli.checks import Seen, _instances, _jobs, _reachable
from tenure.doors.cli.instance import _row
from tenure.rules.schedule import every
from tenure.scheduler.records import InstanceView, JobView
from tenure.scheduler.why import Why


def lines(result) -> dict[str, list[str]]:
    """Status and words of each line, by the check's name."""
    found: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        if line[:4].strip():
            name = line[6:].split("  ")[0]
            found.setdefault(name, []).append(line[:4].strip() + ": " + line[6 + len(name) :].strip())
    return found


def test_all_is_well(cli, read, kept):
    """With an instance alive and nothing overdue every line is ok, and the exit code 0."""
    app = Tenure(kept.url, name="api-1")

    @app.every("1h")
    def hourly(): ...

    with app.run_in_thread():
        result = cli("doctor")
        told = read("doctor")
    assert result.exit_code == 0, result.stdout
    found = lines(result)
    assert list(found) == ["python", "sqlite", "time zones", "file", "store", "schema", "instances", "jobs"]
    assert all(one.startswith("ok: ") for each in found.values() for one in each)
    assert told["ok"] is True
    assert [list(check) for check in told["checks"]] == [["name", "status", "says", "fix"]] * len(told["checks"])


def test_nobody_is_there(cli, kept):
    """Jobs without any instance are a failure: no job runs."""
    kept.register("tick", every(10_000))
    result = cli("doctor")
    assert result.exit_code == 1
    assert lines(result)["instances"] == ["fail: none is alive, so no job runs."]
    assert "Start one: tenure run MODULE:OBJECT" in result.stdout


def test_a_new_store_is_no_failure(cli, kept):
    """A store that holds nothing yet gives a warning."""
    result = cli("doctor")
    assert result.exit_code == 0
    assert lines(result)["instances"] == ["warn: none is alive, so no job runs."]


def test_wrong_settings(cli):
    """Settings that can't be read are a failed check, not the end of the doctor."""
    result = cli("doctor", TENURE_LEASE="1ms")
    assert result.exit_code == 1
    assert lines(result)["settings"][0].startswith("fail: TENURE_LEASE='1ms' (environment): ")


def test_what_an_instance_runs_is_as_old_as_its_page():
    """When it was last seen is told, and that what it runs is of then."""
    one = InstanceView(
        "api-1", True, NOW - 3_000, NOW, "h", 1, "1", 0, ("tick",), (("tick", NOW - 60_000, ""),), 0, ()
    )  # fmt: skip
    cells = [cell if isinstance(cell, str) else cell.text for cell in _row(one, NOW)]
    assert "3.0s ago" in cells
    assert any(cell.endswith("(as of 3.0s ago)") for cell in cells)


def test_names_that_are_nearly_settings(cli, kept):
    """A variable that nothing reads is warned of."""
    assert "Did you mean TENURE_LEASE?" in lines(cli("doctor", TENURE_LEAS="3s"))["settings"][0]


@pytest.mark.skipif(os.name != "posix", reason="files have modes on POSIX")
def test_a_file_that_others_may_write(cli, kept, tmp_path):
    """A store's file that others can write is warned of, with the command that mends it."""
    file = tmp_path / "kept.db"
    file.chmod(0o666)
    result = cli("doctor")
    assert lines(result)["file"] == [f"warn: {file} can be written by others (mode 0666)."]
    assert f"chmod go-w {file}" in result.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o666


def test_a_file_that_is_none_of_ours(cli, tmp_path):
    """What is no database is a failure in one line."""
    (tmp_path / "text.db").write_text(
        "this is a text, and a long one, so that it can't be taken for an empty file" * 20
    )
    result = cli("doctor", "--store", f"sqlite:///{tmp_path / 'text.db'}")
    assert result.exit_code == 1
    assert lines(result)["store"][0].startswith("fail: ")


NOW, AT = 1_800_000_000_000, "2027-01-15 08:00:00Z"


def instance(name="api-1", **told) -> InstanceView:
    fields = {"alive": True, "seen": NOW, "started": NOW, "host": "h", "pid": 1, "version": "1", "offset_ms": 0}
    fields |= {"jobs": ("tick",), "running": (), "backups": 0, "reasons": ()}
    return InstanceView(name=name, **{**fields, **told})


def seen(*, offset_ms=0.0, latency_ms=1.0, jobs=(), instances=(), latest=()) -> Seen:
    return Seen(NOW, latency_ms, offset_ms, (), list(jobs), list(instances), list(latest))


def job(name="tick", **told) -> JobView:
    fields = {
        "told": {"every_ms": 10_000},
        "paused": None,
        "requests": 0,
        "next_slot": None,
        "last": None,
        "running": (),
    }
    return JobView(name=name, **{**fields, "version": 1, "seen_since": 0, **told})


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (instance(alive=False, seen=NOW - 60_000), "api-1 is silent for 1m; it did not stop in order."),
        (instance(offset_ms=-2_500), "api-1: its clock is 2.5s from the store's."),
        (instance(reasons=("the store is far",)), "api-1: the store is far."),
    ],
)
def test_instances_that_are_not_well(one, says):
    """Silent ones, wrong clocks, and what they say of themselves."""
    checks = list(_instances(seen(jobs=[job()], instances=[one])))
    assert says in [check.says for check in checks if check.status != "ok"]


def test_versions_side_by_side():
    """Two versions at once are the sign of a deploy that is not finished."""
    checks = list(_instances(seen(instances=[instance("a", version="1"), instance("b", version="2")])))
    assert [check.says for check in checks if check.status == "warn"] == ["they run versions 1, 2."]


@pytest.mark.parametrize(
    ("view", "latest", "status", "says"),
    [
        (job(paused=NOW), (), "warn", f"tick is paused since {AT}."),
        (job("lonely"), (), "warn", "no live instance knows lonely."),
        (job(), (Why("tick", "missed", "", NOW),), "fail", f"tick was not run at its last slot, {AT}."),
        (job(), (Why("tick", "late", "", NOW),), "warn", f"tick was claimed too late at its last slot, {AT}."),
    ],
)  # fmt: skip
def test_jobs_that_are_not_well(view, latest, status, says):
    """Paused, unknown to all, missed, late."""
    checks = list(_jobs(seen(jobs=[view], instances=[instance()], latest=latest)))
    assert [(check.status, check.says) for check in checks] == [(status, says)]


def test_clocks_and_slowness():
    """A clock that is off, and a store that is slow."""
    assert _reachable("x", seen(offset_ms=1_500.0)).status == "warn"
    assert _reachable("x", seen(latency_ms=900.0)).status == "warn"
    assert _reachable("x", seen()).says == "x, answers in 1.0 ms, its clock is 0ms behind ours"


class FewWords(BaseHTTPRequestHandler):
    """A board that knows one token."""

    def do_GET(self):
        known = (self.path, self.headers["authorization"]) == ("/api/v1/me", "Bearer good")
        body = b'{"name": "alice"}' if known else b"{}"
        self.send_response(200 if known else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): ...


def test_the_board_that_this_user_asks(cli, kept):
    """Whether it answers, and as whom they are signed in; nothing of it for those who use none."""
    assert not {"board", "signed in"} & lines(cli("doctor")).keys()
    with HTTPServer(("127.0.0.1", 0), FewWords) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keeping.keep_token(url, "good", "alice")
        found = lines(cli("doctor"))
        assert (found["board"], found["signed in"]) == ([f"ok: answers at {url}"], ["ok: as alice"])
        keeping.keep_token(url, "revoked", "alice")
        found = lines(cli("doctor"))
        assert found["signed in"] == ["warn: the token that is kept opens nothing any more."]
        server.shutdown()
    result = cli("doctor")
    assert result.exit_code == 0
    assert lines(result)["board"][0].startswith(f"warn: {url} does not answer as a board: ")


def test_an_address_that_is_none(cli, kept):
    """What stands in TENURE_URL and is no address is a line too, and no fault of ours."""
    result = cli("doctor", TENURE_URL="board.example.com")
    assert result.exit_code == 0
    assert lines(result)["board"][0].startswith("warn: board.example.com does not answer as a board: ")
