"""Work held on leases: scheduled jobs that run once, on one of many instances, and are taken over when it dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.app import Tenure
    from tenure.errors import (
        ConfigError,
        LeaseLost,
        NotFound,
        StoreError,
        StoreTooOld,
        StoreUnavailable,
        TenureError,
        TransactionTooLong,
    )
    from tenure.scheduler.events import Event
    from tenure.scheduler.run import Run

__version__ = "0.1.0"

_HOMES = {
    "Tenure": "tenure.app",
    "Run": "tenure.scheduler.run",
    "Event": "tenure.scheduler.events",
    "ConfigError": "tenure.errors",
    "LeaseLost": "tenure.errors",
    "NotFound": "tenure.errors",
    "StoreError": "tenure.errors",
    "StoreTooOld": "tenure.errors",
    "StoreUnavailable": "tenure.errors",
    "TenureError": "tenure.errors",
    "TransactionTooLong": "tenure.errors",
}

__all__ = [
    "ConfigError",
    "Event",
    "LeaseLost",
    "NotFound",
    "Run",
    "StoreError",
    "StoreTooOld",
    "StoreUnavailable",
    "Tenure",
    "TenureError",
    "TransactionTooLong",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Each name is imported when it is first used, so that importing tenure costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
