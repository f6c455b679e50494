"""`tenure demo`: played by real processes, counted from the records and from what handlers wrote."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.doors.cli.demo.plan import plan
from tenure.doors.cli.demo.truth import count
from tenure.doors.cli.demo.verdict import _good
from tenure.rules.instant import iso
from tenure.rules.job import Attempt
from tenure.rules.schedule import every
from tenure.scheduler.records import RunView, Timeline
from tenure.stores.contract import Mark

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its signals are POSIX's")


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tenure", "demo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").exists() is False or Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_a_takeover(tmp_path):
    """It tells the kill and the takeover, draws the run, counts, ends with 0, and leaves nothing behind."""
    process = start("--lease", "2s", "--seconds", "1", folder=tmp_path)
    said, errors = process.communicate(timeout=55)
    assert (process.returncode, errors) == (0, ""), said
    for word in ("SIGKILL, in the middle of its run", "... silence. Its lease holds", "TAKES OVER", "are its backups"):
        assert word in said
    assert re.search(r"^ *\d+\.\ds  api-\d  finishes .* in attempt 2: success$", said, re.MULTILINE)
    assert "one column is" in said
    taken = re.search(r"takeover  (\d+\.\d+)s from the last heartbeat to the takeover \(bound: lease 2s \+ ", said)
    assert taken is not None
    assert 0 < float(taken[1]) <= 2.666
    assert said.splitlines()[-3].startswith("working at the same time: 0")
    assert said.splitlines()[-2].startswith("ran twice: 0   (1 run succeeded; 1 effect in ")
    assert said.splitlines()[-1].startswith("lost: 0   (1 slot ran; ")
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", said)]
    assert len(pids) == 4, "three, and the one that was started again"
    assert not any(map(is_alive, pids))
    assert list(tmp_path.iterdir()) == []


def test_a_hand_over_too(tmp_path):
    """With the time for it a hand-over by SIGTERM follows; in a store of yours no record stays."""
    store = f"sqlite:///{tmp_path / 'mine.db'}"
    process = start("--lease", "1.5s", "--instances", "2", "--seconds", "20", "--store", store, folder=tmp_path)
    said, errors = process.communicate(timeout=58)
    assert (process.returncode, errors) == (0, ""), said
    assert "SIGTERM, as in a deploy" in said
    assert "handed over, which costs the run no attempt" in said
    assert re.search(
        r"hand-over +\d+\.\d+s from the release to the next attempt \(bound: 2 x heartbeat 250ms = 500ms\)", said
    )
    assert "ran twice: 0 " in said
    assert "lost: 0 " in said
    listed = subprocess.run(
        [sys.executable, "-m", "tenure", "job", "list", "--json", "--store", store],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert json.loads(listed.stdout) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_interrupted_it_cleans_up(tmp_path, number, code):
    """Interrupted in the middle it ends its processes and removes its folder."""
    process = start(folder=tmp_path)
    pids: list[int] = []
    for line in process.stdout:
        pids += [int(pid) for pid in re.findall(r"pid (\d+)", line)]
        if "all are up" in line:
            break
    assert all(map(is_alive, pids))
    assert len(pids) == 3
    process.send_signal(number)
    process.send_signal(number)  # as launchers do; cleaning up goes on
    process.communicate(timeout=30)
    assert process.returncode == code
    assert not any(map(is_alive, pids))
    assert list(tmp_path.iterdir()) == []


def test_killed_its_instances_end_by_themselves(tmp_path):
    """When the stage itself is killed, the instances notice and end."""
    process = start(folder=tmp_path)
    pids: list[int] = []
    for line in process.stdout:
        pids += [int(pid) for pid in re.findall(r"pid (\d+)", line)]
        if "all are up" in line:
            break
    process.kill()
    process.communicate(timeout=30)
    import time

    end = time.monotonic() + 20
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, "an instance outlived the stage"
        time.sleep(0.02)


# --- the counts -------------------------------------------------------------------------------------------

BEGIN = 1_796_040_000_000
EVERY = 4_000
PLAN = plan(3, "3s", None)


def attempt(  # noqa: PLR0917 - a row of a table: what is where is plain
    number: int, runner: str, started: int, ended: int, how: str, renewed: int | None = None
) -> Attempt:
    last = BEGIN + (ended if renewed is None else renewed)
    return Attempt(number, "t", runner, "schedule", number, BEGIN + started, last, 1, BEGIN + ended, how)


def run(slot: int, status: str, *attempts: Attempt) -> RunView:
    return RunView("letters", BEGIN + slot, "", status, attempts, 3_000, ended=attempts[-1].ended)


GOOD = run(0, "success", attempt(1, "a", 100, 5_000, "expired", 2_000), attempt(2, "b", 5_100, 9_000, "success"))


def counted(tmp_path, runs, work, marks=(4_000, 8_000), until=11_000):
    """The truth of a demo with these runs, work and skipped slots."""
    file = tmp_path / "work.jsonl"
    lines = [
        {"at": BEGIN + at, "run": f"letters@{iso(BEGIN + slot)}", "attempt": number, "what": what}
        for at, slot, number, what in work
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"at": 17960')
    skipped = tuple(Mark(BEGIN + at, BEGIN + at, 1, "overlap", "", BEGIN + at, "c") for at in marks)
    told = Timeline("letters", 0, 0, BEGIN + until, tuple(runs), skipped)
    return count(told, every(EVERY), BEGIN, BEGIN + until, file)


WORK = [(200, 0, 1, "wrote"), (2_200, 0, 1, "wrote"), (5_200, 0, 2, "wrote"), (8_900, 0, 2, "posted")]


def test_all_is_well(tmp_path):
    """One run, taken over in time, its effect once, all slots accounted for."""
    truth = counted(tmp_path, [GOOD], WORK)
    assert (truth.succeeded, truth.skipped, truth.posted, truth.at_once) == (1, 2, 1, 0)
    assert (truth.twice, truth.lost, truth.takeovers_ms, truth.handovers_ms) == ((), (), (3_100,), ())
    assert _good(PLAN, truth)


def test_an_effect_twice_is_told(tmp_path):
    """Two effects of one run are a run that ran twice, whatever the store says."""
    truth = counted(tmp_path, [GOOD], [*WORK, (8_950, 0, 2, "posted")])
    assert truth.twice == (f"letters@{iso(BEGIN)}",)
    assert not _good(PLAN, truth)


def test_a_success_accepted_twice_is_told(tmp_path):
    """So are two accepted successes."""
    double = run(0, "success", attempt(1, "a", 100, 5_000, "success"), attempt(2, "b", 5_100, 9_000, "success"))
    assert counted(tmp_path, [double], WORK).twice


def test_two_at_once_are_told(tmp_path):
    """An attempt that worked on while the next one did is counted."""
    truth = counted(tmp_path, [GOOD], [*WORK, (5_300, 0, 1, "wrote")])
    assert truth.at_once == 1
    assert not _good(PLAN, truth)


@pytest.mark.parametrize(
    ("runs", "marks", "lost"),
    [
        ([GOOD], (4_000,), 1),  # a slot that nobody speaks of
        ([], (4_000, 8_000), 1),  # a run that never was
        ([GOOD, run(4_000, "interrupted", attempt(1, "c", 4_000, 4_500, "expired"))], (8_000,), 1),
        ([GOOD, run(4_000, "interrupted", attempt(1, "c", 4_000, 4_500, "expired"))], (4_000, 8_000), 1),
    ],
)
def test_lost_slots_are_told(tmp_path, runs, marks, lost):
    """A slot that neither ran to its success, nor was skipped with a reason, is lost."""
    truth = counted(tmp_path, runs, WORK, marks)
    assert len(truth.lost) == lost
    assert not _good(PLAN, truth)


def test_a_success_without_an_effect_is_lost(tmp_path):
    """A success that the handlers' file knows nothing of is lost too."""
    assert counted(tmp_path, [GOOD], WORK[:-1]).lost == (iso(BEGIN),)


