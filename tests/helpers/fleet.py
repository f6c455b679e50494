"""Real instances in processes of their own, for fault tests and measurements: started, told, killed, heard."""

import asyncio
import contextlib
import json
import os
import queue
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import history
from recording import clocks, recording

from tenure import StoreUnavailable, Tenure
from tenure.rules.instant import span
from tenure.rules.job import decode_past
from tenure.scheduler.records import EVER

DOCUMENT = "job:work"
ALL = 1 << 30
WORKER = Path(__file__).with_name("fleet_worker.py")


def _is(line, what, facts):
    return line["what"] == what and all(line.get(key) == value for key, value in facts.items())


class Fleet:
    """Processes of `fleet_worker.py` on one store.

    Use it as a context manager: it kills what it started, and then holds all that was recorded against the laws. A
    test that harms a process otherwise than by a signal says so by `harm`, one that steps the store's clock or has
    it lose what it acknowledged by `steady` and `keeps`.
    """

    def __init__(self, url, lease="3s", kind="hold", **options):
        self.url, self.lease, self.kind, self.options = url, lease, kind, options
        self.workers = {}
        self.lines = []
        self.steady = self.keeps = True
        self._passed = []
        self._heard = queue.Queue()
        self._threads = []
        self._harmed, self._stood = set(), {}
        self.app = Tenure(url)

    def start(self, kind=None, env=None, url=None, **options):
        """Start one more, by another URL if one is given; returns its name."""
        name = f"w{len(self.workers) + 1}"
        arguments = [url or self.url, name, self.lease, kind or self.kind, json.dumps({**self.options, **options})]
        process = subprocess.Popen(
            [sys.executable, str(WORKER), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            text=True,
        )
        self.workers[name] = process
        thread = threading.Thread(target=self._listen, args=(process,), daemon=True)
        thread.start()
        self._threads.append(thread)
        return name

    def _listen(self, process):
        with contextlib.suppress(ValueError):
            for line in process.stdout:
                self._heard.put(json.loads(line))

    def wait(self, what, within=30.0, **facts):
        """The next told line of that kind with these facts; AssertionError if it does not come in time.

        Lines that were passed over while another was waited for count, once.
        """
        for place, line in enumerate(self._passed):
            if _is(line, what, facts):
                return self._passed.pop(place)
        end = time.monotonic() + within
        while True:
            try:
                line = self._heard.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                last = [f"{one['name']} {one['what']} {one.get('event', '')}" for one in self.lines[-8:]]
                raise AssertionError(f"no {what} {facts} within {within} s; last heard: {last}") from None
            self.lines.append(line)
            if _is(line, what, facts):
                return line
            self._passed.append(line)

    def news(self, what, within=30.0, **facts):
        """The next such line that is told from now on."""
        self.drain()
        self._passed = [line for line in self._passed if not _is(line, what, facts)]
        return self.wait(what, within, **facts)

    def drain(self):
        """All that was told and not yet waited for."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.lines.append(self._heard.get_nowait())
                self._passed.append(self.lines[-1])

    def of(self, what, **facts):
        """All lines so far of that kind."""
        self.drain()
        return [one for one in self.lines if _is(one, what, facts)]

    def signal(self, name, number):
        """Send a signal to one that this fleet started."""
        self.harm(name)
        self.workers[name].send_signal(number)

    def freeze(self, name):
        """SIGSTOP; but not while it holds the write lock of a SQLite file, for then it would hold up everybody."""
        self.signal(name, signal.SIGSTOP)
        while self.url.startswith("sqlite:///") and not self._writable():
            self.signal(name, signal.SIGCONT)
            time.sleep(0.01)
            self.signal(name, signal.SIGSTOP)

    def _writable(self):
        with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=1)) as file:
            try:
                file.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True

    def harm(self, *names):
        """These are, or all are, kept from doing what the laws ask of whoever is well."""
        self._harmed |= set(names or self.workers)

    def kill(self, name):
        """kill -9, and wait for its end."""
        self.signal(name, signal.SIGKILL)
        self.workers[name].wait()

    def ask(self, question, within=10.0):
        """Put a question to the store's records, again and again while the store can't be reached."""
        end = time.monotonic() + within
        while True:
            try:
                return asyncio.run(self.app.ask(question))
            except StoreUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def registered(self, count, within=30.0):
        """Wait until so many instances have a page in the store."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            alive = [one for one in self.ask(lambda records: records.instances()) if one.alive]
            if len(alive) >= count:
                for one in alive:
                    self._stood.setdefault(one.name, one.seen)
                return
            time.sleep(0.05)
        raise AssertionError(f"fewer than {count} instances within {within} s")

    def trigger(self):
        """Ask for a run of the job; returns the wish."""
        return self.app.trigger("work")

    def runs(self):
        """All runs of the job, newest first."""
        return self.ask(lambda records: records.runs(["work"], limit=10_000))

    def through(self, wish, within=30.0):
        """Wait until the run of this wish has ended; returns it."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            for run in self.runs():
                if run.request == wish and run.ended is not None:
                    return run
            time.sleep(0.02)
        raise AssertionError(f"the run of {wish} did not end within {within} s")

    def ended(self, count, within=30.0):
        """Wait until so many runs have ended; returns all runs."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            runs = self.runs()
            if sum(run.ended is not None for run in runs) >= count:
                return runs
            time.sleep(0.05)
        seen = [(run.key, run.status) for run in self.runs()]
        raise AssertionError(f"fewer than {count} ended runs within {within} s: {seen}")

    def takeovers(self, trials, number=None, say=lambda _: None):
        """Signal the runner in the middle of a run, again and again.

        Returns the seconds from the signal to the next attempt's handler, and from the last heartbeat to the next
        attempt; and asserts that each run had one effect, one success and two attempts.
        """
        for _ in range(3):
            self.start()
        self.registered(3)
        found = []
        for trial in range(trials):
            wish = self.trigger()
            begun = self.wait("begin", attempt=1)
            time.sleep(0.05 + trial * 0.137 % 0.9)  # any moment between two heartbeats
            at = time.time()
            self.signal(begun["name"], number or signal.SIGKILL)
            second = self.wait("begin", key=begun["key"], attempt=2)
            run = self.through(wish)
            first, after = run.attempts
            assert run.status == "success", run
            found.append((second["at"] - at, (after.started - first.renewed) / 1000))
            self.workers[begun["name"]].wait()
            self.start()
            self.registered(3)
            say(f"{trial + 1}/{trials}: {found[-1][0]:.2f} s")
        effects = [line["key"] for line in self.of("effect")]
        assert len(effects) == len(set(effects)) == trials  # none lost, none twice
        return found

    def __enter__(self):
        self._recording = recording(self._told)
        return self

    def _told(self, what, **facts):
        """The test asks the rules too, to trigger: as a process named `test`."""
        self._heard.put({"what": what, "name": "test", **clocks(), **facts})

    def __exit__(self, error, *_):
        self._recording.close()
        over = {name for name, process in self.workers.items() if process.poll()}
        for process in self.workers.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process, thread in zip(self.workers.values(), self._threads, strict=True):
            process.wait()
            thread.join()
            process.stdout.close()
        self._harmed |= over
        try:
            if error is None:
                self.check()
        finally:
            self.app.close()

    def check(self):
        """Hold what processes and store recorded against the laws."""
        self.drain()
        kept = self.ask(self._kept)
        every, beat, lease_ms = self.options.get("every"), self.options.get("heartbeat"), span(self.lease)
        conditions = history.Conditions(
            harmed=self._harmed,
            stood=self._stood,
            every_ms=span(every) if every else None,
            skip=self.options.get("overlap") != "allow",
            bound_ms=lease_ms + 2 * (span(beat) if beat else min(5000, lease_ms // 6)),
            steady=self.steady,
            keeps=self.keeps,
        )
        history.check(self.lines, DOCUMENT, kept, conditions)

    @staticmethod
    async def _kept(records):
        page = None
        while page is None or page.found.version != (await records.page("work"))[1].found.version:
            # What a killed process had sent may still land between these reads.
            _, page = await records.page("work")
            pasts = await records.store.records(DOCUMENT, 0, EVER, ALL)
            marks = await records.store.marks(DOCUMENT, 0, EVER, ALL)
        ended = {past.id: past for past in (decode_past(record.body) for record in pasts)}
        return history.Kept(page.found.version, page.job, ended, marks)
