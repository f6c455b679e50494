"""The pytest plugin: a `tenure_cluster` fixture that makes clusters and closes them.

Loaded in every pytest run of an environment that has Tenure, so it imports nothing before it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenure.testing.cluster import Cluster


@pytest.fixture
def tenure_cluster() -> Iterator[Callable[..., Cluster]]:
    """Make clusters: `tenure_cluster(app, 3)`. Each is closed at the test's end, and fails it if a task died unseen."""
    from tenure.testing.cluster import Cluster

    with contextlib.ExitStack() as made:
        yield lambda jobs, n=3, **options: made.enter_context(Cluster(jobs, n, **options))
