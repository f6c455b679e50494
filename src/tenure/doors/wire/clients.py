"""The settings by which an agent's client finds an endpoint, for each client that is known.

They name the credential and don't hold it where the client can take it from elsewhere: such files are shared and
committed.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

VARIABLE: Final = "TENURE_ENDPOINT_CREDENTIAL"


class Client(NamedTuple):
    """A client of MCP: where its settings are, under which key servers stand, and how it spells a secret."""

    title: str
    path: PurePosixPath
    key: str
    secret: str
    typed: bool


CLIENTS: Final = {
    "claude": Client("Claude Code", PurePosixPath(".mcp.json"), "mcpServers", f"${{{VARIABLE}}}", typed=True),
    "cursor": Client("Cursor", PurePosixPath(".cursor/mcp.json"), "mcpServers", f"${{env:{VARIABLE}}}", typed=False),
    "vscode": Client("VS Code", PurePosixPath(".vscode/mcp.json"), "servers", "${input:tenure-credential}", typed=True),
}
# What VS Code asks its user for, once, and keeps.
PROMPT: Final = {
    "type": "promptString",
    "id": "tenure-credential",
    "description": "The credential of the Tenure endpoint",
    "password": True,
}


def settings(client: Client, slug: str, url: str, *, stdio: bool) -> dict[str, Any]:
    """The client's settings with this one endpoint in them."""
    if stdio:
        entry: dict[str, Any] = {"command": "tenure", "args": ["mcp", slug], "env": {"TENURE_URL": url}}
        kind = "stdio"
    else:
        entry = {"url": f"{url}/mcp/{slug}", "headers": {"Authorization": f"Bearer {client.secret}"}}
        kind = "http"
    if client.typed:
        entry = {"type": kind, **entry}
    asks = {"inputs": [PROMPT]} if "${input:" in client.secret and not stdio else {}
    return {**asks, client.key: {slug: entry}}
