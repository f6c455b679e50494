"""The web page with much on it: 10,000 todos and 100,000 runs. What pages cost, and how large pictures are.

The cost is CPU time of the server's process, in which the client runs too: that of a page on a machine that does
nothing else, whatever this one does.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
from boards import Hands, deepen
from rows import Row, p50
from servers import PREFIX

from tenure.rules.job import Attempt, Past, encode_past
from tenure.rules.schedule import every
from tenure.stores.contract import Ask, Change, Record

JOBS = 20
GOAL_MS = 300
PICTURE_BYTES = 60_000
PAGES = {
    "overview": "/",
    "board": "/board",
    "runs": "/runs/runs",
    "job": "/runs/runs/job?name=job-00",
    "timeline of 500 runs": "/runs/runs/job?name=job-00&since=now-2h",
}


def measure(*, quick: bool) -> list[Row]:
    """SQLite: what `tenure board` opens when nothing else is said."""
    from board_hall import found
    from web_hall import open_site

    todos, runs = (1_000, 5_000) if quick else (10_000, 100_000)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        found(f"sqlite:///{folder}/template.db")
        with open_site(Path(folder), Path(folder) / "template.db") as site:
            hands = Hands(site.board, site.board.vend())
            deepen(site.board, hands.worker.id, todos)
            for number in range(JOBS):
                _runs(site, f"job-{number:02}", runs // JOBS)
            with httpx2.Client(base_url=site.url, cookies={"tenure-session": site.session()}, timeout=60) as client:
                return [_row(site, client, name, path, 5 if quick else 15) for name, path in PAGES.items()]


def _row(site: Any, client: httpx2.Client, name: str, path: str, count: int) -> Row:
    taken, text = [], ""
    for _ in range(count):
        site.board.clock.turn(seconds=1)
        began = time.process_time()
        answer = client.get(path)
        taken.append(time.process_time() - began)
        assert answer.status_code == 200, answer.text
        text = answer.text
    pictures = [
        len(gzip.compress(one.encode())) for one in re.findall(r"<svg class=\"picture.*?</svg>", text, re.DOTALL)
    ]
    largest, ms = max(pictures, default=0), p50(taken) * 1e3
    told = f"{len(gzip.compress(text.encode())) // 1000} kB compressed, the largest picture {largest / 1000:.1f} kB"
    reached = ms <= GOAL_MS and largest <= PICTURE_BYTES
    return Row(f"page: {name}, CPU p50", ms, "ms", f"<= {GOAL_MS}", reached, {"picture_bytes": largest}, told)


def _runs(site: Any, name: str, count: int) -> None:
    """Runs of a job, one each ten seconds until now, each on one of five instances."""
    site.tell_job(name, every(10_000), history=min(count, 10_000))
    now = site.app.ask_now(lambda records: records.now())
    base = now // 10_000 * 10_000

    def past(back: int) -> Past:
        slot = base - back * 10_000
        failed = back % 50 == 0
        attempt = Attempt(
            1, f"t{back}", f"api-{back % 5}", "schedule", count - back, slot + 12, slot + 2_000, 4, slot + 3_000,
            "failed" if failed else "success",
        )  # fmt: skip
        return Past(slot, "", "failed" if failed else "success", slot + 3_000, 30_000, 0, (attempt,))

    async def put(records: Any, pasts: list[Past]) -> Any:
        found = (await records.store.read([Ask(f"job:{name}")])).found[0]
        told = tuple(Record(one.id, one.slot, one.status, one.ended, now + 1, encode_past(one)) for one in pasts)
        return await records.store.commit([Change(f"job:{name}", found.version, found.body, records=told)])

    backs = list(range(count, 0, -1))
    for at in range(0, count, 500):
        pasts = [past(back) for back in backs[at : at + 500]]
        site.app.ask_now(lambda records, pasts=pasts: put(records, pasts))
