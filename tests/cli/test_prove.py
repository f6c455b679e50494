"""`tenure prove`: seeds in, laws held or one line that replays what broke one."""

from __future__ import annotations

import json

import pytest


def test_a_few_schedules(cli):
    """The figures: schedules, faults, branches, laws; exit code 0 where every law held."""
    told = cli("prove", "--seeds", "0..1", "--length", "6")
    assert told.exit_code == 0
    assert "2 of 6 simulated minutes" in told.stdout
    assert "no law was broken" in told.stdout
    assert " I9 " in told.stdout


def test_the_figures_as_json(cli):
    """The same for programs."""
    told = json.loads(cli("prove", "--seeds", "3", "--length", "6", "--json").stdout)
    assert (told["schedules"], told["first_seed"], told["last_seed"], told["broken"]) == (1, 3, 3, [])
    assert told["faults"]
    assert told["reached"]["R1 won"] > 0


def test_one_seed_and_its_history(cli):
    """What befell it, what happened, and the digest that another machine has too."""
    told = cli("prove", "--seeds", "0", "--length", "4", "--faults", "none", "--history")
    assert told.exit_code == 0
    assert "attempt 1" in told.stdout
    assert "fault" not in told.stdout
    assert told.stdout.splitlines()[-1].startswith("digest ")
    again = cli("prove", "--seeds", "0", "--length", "4", "--faults", "none")
    assert again.stdout.splitlines()[-1] == told.stdout.splitlines()[-1]


def test_a_broken_law_is_shrunk_to_one_line(cli, monkeypatch):
    """It names seed, law and sentence, and how to see it again; exit code 1."""
    monkeypatch.setattr("tenure.rules.timers.claim_at", lambda slot, jitter_ms, draw: slot + 9_000)
    told = cli("prove", "--seeds", "0..2", "--length", "5")
    assert told.exit_code == 1
    assert "I8: slot " in told.stdout
    assert "tenure prove --seeds 0 --length 5 --faults none" in told.stdout
    again = cli("prove", "--seeds", "0", "--length", "5", "--faults", "none")
    assert again.exit_code == 1
    assert "I8: slot " in again.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seeds", "x"], "names no seeds"),
        (["--seeds", "9..3"], "ends before it begins"),
        (["--seeds", "9.."], "have no end; give --minutes"),
        (["--seeds", "0..1", "--faults", "2"], "are of one seed"),
        (["--seeds", "0", "--faults", "a"], "is no list of numbers"),
        (["--length", "1"], "is not in the range"),
    ],
)
def test_what_can_not_be_meant(cli, arguments, says):
    """In one sentence, with exit code 2."""
    told = cli("prove", *arguments)
    assert told.exit_code == 2
    assert says in told.stderr
    assert told.stdout == ""
