"""`tenure runs` and `tenure instance`: what ran, where, and the picture of it."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from tenure import Tenure
from tenure.doors.cli import following
from tenure.doors.cli.root import cli as root
from tenure.rules.instant import iso
from tenure.rules.schedule import every
from tenure.scheduler import picture

RUN_FIELDS = [
    "key", "job", "slot", "slot_ms", "request", "status", "runner", "attempts", "lease_ms", "lease_until",
    "lease_until_ms", "started", "started_ms", "ended", "ended_ms", "duration_ms", "late_ms", "progress", "result",
    "error",
]  # fmt: skip
ATTEMPT_FIELDS = [
    "number", "runner", "reason", "fence", "started", "started_ms", "renewed", "renewed_ms", "beats", "ended",
    "ended_ms", "how", "duration_ms",
]  # fmt: skip
INSTANCE_FIELDS = [
    "name", "alive", "seen", "seen_ms", "silent_ms", "started", "started_ms", "host", "pid", "version", "offset_ms",
    "jobs", "running", "backups", "reasons",
]  # fmt: skip


@pytest.fixture
def ran(kept):
    """`tick` succeeded, failed and runs; `other` succeeded once. `kept.slots`: of tick, oldest first."""
    kept.register("tick", every(10_000))
    kept.register("other", every(60_000))
    last = kept.now // 10_000 * 10_000
    kept.slots = [last - 20_000, last - 10_000, last]
    kept.ran("tick", kept.slots[0], "api-1", result={"pages": 3})
    kept.ran("tick", kept.slots[1], "api-2", error=("ValueError", "no way", "Traceback\n  here"))
    kept.claim("tick", kept.slots[2], "api-3")
    kept.ran("other", last // 60_000 * 60_000, "api-1")
    return kept


def test_list(cli, ran):
    """Newest first, of all jobs or of one."""
    lines = cli("runs", "list").stdout.splitlines()
    assert lines[0].split() == ["slot", "job", "status", "attempt", "on", "took", "late"]
    assert len(lines) == 5
    tick = cli("runs", "list", "tick").stdout.splitlines()[1:]
    assert [line.split()[3] for line in tick] == ["running", "failed", "success"]
    assert "ValueError: no way" in tick[1]


def test_list_json(read, ran):
    """The fields of a run and of an attempt are pinned; no token is shown."""
    runs = read("runs", "list", "tick")
    assert [list(run) for run in runs] == [RUN_FIELDS] * 3
    assert [list(one) for run in runs for one in run["attempts"]] == [ATTEMPT_FIELDS] * 3
    assert runs[1]["error"] == {"type": "ValueError", "message": "no way", "trace": "Traceback\n  here"}
    assert runs[2]["result"] == {"pages": 3}
    assert runs[0]["lease_until_ms"] > runs[0]["started_ms"]
    assert "0000000001" not in json.dumps(runs)


def test_list_narrowed(read, ran):
    """By status, by time, and by number."""
    assert [run["slot_ms"] for run in read("runs", "list", "tick", "--status", "failed")] == [ran.slots[1]]
    since = ["--since", iso(ran.slots[1])]
    assert len(read("runs", "list", "tick", *since)) == 2
    assert len(read("runs", "list", "tick", *since, "--until", iso(ran.slots[1]))) == 1
    assert len(read("runs", "list", "--limit", "2")) == 2
    assert read("runs", "list", "--since", "now+1h") == []


def test_show(cli, read, ran):
    """By time, by key, or the newest; with its attempts, result, error and the traceback that was kept."""
    at = iso(ran.slots[1])
    said = cli("runs", "show", "tick", at).stdout
    assert said.startswith(f"tick@{at}\n")
    assert "api-2" in said
    assert said.rstrip().endswith("ValueError: no way\nTraceback\n  here")
    assert cli("runs", "show", f"tick@{at}").stdout.split("ago")[1:] == said.split("ago")[1:]
    assert read("runs", "show", "tick", iso(ran.slots[0]))["result"] == {"pages": 3}
    assert read("runs", "show", "tick")["slot_ms"] == ran.slots[2]
    assert read("runs", "show", "tick", iso(ran.slots[0] + 3_000))["slot_ms"] == ran.slots[0]


def test_show_what_never_ran(cli, ran):
    """Where nothing ran the reason is told, with exit 3."""
    result = cli("runs", "show", "tick", "2020-01-01T00:00:00Z")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no run of tick at 2020-01-01T00:00:00Z. This schedule was first seen at" in result.stderr
    assert cli("runs", "show", "tick", "2020-01-01T00:00:00Z#abc").exit_code == 3
    assert "Did you mean 'tick'?" in cli("runs", "show", "tik").stderr


def test_timeline(cli, ran):
    """The picture, and below it the same as a table."""
    result = cli("runs", "timeline", "tick", "--width", "100")
    assert result.exit_code == 0
    picture, _, below = result.stdout.partition("\nslot ")
    assert picture.startswith("tick   ")
    assert [line.split()[0] for line in picture.splitlines() if line.startswith("api")] == ["api-1", "api-2", "api-3"]
    assert "▶" in picture
    assert [line.split()[-1] for line in below.splitlines()[1:]] == ["success", "failed", "running"]


def test_timeline_of_a_job_that_is_seldom_due(cli, kept, monkeypatch):
    """Without any run in the last hour the last runs are drawn; without any at all it says when one is due."""
    kept.register("rare", every(60_000))
    assert cli("runs", "timeline", "rare").stderr.startswith("no run of rare is recorded yet.")
    kept.ran("rare", kept.now // 60_000 * 60_000 - 60_000)
    monkeypatch.setattr(picture, "HOUR", 1)  # the last "hour" begins after the run's end
    time.sleep(0.05)
    said = cli("runs", "timeline", "rare", "--width", "100")
    assert "success" in said.stdout
    assert said.stderr == ""


def test_timeline_in_ascii(cli, ran):
    """--ascii draws with ASCII letters only; so does an output that can't take others."""
    assert cli("runs", "timeline", "tick", "--ascii").stdout.isascii()


