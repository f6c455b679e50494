"""`tenure job`: what a store knows of its jobs, and what can be said to them."""

from __future__ import annotations

import contextlib

import pytest

from tenure.doors.cli import following
from tenure.rules import commands as c
from tenure.rules.instant import iso
from tenure.rules.schedule import cron, every
from tenure.scheduler import wishes


@pytest.fixture
def jobs(kept):
    """Two jobs: `report` ran and failed, `tick` ran and runs."""
    kept.register("report", cron("30 2 * * *", "Europe/Berlin"), timeout=600, lease=60)
    kept.register("tick", every(10_000))
    slot = kept.now // 10_000 * 10_000
    kept.ran("report", slot - 3_600_000, error=("ValueError", "no \x1b[31mway", "Traceback: at the end"))
    kept.ran("tick", slot - 10_000, result={"pages": 3})
    kept.claim("tick", slot, "api-2")
    return kept


JOB_FIELDS = [
    "name", "words", "cron", "every_ms", "tz", "dst_gap", "dst_overlap", "paused", "paused_since", "paused_since_ms",
    "next", "next_ms", "last", "running", "waiting_requests", "options", "takeover_ms", "schedule_since",
    "schedule_since_ms", "version",
]  # fmt: skip
OPTION_FIELDS = [
    "lease_ms", "heartbeat_ms", "max_attempts", "overlap", "jitter_ms", "catch_up_ms", "max_late_ms", "history",
    "timeout_ms", "when_unsure", "retries",
]  # fmt: skip


def test_list(cli, jobs):
    """Name, schedule in words, next slot, last outcome, and where it runs."""
    heads, report, tick = cli("job", "list").stdout.splitlines()
    assert heads.split() == ["job", "schedule", "next", "last", "running", "on"]
    assert report.startswith("report  At 02:30 every day, Europe/Berlin time ")
    assert "failed, " in report
    assert tick.startswith("tick    Every 10 seconds, counted from 1970-01-01 00:00 UTC  ")
    assert "success, " in tick
    assert tick.endswith("  api-2")


def test_list_json(read, jobs):
    """The fields of a job are pinned."""
    report, tick = read("job", "list")
    assert list(report) == list(tick) == JOB_FIELDS
    assert list(report["options"]) == OPTION_FIELDS
    assert (report["cron"], report["tz"], report["every_ms"], tick["every_ms"]) == (
        "30 2 * * *",
        "Europe/Berlin",
        None,
        10_000,
    )
    assert report["takeover_ms"] == 60_000 + 2 * 5_000
    assert report["last"]["status"] == "failed"
    assert [run["runner"] for run in tick["running"]] == ["api-2"]
    assert tick["next_ms"] % 10_000 == 0


