"""Scenarios go today as their transcripts say; `python -m tenure.proof.scenario --rewrite` writes them anew."""

from __future__ import annotations

import pytest

from tenure.proof.scenario import main, played, scenarios
from tenure.proof.script import ScenarioError
from tenure.proof.steps import Breach

BEGUN = "> job report every 1h, takes 5m, lease 30s\n> start a b\n> until 01:00:10\n"


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda one: one.name)
def test_a_scenario_goes_as_it_is_told(scenario) -> None:  # type: ignore[no-untyped-def]
    """Every line of the transcript, and every law."""
    text = scenario.read_text(encoding="utf-8")
    assert played(text) == text


def test_each_sequence_of_the_leases_is_a_scenario() -> None:
    """Those that the page of leases draws."""
    names = {one.name for one in scenarios()}
    assert names >= {f"{name}.txt" for name in (
        "takeover", "fencing", "next-slot-first", "overlap", "hand-over", "catch-up", "late-claim", "cut-off",
    )}  # fmt: skip


def test_a_transcript_is_written_anew(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """And then it goes as it is told; before, it is named."""
    file = tmp_path / "story.txt"
    file.write_text("# A story.\n\n" + BEGUN + "it was otherwise\n", encoding="utf-8")
    assert main([str(file)]) == 1
    assert main(["--rewrite", str(file)]) == 0
    assert main([str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# A story.\n\n> job report")
    assert "otherwise" not in text
    assert "begins attempt 1 of run 01:00:00" in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("> fly a", "there is no command 'fly'. There are: seed, at, job,"),
        ("> kill z", "there is no instance 'z' yet"),
        ("> until 00:00:00", "that time has passed"),
        ("> until noon", "line 4, '> until noon'"),
        ("> job other every never", "never"),
    ],
)
def test_what_can_not_be_played_is_told_with_its_line(line: str, says: str) -> None:
    """In a sentence."""
    with pytest.raises(ScenarioError) as told:
        played(BEGUN + line + "\n")
    assert says in str(told.value)
    assert "line 4" in str(told.value)


def test_a_scenario_holds_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript that shows a broken law is no transcript."""
    monkeypatch.setattr("tenure.scheduler.keeper.Keeper.judge", lambda keeper: None)
    with pytest.raises(Breach, match="S21"):
        played(BEGUN + "> cut a\n> until 01:01:00\n")
