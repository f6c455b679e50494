"""A client of the board for Python programs: `Board` for threads, `AsyncBoard` for asyncio.

It speaks HTTP and knows nothing else of Tenure: the rules are the server's.
"""

from tenure.client.answers import BoardError, Held, Lease, LeaseLost, Refused, Unreachable
from tenure.errors import MissingExtra

try:
    from tenure.client.asynchronous import AsyncBoard
    from tenure.client.synchronous import BlockingTask, Board
    from tenure.client.work import Task
except ModuleNotFoundError as error:
    if error.name != "httpx2":
        raise
    raise MissingExtra("tenure.client", "board") from error

__all__ = [
    "AsyncBoard", "BlockingTask", "Board", "BoardError", "Held", "Lease", "LeaseLost", "Refused", "Task", "Unreachable",
]  # fmt: skip
