"""All measurements of this machine, as one table and JSON lines.

    python -m bench [--only NAME]... [--quick] [--json FILE]

Figures are ratios of two things measured in the same run, or counts; absolute times are printed and decide
nothing. A row says what was asked of it, and whether this run reached it.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
from pathlib import Path

import tenure

sys.path.insert(0, str(Path(__file__).parent))

import claim
import claim_postgres
import claim_redis
import lateness
import many
import rules
import takeover
from rows import Row

PARTS = {
    "rules": rules.measure,
    "claim": claim.measure,
    "claim_postgres": claim_postgres.measure,
    "claim_redis": claim_redis.measure,
    "lateness": lateness.measure,
    "many": many.measure,
    "takeover": takeover.measure,
}


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench", description="Measure Tenure on this machine.")
    asked.add_argument("--only", action="append", choices=PARTS, help="measure this part alone; repeatable")
    asked.add_argument("--quick", action="store_true", help="fewer repetitions: to see that it runs")
    asked.add_argument("--json", metavar="FILE", help="write the rows as JSON lines to this file too")
    chosen = asked.parse_args()
    machine = f"tenure {tenure.__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    print(f"# {machine}, {platform.machine()}; SQLite: WAL, synchronous=FULL", flush=True)
    rows: list[Row] = []
    for name in chosen.only or PARTS:
        print(f"# measuring {name} …", file=sys.stderr, flush=True)
        rows += PARTS[name](quick=chosen.quick)
    width = max(len(row.what) for row in rows)
    for row in rows:
        print(f"{row.what:<{width}}  {row.shown:>16}  {row.goal:<24} {row.verdict}")
    lines = [json.dumps(row.plain()) for row in rows]
    print("\n".join(lines))
    if chosen.json:
        Path(chosen.json).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
