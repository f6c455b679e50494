"""The page of figures shows parts that the bench has, and each peer has what it takes to run it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "bench" / "peers"


def test_the_page_shows_what_the_bench_measures():
    """Every place in docs/benchmarks.md is of one part of the bench, and was filled by a run of it."""
    told = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    parts = re.search(r"--only \{(.+?)\}", told.replace("\n", ""))[1].replace(" ", "").split(",")
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    places = re.findall(r"<!-- measured: ([\w-]+) -->\n(.*?)<!-- end -->", page, re.DOTALL)
    names = [name for name, _ in places]
    assert len(names) == len(set(names)) > 10
    assert set(names) <= set(parts)
    assert [name for name, text in places if "| --- |" not in text] == []


def test_each_peer_can_be_installed_and_run():
    """A row of peers.toml pins its package's version, names a store of ours, and has an adapter."""
    rows = tomllib.loads((PEERS / "peers.toml").read_text(encoding="utf-8"))
    adapters = {path.name.removesuffix("_peer.py") for path in PEERS.glob("*_peer.py")}
    assert adapters == {"tenure", *rows}
    for name, row in rows.items():
        assert re.match(rf"{row['package']}(\[[\w,]+\])?==", row["install"][0]), name
        assert row["store"] in ("PostgreSQL", "Valkey"), name
