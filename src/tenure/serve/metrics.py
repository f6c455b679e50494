"""What the server counts, for Prometheus. No ids and no names of anybody's are labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

from tenure.board.readings import Readings

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "tenure_http_requests",
            "Requests that were answered; status 0: the caller hung up first.",
            ("door", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "tenure_http_request_seconds",
            "How long an answer took, a wait for todos included.",
            ("door",),
            buckets=SECONDS,
            registry=self.registry,
        )

        self._up = Gauge(
            "tenure_database_up", "0: the database did not answer, and its readings are old.", registry=self.registry
        )
        self._todos = Gauge(
            "tenure_todos", "Live todos of all humans; waiting: for their time, or for others.", ("state",),
            registry=self.registry,
        )  # fmt: skip
        self._oldest = Gauge(
            "tenure_oldest_ready_todo_seconds", "How long the oldest ready todo has waited.", registry=self.registry
        )
        self._today = Gauge(
            "tenure_last_day", "What went wrong in the last 24 hours.", ("what",), registry=self.registry
        )

    def answered(self, door: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._answers.labels(door, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(door).observe(seconds)

    def looked(self, found: Readings | None) -> None:
        """What a scrape found in the board's database; every server of a board tells the same. None: no answer."""
        self._up.set(found is not None)
        if found is None:
            return
        for state in ("ready", "waiting", "claimed", "lapsed", "retrying"):
            self._todos.labels(state).set(getattr(found, state))
        self._oldest.set(found.oldest_seconds)
        for what in ("dead", "lapses", "skipped_slots"):
            self._today.labels(what).set(getattr(found, f"{what}_today"))

    def gauge(self, name: str, text: str, now: Callable[[], float]) -> None:
        """Show a number that is looked up at each scrape."""
        Gauge(name, text, registry=self.registry).set_function(now)

    def told(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)