def test_an_empty_store_names_what_fills_it(cli, kept):
    """An empty list says what makes jobs known; as JSON it is an empty list."""
    result = cli("job", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "tenure run MODULE:OBJECT" in result.stderr
    assert cli("job", "list", "--json").stdout == "[]\n"


@pytest.mark.parametrize(
    "words",
    [["job", "list"], ["job", "show", "x"], ["job", "pause", "x"], ["job", "trigger", "x"], ["runs", "list"],
     ["runs", "timeline", "x"], ["runs", "tail"], ["instance", "list"], ["doctor"], ["job", "why", "x", "now"]],
    ids=" ".join,
)  # fmt: skip
def test_no_file_is_made(cli, tmp_path, words):
    """What only asks makes no file: it says that there is none, what makes one, and exits 3."""
    result = cli(*words, "--store", "sqlite:///not_there.db")
    assert result.exit_code == 3
    assert "not_there.db, so nothing is stored there yet. tenure run makes it" in result.output
    assert not list(tmp_path.glob("not_there*"))


def test_a_file_of_others_is_left_as_it_is(cli, tmp_path):
    """What only asks makes no tables in a SQLite file that has none, nor a log beside it; it says so, and exits 3."""
    import sqlite3

    with contextlib.closing(sqlite3.connect("theirs.db")) as theirs:
        theirs.execute("CREATE TABLE users (name TEXT)")
        theirs.commit()
    before = (tmp_path / "theirs.db").read_bytes()
    for words in (["job", "list"], ["runs", "list"], ["instance", "list"], ["doctor"], ["job", "trigger", "x"]):
        result = cli(*words, "--store", "sqlite:///theirs.db")
        assert result.exit_code == 3, result.output
        assert "theirs.db has no tables of Tenure's, so nothing is stored there yet." in result.output
    assert (tmp_path / "theirs.db").read_bytes() == before
    assert [one.name for one in tmp_path.glob("theirs*")] == ["theirs.db"]


def test_a_folder_that_is_not_there(cli):
    """No command will make a store's folder, so none is said to."""
    said = cli("job", "list", "--store", "sqlite:///nodir/x.db").stderr
    assert "as there is no folder /" in said
    assert "tenure run makes" not in said


def test_an_empty_store_is_refused(cli):
    """It is what an unset variable gives in a script."""
    result = cli("job", "list", "--store", "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "store=''" in result.stderr


def test_show(cli, jobs):
    """One job, its options in words, its next slots and the next two nights."""
    said = cli("job", "show", "report").stdout
    assert said.startswith("report\n  schedule  At 02:30 every day, Europe/Berlin time\n")
    assert "a takeover comes at most 1m10s after a dead runner's last heartbeat" in said
    assert "timeout 10m" in said
    assert "ValueError: no ?[31mway" in said
    assert said.count("clocks go ") == 2


def test_show_json_is_the_row_of_the_list(read, jobs):
    """`show` gives what `list` gives of that job."""
    assert list(read("job", "show", "tick")) == JOB_FIELDS


@pytest.mark.parametrize("words", [["show"], ["pause"], ["resume"], ["trigger"], ["next"]], ids=" ".join)
def test_unknown_jobs(cli, jobs, words):
    """An unknown job is exit 3, with the nearest name."""
    result = cli("job", *words, "reprt")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "tenure: there is no job 'reprt' in this store. Did you mean 'report'?\n"


def test_next(cli, read, jobs):
    """The next slots, of one job in its zone, or of all in order."""
    slots = read("job", "next", "report", "--count", "3")
    assert [list(slot) for slot in slots] == [["job", "tz", "at", "at_ms", "local", "meant", "shifted"]] * 3
    assert all("T02:30:00+0" in slot["local"] or slot["shifted"] for slot in slots)
    everything = read("job", "next", "--count", "4")
    assert [slot["at_ms"] for slot in everything] == sorted(slot["at_ms"] for slot in everything)
    assert {slot["job"] for slot in everything} == {"tick"}
    assert cli("job", "next", "tick", "--count", "2").stdout.count("tick") == 2


def test_pause_and_resume(cli, read, jobs):
    """Pausing holds for all; a second time there is nothing to do, which is exit 5."""
    paused = cli("job", "pause", "tick")
    assert (paused.exit_code, paused.stdout) == (0, "")
    assert "tick is paused on all instances" in paused.stderr
    again = cli("job", "pause", "tick")
    assert (again.exit_code, again.stderr) == (5, "tick was paused already; nothing was changed.\n")
    told = read("job", "show", "tick")
    assert told["paused"] is True
    assert told["paused_since"].endswith("Z")
    assert told["next"] is None
    assert "paused" in cli("job", "list").stdout
    nothing = cli("job", "next", "tick")
    assert nothing.exit_code == 5
    assert "tenure job resume tick" in nothing.stderr
    assert cli("job", "resume", "tick").exit_code == 0
    assert cli("job", "resume", "tick").exit_code == 5
    assert read("job", "pause", "tick") == {"job": "tick", "paused": True, "changed": True}


def test_trigger_with_nobody_there(cli, read, jobs):
    """A request waits where no live instance knows the job, and that is said; its id is the data."""
    result = cli("job", "trigger", "report")
    assert result.exit_code == 0
    assert len(result.stdout.strip()) == 12
    assert "no live instance knows report: the request waits for 5m10s until one starts" in result.stderr
    told = read("job", "trigger", "report")
    assert list(told) == ["job", "request", "instances", "paused"]
    assert told["instances"] == []
    assert read("job", "show", "report")["waiting_requests"] == 2


def test_trigger_says_how_long_the_request_waits(cli, kept):
    """As long as a claim of it is in time by the job's own bounds."""
    kept.register("quick", every(60_000), max_late=2, catch_up=3)
    assert "the request waits for 13s until one starts" in cli("job", "trigger", "quick").stderr


def test_wait_ends_when_nobody_can_come_in_time(cli, kept, monkeypatch):
    """The request is too old for anybody: that is said, and exit 1."""
    kept.register("quick", every(60_000), max_late=0, catch_up=0)
    monkeypatch.setattr(wishes, "TOLERANCE", 100)
    monkeypatch.setattr(wishes, "_GRACE", 0)
    result = cli("job", "trigger", "quick", "--wait")
    assert result.exit_code == 1
    assert "no run came of the request" in result.stderr
    assert "no instance claimed it within 100ms." in result.stderr


def test_wait_ends_when_the_request_is_dropped(cli, kept, monkeypatch):
    """An instance comes to it too late and drops it: the wait ends with the reason; `show` and `runs list` tell it."""
    kept.register("quick", every(60_000))

    def meanwhile(_):
        (request,) = kept.app.ask_now(lambda records: records.page("quick"))[1].job.requests
        claim = c.Claim(request.at, "f" * 32, "api-9", 30_000, 3, -60_000, "skip", "manual", True, request.id)
        assert isinstance(kept.tell("quick", claim), c.Late)

    monkeypatch.setattr(following.time, "sleep", meanwhile)
    result = cli("job", "trigger", "quick", "--wait")
    assert result.exit_code == 1
    wish = result.stdout.strip()
    assert f"no run came of the request {wish}: api-9 came to it " in result.stderr
    assert f"triggered as {wish}: api-9 came to it" in cli("job", "show", "quick").stdout
    assert f"no run came of the request {wish}: api-9" in cli("runs", "list", "quick").stderr


def test_wait_has_a_timeout(cli, jobs):
    """After it the command ends with 1 and says that the request stands; without --wait it is refused."""
    result = cli("job", "trigger", "report", "--wait", "--timeout", "100ms")
    assert result.exit_code == 1
    assert "no instance has claimed it within 0.1 s; it is not called off: tenure runs list report" in result.stderr
    assert cli("job", "trigger", "report", "--timeout", "5s").exit_code == 2
    assert "--timeout='soon'" in cli("job", "trigger", "report", "--wait", "--timeout", "soon").stderr


def test_nobody_runs_it(cli, jobs):
    """Where no live instance knows a job, that is said wherever one asks why nothing runs."""
    assert "no instance is running report, tick: no run will start" in cli("job", "list").stderr
    assert "no instance is running it" in cli("job", "show", "report").stdout
    assert "no instance is running report" in cli("job", "why", "report", "now").stderr


def test_what_to_type_can_be_typed(cli, kept):
    """A name that the shell would part stands in quotes in the command that is named."""
    kept.register("nightly report", cron("30 2 * * *"))
    typed = "tenure job resume 'nightly report'"
    for words in (("pause",), ("trigger",), ("next",)):
        assert typed in cli("job", *words, "nightly report").stderr
    assert typed in cli("doctor").stdout
    assert "tenure job next 'nightly report'" in cli("runs", "show", "nightly report").stderr


def test_trigger_a_paused_job(cli, jobs):
    """A pause holds for triggered runs too."""
    cli("job", "pause", "report")
    assert "a pause holds for triggered runs too" in cli("job", "trigger", "report").stderr


def test_why(cli, read, jobs):
    """The sentence, and as JSON the outcome with its run."""
    slot = jobs.now // 10_000 * 10_000 - 10_000
    told = read("job", "why", "tick", "now-10s")
    assert list(told) == ["job", "asked", "asked_ms", "outcome", "sentence", "slot", "slot_ms", "run"]
    assert told["outcome"] in ("success", "running")
    assert told["slot_ms"] in (slot, slot + 10_000)
    said = cli("job", "why", "tick", "now-10s")
    assert said.exit_code == 0
    assert "attempt 1 on api-" in said.stdout.lower()
    early = cli("job", "why", "tick", "2020-01-01T00:00:00Z")
    assert early.exit_code == 0
    assert cli("job", "why", "nope", "now").exit_code == 3


def test_why_names_a_skip(cli, read, kept):
    """A slot that was skipped says by which run."""
    kept.register("busy", every(1_000))
    slot = kept.now // 1_000 * 1_000
    kept.claim("busy", slot - 1_000, "api-1")
    assert isinstance(kept.claim("busy", slot, "api-2"), c.Overlaps)
    told = read("job", "why", "busy", iso(slot))
    assert told["outcome"] == "overlap"
    assert told["sentence"].startswith(f"Skipped: busy@{iso(slot - 1_000)} was still running (asked by api-2, ")


def test_json_may_stand_anywhere(cli, jobs):
    """The common options stand before or after the command's name."""
    spellings = [["--json", "job", "list"], ["job", "--json", "list"], ["job", "list", "--json"]]
    assert len({cli(*words).stdout.split('"next"')[0] for words in spellings}) == 1


@pytest.mark.parametrize("width", ["40", "60", "100"])
def test_narrow_terminals(cli, jobs, width):
    """On a narrow terminal no line is wider than it."""
    for words in (["job", "list"], ["job", "show", "report"], ["runs", "list"]):
        lines = cli(*words, COLUMNS=width).stdout.splitlines()
        assert max(map(len, lines)) <= int(width), words
