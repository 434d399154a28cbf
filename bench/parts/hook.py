"""The hook: `refresh()` where nothing has changed, and where no root file is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os import access, getcwd

from bench import clients
from bench.findings import CannotRunError, Row
from bench.measures import paired, readable
from bench.worlds import World, worn
from kernel_client import Settings

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
            client = clients.loaded(settings, deep)
            calls = clients.calls(client)
            ratio = paired(client.refresh, calls.bare(), pairs=pairs, times=TIMES)
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


def _rootless(world: World, pairs: int) -> Iterator[Row]:
    """Row 2: no root file from depth 10 up to `/`."""
    missing = ROOTLESS_DEPTH - len(world.top.parts) + 1
    deep = world.top.joinpath(*(str(number) for number in range(missing)))
    deep.mkdir(parents=True, exist_ok=True)
    with worn(world.environ):
        os.chdir(deep)
        client = clients.quiet(Settings(sidecar="off", direnv=world.direnv))
        if client.refresh().outcome != "absent":
            raise CannotRunError(f"there is a root file above {world.top}")
        chain, path = [], str(deep)
        while path != "/":
            chain.append(f"{path}/.envrc")
            path = os.path.dirname(path)
        chain.append("/.envrc")
        more = set(clients.calls(client).absent) - set(chain)

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
