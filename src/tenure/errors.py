"""Two families of errors: you asked wrongly, or the world failed. Each says what, why, and what to do.

This module imports nothing of Tenure, so that every room may raise them.
"""

from __future__ import annotations


class TenureError(Exception):
    """The root of all errors that Tenure raises on purpose."""


class ConfigError(TenureError, ValueError):
    """You asked wrongly: an option, a name or an expression is out of its bounds.

    The message is one sentence that names the field, the value and the bound; `where` it stands, if not in code.
    """

    where = ""

    def __init__(self, field: str, value: object, why: str, hint: str = "", where: str = "") -> None:
        self.field, self.value, self.why, self.hint, self.where = field, value, why, hint, where
        shown = repr(value)
        if len(shown) > 80:
            shown = shown[:76] + "..." + shown[-1]
        super().__init__(f"{field}={shown}{where and f' {where}'}: {why}" + (f" {hint}" if hint else ""))


class MissingExtra(ConfigError):
    """A package that `what` needs is not installed; the message names the extra that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        TenureError.__init__(self, f'{what} needs the {extra} extra. Run: pip install "tenure[{extra}]"')
        self.field, self.value, self.why, self.hint = "extra", extra, str(self), ""


class NotFound(TenureError, LookupError):
    """There is no job, run or instance of that name in this store."""


class LeaseLost(TenureError):
    """This attempt may no longer act: the lease is another's, has run out, or can't be proved to be held."""


class StoreError(TenureError):
    """The store failed or refused. `StoreUnavailable` and its kin are worth trying again, the others are not."""


class StoreUnavailable(StoreError):
    """The store can't be reached or did not answer in time: nothing is known to have changed.

    For a commit the outcome is *unknown*: it may have been applied, or may be until its deadline.
    """


class StoreBusy(StoreUnavailable):
    """Others kept the store locked for the whole time allowed; nothing was changed."""


class StoreFull(StoreUnavailable):
    """No space is left where the store writes; nothing was changed, reads go on."""


class StoreReadOnly(StoreError):
    """The store can be read but not written."""


class StoreCorrupt(StoreError):
    """What the store holds is damaged or is not Tenure's. Nothing is repaired or deleted by us."""


class StoreGone(StoreError):
    """The file that was opened was deleted or replaced under us; writes would go into nothing."""


class StoreTooOld(StoreError):
    """The server or library is older than the oldest that is supported."""


class TransactionTooLong(StoreError):
    """`run.transaction()` was held beyond its limit and was rolled back: none of its writes stand."""
