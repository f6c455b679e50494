"""A client of the board for Python programs: `Board` for threads, `AsyncBoard` for asyncio.

It speaks HTTP and knows nothing else of Tenure: the rules are the server's.
"""

from tenure.client.answers import BoardError, Held, Lease, LeaseLost, Refused, Unreachable
from tenure.client.asynchronous import AsyncBoard
from tenure.client.synchronous import BlockingTask, Board
from tenure.client.work import Task

__all__ = [
    "AsyncBoard", "BlockingTask", "Board", "BoardError", "Held", "Lease", "LeaseLost", "Refused", "Task", "Unreachable",
]  # fmt: skip
