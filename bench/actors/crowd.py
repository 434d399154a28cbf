"""Attached kernels that do nothing: many clients in one process.

    python -m bench.actors.crowd COUNT FOLDER...

makes COUNT clients, each with a connection and an environment of its own and one
of the folders loaded, prints `ready`, and ends with its stdin.
"""

from __future__ import annotations

import os
import sys

from kernel_client import Client, Settings


def main(count: int, folders: list[str]) -> None:
    """Attach, and wait."""
    settings = Settings(
        sidecar="/nonexistent/envwatch",
        socket=os.environ["ENVWATCH_SOCKET"],
        direnv=os.environ["ENVWATCH_DIRENV"],
    )
    clients = []
    for number in range(count):
        os.chdir(folders[number % len(folders)])
        client = Client(dict(os.environ), output=lambda _: None, settings=settings)
        result = client.refresh()
        if result.outcome != "loaded" or result.answered != "sidecar":
            sys.exit(f"bench: {result.outcome}, answered by {result.answered}")
        clients.append(client)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
