"""Leaving a workspace."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from bench import clients
from bench.findings import CannotRunError, Row
from bench.measures import Middle, readable, seconds
from bench.worlds import World, worn

SIZE_BYTES = 60_000
TARGET_S = 0.3e-3


def leave(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 4: an environment of 60 KB; the sidecar is told, too."""
    world.serve()
    folder = world.workspace("w", "export FOO=1 BAR=2\nPATH_add bin\n")
    found: list[float] = []
    results = []
    started = 0
    with worn({**world.environ, **big(SIZE_BYTES)}):
        client = clients.quiet(world.settings)

        def leaving() -> None:
            results.append(client.refresh())

        for _ in range(10 if quick else 50):
            os.chdir(folder)
            if client.refresh().outcome != "loaded":
                raise CannotRunError("the workspace was not loaded")
            client.refresh()
            os.chdir("/")
            before = _reaped()
            found.append(seconds(leaving))
            started += _reaped() != before
            if "FOO" in os.environ or results[-1].answered != "record":
                raise CannotRunError("the workspace was not left from memory")
        client.close()
    # The first one imports what the rest have.
    middle = Middle.of(found[1:])
    process = "no process" if not started else f"a process {started} times"
    yield Row(
        "hook",
        f"leaving, {SIZE_BYTES // 1000} KB environment",
        f"no process, < {readable(TARGET_S)}",
        f"{middle}, first {readable(found[0])}; {process}",
        middle.middle < TARGET_S and not started,
        {**middle.figures(), "first": found[0], "processes": started},
    )


def _reaped() -> int:
    """Give a number that moves when a child of this process has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def big(size_bytes: int) -> dict[str, str]:
    """Give variables of so many bytes together, two hundred each."""
    return {f"VARIABLE_{number:04}": "x" * 186 for number in range(size_bytes // 200)}
