"""For users' tests: a clock that is turned, a cluster of instances on one memory store, a pytest plugin."""

from tenure.testing.cluster import Cluster, cluster

__all__ = ["Cluster", "cluster"]