def test_timeline_json(read, ran):
    """The data of the picture, pinned."""
    told = read("runs", "timeline", "tick", "--since", iso(ran.slots[0] - 1_000))
    assert list(told) == ["job", "since", "since_ms", "until", "until_ms", "now", "now_ms", "runs", "marks"]
    assert [run["slot_ms"] for run in told["runs"]] == ran.slots
    assert told["since_ms"] == ran.slots[0] - 1_000


def test_timeline_of_another_time(cli, ran):
    """A time in which nothing happened is an empty picture; an impossible one is refused."""
    past = cli("runs", "timeline", "tick", "--since", "2020-01-01", "--until", "2020-01-02")
    assert past.exit_code == 0
    assert "nothing happened in that time" in past.stdout
    assert past.stderr == "the newest run of tick was at {0}: tenure runs timeline tick --since {0}\n".format(
        iso(ran.slots[2])
    )
    wrong = cli("runs", "timeline", "tick", "--since", "now", "--until", "now-1h")
    assert wrong.exit_code == 2


def test_tail_tells_what_is_new(ran, monkeypatch):
    """Runs are told as they start, and again as they end; Ctrl-C ends it with 130."""
    tokens = iter(range(3))

    def meanwhile(_seconds):
        """What happens between two looks."""
        match next(tokens):
            case 0:
                ran.finish("tick", ran.slots[2], f"{3:032x}")
            case 1:
                pass
            case _:
                raise KeyboardInterrupt

    monkeypatch.setattr(following.time, "sleep", meanwhile)
    result = CliRunner().invoke(root, ["runs", "tail", "tick", "--json"])
    assert result.exit_code == 130
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(run["slot_ms"], run["status"]) for run in told] == [(ran.slots[2], "running"), (ran.slots[2], "success")]


def test_instances(cli, read, kept):
    """Who is there: an instance that runs in this process is listed, and known to `job trigger --wait`."""
    assert "tenure run MODULE:OBJECT starts one" in cli("instance", "list").stderr
    app = Tenure(kept.url, name="api-7", lease="5s")

    @app.job()
    def hello():
        return {"said": "hello"}

    @app.job()
    def broken():
        raise ValueError("no way")

    with app.run_in_thread():
        (one,) = read("instance", "list")
        assert list(one) == INSTANCE_FIELDS
        assert (one["name"], one["alive"], one["jobs"], one["reasons"]) == ("api-7", True, ["broken", "hello"], [])
        said = cli("instance", "list").stdout
        assert said.splitlines()[0].split()[:4] == ["instance", "state", "seen", "host"]
        assert said.splitlines()[1].split()[:2] == ["api-7", "alive"]
        run = read("job", "trigger", "hello", "--wait")
        assert (run["status"], run["runner"], run["result"]) == ("success", "api-7", {"said": "hello"})
        failed = cli("job", "trigger", "broken", "--wait")
        assert failed.exit_code == 1
        assert "known to api-7" in failed.stderr
        assert "ValueError: no way" in failed.stderr
        key = read("runs", "list", "hello")[0]["key"]
        assert read("runs", "show", key)["key"] == key
        assert "m triggered" in cli("runs", "timeline", "hello").stdout
    assert read("instance", "list") == []
