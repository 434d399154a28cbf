"""The hook: unchanged, without a root file, leaving."""

from __future__ import annotations

import os
import select
import statistics
from collections.abc import Iterator

from bench.measures import Row, micro, paired, seconds
from bench.worlds import World, big
from kernel_client import Client, Settings

TIMES = 2000


def unchanged(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 1: three watched files, six folders deep."""
    pairs = 20 if quick else 60
    world.serve()
    world.workspace("w", "export FOO=1\nwatch_file extra\n")
    deep = world.top / "w" / "a" / "b"
    deep.mkdir(parents=True)
    os.chdir(deep)
    for shared in (True, False):
        saved = dict(os.environ)
        os.environ.clear()
        os.environ.update(world.environ)
        client = Client(
            output=lambda _: None, settings=world.client({}, shared=shared).settings
        )
        outcome = client.refresh().outcome
        if outcome != "loaded":
            raise SystemExit(f"bench: the workspace is {outcome}")
        bare = _same_calls(client)
        ratio = paired(client.refresh, bare, pairs=pairs, times=TIMES)
        environ = dict(os.environ)
        hook = paired(
            client.refresh,
            world.hook(environ, deep),
            pairs=pairs // 2,
            times=TIMES,
            other_times=5,
        )
        client.close()
        os.environ.clear()
        os.environ.update(saved)
        mode = "sidecar" if shared else "direct"
        yield Row(
            f"refresh() unchanged, {mode}",
            "<= 1.6 x the bare calls",
            f"{ratio}: {micro(ratio.ours_s)} / {micro(ratio.other_s)}",
            ratio.middle <= 1.6,
        )
        yield Row(
            f"  beside direnv export json, {mode}",
            ">= 300 x cheaper",
            f"{1 / hook.middle:.0f} x: {micro(hook.ours_s)} / {micro(hook.other_s)}",
            1 / hook.middle >= 300,
        )
    os.chdir("/")


def _same_calls(client: Client) -> object:
    """Give the bare loop of the system calls that this client makes."""
    absent, stats, links, poll = client._checks[os.getcwd()]
    paths = [entry[0] for entry in stats]
    if links:
        raise SystemExit("bench: no links were expected here")
    quiet = poll
    if quiet is None:

        def bare() -> None:
            os.getcwd()
            for path in absent:
                os.access(path, os.F_OK)
            for path in paths:
                os.stat(path)

        return bare
    waiting = select.poll()
    reader, _ = os.pipe()
    waiting.register(reader, select.POLLIN)

    def bare_with_poll() -> None:
        os.getcwd()
        for path in absent:
            os.access(path, os.F_OK)
        for path in paths:
            os.stat(path)
        waiting.poll(0)

    return bare_with_poll


def rootless(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 2: no root file, ten folders deep."""
    folder = "/"
    deep = world.top.joinpath(*(str(n) for n in range(10 - len(world.top.parts) + 1)))
    deep.mkdir(parents=True, exist_ok=True)
    os.chdir(deep)
    client = Client(output=lambda _: None, settings=Settings(sidecar="off"))
    if client.refresh().outcome != "absent":
        raise SystemExit("bench: there is an .envrc above the temp folder")
    absent = client._checks[str(deep)][0]
    chain = [path for path in absent if path.endswith(".envrc")]

    def bare() -> None:
        os.getcwd()
        for path in chain:
            os.access(path, os.F_OK)

    ratio = paired(client.refresh, bare, pairs=20 if quick else 60, times=TIMES)
    os.chdir(folder)
    yield Row(
        f"refresh() without a root file, {len(chain)} folders",
        "<= 1.3 x the bare access loop",
        f"{ratio}: {micro(ratio.ours_s)} / {micro(ratio.other_s)}",
        ratio.middle <= 1.3,
    )


def leaving(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 4: leaving a workspace with an environment of 60 KB."""
    folder = world.workspace("l", "export FOO=1\nPATH_add bin\n")
    saved = dict(os.environ)
    os.environ.clear()
    os.environ.update({**world.environ, **big()})
    settings = Settings(sidecar="off", direnv=world.direnv)
    client = Client(output=lambda _: None, settings=settings)
    found: list[float] = []
    for _ in range(5 if quick else 20):
        os.chdir(folder)
        client.refresh()
        os.chdir("/")
        found.append(seconds(client.refresh))
    os.environ.clear()
    os.environ.update(saved)
    middle = statistics.median(found)
    yield Row(
        "leaving, 60 KB environment",
        "< 0.3 ms, no process",
        f"{micro(middle)} (answered from memory)",
        middle < 0.3e-3,
    )
