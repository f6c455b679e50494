"""All measurements of this machine, as one table and JSON lines.

    python -m bench [--only NAME]... [--quick] [--cap SECONDS] [--json FILE] [--page FILE]

Figures are ratios of two things measured in the same run, or counts; absolute times are printed and decide
nothing. A row says what was asked of it, and whether this run reached it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import tenure

sys.path.insert(0, str(Path(__file__).parent))

import beside
import board_depth
import board_drain
import board_http
import board_reaper
import claim
import depth
import held
import idle
import lateness
import limits
import many
import mcp_door
import page
import rules
import servers
import takeover
import web
from rows import Row

PARTS: dict[str, Callable[..., list[Row]]] = {
    "rules": rules.measure,
    "claim": claim.measure,
    "limits": limits.measure,
    "depth": depth.measure,
    "lateness": lateness.measure,
    "many": many.measure,
    "held": held.measure,
    "idle": idle.measure,
    "takeover": takeover.measure,
    "board-http": board_http.measure,
    "web": web.measure,
    "mcp": mcp_door.measure,
    "board-depth": board_depth.measure,
    "board-drain": board_drain.measure,
    "board-reaper": board_reaper.measure,
    "peers-takeover": beside.takeover,
    "peers-lateness": beside.lateness,
}


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m bench", description="Measure Tenure on this machine.")
    asked.add_argument("--only", action="append", choices=PARTS, help="measure this part alone; repeatable")
    asked.add_argument("--quick", action="store_true", help="fewer repetitions: to see that it runs")
    asked.add_argument(
        "--cap", type=float, default=beside.CAP, help="seconds that a peer's takeover may take (%(default)s)"
    )
    asked.add_argument("--json", metavar="FILE", help="write the rows as JSON lines to this file too")
    asked.add_argument("--page", metavar="FILE", help="put the tables into this page of the documentation")
    chosen = asked.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped: what was started is ended"))
    if chosen.page and chosen.quick:
        asked.error("a page tells whole measurements: leave --quick out")
    parts = {**PARTS, "peers-takeover": partial(beside.takeover, cap=chosen.cap)}
    print(f"# {_machine()}\n# {_stores()}", flush=True)
    measured: dict[str, list[Row]] = {}
    failed = []
    for name in chosen.only or parts:
        print(f"# {datetime.now(UTC):%H:%M:%S} measuring {name} …", file=sys.stderr, flush=True)
        try:
            measured[name] = parts[name](quick=chosen.quick)
        except Exception:  # noqa: BLE001 - the other parts, which take long, are not in vain
            traceback.print_exc()
            failed.append(name)
            continue
        if chosen.page:
            page.write(Path(chosen.page), name, f"{_caption()}\n\n{page.table(measured[name])}")
    _tell(measured, chosen.json)
    if failed:
        print(f"# not measured, the error stands above: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _tell(measured: dict[str, list[Row]], file: str | None) -> None:
    """The table and the JSON lines."""
    rows = [row for some in measured.values() for row in some]
    width = max((len(row.what) for row in rows), default=0)
    for row in rows:
        print(f"{row.what:<{width}}  {row.shown:>16}  {row.goal:<24} {row.verdict:<12} {row.remark}".rstrip())
    lines = [json.dumps({"part": name, **row.plain()}) for name, some in measured.items() for row in some]
    print("\n".join(lines))
    if file:
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _machine() -> str:
    return (
        f"tenure {tenure.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    )


def _stores() -> str:
    durable = "synchronous=FULL; fsync and synchronous_commit on; appendonly with appendfsync everysec"
    return f"SQLite {sqlite3.sqlite_version}, {servers.versions()}: {durable}, unless a row says otherwise"


def _caption() -> str:
    return f"*{datetime.now(UTC):%Y-%m-%d}. {_machine()}. {_stores()}.*"


if __name__ == "__main__":
    sys.exit(main())
