"""`tenure mcp`: the board for agents whose client speaks MCP over stdin and stdout only."""

from __future__ import annotations

import asyncio
import sys

import click

from tenure.doors.cli import keeping
from tenure.doors.cli.connect import kept_slug
from tenure.doors.cli.output import say
from tenure.doors.cli.texts import CONTEXT, exits

NO_CREDENTIAL = 4


@click.command(
    "mcp",
    context_settings=CONTEXT,
    epilog=exits(0, 1, 2, 4, 130, _0="the client closed its end", _4="no credential of it is kept here"),
)
@click.argument("endpoint", metavar="ENDPOINT")
@click.option("--url", metavar="URL", help="The board's address.  [env: TENURE_URL; default: the one signed in to]")
def mcp(*, endpoint: str, url: str | None) -> int:
    """Carry MCP between stdin and stdout and ENDPOINT's address on the board.

    A client starts this by itself: tenure endpoint connect --stdio prints its settings. The credential is the one that
    is kept since the endpoint was vended here, or TENURE_ENDPOINT_CREDENTIAL.
    """
    from tenure.doors.cli.bridge import Bridge, lines_of

    address = (url or keeping.server()).rstrip("/")
    credential = keeping.credential(address, endpoint)
    if credential is None:
        say(
            f"tenure: there is no credential of {endpoint} at {address}. "
            "Vend it here (tenure endpoint vend), or set TENURE_ENDPOINT_CREDENTIAL."
        )
        return NO_CREDENTIAL

    def put(message: str) -> None:
        sys.stdout.buffer.write(f"{message}\n".encode())  # UTF-8, whatever this machine's own encoding is
        sys.stdout.buffer.flush()

    slug = kept_slug(address, endpoint) or endpoint

    async def all_of_it() -> None:
        await Bridge(f"{address}/mcp/{slug}", credential, put, say).run(lines_of(sys.stdin.buffer.readline))

    asyncio.run(all_of_it())
    return 0
