"""The hook: `refresh()` where nothing has changed, and where no root file is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from os import access, getcwd, stat

from bench.findings import CannotRunError, Row
from bench.measures import paired, readable
from bench.worlds import World, quiet_client, worn
from kernel_client import Client, Settings

TIMES = 50
"""Calls in one turn: few, so that most turns are not interrupted."""
DEPTH = 6
ROOTLESS_DEPTH = 10
HOOK_RATIO = 1.6
SPAWN_RATIO = 300
ROOTLESS_RATIO = 1.3


def hook(world: World, *, quick: bool) -> Iterator[Row]:
    """Rows 1 and 2."""
    pairs = 200 if quick else 1000
    yield from _unchanged(world, pairs)
    yield from _rootless(world, pairs)


def _unchanged(world: World, pairs: int) -> Iterator[Row]:
    """Row 1: direnv's three watched files, at depth 6."""
    world.serve()
    up = DEPTH - len(world.top.parts) + 1 - 2
    workspace = world.workspace("/".join(["p"] * up), "export FOO=1\n")
    deep = workspace / "a" / "b"
    deep.mkdir(parents=True)
    off = Settings(sidecar="off", direnv=world.direnv)
    for mode, settings in (("sidecar", world.settings), ("direct", off)):
        with worn(world.environ):
            os.chdir(deep)
            client = quiet_client(settings)
            outcome = client.refresh().outcome
            again = client.refresh()
            if outcome != "loaded" or again.answered != "stats":
                message = f"refresh() gives {outcome}, then {again.outcome}"
                raise CannotRunError(message)
            calls, bare = _same_calls(client)
            ratio = paired(client.refresh, bare, pairs=pairs, times=TIMES)
            spawn = world.hook(os.environ, deep)
            if spawn():
                raise CannotRunError("direnv does not take it for unchanged")
            beside = paired(
                client.refresh, spawn, pairs=pairs // 4, times=TIMES, other_times=1
            ).inverse()
            client.close()
        yield Row(
            "hook",
            f"refresh() unchanged, depth {DEPTH}, {mode}",
            f"<= {HOOK_RATIO} x the same calls, bare",
            f"{ratio}: {readable(ratio.ours_s)} / {readable(ratio.other_s)} ({calls})",
            ratio.middle <= HOOK_RATIO,
            ratio.figures(),
        )
        yield Row(
            "hook",
            f"  beside direnv export json, {mode}",
            f">= {SPAWN_RATIO} x cheaper",
            f"{beside}: {readable(beside.ours_s)} / {readable(beside.other_s)}",
            beside.middle >= SPAWN_RATIO,
            beside.figures(),
        )
    os.chdir("/")


def _same_calls(client: Client) -> tuple[str, Callable[[], None]]:
    """Give the bare loop of the system calls that this client makes, and its size."""
    absent, entries, links, poll, _ = client._checks[getcwd()]
    if links:
        raise CannotRunError("there is a symbolic link among the watched files")
    paths = tuple(entry[0] for entry in entries)
    calls = f"getcwd, {len(absent)} access, {len(paths)} stat"
    if poll is None:

        def bare() -> None:
            getcwd()
            for path in absent:
                access(path, 0)
            for path in paths:
                stat(path)

        return calls, bare

    def bare_with_poll() -> None:
        getcwd()
        for path in absent:
            access(path, 0)
        for path in paths:
            stat(path)
        poll[0]()

    return f"{calls}, poll", bare_with_poll


def _rootless(world: World, pairs: int) -> Iterator[Row]:
    """Row 2: no root file from depth 10 up to `/`."""
    missing = ROOTLESS_DEPTH - len(world.top.parts) + 1
    deep = world.top.joinpath(*(str(number) for number in range(missing)))
    deep.mkdir(parents=True, exist_ok=True)
    with worn(world.environ):
        os.chdir(deep)
        client = quiet_client(Settings(sidecar="off", direnv=world.direnv))
        if client.refresh().outcome != "absent":
            raise CannotRunError(f"there is a root file above {world.top}")
        chain, path = [], str(deep)
        while path != "/":
            chain.append(f"{path}/.envrc")
            path = os.path.dirname(path)
        chain.append("/.envrc")
        more = set(client._checks[str(deep)][0]) - set(chain)

        def bare() -> None:
            getcwd()
            for path in chain:
                access(path, 0)

        ratio = paired(client.refresh, bare, pairs=pairs, times=TIMES)
        client.close()
    os.chdir("/")
    sizes = f"getcwd, {len(chain)} access; the hook has {len(more)} more"
    yield Row(
        "hook",
        f"refresh() without a root file, depth {ROOTLESS_DEPTH}",
        f"<= {ROOTLESS_RATIO} x the bare access loop",
        f"{ratio}: {readable(ratio.ours_s)} / {readable(ratio.other_s)} ({sizes})",
        ratio.middle <= ROOTLESS_RATIO,
        {**ratio.figures(), "more_access": len(more)},
    )