def test_a_late_takeover_is_told(tmp_path):
    """A takeover beyond the bound is a failure; so is none at all."""
    late = run(0, "success", attempt(1, "a", 100, 5_000, "expired", 1_000), attempt(2, "b", 5_100, 9_000, "success"))
    assert counted(tmp_path, [late], WORK).takeovers_ms == (4_100,)
    assert not _good(PLAN, counted(tmp_path, [late], WORK))
    alone = run(0, "success", attempt(1, "b", 5_100, 9_000, "success"))
    assert not _good(PLAN, counted(tmp_path, [alone], WORK))


@pytest.mark.parametrize("lease", [1_000, 1_500, 3_000, 20_000, 60_000])
def test_no_slot_comes_before_the_takeover(lease):
    """By the plan's figures: killed half-way between two slots, the lease and the bound end before the next slot."""
    figures = plan(3, f"{lease}ms", None)
    for phase in (0.45, 0.5, 0.6):
        first, last = lease - figures.heartbeat_ms, figures.bound_ms
        begin = (phase * figures.interval_ms + first) / figures.interval_ms
        end = (phase * figures.interval_ms + last) / figures.interval_ms
        assert int(begin) == int(end) == 1
        assert begin % 1 * figures.interval_ms > figures.jitter_ms / 2
