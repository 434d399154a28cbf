"""An MCP server over stdio that tells about its own environment, for test_mcp.py."""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("environment")


@server.tool()
def names() -> list[str]:
    """Give the names of the variables that the server has."""
    return sorted(os.environ)


@server.tool()
def holds(name: str, value: str) -> bool:
    """Tell whether a variable has this value."""
    return os.environ.get(name) == value


@server.tool()
def arguments() -> list[str]:
    """Give what the server was started with."""
    return sys.argv[1:]


if __name__ == "__main__":
    server.run("stdio")
